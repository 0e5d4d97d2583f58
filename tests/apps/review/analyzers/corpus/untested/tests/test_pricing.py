"""Tests of prices."""

from untested.postage.rates import LETTER
from untested.pricing import Basket, discounted


def test_discount():
    assert discounted(100) == 85


def test_basket():
    assert Basket().items == []


def test_letter():
    assert LETTER == 95
