"""Imports and values nobody needs."""

import json
import os


def home() -> str:
    path = os.path.expanduser("~")
    backup = path + ".bak"
    return path


def twice() -> int:
    return 1


def twice() -> int:
    return 2
