"""Events -> the state of a run, one event at a time: what the live display shows, and what every export rests on.

`RunView.apply` costs the same however long the run is, and forgives what it does not know: additive changes within an
event version must not break an older reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from pydantic import ValidationError

from chargehand.trace.run_parts import (
    TASK_STATUSES,
    AttemptView,
    CallView,
    Data,
    Decision,
    SessionView,
    Tally,
    TaskState,
    TaskStatus,
)
from chargehand.values.event import Event
from chargehand.values.key import within
from chargehand.values.plan import Plan, Task


@dataclass(slots=True)
class RunState:
    """What is known of a run after the events applied so far. Only `apply` writes it."""

    run: str = ""
    status: str = "running"
    request: str = ""
    team: str = ""
    plan: Plan | None = None
    strategy: str = ""
    # In plan order; tasks that come later (extension, split) after those.
    tasks: dict[str, TaskState] = field(default_factory=dict[str, TaskState])
    # The calls that belong to no task: planning, routing, synthesis.
    calls: list[CallView] = field(default_factory=list[CallView])
    usage: Tally = field(default_factory=Tally)
    decisions: list[Decision] = field(default_factory=list[Decision])
    notes: tuple[str, ...] = ()
    warnings: list[str] = field(default_factory=list[str])
    # Open questions by key, as Question JSON.
    questions: dict[str, Data] = field(default_factory=dict[str, Data])
    contradictions: list[Data] = field(default_factory=list[Data])
    gaps: list[Data] = field(default_factory=list[Data])
    sessions: list[SessionView] = field(default_factory=list[SessionView])
    rerun_of: str | None = None
    synthesis_started: float | None = None
    started: float | None = None
    ended: float | None = None
    # Report JSON, once the run has ended.
    report: Data | None = None
    seq: int = 0
    # Every call by key, so that a reply finds its call.
    by_key: dict[str, CallView] = field(default_factory=dict[str, CallView], repr=False, compare=False)

    def apply(self, event: Event) -> None:
        """Take one more event into account."""
        self.seq = event.seq
        if not self.sessions:
            self.run, self.started = event.run, event.at
            self.sessions.append(SessionView(1, event.at, event.at))
        if event.kind != "run_started" and not event.outside:
            self.sessions[-1].ended = event.at
        if (fold_one := _FOLDS.get(event.kind)) is not None:
            fold_one(self, event, event.data)

    def elapsed_seconds(self, now: float | None = None) -> float:
        """Seconds the run has been running over all its sessions; `now` counts the running one up to that time."""
        passed = sum(session.seconds for session in self.sessions)
        if now is not None and self.sessions and self.ended is None:
            passed += max(now - self.sessions[-1].ended, 0.0)
        return passed

    def counts(self) -> dict[TaskStatus, int]:
        """How many tasks there are of each status that occurs."""
        counted = Counter(task.status for task in self.tasks.values())
        return {status: counted[status] for status in TASK_STATUSES if counted[status]}

    @property
    def epoch(self) -> int:
        return self.sessions[-1].epoch if self.sessions else 0


def fold(events: Iterable[Event]) -> RunState:
    """The state of a run after all these events."""
    view = RunState()
    for event in events:
        view.apply(event)
    return view


def _text(data: Data, name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _count(data: Data, name: str) -> int:
    value = data.get(name)
    return int(value) if isinstance(value, int | float) else 0


def _money(data: Data, name: str) -> float | None:
    value = data.get(name)
    return float(value) if isinstance(value, int | float) else None


def _part(data: Data, name: str) -> Data:
    value = data.get(name)
    return cast(Data, value) if isinstance(value, dict) else {}


def _parts(data: Data, name: str) -> list[Data]:
    value = data.get(name)
    return [cast(Data, v) for v in cast(list[Any], value) if isinstance(v, dict)] if isinstance(value, list) else []


def _texts(data: Data, name: str) -> tuple[str, ...]:
    value = data.get(name)
    return tuple(str(v) for v in cast(list[Any], value)) if isinstance(value, list | tuple) else ()


def _error(data: Data) -> str | None:
    """A Fault as one line; some events carry only its words."""
    fault = _part(data, "error")
    if fault:
        return f"{_text(fault, 'kind')}: {_text(fault, 'message')}"
    return _text(data, "error") or None


def _plan(data: Data) -> Plan | None:
    known = {name: value for name, value in data.items() if name in Plan.model_fields}
    known["tasks"] = [
        {name: value for name, value in task.items() if name in Task.model_fields} for task in _parts(data, "tasks")
    ]
    try:
        return Plan.model_validate(known)
    except ValidationError:
        return None


def _task(view: RunState, event: Event) -> TaskState | None:
    if event.task is None:
        return None
    task = view.tasks.get(event.task)
    if task is None:
        task = view.tasks[event.task] = TaskState(event.task, worker=_text(event.data, "worker"))
    return task


def _run_started(view: RunState, event: Event, data: Data) -> None:
    resumed = bool(data.get("resumed"))
    session = SessionView(_count(data, "epoch") or 1, event.at, event.at, resumed)
    if resumed:
        view.sessions.append(session)
    else:
        view.sessions[-1] = session
    view.status, view.ended, view.report = "running", None, None
    # This session's synthesis finds them again.
    view.gaps, view.contradictions = [], []
    view.request = _text(_part(data, "request"), "text") or view.request
    view.team = _text(_part(data, "team"), "name") or view.team
    view.rerun_of = _text(data, "rerun_of") or view.rerun_of


def _plan_drafted(view: RunState, event: Event, data: Data) -> None:
    if not view.strategy and event.task is None and data.get("source") != "added":
        view.plan = _plan(_part(data, "plan"))


def _plan_rejected(view: RunState, event: Event, data: Data) -> None:
    if not view.strategy and event.task is None:
        view.plan = None


def _plan_approved(view: RunState, event: Event, data: Data) -> None:
    plan = _part(data, "plan")
    if scope := _text(data, "within"):
        _add_tasks(view, _parts(plan, "tasks"), scope)
        return
    view.plan = _plan(plan)
    view.strategy = _text(data, "strategy") or (view.plan.strategy if view.plan else "unknown")
    view.notes = _texts(data, "notes")
    _add_tasks(view, _parts(plan, "tasks"))


def _extension(view: RunState, event: Event, data: Data) -> None:
    _add_tasks(view, _parts(data, "tasks"), _text(data, "within"))


def _add_tasks(view: RunState, tasks: list[Data], scope: str = "") -> None:
    """`scope` is the attempt whose team the tasks are of, such as `t3/1`."""
    for data in tasks:
        id = within(scope, _text(data, "id")) if scope else _text(data, "id")
        task = view.tasks.setdefault(id, TaskState(id))
        task.worker = _text(data, "worker")
        task.instruction = _text(data, "instruction")
        task.success_criterion = _text(data, "success_criterion")
        needs = _texts(data, "depends_on")
        task.depends_on = tuple(within(scope, each) for each in needs) if scope else needs


def _task_ready(view: RunState, event: Event, data: Data) -> None:
    if (task := _task(view, event)) is not None and task.status == "waiting":
        task.status, task.ready = "ready", event.at


def _attempt_started(view: RunState, event: Event, data: Data) -> None:
    task = _task(view, event)
    if task is None:
        return
    task.status, task.ended, task.outcome = "running", None, None
    task.started = event.at if task.started is None else task.started
    number = event.attempt or len(task.attempts) + 1
    if task.attempts and task.attempts[-1].number == number:
        attempt = task.attempts[-1]
        attempt.status, attempt.ended, attempt.error = "running", None, None
    else:
        attempt = AttemptView(number, "", event.at)
        task.attempts.append(attempt)
    attempt.worker = _text(data, "worker") or task.worker
    attempt.model, attempt.tier = _text(data, "model"), _text(data, "tier")


def _fold_call(view: RunState, event: Event, data: Data) -> None:
    kind: Literal["model", "tool"] = "model" if event.kind == "model_called" else "tool"
    key = _text(data, "key")
    sent = _count(data, "send")
    if (call := view.by_key.get(key)) is not None:
        call.ended, call.ok, call.error, call.sends = None, None, None, max(sent, call.sends + 1)
        return
    call = CallView(key, kind, _text(data, kind), event.at, _text(data, "role"), event.task, event.attempt)
    call.sends = max(sent, 1)
    _file(view, event, call)


def _file(view: RunState, event: Event, call: CallView) -> None:
    view.by_key[call.key] = call
    if (task := _task(view, event)) is None:
        view.calls.append(call)
        return
    task.reused = call.reused and (task.reused or not task.calls)
    task.calls.append(call)


def _fold_return(view: RunState, event: Event, data: Data) -> None:
    call = view.by_key.get(_text(data, "key"))
    if call is None:
        return
    result = _part(data, "result")
    call.ended, call.error = event.at, _error(result)
    call.ok = call.error is None
    if call.kind == "tool" or result.get("cut"):
        return  # what a call that was broken off may have used is counted where its budget is settled
    _count_usage(call, result)
    # A call that failed without a reply has no price to be unknown.
    usd = call.usd if result.get("reply") is not None else call.usd or 0.0
    view.usage.add(call, usd)
    if (task := _task(view, event)) is not None:
        task.usage.add(call, usd)


def _count_usage(call: CallView, result: Data) -> None:
    usage = _part(_part(result, "reply"), "usage")
    call.input_tokens = _count(usage, "input_tokens")
    call.output_tokens = _count(usage, "output_tokens")
    call.cached_tokens = _count(usage, "cached_tokens")
    call.usd = _money(result, "usd")
    call.waiting_s = _money(result, "waiting_s") or 0.0


def _tool_refused(view: RunState, event: Event, data: Data) -> None:
    call = CallView(f"refused/{event.seq}", "tool", _text(data, "tool"), event.at, "", event.task, event.attempt)
    call.ended, call.ok, call.error = event.at, False, f"refused: {_text(data, 'reason')}"
    _file(view, event, call)


def _fold_reuse(view: RunState, event: Event, data: Data) -> None:
    key, result = _text(data, "key"), _part(data, "result")
    kind: Literal["model", "tool"] = "model" if "reply" in result else "tool"
    name = _text(_part(result, "reply"), "model") or kind
    call = CallView(key, kind, name, event.at, "", event.task, event.attempt, event.at, reused=True)
    call.error = _error(result)
    call.ok = call.error is None
    _count_usage(call, result)
    _file(view, event, call)


def _attempt_ended(view: RunState, event: Event, data: Data) -> None:
    task = _task(view, event)
    if task is None or not task.attempts:
        return
    attempt = task.attempts[-1]
    attempt.ended, attempt.status, attempt.error = event.at, _text(data, "status") or "ended", _error(data)


def _task_ended(view: RunState, event: Event, data: Data) -> None:
    task = _task(view, event)
    if task is None:
        return
    task.outcome, task.ended = _part(data, "outcome"), event.at
    status = _text(task.outcome, "status")
    task.status = status if status in TASK_STATUSES else "failed"


def _budget_settled(view: RunState, event: Event, data: Data) -> None:
    if not data.get("estimated"):
        return  # the reply itself says what was used
    tokens, usd = _count(data, "tokens"), _money(data, "usd")
    view.usage.estimate(tokens, usd)
    if (call := view.by_key.get(_text(data, "key"))) is not None:
        call.estimated = True
        if call.task is not None:
            view.tasks[call.task].usage.estimate(tokens, usd)


def _decision(view: RunState, event: Event, data: Data) -> None:
    view.decisions.append(
        Decision(
            event.at, _text(data, "key"), _text(data, "decision"), data.get("value"), _text(data, "reason"), event.task
        )
    )
    value = data.get("value")
    if data.get("decision") == "reopen" and isinstance(value, dict):
        for id in _texts(cast(Data, value), "tasks"):
            if (task := view.tasks.get(id)) is not None:
                task.status, task.ready, task.ended, task.outcome = "waiting", None, None, None


def _question_asked(view: RunState, event: Event, data: Data) -> None:
    view.questions[_text(data, "key")] = _part(data, "question")


def _question_answered(view: RunState, event: Event, data: Data) -> None:
    view.questions.pop(_text(data, "key"), None)
    view.sessions[-1].parked_s += _money(data, "parked_s") or 0.0


def _synthesis_started(view: RunState, event: Event, data: Data) -> None:
    if event.task is None:
        view.synthesis_started = event.at


def _contradiction_found(view: RunState, event: Event, data: Data) -> None:
    if event.task is None:
        view.contradictions.append(_part(data, "contradiction"))


def _gap_found(view: RunState, event: Event, data: Data) -> None:
    if not _text(data, "within"):
        view.gaps.append(_part(data, "gap"))


def _warning(view: RunState, event: Event, data: Data) -> None:
    view.warnings.append(_text(data, "message"))


def _run_ended(view: RunState, event: Event, data: Data) -> None:
    view.status, view.ended = _text(data, "status") or "failed", event.at
    view.report = _part(data, "report") or None


_FOLDS: dict[str, Callable[[RunState, Event, Data], None]] = {
    "run_started": _run_started,
    "plan_drafted": _plan_drafted,
    "plan_rejected": _plan_rejected,
    "plan_approved": _plan_approved,
    "extension": _extension,
    "task_ready": _task_ready,
    "attempt_started": _attempt_started,
    "model_called": _fold_call,
    "model_replied": _fold_return,
    "tool_called": _fold_call,
    "tool_returned": _fold_return,
    "tool_refused": _tool_refused,
    "reused": _fold_reuse,
    "attempt_ended": _attempt_ended,
    "task_ended": _task_ended,
    "budget_settled": _budget_settled,
    "decision": _decision,
    "question_asked": _question_asked,
    "question_answered": _question_answered,
    "synthesis_started": _synthesis_started,
    "contradiction_found": _contradiction_found,
    "gap_found": _gap_found,
    "warning": _warning,
    "run_ended": _run_ended,
}
