"""Lines that end with CR LF, as editors on Windows write them."""


def state(value: str) -> bool:
    return value is "open"
