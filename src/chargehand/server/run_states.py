"""Events of runs -> their states as JSON, folded once and continued from the last event that was read."""

from __future__ import annotations

import threading
from collections import OrderedDict
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from chargehand.apps.shown_report import parts_shown_by_app, waiting_json
from chargehand.record.run_source import RunSource
from chargehand.text.escaping import dump_json
from chargehand.text.redaction import Redactor
from chargehand.trace.page_state import page_state, possible_orders, wait_of
from chargehand.trace.run_state import RunState
from chargehand.trace.task_detail import task_details
from chargehand.values.status_words import FINISHED

# States kept in memory; the state of a run of 5,000 tasks takes about 100 MB.
MOST_STATES = 4


@dataclass(slots=True)
class _Held:
    view: RunState = field(default_factory=RunState)
    lock: threading.Lock = field(default_factory=threading.Lock)
    # The JSON, and what it was made with: the status, whether no process has the run, the number of the last event.
    text: str = ""
    made_with: tuple[str, bool | None, int] | None = None


class RunStates:
    """The states of the most recently requested runs. Called from threads."""

    def __init__(self, source: RunSource, redactor: Redactor) -> None:
        self._source = source
        self._redactor = redactor
        self._lock = threading.Lock()
        self._held: OrderedDict[str, _Held] = OrderedDict()

    def read(self, run: str, since: int = 0) -> str:
        """The state as a JSON document, without secrets, with only the tasks that an event after `since` touched."""
        held = self._hold(run)
        with held.lock:
            self._catch_up(run, held)
            status, is_over = current_status(self._source, run, held.view), self._is_over(run)
            if since:
                return self._dump(run, held.view, status, is_over, since)
            if held.made_with != (made_with := (status, is_over, held.view.seq)):
                held.text = self._dump(run, held.view, status, is_over)
                held.made_with = made_with
            return held.text

    def read_task(self, run: str, id: str) -> str | None:
        """Everything on the record about one task, as a JSON document; None if there is no such task."""
        held = self._hold(run)
        with held.lock:
            self._catch_up(run, held)
            task = held.view.tasks.get(id)
            if task is None:
                return None
            events = self._source.events(run)
            status_of = partial(held.view.status_of, is_over=self._is_over(run))
            ((_, detail),) = task_details([task], events, partial(self._source.messages, run), status_of)
        return dump_json(self._redactor.json(detail))

    def _hold(self, run: str) -> _Held:
        with self._lock:
            held = self._held.setdefault(run, _Held())
            self._held.move_to_end(run)
            while len(self._held) > MOST_STATES:
                self._held.popitem(last=False)
        return held

    def _catch_up(self, run: str, held: _Held) -> None:
        for event in self._source.events(run, held.view.seq):
            held.view.apply(event)

    def _is_over(self, run: str) -> bool | None:
        """True if no process has the run. While one has, the record says what its tasks do."""
        return True if self._source.owner(run) is None else None

    def _dump(self, run: str, view: RunState, status: str, is_over: bool | None, since: int = 0) -> str:
        shown = None if view.ended is None else parts_shown_by_app(self._source, run)
        if shown is not None:
            view = copy(view)
            view.report = (view.report or {}) | shown
        state: dict[str, Any] = page_state(view, since=since, is_over=is_over)
        state |= {"run": run, "status": status}
        state["findings_first"] = shown is not None
        state["orders"] = possible_orders(status)
        if status == "waiting" and not view.questions:
            # A running process reports itself that it waits for a provider. For a parked run, the record says it.
            state |= {} if view.waiting else waiting_json(self._source, run, status)
        state["waits_for"] = wait_of(view, status, state["waiting"])
        return dump_json(self._redactor.json(state))


def current_status(source: RunSource, run: str, view: RunState) -> str:
    """The status on record, corrected if the process died before it could record one."""
    if view.status in (*FINISHED, "paused") or view.ended is not None or source.owner(run) is not None:
        return view.status
    return "waiting" if view.questions else "interrupted"
