"""Code review: a change becomes a plan of lenses and files, and findings worth showing are selected from the run.

`await run(path)` does all of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chargehand.values.lazy_names import lazy_names

if TYPE_CHECKING:
    from chargehand.apps.review.formats import Review, render_review
    from chargehand.apps.review.run_review import run

__all__ = ["Review", "render_review", "run"]

# Loaded at first use: child processes of analyzers import this package and need none of these names.
__getattr__ = lazy_names(__name__, {"Review": "formats", "render_review": "formats", "run": "run_review"})
