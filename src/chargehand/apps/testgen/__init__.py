"""A Python project becomes tests for what has none: found without running it, tried in a sandbox, run three times.

`await run(path)` is the whole of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chargehand.apps.testgen.app import Generated, run

__all__ = ["Generated", "run"]


def __getattr__(name: str) -> Any:
    # Names are loaded at first use: analyzers import this package and need none of them.
    if name not in __all__:
        raise AttributeError(f"module 'chargehand.apps.testgen' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("chargehand.apps.testgen.app"), name)
