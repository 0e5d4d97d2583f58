"""Imports and values with a purpose."""

import json as json
import os
from typing import TypeVar

_T = TypeVar("_T")


def home() -> str:
    path, _ = os.path.split(os.path.expanduser("~/x"))
    return path


def first(values: list[_T]) -> _T:
    head, *_rest = values
    return head
