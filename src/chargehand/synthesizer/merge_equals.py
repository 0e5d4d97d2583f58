"""Items that say the same -> one: all sources in order, and a confidence that the agreement of workers raises.

The rule: every worker has one voice, its surest; the voices that state a confidence are combined as independent chances
of being right, 1 - (1-a)(1-b)..., and never above 99. Two workers with 70 and 60 give 88. The same worker saying it
twice raises nothing, and neither does a worker that states no confidence. What was 100 stays 100.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

HIGHEST: Final = 99


def sources(items: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """All sources, each once, in the order of their first appearance."""
    return tuple(dict.fromkeys(source for item in items for source in item))


def confidence(items: Sequence[tuple[int | None, Sequence[str]]], workers: Mapping[str, str]) -> int | None:
    """The confidence of items with their sources, by the rule above; `workers` tells who did a task."""
    stated = sorted(
        ((sure, _voices(named, workers)) for sure, named in items if sure is not None), key=lambda item: -item[0]
    )
    if not stated:
        return None
    heard: set[str] = set()
    doubt = 1.0
    for sure, voices in stated:
        if heard.isdisjoint(voices):
            doubt *= 1 - sure / 100
            heard |= voices
    return max(stated[0][0], min(HIGHEST, round(100 * (1 - doubt))))


def _voices(named: Sequence[str], workers: Mapping[str, str]) -> frozenset[str]:
    """The workers behind an item. A task whose worker is not known speaks for itself: the first source is a task."""
    tasks = [source for source in named if source in workers] or list(named[:1])
    return frozenset(f"worker {workers[task]}" if task in workers else f"task {task}" for task in tasks)
