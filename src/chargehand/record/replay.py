"""Events -> what a run must not do again: committed effects, decisions, answers, ended tasks, money spent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from chargehand.errors import InvalidPlan
from chargehand.events import (
    AttemptEnded,
    AttemptStarted,
    BudgetReserved,
    BudgetSettled,
    Control,
    Critiqued,
    Decided,
    DraftDiscarded,
    Event,
    EventBody,
    Extended,
    ModelCalled,
    ModelReplied,
    PlanApproved,
    PlanDrafted,
    QuestionAnswered,
    QuestionAsked,
    Reused,
    RunEnded,
    RunStarted,
    SynthesisStarted,
    TaskEnded,
    ToolCalled,
    ToolReturned,
    Unreadable,
)
from chargehand.events.body import BODIES, Data, shape_problem
from chargehand.record.spending import Called, InFlight, RecordedSpending
from chargehand.record.storage_errors import MISSHAPEN, damage_error
from chargehand.record.waits import Waits
from chargehand.text.plan_json import parse
from chargehand.values.base import JSON
from chargehand.values.key import Key, TaskPath, within
from chargehand.values.order import Restart
from chargehand.values.outcome import Outcome, Usage
from chargehand.values.plain_class import plain_class
from chargehand.values.status_words import FINISHED

Returned = ModelReplied | ToolReturned | Reused
# Calls whose answers are kept when tasks are reopened.
_PLANNING = ("plan", "route", "extend")
# A resumed run derives these again from committed results, but records them only once. Each session finds gaps and
# contradictions again.
RECORDED_ONCE = (Extended, SynthesisStarted, DraftDiscarded, Critiqued)


@plain_class(eq=True)
class Replay:
    """A fold over one run's events. The engine reads it; only `apply` writes it."""

    run: str = ""
    seq: int = 0
    # The request, team and settings that the run continues with.
    start: Data = field(default_factory=dict[str, Any])
    sessions: int = 0
    plan: Data | None = None
    # Task -> the added tasks that take its place once they are done.
    fills: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    # The plan that runs, whether it was given, and what planning used.
    approved: PlanApproved | None = None
    # The last drafted plan without errors, which a person is asked to approve.
    drafted: Data | None = None
    # The approved plans of the teams that do attempts, by attempt (`t3/1`).
    approved_within: dict[str, PlanApproved] = field(default_factory=dict[str, PlanApproved])
    # The plan came from the user: the planner is never asked.
    plan_given: bool = False
    # By key, effects that returned.
    committed: dict[str, Returned] = field(default_factory=dict[str, Returned])
    # By key, the own names of the models that were called for these effects.
    models: dict[str, str] = field(default_factory=dict[str, str])
    # By key, effects begun and not returned when the record stops.
    intents: dict[str, Called] = field(default_factory=dict[str, Called])
    decisions: dict[str, JSON] = field(default_factory=dict[str, JSON])
    questions: dict[str, Data] = field(default_factory=dict[str, Data])
    answers: dict[str, JSON] = field(default_factory=dict[str, JSON])
    ended: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    # task/attempt -> the outcome of an attempt that is not done.
    attempted: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    # task, and task/attempt -> when it was first begun, in owned seconds without the task's waits for people.
    begun: dict[str, float] = field(default_factory=dict[str, float])
    # task -> attempts begun; a reopened task continues to count from there.
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    reopened: dict[str, int] = field(default_factory=dict[str, int])
    # task -> the drafted plan of the tasks that replace it.
    splits: dict[str, Data] = field(default_factory=dict[str, Data])
    # Results of calls that are made again: they cost money too.
    unused: list[Returned] = field(default_factory=list[Returned])
    spending: RecordedSpending = field(default_factory=RecordedSpending)
    # Output tokens of the workers: what the synthesizer will have to read.
    written: int = 0
    # Seconds during which a process owned and ran this run.
    owned_s: float = 0.0
    status: str = "running"
    report: Data | None = None
    waits: Waits = field(default_factory=Waits)
    # Orders with a verdict, by key: they are not acted on again.
    controls: dict[str, Control] = field(default_factory=dict[str, Control])
    # Only a person continues a paused run.
    paused: bool = False
    # task -> why a person stopped it. It stays stopped.
    stopped: dict[str, str] = field(default_factory=dict[str, str])
    # Key of the order -> a restart that no session has carried out yet; and task -> the last restart that was carried
    # out.
    restarts: dict[str, Restart] = field(default_factory=dict[str, Restart])
    restarted: dict[str, Restart] = field(default_factory=dict[str, Restart])
    # Key of the order -> a person's words, and the task whose worker they are for.
    words: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    # How often each event of RECORDED_ONCE was recorded, by `mark_of`.
    marks: Counter[tuple[str, str | None, str]] = field(default_factory=Counter[tuple[str, str | None, str]])
    _session_began: float = 0.0
    _owned_before: float = 0.0

    def apply(self, event: Event) -> None:
        self.run, self.seq = event.run, event.seq
        match event.body:
            case RunStarted() as started:
                self._begin_session(started, event.at)
            case RunEnded() as ended:
                self.status, self.report = ended.status, ended.report
                # A pause that was ordered during the last call ends with the run.
                self.paused = self.paused and ended.status not in FINISHED
            case PlanApproved() | PlanDrafted() | Extended(within=None) as body:
                self._apply_plan(body, event.task)
            case ModelCalled() | ToolCalled() | ModelReplied() | ToolReturned() | Reused() as body:
                self._apply_effect(body, self._owned_seconds_at(event))
            case Decided() as decided:
                self._decide(decided, self._owned_seconds_at(event))
            case AttemptStarted() | AttemptEnded() | TaskEnded() as body:
                self._apply_task(body, event, self._owned_seconds_at(event))
            case QuestionAsked() as asked:
                self.questions[asked.key] = asked.question
                self.waits.begin(_path(event.task), self._owned_seconds_at(event))
            case QuestionAnswered() as answered:
                self.answers[answered.key] = answered.answer
                # Time in which the run only waited for the person does not count.
                self._owned_before -= answered.parked_s or 0.0
                self.waits.end(_path(event.task), self._owned_seconds_at(event))
            case Control() as control:
                self.take_order(control, event.task)
            case BudgetReserved() as reserved:
                self.spending.reserve(reserved)
            case BudgetSettled() as settled:
                self.spending.settle(event.task, settled)
            case body if isinstance(body, RECORDED_ONCE):
                self.marks[mark_of(event.task, body)] += 1
            case _:
                pass
        self.owned_s = self._owned_seconds_at(event)

    def _begin_session(self, started: RunStarted, at: float) -> None:
        # A resumed session records what it changes: a topped-up budget, a later deadline.
        self.start |= {name: value for name, value in vars(started).items() if value is not None}
        self.sessions += 1
        self.spending.write_off(self.intents)
        self.waits.end_calls(self.owned_s)
        self.waits.run_waits = False
        self._session_began, self._owned_before = at, self.owned_s
        self.status, self.report = "running", None

    def _apply_plan(self, body: PlanApproved | PlanDrafted | Extended, task: str | None) -> None:
        match body:
            case PlanApproved(within=str(scope)) if scope:
                self.approved_within[scope] = body
            case PlanApproved():
                self.plan, self.approved = body.plan, body
            case PlanDrafted(source="added") | PlanDrafted(within=str()):
                pass  # what it is added to is the plan until that is approved; of a nested team, only that counts
            case PlanDrafted() if task is not None:
                if body.plan is not None:
                    self.splits[task] = body.plan
            case PlanDrafted():
                self.plan_given = body.source == "given"
                if not any(problem["severity"] == "error" for problem in body.problems):
                    self.drafted = body.plan
            case Extended():
                self._extend(body)

    def _apply_effect(self, body: Called | Returned, now: float) -> None:
        match body:
            case ModelCalled(key=key) | ToolCalled(key=key):
                self.intents[key] = body
                self.spending.sent.add(key)
                if key in self.waits.calls:
                    self.waits.end_calls(now, key)
            case ModelReplied(result={"cut": True}):
                pass  # cut off: people can read the text that had arrived; the call is made again
            case ModelReplied() | ToolReturned() | Reused():
                called = self.intents.pop(body.key, None)
                if isinstance(called, ModelCalled):
                    self.models[body.key] = called.model
                    self.written += _output_tokens(body.result) if called.role == "worker" else 0
                self.committed[body.key] = body

    def _apply_task(self, body: AttemptStarted | AttemptEnded | TaskEnded, event: Event, now: float) -> None:
        match body:
            case AttemptStarted():
                if event.task is not None and event.attempt is not None:
                    self.attempts[event.task] = event.attempt
                    own = now - self.waits.seconds_of(event.task, self.owned_s)
                    self.begun.setdefault(event.task, own)
                    self.begun.setdefault(f"{event.task}/{event.attempt}", own)
            case AttemptEnded():
                if body.outcome is not None:
                    self.attempted[f"{event.task}/{event.attempt}"] = Outcome.model_validate(body.outcome)
            case TaskEnded():
                self.waits.end_calls_of(event.task, now)
                outcome = Outcome.model_validate(body.outcome)
                self.ended[event.task or outcome.task] = outcome

    def move_clock(self, now: float, waited: Mapping[str, float]) -> None:
        """Set the run's clock to `now`: this record is a part of a run, and the other parts have taken time too.

        `waited` is how many seconds each task has waited for people.
        """
        shift = now - self.owned_s
        self.begun = {key: begun + shift for key, begun in self.begun.items()}
        self.waits.set_over(waited)
        self.owned_s = now

    def take_order(self, control: Control, task: str | None) -> None:
        """Apply an order to a run that is continued from here."""
        self.controls[control.key] = control
        if control.verdict != "accepted":
            return
        self._owned_before -= control.parked_s or 0.0
        value = control.value or {}
        match control.order:
            case "pause" | "continue":
                self.paused = control.order == "pause"
            case "stop" if task is not None:
                self.stopped[task] = value.get("text", "")
            case "restart" if task is not None:
                self.restarts[control.key] = Restart(task, value.get("text"), value.get("model"))
                for each in [each for each in self.stopped if task in TaskPath.parse(each).wholes]:
                    del self.stopped[each]
            case "top_up":
                self._top_up(control.key, value)
            case "tell" if task is not None:
                self.words[control.key] = value.get("text", ""), task
            case _:
                pass

    def _top_up(self, key: str, value: Data) -> None:
        """Continue the run with these limits; tasks that had ended because of the old limits run again."""
        request: Data = self.start.get("request") or {}
        more: Data = {"budget": value["limit"]} | ({"deadline_s": value["deadline_s"]} if "deadline_s" in value else {})
        self.start["request"] = request | more
        for task in value.get("tasks", ()):
            self.restarts[f"{key}/{task}"] = Restart(task)

    def _owned_seconds_at(self, event: Event) -> float:
        """The run's own seconds at an event; they do not count while no process runs it."""
        return self.owned_s if event.outside else self._owned_before + max(0.0, event.at - self._session_began)

    def open_questions(self) -> dict[str, Data]:
        """Questions without an answer, by key, in the order they were asked."""
        return {key: question for key, question in self.questions.items() if key not in self.answers}

    @property
    def has_programs(self) -> bool:
        """Whether the team has workers that start programs."""
        team: Data = self.start.get("team") or {}
        return any(worker.get("program") for worker in team.get("workers", ()))

    def usages(self) -> Iterator[Usage]:
        """The usage of each model call with a result, in tasks that ended, that did not end and that were reopened."""
        from chargehand.values.effect import ModelResult, usage_of

        for returned in (*self.committed.values(), *self.unused):
            reply: Data = returned.result.get("reply") or {}
            if (used := returned.result.get("used")) is not None:
                yield Usage.model_validate(used)  # the usage of a program
            elif isinstance(returned, ModelReplied):
                model = self.models.get(returned.key) or reply.get("model", "")
                yield usage_of(ModelResult.model_validate(returned.result), model)

    def in_flight(self) -> list[InFlight]:
        """Calls under way where the record stops."""
        return self.spending.in_flight(self.intents)

    def _extend(self, extended: Extended) -> None:
        assert self.plan is not None
        known = {task["id"] for task in self.plan["tasks"]}
        new = [task for task in extended.tasks if task["id"] not in known]
        self.plan = {**self.plan, "tasks": [*self.plan["tasks"], *new]}
        self.fills.update(extended.fills or {})

    def is_replaced(self, task: str) -> bool:
        """Whether added tasks have replaced it and all of them are done."""
        by = self.fills.get(task)
        return bool(by) and all(id in self.ended and self.ended[id].ok for id in by or ())

    def _decide(self, decided: Decided, now: float) -> None:
        match decided.decision:
            case "wait":
                self.waits.begin_call(decided, now)
                return
            case "wait_over":
                self.waits.run_waits = False
                return
            case "reopen":
                self.reopen(decided.value["tasks"], decided.value.get("restarts", ()))
            case "hedge":
                self.spending.sent.add(decided.key)  # the hedge is sent as soon as this is on disk
            case _:
                pass
        self.decisions[decided.key] = decided.value

    def reopen(self, tasks: Iterable[str], restarts: Iterable[str] = ()) -> None:
        """Let tasks run again and continue their attempt counts; of a split task, only the parts that are not done.

        A team continues its attempt with the tasks that are not done, unless a person restarted its task or a
        dependency of the task changes. The supervisor's own failed calls are made again as well, and the answer is
        judged and written again. `restarts` are the orders that this carries out.
        """
        again, restarts = tuple(tasks), tuple(restarts)
        ordered = {self.restarts[key].task for key in restarts if key in self.restarts}
        self._reopen_tasks("", self.plan, again, whole=self._carry_out(restarts), ordered=ordered)
        self.marks = Counter({mark: times for mark, times in self.marks.items() if mark[0] == "extension"})

    def _reopen_tasks(
        self,
        scope: str,
        plan: Data | None,
        tasks: Collection[str],
        *,
        whole: Collection[str] = (),
        ordered: Collection[str] = (),
    ) -> None:
        """Reopen tasks of the run's own plan, or of that of the team that does the attempt `scope`."""
        rests_on = {task.id: task.depends_on for task in parse(plan).tasks} if plan else {}
        for id in tasks:
            path = within(scope, id) if scope else id
            self._drop_questions(path)
            changes = id in ordered or any(each in tasks for each in rests_on.get(id, ()))
            if changes or path in self.splits or not self._continue_team(path):
                self._reopen_task(path, [] if id in whole else self._parts_again(path))
        self._reopen_supervisor(scope)

    def _reopen_task(self, task: str, parts: Iterable[str]) -> None:
        self.ended.pop(task, None)
        self.begun.pop(task, None)
        for id in tuple(parts) or (task, *(part for part in self.attempts if part.startswith(f"{task}.s."))):
            self.ended.pop(id, None)
            self.begun.pop(id, None)
            self.reopened[id] = self.attempts.get(id, 0)

    def _continue_team(self, task: str) -> bool:
        """Let the team that made the last attempt at a task continue it; False without a team or open tasks."""
        scope = self._last_attempt(task)
        lacking = self._lacking(scope)
        if not lacking:
            return False
        plan = self.approved_within[scope].plan
        # Tasks that were added are not in the plan.
        again = dict.fromkeys((*parse(plan).with_dependents(lacking), *lacking))
        self.ended.pop(task, None)
        self.attempted.pop(scope, None)
        for key in (task, scope):
            self.begun.pop(key, None)
        # Its time begins again.
        self.decisions.pop(f"{scope}/@start", None)
        self._reopen_tasks(scope, plan, again)
        return True

    def _last_attempt(self, task: str) -> str:
        return f"{task}/{self.attempts.get(task, 0)}"

    def _lacking(self, scope: str) -> list[str]:
        """The tasks of an attempt's team that are not done, or that were done by a team with gaps."""
        if scope not in self.approved_within:
            return []
        return [
            path.removeprefix(f"{scope}/").removeprefix(".")
            for path, outcome in self.ended.items()
            if TaskPath.parse(path).within == scope
            and ".s." not in path.removeprefix(scope)
            and (not outcome.ok or (outcome.partial and self._lacking(self._last_attempt(path))))
        ]

    def _reopen_supervisor(self, scope: str) -> None:
        """Let the answer of the run, or of the team that does an attempt, be judged and written again."""
        own = f"{scope}/@" if scope else "@"
        extending = f"{own}extend/"
        planning = tuple(f"{own}{each}" for each in _PLANNING)
        for key, value in list(self.decisions.items()):
            if key.startswith(own) and (key.endswith("/deadline") or value is False):
                del self.decisions[key]
            elif key.startswith(extending) and key.endswith("/gaps"):
                # Tasks that were added for a draft exist before the answer that is written now.
                self.decisions[f"{key.removesuffix('gaps')}whether"] = self.decisions.pop(key)
        for key, returned in list(self.committed.items()):
            if key.startswith(own) and (not key.startswith(planning) or returned.result.get("error")):
                self.unused.append(returned)
                del self.committed[key]

    def _carry_out(self, restarts: Iterable[str]) -> set[str]:
        """The tasks with a new instruction or model: whatever was planned in their place is not used again."""
        changed: set[str] = set()
        for key in restarts:
            if (restart := self.restarts.pop(key, None)) is None:
                continue
            before = self.restarted.get(restart.task, restart)
            instruction, model = restart.instruction or before.instruction, restart.model or before.model
            self.restarted[restart.task] = Restart(restart.task, instruction, model)
            if restart.instruction or restart.model:
                changed.add(restart.task)
        return changed

    def _drop_questions(self, task: str) -> None:
        """Remove the open questions of a task that runs again: it asks them again if needed."""
        for key in self.open_questions():
            path = Key.parse(key).path
            if path is not None and task in path.wholes:
                del self.questions[key]
                self.waits.end(path, self.owned_s)

    def _parts_again(self, task: str) -> list[str]:
        """The parts of a split task that are not done, and those that depend on them; none when all are done."""
        found: list[str] = []
        for part in parse(self.splits[task]).in_order() if task in self.splits else ():
            id = f"{task}.s.{part.id}"
            rests_on = {f"{task}.s.{dependency}" for dependency in part.depends_on}
            if id in self.ended and (not self.ended[id].ok or rests_on.intersection(found)):
                found.append(id)
        return found


def _path(task: str | None) -> TaskPath | None:
    return None if task is None else TaskPath.parse(task)


def mark_of(task: str | None, body: EventBody) -> tuple[str, str | None, str]:
    """The identity of an event that is recorded once, in whichever session it occurs."""
    return body.kind, task, json.dumps(vars(body), sort_keys=True, default=str)


def _output_tokens(result: Data) -> int:
    reply: Data = result.get("reply") or {}
    counted: Data = reply.get("usage") or result.get("estimated") or {}
    return counted.get("output_tokens") or 0


def replay(events: Iterable[Event], run: str = "", state: Replay | None = None) -> Replay:
    """The fold over a record, starting from an earlier state; RecordDamaged names the event that cannot be read."""
    state = Replay(run=run) if state is None else state
    for event in events:
        if isinstance(event.body, Unreadable):
            problem = shape_problem(BODIES[event.kind], event.data)
            raise damage_error(f"of run {event.run}", f"event {event.seq}, {event.kind}, cannot be read: {problem}")
        try:
            state.apply(event)
        except (*MISSHAPEN, InvalidPlan) as error:
            what = f"event {event.seq}, {event.kind}, cannot be read: {type(error).__name__}"
            raise damage_error(f"of run {event.run}", what) from error
    return state
