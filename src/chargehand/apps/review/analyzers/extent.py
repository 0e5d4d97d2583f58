"""The size of a change, as a hit: past a few hundred lines reviewers stop finding defects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chargehand.apps.review.analyzers import AnalyzerResult, Scope, categories
from chargehand.apps.review.analyzers.hit import Hit
from chargehand.apps.review.analyzers.sources import is_test

if TYPE_CHECKING:
    from chargehand.apps.review.analyzers import Lens

# Lines outside tests; beyond it the rate of defects found in review falls off.
LARGE = 800


def version() -> str:
    return f"extent {categories.MAPPING}"


async def analyze(scope: Scope, lens: Lens) -> AnalyzerResult:
    if scope.changed is None:
        return AnalyzerResult()
    sizes = {
        path: sum(last - first + 1 for first, last in scope.changed.get(path, ()))
        for path in scope.files
        if not is_test(path)
    }
    total = sum(sizes.values())
    if total <= LARGE:
        return AnalyzerResult()
    largest = max(sizes, key=lambda path: (sizes[path], path))
    message = f"The change writes {total:,} lines outside tests, {sizes[largest]:,} of them in {largest}."
    line = scope.changed[largest][0][0]
    hit = Hit(
        "extent:large", largest, line, message, suggestion="Split it into changes that can be reviewed on their own."
    )
    return AnalyzerResult(categories.findings([hit], lens))
