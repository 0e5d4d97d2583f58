"""A run and its caller -> the trace that it is part of, and the trace context of its own calls."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from chargehand.record.home import Home
from chargehand.record.replay import Replay
from chargehand.settings.settings import OtelSettings
from chargehand.values.trace_context import TraceCaller, span_id_of, trace_id_of

if TYPE_CHECKING:
    from chargehand.runs.send_telemetry import WatchedRun


class TracedRun(NamedTuple):
    """The trace that a run is part of."""

    run: str
    id: str
    caller: TraceCaller | None
    # Whether its spans are sent to a collector: only then can other spans be below them.
    sends: bool

    def header(self, key: str) -> str | None:
        """The `traceparent` for the call with this key; where nothing is sent, the caller's own, unchanged."""
        if self.sends:
            return f"00-{self.id}-{span_id_of(self.run, key)}-01"
        return None if self.caller is None else self.caller.header

    def to_json(self) -> dict[str, Any]:
        """As `run_started` has it."""
        caller = self.caller
        other = {} if caller is None or caller.trace == self.id else {"caller_trace": caller.trace}
        return {"id": self.id, "parent": None if caller is None else caller.span, **other}


def find_trace(run: str, header: str | None, earlier: Replay | None, *, sends: bool) -> TracedRun | None:
    """The trace that is on record, else the caller's, else one of the run's own; None where nobody needs one."""
    caller = TraceCaller.parse(header)
    if not sends and caller is None:
        return None
    recorded: dict[str, str] = {} if earlier is None else earlier.start.get("trace") or {}
    fresh = caller.trace if caller is not None and earlier is None else trace_id_of(run)
    return TracedRun(run, recorded.get("id") or fresh, caller, sends)


def watch_run(home: Home, otel: OtelSettings, header: str | None, run: str) -> WatchedRun:
    """Begin to send what a session of a run does; a caller may have decided that its trace is not kept."""
    from chargehand.runs.send_telemetry import telemetry_to  # not where a trace is only passed on

    caller = TraceCaller.parse(header)
    return telemetry_to(otel, os.environ).watch(home.path, run, sampled=caller is None or caller.sampled)
