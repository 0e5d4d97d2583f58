"""Events -> what a run must not do again: committed effects, decisions, answers, ended tasks, money spent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

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
from chargehand.record.recorded_state import RecordedState, Returned
from chargehand.record.spending import Called
from chargehand.record.storage_errors import MISSHAPEN, damage_error
from chargehand.values.key import TaskPath
from chargehand.values.order import Restart
from chargehand.values.outcome import Outcome
from chargehand.values.status_words import FINISHED

# A resumed run derives these again from committed results, but records them only once. Each session finds gaps and
# contradictions again.
RECORDED_ONCE = (Extended, SynthesisStarted, DraftDiscarded, Critiqued)


class Replay(RecordedState):
    """A fold over one run's events. The engine reads it; only `apply`, orders and `reopen` write it."""

    def apply(self, event: Event) -> None:
        self.run, self.seq = event.run, event.seq
        self.time.apply(event)
        self.broken_calls.apply(event)
        match event.body:
            case RunStarted() as started:
                self._begin_session(started)
            case RunEnded() as ended:
                self.status, self.report = ended.status, ended.report
                # A pause that was ordered during the last call ends with the run.
                self.paused = self.paused and ended.status not in FINISHED
            case PlanApproved() | PlanDrafted() | Extended(within=None) as body:
                self._apply_plan(body, event.task)
            case ModelCalled() | ToolCalled() | ModelReplied() | ToolReturned() | Reused() as body:
                self._apply_effect(body, self.owned_s)
            case Decided() as decided:
                self._decide(decided, self.owned_s)
            case AttemptStarted() | AttemptEnded() | TaskEnded() as body:
                self._apply_task(body, event, self.owned_s)
            case QuestionAsked() as asked:
                self.questions[asked.key] = asked.question
                self.waits.begin(_path(event.task), self.owned_s)
            case QuestionAnswered() as answered:
                self.answers[answered.key] = answered.answer
                self.waits.end(_path(event.task), self.owned_s)
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

    def _begin_session(self, started: RunStarted) -> None:
        # A resumed session records what it changes: a topped-up budget, a later deadline.
        self.start |= {name: value for name, value in vars(started).items() if value is not None}
        self.sessions += 1
        self.spending.write_off(self.intents)
        self.waits.end_calls(self.owned_s)
        self.waits.run_waits = False
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
                    own = now - self.waits.seconds_of(event.task, now)
                    self.begun.setdefault(event.task, own)
                    self.begun.setdefault(f"{event.task}/{event.attempt}", own)
            case AttemptEnded():
                if body.outcome is not None:
                    self.attempted[f"{event.task}/{event.attempt}"] = Outcome.model_validate(body.outcome)
            case TaskEnded():
                self.waits.end_calls_of(event.task, now)
                outcome = Outcome.model_validate(body.outcome)
                self.ended[event.task or outcome.task] = outcome
                self.close_questions(event.task or outcome.task)

    def move_clock(self, now: float, waited: Mapping[str, float]) -> None:
        """Set the run's clock to `now`: this record is a part of a run, and the other parts have taken time too.

        `waited` is how many seconds each task has waited for people.
        """
        shift = now - self.owned_s
        self.begun = {key: begun + shift for key, begun in self.begun.items()}
        self.waits.set_over(waited)
        self.time.set(now)

    def take_order(self, control: Control, task: str | None) -> None:
        """Apply an order to a run that is continued from here."""
        self.controls[control.key] = control
        if control.verdict != "accepted":
            return
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

    def _extend(self, extended: Extended) -> None:
        assert self.plan is not None
        known = {task["id"] for task in self.plan["tasks"]}
        new = [task for task in extended.tasks if task["id"] not in known]
        self.plan = {**self.plan, "tasks": [*self.plan["tasks"], *new]}
        self.fills.update(extended.fills or {})

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
        """Let tasks run again; `restarts` are the orders that this carries out."""
        from chargehand.record.reopen_tasks import reopen_tasks  # few runs are reopened

        reopen_tasks(self, tasks, restarts)


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
