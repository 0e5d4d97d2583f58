"""Names."""


class order_line:
    def total(this) -> int:
        return 1

    @classmethod
    def make(self) -> "order_line":
        return self()
