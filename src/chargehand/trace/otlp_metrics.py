"""Events -> metrics of a process as OTLP/JSON (ExportMetricsServiceRequest): tokens, cost, durations, queueing.

Names, units and limits of buckets are those of OpenTelemetry's GenAI conventions; names that are missing there start
with `chargehand.`. Values are cumulative from the start of the process, which is the default of collectors.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from chargehand.events import Event, ModelCalled, ModelReplied, RunEnded, RunStarted, ToolCalled, ToolReturned
from chargehand.text.redaction import Redactor
from chargehand.trace.otlp import describe_resource, describe_scope, nanoseconds, write_attributes

Data: TypeAlias = dict[str, Any]
Labels: TypeAlias = tuple[tuple[str, str], ...]

_CUMULATIVE = 2
_TOKEN_BOUNDS = tuple(float(4**power) for power in range(14))
_SECOND_BOUNDS = tuple(0.01 * 2**power for power in range(14))
# The most series that a process keeps, even if it names new models or tools all the time.
_MOST_SERIES = 2_000

_TOKENS = "gen_ai.client.token.usage"
_DURATION = "gen_ai.client.operation.duration"
_TOOL_DURATION = "chargehand.tool.duration"
_QUEUE = "chargehand.queue.duration"
_COST = "chargehand.cost"
_RUN = "chargehand.run.duration"
_ABOUT = {
    _TOKENS: ("{token}", "Tokens used by model calls.", _TOKEN_BOUNDS),
    _DURATION: ("s", "Duration of model calls, retries included.", _SECOND_BOUNDS),
    _TOOL_DURATION: ("s", "Duration of tool calls and programs.", _SECOND_BOUNDS),
    _QUEUE: ("s", "Time that calls waited for slots, limits, backoff and budget.", _SECOND_BOUNDS),
    _COST: ("USD", "Cost of model calls whose price is known.", ()),
    _RUN: ("s", "Duration of sessions of runs.", _SECOND_BOUNDS),
}


@dataclass(slots=True)
class _Series:
    """One metric with one set of labels."""

    bounds: tuple[float, ...]
    count: int = 0
    sum: float = 0.0
    least: float = 0.0
    most: float = 0.0
    buckets: list[int] = field(default_factory=list[int])

    def add(self, value: float) -> None:
        if self.bounds:
            self.buckets = self.buckets or [0] * (len(self.bounds) + 1)
            self.buckets[bisect_left(self.bounds, value)] += 1
            self.least = value if not self.count else min(self.least, value)
            self.most = max(self.most, value)
        self.count += 1
        self.sum += value


@dataclass(slots=True)
class ProcessMetrics:
    """The metrics of all runs of one process so far. Belongs to one thread."""

    started: float
    version: str = ""
    # Whether there are values that were not written yet.
    changed: bool = False
    _series: dict[tuple[str, Labels], _Series] = field(default_factory=dict[tuple[str, Labels], _Series])
    # (run, key) of a call under way -> its labels; run -> its team and when its session began.
    _calls: dict[tuple[str, str], Labels] = field(default_factory=dict[tuple[str, str], Labels])
    _runs: dict[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])

    def apply(self, event: Event) -> None:
        match event.body:
            case RunStarted(chargehand=version, team=team):
                self.version = version
                self._runs[event.run] = str(team.get("name") or ""), event.at
            case ModelCalled(key=key, model=model):
                provider, _, name = model.rpartition(":")
                labels = (("gen_ai.provider.name", provider or "unknown"), ("gen_ai.request.model", name))
                self._calls[event.run, key] = (("gen_ai.operation.name", "chat"), *labels)
            case ToolCalled(key=key, tool=tool):
                labels = (("gen_ai.operation.name", "execute_tool"), ("gen_ai.tool.name", tool))
                self._calls[event.run, key] = labels
            case ModelReplied(key=key, result=result):
                self._end_call(self._calls.pop((event.run, key), None), result, _DURATION)
            case ToolReturned(key=key, result=result):
                self._end_call(self._calls.pop((event.run, key), None), result, _TOOL_DURATION)
            case RunEnded(status=status):
                team, began = self._runs.pop(event.run, ("", event.at))
                labels = (("gen_ai.workflow.name", team), ("chargehand.status", status))
                self._add(_RUN, labels, max(event.at - began, 0.0))
            case _:
                pass

    def forget(self, run: str) -> None:
        """Drop a run whose session is over, with its calls that will never end."""
        self._runs.pop(run, None)
        for call in [each for each in self._calls if each[0] == run]:
            del self._calls[call]

    def _end_call(self, labels: Labels | None, result: Data, duration: str) -> None:
        if labels is None:
            return
        error = _part(result, "error").get("kind")
        ended = (*labels, ("error.type", str(error))) if error else labels
        self._add(duration, ended, float(result.get("seconds") or 0.0))
        self._add(_QUEUE, labels, float(result.get("waiting_s") or 0.0))
        usage = _part(_part(result, "reply"), "usage") or _part(result, "used")
        for kind in ("input", "output"):
            if usage.get(f"{kind}_tokens") is not None:
                self._add(_TOKENS, (*labels, ("gen_ai.token.type", kind)), float(usage[f"{kind}_tokens"]))
        usd = result.get("usd") if result.get("usd") is not None else usage.get("usd")
        if usd:
            self._add(_COST, labels, float(usd))

    def _add(self, name: str, labels: Labels, value: float) -> None:
        key = name, labels
        if key not in self._series and len(self._series) >= _MOST_SERIES:
            key = name, (("otel.metric.overflow", "true"),)
        self._series.setdefault(key, _Series(_ABOUT[name][2])).add(value)
        self.changed = True

    def write(self, now: float, redactor: Redactor, resource: Data | None = None) -> Data:
        """All metrics as one document."""
        self.changed = False
        points: dict[str, list[Data]] = {}
        for (name, labels), series in self._series.items():
            points.setdefault(name, []).append(self._point(labels, series, now, redactor))
        metrics = [_metric(name, of_name) for name, of_name in points.items()]
        scope = {"scope": describe_scope(self.version), "metrics": metrics}
        about = describe_resource(self.version, redactor, resource)
        return {"resourceMetrics": [{"resource": about, "scopeMetrics": [scope]}] if metrics else []}

    def _point(self, labels: Labels, series: _Series, now: float, redactor: Redactor) -> Data:
        point: Data = {
            "attributes": write_attributes(dict(labels), redactor),
            "startTimeUnixNano": nanoseconds(self.started),
            "timeUnixNano": nanoseconds(now),
        }
        if not series.bounds:
            return point | {"asDouble": series.sum}
        return point | {
            "count": str(series.count),
            "sum": series.sum,
            "min": series.least,
            "max": series.most,
            "bucketCounts": [str(each) for each in series.buckets],
            "explicitBounds": list(series.bounds),
        }


def _metric(name: str, points: list[Data]) -> Data:
    unit, about, bounds = _ABOUT[name]
    metric: Data = {"name": name, "unit": unit, "description": about}
    if bounds:
        return metric | {"histogram": {"dataPoints": points, "aggregationTemporality": _CUMULATIVE}}
    summed = {"dataPoints": points, "aggregationTemporality": _CUMULATIVE, "isMonotonic": True}
    return metric | {"sum": summed}


def _part(data: Data, name: str) -> Data:
    value = data.get(name)
    return cast(Data, value) if isinstance(value, dict) else {}
