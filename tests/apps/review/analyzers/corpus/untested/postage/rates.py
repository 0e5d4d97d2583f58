"""Rates of postage."""

LETTER = 95
