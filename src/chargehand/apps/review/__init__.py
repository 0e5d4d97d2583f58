"""Code review: a change becomes a plan of lenses and files, the run's findings become what is worth showing.

`await run(path)` is the whole of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chargehand.apps.review.app import run
    from chargehand.apps.review.formats import Review, render_review

__all__ = ["Review", "render_review", "run"]

_HOMES = {
    "Review": "chargehand.apps.review.formats",
    "render_review": "chargehand.apps.review.formats",
    "run": "chargehand.apps.review.app",
}


def __getattr__(name: str) -> Any:
    # Names are loaded at first use: analyzers import this package in child processes, which need none of them.
    if name not in _HOMES:
        raise AttributeError(f"module 'chargehand.apps.review' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
