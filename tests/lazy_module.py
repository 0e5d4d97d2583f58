"""A library that takes a second to import -> a stand-in that imports it when a test first uses it.

Every worker of pytest imports all test modules, and most of them run no test that uses the library.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any


class LazyModule:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        # pytest looks at all names of a test module, and asks each for marks of its own.
        if attribute.startswith(("_", "pytest")):
            raise AttributeError(attribute)
        # Warnings of other people's code at its import are not about chargehand.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(importlib.import_module(self._name), attribute)
