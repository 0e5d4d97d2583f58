"""A queue shared by runs: one from each in turn, and inside a run the lowest order first, then by arrival."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Invariant: no line is empty, and the first line is the next run's."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, list[tuple[int, int, T]]] = OrderedDict()
        self._arrivals = 0

    def push(self, run: str, order: int, item: T) -> None:
        self._arrivals += 1
        heapq.heappush(self._lines.setdefault(run, []), (order, self._arrivals, item))

    def head(self) -> T | None:
        for line in self._lines.values():
            return line[0][2]
        return None

    def serve(self) -> T:
        """Remove the head; this uses up its run's turn."""
        run, item = self._take()
        if run in self._lines:
            self._lines.move_to_end(run)
        return item

    def skip(self) -> T:
        """Remove the head; its run keeps its turn."""
        return self._take()[1]

    def drop(self, run: str) -> list[T]:
        """Remove all waiters of a run."""
        return [item for _, _, item in sorted(self._lines.pop(run, []), key=lambda entry: entry[:2])]

    def __iter__(self) -> Iterator[T]:
        for line in self._lines.values():
            for _, _, item in line:
                yield item

    def _take(self) -> tuple[str, T]:
        run, line = next(iter(self._lines.items()))
        item = heapq.heappop(line)[2]
        if not line:
            del self._lines[run]
        return run, item
