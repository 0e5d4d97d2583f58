"""Events of runs -> their states as JSON, folded once and continued from the last event that was read."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from chargehand.record.run_source import RunSource
from chargehand.text.escaping import dump_json
from chargehand.text.redaction import Redactor
from chargehand.trace.run_state import RunState
from chargehand.trace.state_json import state_json
from chargehand.values.status_words import FINISHED

# States kept in memory; that of a run of 5,000 tasks takes some 100 MB.
MOST_STATES = 4


@dataclass(slots=True)
class _Held:
    view: RunState = field(default_factory=RunState)
    lock: threading.Lock = field(default_factory=threading.Lock)
    # The JSON, and the status and number of the last event it was made with.
    text: str = ""
    made_with: tuple[str, int] = ("", -1)


class RunStates:
    """The states of the runs that were asked for last. Called from threads."""

    def __init__(self, source: RunSource, redactor: Redactor) -> None:
        self._source = source
        self._redactor = redactor
        self._lock = threading.Lock()
        self._held: OrderedDict[str, _Held] = OrderedDict()

    def read(self, run: str) -> str:
        """The state as a JSON document, without secrets."""
        with self._lock:
            held = self._held.setdefault(run, _Held())
            self._held.move_to_end(run)
            while len(self._held) > MOST_STATES:
                self._held.popitem(last=False)
        with held.lock:
            for event in self._source.events(run, held.view.seq):
                held.view.apply(event)
            status = self._status(run, held.view)
            if held.made_with != (status, held.view.seq):
                state = state_json(held.view) | {"run": run, "status": status}
                held.text = dump_json(self._redactor.json(state))
                held.made_with = status, held.view.seq
            return held.text

    def _status(self, run: str, view: RunState) -> str:
        """As the record says, unless its process died before it could say so."""
        if view.status in FINISHED or view.ended is not None or self._source.owner(run) is not None:
            return view.status
        return "waiting" if view.questions else "interrupted"
