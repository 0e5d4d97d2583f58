"""The size of a large change, as a hit: in more than a few hundred lines reviewers find fewer defects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chargehand.apps.review.analyzers.hit import Hit, Hits
from chargehand.apps.review.analyzers.source_files import is_test

if TYPE_CHECKING:
    from chargehand.apps.review.analyzers.lens import Lens
    from chargehand.engine.analyzer_port import Scope

# Lines outside tests. Reviewers of larger changes find a smaller share of the defects.
LARGE = 800


async def analyze(scope: Scope, lens: Lens) -> Hits:
    changed = scope.changed or {}
    sizes = {
        path: sum(last - first + 1 for first, last in changed.get(path, ()))
        for path in scope.files
        if not is_test(path)
    }
    total = sum(sizes.values())
    if total <= LARGE:
        return Hits()
    largest = max(sizes, key=lambda path: (sizes[path], path))
    message = f"The change writes {total:,} lines outside tests, {sizes[largest]:,} of them in {largest}."
    line = changed[largest][0][0]
    hit = Hit(
        "extent:large", largest, line, message, suggestion="Split it into changes that can be reviewed on their own."
    )
    return Hits((hit,))
