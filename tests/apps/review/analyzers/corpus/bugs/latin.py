# -*- coding: latin-1 -*-
"""Prices in pünktlich order."""


def price(value: str) -> object:
    return eval("'café' + " + value)
