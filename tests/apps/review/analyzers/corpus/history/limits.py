"""Limits."""

MAX_ITEMS = 10_000_000
MAX_NAME = 80
