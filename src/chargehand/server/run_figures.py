"""The record of a run -> the figures in its line of the list: progress, cost against budget, gaps.

They are counted when a line is first shown, within a time limit per request. A line without counted figures gets them
in a later request.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import closing
from typing import Any

from chargehand.errors import ChargehandError
from chargehand.events import EventBody, RunEnded, RunStarted
from chargehand.record.index import RunInfo
from chargehand.record.run_source import RunSource
from chargehand.trace.run_state import RunState
from chargehand.values.status_words import FINISHED

# Seconds that a request for the list may spend on counting.
COUNTING_S = 0.02
MOST_LINES = 10_000
# States of runs that are not over, each continued from its last event.
MOST_STATES = 32

Figures = dict[str, Any]


class RunFigures:
    """The figures of the runs of one source. Called from threads; one of them counts at a time."""

    def __init__(self, source: RunSource) -> None:
        self._source = source
        self._lock = threading.Lock()
        # By run: the change mark of its record, and the figures.
        self._known: OrderedDict[str, tuple[object, Figures]] = OrderedDict()
        self._open: OrderedDict[str, RunState] = OrderedDict()

    def read(self, infos: Iterable[RunInfo]) -> dict[str, Figures]:
        """The figures by run, for runs whose figures are known or can be counted now."""
        found: dict[str, Figures] = {}
        until = time.monotonic() + COUNTING_S
        with self._lock:
            for info in infos:
                mark = self._source.change_mark(info.run)
                known = self._known.get(info.run)
                if (known is None or known[0] != mark) and time.monotonic() < until:
                    try:
                        known = self._known[info.run] = mark, self._count(info)
                    except ChargehandError:
                        continue  # its own page says what is wrong with the record
                    self._known.move_to_end(info.run)
                if known is not None:
                    found[info.run] = known[1]
            while len(self._known) > MOST_LINES:
                self._known.popitem(last=False)
        return found

    def _count(self, info: RunInfo) -> Figures:
        over = info.status in FINISHED
        if over and (figures := self._from_report(info.run)) is not None:
            self._open.pop(info.run, None)
            return figures
        view = self._open.setdefault(info.run, RunState())
        self._open.move_to_end(info.run)
        while len(self._open) > MOST_STATES:
            self._open.popitem(last=False)
        for event in self._source.events(info.run, view.seq):
            view.apply(event)
        if over:
            self._open.pop(info.run, None)
        planned = len(view.plan.tasks) if view.plan is not None else 0
        gaps: list[Any] = (view.report or {}).get("gaps") or view.gaps
        return _figures(
            len(view.tasks) or planned,
            view.counts().get("done", 0),
            view.usage.tokens,
            view.usage.usd,
            len(gaps),
            view.budget,
            len(view.questions),
        )

    def _from_report(self, run: str) -> Figures | None:
        """The figures from the first and the last event; None if that is not the end, the end does not have the
        budget, or there may be tasks of nested teams.
        """
        last = self._source.last_event(run)
        first, body = self._body(run, 1), self._body(run, last)
        if not isinstance(body, RunEnded) or not body.report or body.budget is None:
            return None
        if not isinstance(first, RunStarted):
            return None
        workers: list[Figures] = first.team.get("workers") or []
        if any(worker.get("team") for worker in workers):
            return None
        report: Figures = body.report
        outcomes: list[Figures] = report.get("outcomes") or []
        usage: Figures = report.get("usage") or {}
        gaps: list[Any] = report.get("gaps") or []
        done = sum(outcome.get("status") == "done" for outcome in outcomes)
        tokens = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
        return _figures(len(outcomes), done, tokens, usage.get("usd"), len(gaps), body.budget)

    def _body(self, run: str, seq: int) -> EventBody | None:
        events = self._source.events(run, seq - 1)
        with closing(events):  # pyright: ignore[reportArgumentType]
            return next((event.body for event in events), None)


def _figures(
    tasks: int, done: int, tokens: int, usd: float | None, gaps: int, budget: dict[str, Any], questions: int = 0
) -> Figures:
    allowed = {"tokens": budget.get("tokens"), "usd": budget.get("usd")}
    spent = {"tokens": tokens, "usd": usd, "budget": allowed}
    return {"tasks": tasks, "done": done, "gaps": gaps, "questions": questions, **spent}
