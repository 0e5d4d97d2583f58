"""The runs of a home -> the requested list. The index is read again only after a change."""

from __future__ import annotations

import threading
from typing import Literal

from pydantic import Field

from chargehand.errors import ChargehandError
from chargehand.record.index import RunInfo
from chargehand.record.run_source import RunSource
from chargehand.server.checked_input import Input
from chargehand.trace.waits_for import WaitsFor, waits_for
from chargehand.values.status_words import RunStatus


class RunsQuery(Input):
    """Which runs to list, newest first. `before` is the last run of the page before; `needs_you` lists those first."""

    status: RunStatus | None = None
    team: str | None = Field(default=None, max_length=200)
    q: str | None = Field(default=None, max_length=1_000)
    before: str | None = Field(default=None, max_length=80)
    limit: int = Field(default=50, ge=1, le=500)
    needs_you: Literal["true", "false"] = "false"


class RunList:
    """The list of one source. Called from threads; one of them reads at a time."""

    def __init__(self, source: RunSource) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._mark: object = None
        self._runs: list[RunInfo] = []
        # Run that waits -> the mark of its record, and what it waits for.
        self._waits: dict[str, tuple[object, WaitsFor | None]] = {}

    def load(self) -> list[RunInfo]:
        """All runs, newest first, as they are now."""
        with self._lock:
            mark = self._source.list_mark()
            if mark != self._mark or any(info.status == "running" and self._is_dead(info) for info in self._runs):
                self._runs = self._source.runs(None)
                # Listing may itself repair the index.
                self._mark = mark if mark == self._source.list_mark() else None
            return self._runs

    def find(self, query: RunsQuery) -> tuple[list[RunInfo], bool]:
        """A page of runs, and whether there are more after it."""
        listed = self._select(query)
        if query.needs_you == "true":
            listed = sorted(listed, key=lambda info: self.wait_of(info) != "person")
        start = 0
        if query.before is not None:
            start = _position_after(listed, query.before)
        page = listed[start : start + query.limit]
        return page, len(listed) > start + query.limit

    def _select(self, query: RunsQuery) -> list[RunInfo]:
        runs = self.load()
        if query.status is not None:
            runs = [info for info in runs if info.status == query.status]
        if query.team is not None:
            runs = [info for info in runs if info.team == query.team]
        if words := (query.q or "").casefold().split():
            runs = [info for info in runs if _has_words(info, words)]
        return runs

    def wait_of(self, info: RunInfo) -> WaitsFor | None:
        """What the run waits for, if it waits."""
        if info.status != "waiting":
            return None
        mark = self._source.change_mark(info.run)
        known = self._waits.get(info.run)
        if known is None or known[0] != mark:
            try:
                state = self._source.state(info.run)
            except ChargehandError:
                return "person"  # its record cannot be read: a person should look at it
            provider = state.waits.run_waits or state.waits.for_provider is not None
            waits = waits_for(info.status, asks=bool(state.open_questions()), provider=provider)
            known = self._waits[info.run] = mark, waits
        return known[1]

    def _is_dead(self, info: RunInfo) -> bool:
        return self._source.owner(info.run) is None


def _has_words(info: RunInfo, words: list[str]) -> bool:
    text = f"{info.request} {info.run} {info.team}".casefold()
    return all(word in text for word in words)


def _position_after(listed: list[RunInfo], run: str) -> int:
    """Where the page after a run begins. The place of a removed run is found by its id, which begins with its time."""
    for at, info in enumerate(listed):
        if info.run == run:
            return at + 1
    return next((at for at, info in enumerate(listed) if info.run < run), len(listed))
