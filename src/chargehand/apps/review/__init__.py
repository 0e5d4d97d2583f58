"""Code review: a change becomes a plan of lenses and files, the run's findings become what is worth showing.

`await run(path)` is the whole of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chargehand.values.lazy_names import lazy_names

if TYPE_CHECKING:
    from chargehand.apps.review.formats import Review, render_review
    from chargehand.apps.review.run_review import run

__all__ = ["Review", "render_review", "run"]

# Analyzers import this package in child processes, which need none of them.
__getattr__ = lazy_names(__name__, {"Review": "formats", "render_review": "formats", "run": "run_review"})
