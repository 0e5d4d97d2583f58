"""Names, some of them given by others."""

import unittest


class OrderLine(unittest.TestCase):
    def setUp(self) -> None:
        self.count = 1

    @classmethod
    def make(cls) -> "OrderLine":
        return cls()


def f(x: float, y: float) -> float:
    return x * y
