"""Names of a folder that are loaded at first use, so that the import of one module does not load the others.

For folders that short commands touch: `__getattr__ = lazy_names(__name__, {"Name": "module"})` in `__init__.py`, with
the same names imported under TYPE_CHECKING for type checkers and import layers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package that takes each name from the given module below it."""

    def load_name(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return load_name
