"""Events -> the state of a run, one event at a time: the source of the live display and of every export.

The cost of `RunState.apply` does not grow with the run. It ignores what it does not know: additive changes within an
event version must not break an older reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field
from math import inf
from typing import Any, Literal, cast

from pydantic_core import ValidationError

from chargehand.events import (
    AttemptEnded,
    AttemptStarted,
    BudgetSettled,
    ContradictionFound,
    Control,
    Decided,
    Event,
    Extended,
    GapFound,
    ModelCalled,
    ModelReplied,
    PlanApproved,
    PlanDrafted,
    PlanRejected,
    Progressed,
    QuestionAnswered,
    QuestionAsked,
    Reused,
    RunEnded,
    RunStarted,
    SynthesisStarted,
    TaskEnded,
    TaskReady,
    ToolCalled,
    ToolRefused,
    ToolReturned,
    Warned,
)
from chargehand.events.running_time import BrokenCalls, RunningTime
from chargehand.trace.run_parts import (
    STOPPED,
    TASK_STATUSES,
    AttemptView,
    CallView,
    Data,
    Decision,
    SessionView,
    Tally,
    TaskState,
    count_in,
    fault_line,
    number_in,
    part_in,
    parts_in,
    text_in,
    texts_in,
)
from chargehand.values.key import Key, TaskPath, within
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Plan, Task
from chargehand.values.status_words import FINISHED


@plain_class(eq=True)
class RunState:
    """What is known about a run after the events applied so far. Only `apply` writes it."""

    run: str = ""
    status: str = "running"
    request: str = ""
    team: str = ""
    plan: Plan | None = None
    strategy: str = ""
    # In plan order, followed by tasks that were added later (extension, split).
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
    # Start and end of each time when a session only waited for a person or for a provider.
    idle: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    rerun_of: str | None = None
    # The run that it was forked from and the task of the fork, or None.
    forked_from: Data | None = None
    # The number of the last event that was taken over from that run.
    copied_to: int = 0
    # The limits of the run: Budget JSON, and the seconds it may take.
    budget: Data = field(default_factory=dict[str, Any])
    deadline_s: float | None = None
    # Calls of tools that this run made: not those that it took over or reused.
    tool_calls: int = 0
    synthesis_started: float | None = None
    started: float | None = None
    ended: float | None = None
    # Tasks that a person restarted and that wait to be opened again: calls in flight are finished first.
    restarts: tuple[str, ...] = ()
    # Whether a person paused it and did not continue it yet.
    is_paused: bool = False
    # The provider that the run waits for in this process, and until when; None while it does not wait for a provider.
    waiting: Data | None = None
    # Whether a question was open when the last session ended.
    ended_asking: bool = False
    # Report JSON, once the run has ended.
    report: Data | None = None
    seq: int = 0
    time: RunningTime = field(default_factory=RunningTime)
    broken_calls: BrokenCalls = field(default_factory=BrokenCalls)
    # The number of the last event that added tasks.
    plan_seq: int = 0
    # Every call by key, so that a reply finds its call.
    by_key: dict[str, CallView] = field(default_factory=dict[str, CallView], repr=False, compare=False)
    # Task of the plan, or "" for the supervisor -> its calls in flight by key; no entry without calls.
    in_flight: dict[str, dict[str, CallView]] = field(
        default_factory=dict[str, dict[str, CallView]], repr=False, compare=False
    )

    def apply(self, event: Event) -> None:
        """Take one more event into account."""
        self.seq = event.seq
        self.time.apply(event)
        self.broken_calls.apply(event)
        if not self.sessions:
            self.run, self.started = event.run, event.at
            self.sessions.append(SessionView(1, event.at, event.at))
        if not isinstance(event.body, RunStarted) and not event.outside:
            self.sessions[-1].ended = event.at
        _fold(self, event)
        if self.broken_calls.fresh:
            _leave_calls(self, event.seq)

    def elapsed_seconds(self, now: float | None = None) -> float:
        """Seconds the run has been running over all its sessions; `now` counts the running one up to that time.

        At the end it is the figure of the report, as below the answer: the event itself is written a moment later.
        """
        timing = part_in(self.report or {}, "timing") if self.ended is not None else {}
        if (wall_s := number_in(timing, "wall_s")) is not None:
            return wall_s
        is_running = now is not None and self.sessions and self.ended is None
        return self.time.until(now) if now is not None and is_running else self.time.seconds

    def seconds_until(self, at: float, now: float) -> float:
        """How many seconds the run had been running at a time of day, if it is `now`."""
        passed = 0.0
        for number, session in enumerate(self.sessions, 1):
            goes_on = number == len(self.sessions) and self.ended is None and not self.is_still
            passed += max(min(at, max(now, session.ended) if goes_on else session.ended) - session.started, 0.0)
        return passed - sum(max(min(at, end) - begin, 0.0) for begin, end in self.idle)

    @property
    def is_still(self) -> bool:
        """Whether the clock of the run is stopped: it is paused or waits for a person, and no call is in flight."""
        return self.time.is_still

    def status_of(self, task: TaskState, *, is_over: bool | None = None) -> str:
        """The status of a task in one word. A task that was running may wait now, or be stopped.

        `is_over`: no process has the run any more, also if the record does not say so.
        """
        if task.status != "running":
            return task.status
        if (self.status == "paused" and (self.is_still or not task.is_calling)) or self._asks(task):
            return "waiting"
        if not (self.ended is not None if is_over is None else is_over):
            return "running"
        return "waiting" if self.status == "waiting" else STOPPED

    def _asks(self, task: TaskState) -> bool:
        """Whether a person is asked something for the task, or for a task within it."""
        return any(_is_about(key, task.id) for key in self.questions)

    def counted_until(self, now: float) -> float:
        """The time of day until which calls in flight count, if it is `now`."""
        return self.last_event or now if self.is_still else self.ended or now

    @property
    def calls_in_flight(self) -> int:
        return self.time.calls_in_flight

    @property
    def last_event(self) -> float | None:
        """The time of the last event of the last session."""
        return self.sessions[-1].ended if self.sessions else None

    def counts(self, *, is_over: bool | None = None) -> dict[str, int]:
        """The number of tasks by status, as `status_of` names it."""
        counted = Counter(self.status_of(task, is_over=is_over) for task in self.tasks.values())
        return {status: counted[status] for status in (*TASK_STATUSES, STOPPED) if counted[status]}


def fold(events: Iterable[Event]) -> RunState:
    """The state of a run after all these events."""
    view = RunState()
    for event in events:
        view.apply(event)
    return view


def _fold(view: RunState, event: Event) -> None:
    match event.body:
        case RunStarted() as body:
            _start_session(view, event, body)
        case PlanDrafted(plan=plan, source=source):
            if not view.strategy and event.task is None and source != "added":
                view.plan = _plan(plan or {})
        case PlanRejected():
            if not view.strategy and event.task is None:
                view.plan = None
        case PlanApproved() as body:
            _start_plan(view, body)
        case Extended(within=within):
            _add_tasks(view, parts_in(event.data, "tasks"), within or "")
        case TaskReady(worker=worker):
            if (task := _task(view, event, worker)) is not None and task.status == "waiting":
                task.status, task.ready = "ready", event.at
        case AttemptStarted() as body:
            _start_attempt(view, event, body)
        case ModelCalled() as body:
            _start_call(view, event, body, CallView(body.key, "model", body.model, event.at, body.role))
        case ToolCalled() as body:
            _start_call(view, event, body, CallView(body.key, "tool", body.tool, event.at))
        case ModelReplied() | ToolReturned() as body:
            _end_call(view, event, body)
        case Progressed(key=key, text=text):
            if (call := view.by_key.get(key)) is not None:
                call.says = text
        case ToolRefused(worker=worker, tool=tool, reason=reason):
            call = CallView(f"refused/{event.seq}", "tool", tool, event.at)
            call.ended, call.ok, call.error = event.at, False, f"refused: {reason}"
            _file(view, event, call, worker)
        case Reused() as body:
            _reuse_call(view, event, body)
        case AttemptEnded(status=status, error=error):
            if (task := _task(view, event)) is not None and task.attempts:
                attempt = task.attempts[-1]
                attempt.ended, attempt.status, attempt.error = event.at, status or "ended", fault_line(error)
                _break_off(view, event.at, task.id)
        case TaskEnded(outcome=outcome):
            if (task := _task(view, event)) is not None:
                status = text_in(outcome, "status")
                _break_off(view, event.at, task.id)
                for key in [key for key in view.questions if _is_about(key, task.id)]:
                    del view.questions[key]
                task.outcome, task.ended = outcome, event.at
                task.status = status if status in TASK_STATUSES else "failed"
        case BudgetSettled() as body:
            _settle(view, body)
        case Decided() as body:
            _decide(view, event, body)
        case QuestionAsked(key=key, question=question, source=source):
            view.questions[key] = question
            if (task := _task(view, event)) is not None:
                task.reused = source is not None and (task.reused or not task.calls)
        case QuestionAnswered(key=key, parked_s=parked):
            view.questions.pop(key, None)
            _idle(view, event, parked)
        case Control(parked_s=parked) as control:
            _idle(view, event, parked)
            if (task := view.tasks.get(event.task or "")) is not None:
                task.orders, task.seq = task.orders + 1, event.seq
            if control.verdict == "accepted":
                _take_order(view, event, control)
        case SynthesisStarted() if event.task is None:
            view.synthesis_started = event.at
        case ContradictionFound(contradiction=contradiction) if event.task is None:
            view.contradictions.append(contradiction)
        case GapFound(gap=gap, within=None | ""):
            view.gaps.append(gap)
        case Warned(message=message):
            view.warnings.append(message)
        case RunEnded(status=status, report=report, parked_s=parked):
            _break_off(view, event.at - (parked or 0.0))
            _idle(view, event, parked)
            view.status, view.ended, view.report = status or "failed", event.at, report or None
            view.ended_asking = bool(view.questions)
            if status in FINISHED:
                view.is_paused = False  # a pause that was ordered during the last call ends with the run
            _drop_added(view)
        case _:
            pass


def _idle(view: RunState, event: Event, parked_s: float | None) -> None:
    if parked_s:
        view.idle.append((event.at - parked_s, event.at))


def _is_about(question: str, task: str) -> bool:
    """Whether a question, by its key, is one of a task, or of a task within it."""
    path = Key.parse(question).path
    return path is not None and task in path.wholes


def _plan(data: Data) -> Plan | None:
    known = {name: value for name, value in data.items() if name in Plan.model_fields}
    known["tasks"] = [
        {name: value for name, value in task.items() if name in Task.model_fields} for task in parts_in(data, "tasks")
    ]
    try:
        return Plan.model_validate(known)
    except ValidationError:
        return None


def _task(view: RunState, event: Event, worker: str = "") -> TaskState | None:
    if event.task is None:
        return None
    task = view.tasks.get(event.task)
    if task is None:
        task = view.tasks[event.task] = TaskState(event.task, worker=worker)
        view.plan_seq = event.seq
    task.seq = event.seq
    return task


def _tasks_that_count(view: RunState, task: str | None, seq: int) -> Iterator[TaskState]:
    """A task and the tasks that it is part of or nested in. As in outcomes, their usage includes its usage."""
    for whole in () if task is None else TaskPath.parse(task).wholes:
        if (found := view.tasks.get(whole)) is not None:
            found.seq = seq
            yield found


def _start_session(view: RunState, event: Event, started: RunStarted) -> None:
    session = SessionView(started.epoch or 1, event.at, event.at, started.resumed)
    if started.resumed:
        _break_off(view, view.sessions[-1].ended)
        view.sessions.append(session)
    else:
        view.sessions[-1] = session
    # A paused run is paused until a person continues it, whichever session has it.
    view.status = "paused" if view.is_paused else "running"
    view.ended, view.report, view.waiting, view.synthesis_started = None, None, None, None
    # The synthesis of this session finds them again.
    view.gaps, view.contradictions = [], []
    view.request = text_in(started.request, "text") or view.request
    view.budget = part_in(started.request, "budget") or view.budget
    view.deadline_s = number_in(started.request, "deadline_s") or view.deadline_s
    view.team = text_in(started.team, "name") or view.team
    view.rerun_of = started.rerun_of or view.rerun_of
    view.forked_from = started.forked_from or view.forked_from
    view.copied_to = event.seq + (started.copied or 0) if started.forked_from else view.copied_to


def _take_order(view: RunState, event: Event, control: Control) -> None:
    value = control.value or {}
    match control.order:
        case "pause":
            view.status, view.is_paused = "paused", True
        case "continue":
            view.status, view.is_paused = "running", False
        case "restart":
            if (task := view.tasks.get(event.task or "")) is not None:
                task.instruction = text_in(value, "text") if "text" in value else task.instruction
                view.restarts = (*(id for id in view.restarts if id != task.id), task.id)
        case "top_up":
            view.budget = part_in(value, "limit") or view.budget
            view.deadline_s = value.get("deadline_s", view.deadline_s)
        case _:
            pass


def _start_plan(view: RunState, approved: PlanApproved) -> None:
    tasks = parts_in(approved.plan, "tasks")
    if approved.within:
        _add_tasks(view, tasks, approved.within)
        return
    view.plan = _plan(approved.plan)
    view.strategy = approved.strategy or (view.plan.strategy if view.plan else "unknown")
    view.notes = tuple(approved.notes)
    _add_tasks(view, tasks)


def _add_tasks(view: RunState, tasks: list[Data], scope: str = "") -> None:
    """`scope` is the attempt whose team has these tasks, such as `t3/1`."""
    view.plan_seq = view.seq
    for data in tasks:
        id = within(scope, text_in(data, "id")) if scope else text_in(data, "id")
        task = view.tasks.setdefault(id, TaskState(id))
        task.seq, task.worker = view.seq, text_in(data, "worker")
        task.instruction = text_in(data, "instruction")
        task.success_criterion = text_in(data, "success_criterion")
        needs = texts_in(data, "depends_on")
        task.depends_on = tuple(within(scope, each) for each in needs) if scope else needs


def _drop_added(view: RunState) -> None:
    """Remove tasks that an earlier session added and the report does not have: what they replaced is done by now."""
    plan = part_in(view.report or {}, "plan")
    known = {text_in(task, "id") for task in parts_in(plan, "tasks")}
    for id in [id for id in view.tasks if plan and _whole(id) not in known]:
        del view.tasks[id]
        view.plan_seq = view.seq


def _start_attempt(view: RunState, event: Event, started: AttemptStarted) -> None:
    task = _task(view, event, started.worker)
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
    task.worker = attempt.worker = started.worker or task.worker
    attempt.model, attempt.tier = started.model or "", started.tier or ""


def _start_call(view: RunState, event: Event, called: ModelCalled | ToolCalled, call: CallView) -> None:
    if (known := view.by_key.get(call.key)) is not None:
        known.ended, known.ok, known.error, known.sends = None, None, None, max(called.send, known.sends + 1)
        known.started, known.seconds, known.waits, known.is_left = event.at, 0.0, [], False
        view.in_flight.setdefault(_whole(known.task), {})[call.key] = known
        return
    call.sends = max(called.send, 1)
    view.in_flight.setdefault(_whole(event.task), {})[call.key] = call
    _file(view, event, call, called.worker or "")


def _count_program(view: RunState, event: Event, call: CallView, used: Data) -> None:
    """Count the model usage that a program reports."""
    call.input_tokens, call.output_tokens = count_in(used, "input_tokens"), count_in(used, "output_tokens")
    call.cached_tokens, call.usd = count_in(used, "cached_tokens"), number_in(used, "usd")
    view.usage.add(call, call.usd)
    for task in _tasks_that_count(view, event.task, event.seq):
        task.usage.add(call, call.usd)


def _file(view: RunState, event: Event, call: CallView, worker: str = "") -> None:
    view.by_key[call.key] = call
    view.tool_calls += call.kind == "tool" and not call.reused and event.seq > view.copied_to
    call.task, call.attempt = event.task, event.attempt
    if (task := _task(view, event, worker)) is None:
        view.calls.append(call)
        return
    task.reused = call.reused and (task.reused or not task.calls)
    task.calls.append(call)


def _end_call(view: RunState, event: Event, returned: ModelReplied | ToolReturned) -> None:
    result = returned.result
    if (call := view.by_key.get(returned.key)) is None or (call.ok is not None and result.get("sent") is False):
        return  # a budget denied it: nothing was sent, now or when it is to be made again after a resume
    _land(view, call)
    call.ended, call.error = event.at, fault_line(part_in(result, "error"))
    call.ok = call.error is None
    waited, worked = number_in(result, "waiting_s") or 0.0, number_in(result, "seconds")
    call.seconds = max(call.seconds_until(event.at) - waited, 0.0) if worked is None else worked
    if used := part_in(result, "used"):
        _count_program(view, event, call, used)
    if call.kind == "tool" or result.get("cut"):
        return  # the usage of an interrupted call is counted when its budget is settled
    _count_usage(call, result)
    # A call that failed without a reply costs nothing, so its price is not unknown.
    usd = call.usd if result.get("reply") is not None else call.usd or 0.0
    view.usage.add(call, usd)
    for task in _tasks_that_count(view, event.task, event.seq):
        task.usage.add(call, usd)


def _break_off(view: RunState, at: float, task: str | None = None) -> None:
    """End the calls in flight that nothing waits for any more: those of a task that has ended, or of the whole run."""
    wholes = list(view.in_flight) if task is None else [_whole(task)]
    for call in [call for whole in wholes for call in view.in_flight.get(whole, {}).values()]:
        if task is None or task in TaskPath.parse(call.task or "").wholes:
            call.ended, call.ok, call.error, call.seconds = at, False, "broken off", call.seconds_until(at)
            _land(view, call)


def _leave_calls(view: RunState, seq: int) -> None:
    """Count the time of the calls that a session has left behind, in their tasks and in those that contain them."""
    for key, seconds in view.broken_calls.fresh.items():
        if (call := view.by_key.get(key)) is not None:
            call.is_left = True
            for task in _tasks_that_count(view, call.task, seq):
                task.left_s += seconds


def _land(view: RunState, call: CallView) -> None:
    """Count a call no longer as in flight."""
    whole = _whole(call.task)
    calls = view.in_flight.get(whole, {})
    if calls.pop(call.key, None) is not None and not calls:
        del view.in_flight[whole]


def _whole(task: str | None) -> str:
    return "" if task is None else TaskPath.parse(task).whole


def _count_usage(call: CallView, result: Data) -> None:
    usage = part_in(part_in(result, "reply"), "usage")
    call.input_tokens = count_in(usage, "input_tokens")
    call.output_tokens = count_in(usage, "output_tokens")
    call.cached_tokens = count_in(usage, "cached_tokens")
    call.usd = number_in(result, "usd")
    call.waiting_s = number_in(result, "waiting_s") or 0.0


def _reuse_call(view: RunState, event: Event, reused: Reused) -> None:
    result = reused.result
    kind: Literal["model", "tool"] = "model" if "reply" in result else "tool"
    name = text_in(part_in(result, "reply"), "model") or kind
    call = CallView(reused.key, kind, name, event.at, ended=event.at, reused=True)
    call.error = fault_line(part_in(result, "error"))
    call.ok = call.error is None
    _count_usage(call, result)
    _file(view, event, call)


def _settle(view: RunState, settled: BudgetSettled) -> None:
    if not settled.estimated:
        return  # the reply itself says what was used
    view.usage.estimate(settled.tokens, settled.usd)
    # An interrupted call has no reply, so it is counted here: in the total, but in no outcome.
    view.usage.calls += settled.lost is not None
    if (call := view.by_key.get(settled.key)) is not None:
        call.estimated = True
        for task in _tasks_that_count(view, call.task, view.seq):
            if settled.lost is None:
                task.usage.estimate(settled.tokens, settled.usd)


def _decide(view: RunState, event: Event, decided: Decided) -> None:
    view.decisions.append(Decision(event.at, decided.key, decided.decision, decided.value, decided.reason, event.task))
    value: Data = cast(Data, decided.value) if isinstance(decided.value, dict) else {}
    match decided.decision:
        case "wait" if decided.key.startswith("@wait/"):
            view.status, view.waiting = "waiting", value
        case "wait_over":
            began = next((each.at for each in reversed(view.decisions) if each.decision == "wait"), event.at)
            view.idle.append((began, event.at))
            view.status, view.waiting = "running", None
        case "transport_retry":
            if (call := view.by_key.get(decided.key.rpartition("/retry/")[0])) is not None and call.ended is None:
                call.waits.append((event.at, inf))
        case "retry_sent":
            if (call := view.by_key.get(decided.key.rpartition("/retry/")[0])) is not None and call.waits:
                call.waits[-1] = (call.waits[-1][0], event.at)
        case "reopen":
            view.restarts = ()
            for task in (view.tasks[id] for id in texts_in(value, "tasks") if id in view.tasks):
                task.before = (task.tokens, task.usd, task.worked_seconds())
                task.seq, task.status, task.ready, task.ended, task.outcome = view.seq, "waiting", None, None, None
                task.calls_before, task.usage, task.left_s = len(task.calls), Tally(), 0.0
        case _:
            pass
