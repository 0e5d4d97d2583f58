"""Events -> what a run must not do again: committed effects, decisions, answers, ended tasks, money spent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chargehand.errors import InvalidPlan
from chargehand.record.storage_errors import MISSHAPEN, damage_error
from chargehand.text.plan_json import parse
from chargehand.values.base import JSON
from chargehand.values.event import Event
from chargehand.values.key import TaskPath
from chargehand.values.outcome import Outcome, Usage

Data = dict[str, Any]
# Calls whose answers are kept when tasks are reopened.
_PLANNING = ("@plan", "@route", "@extend")
# What a resumed run comes to again from committed results. Gaps and contradictions are found anew by each session.
_HEDGE = "/hedge"
TOLD_ONCE = frozenset({"extension", "synthesis_started", "draft_discarded", "critique"})


class InFlight(NamedTuple):
    """A call that was sent and not settled when its session died: it may have used all that was set aside for it."""

    key: str
    tokens: int
    usd: float | None
    usage: Usage

    @property
    def settled(self) -> Data:
        """How it is settled, as the next session puts it on the record."""
        return {
            "key": self.key,
            "tokens": self.tokens,
            "usd": self.usd,
            "estimated": True,
            "lost": self.usage.to_json(),
        }


@dataclass(slots=True)
class Replay:
    """A fold over one run's events. The engine reads it; only `apply` writes it."""

    run: str = ""
    seq: int = 0
    # The request, team and settings the run goes on with.
    start: Data = field(default_factory=dict[str, Any])
    sessions: int = 0
    plan: Data | None = None
    # Task -> the added tasks that take its place once they are done.
    fills: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    # The plan_approved event's data: what runs, whether it was given, what planning used.
    approved: Data | None = None
    # The last plan without errors that was drafted: what a person is asked to approve.
    drafted: Data | None = None
    # The same of the teams that do attempts, by attempt (`t3/1`).
    approved_within: dict[str, Data] = field(default_factory=dict[str, Data])
    # The plan came from the user: the planner is never asked.
    plan_given: bool = False
    # key -> {fingerprint, result}: effects that returned.
    committed: dict[str, Data] = field(default_factory=dict[str, Data])
    # key -> the *_called event's data: effects begun and not returned when the record stops.
    intents: dict[str, Data] = field(default_factory=dict[str, Data])
    decisions: dict[str, JSON] = field(default_factory=dict[str, JSON])
    questions: dict[str, Data] = field(default_factory=dict[str, Data])
    answers: dict[str, JSON] = field(default_factory=dict[str, JSON])
    ended: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    # task/attempt -> the outcome of an attempt that came to nothing.
    attempted: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    # task, and task/attempt -> when it was first begun, in owned seconds without the task's waits for people.
    begun: dict[str, float] = field(default_factory=dict[str, float])
    # task -> attempts begun; where a reopened task counts on from.
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    reopened: dict[str, int] = field(default_factory=dict[str, int])
    # task -> the plan of the tasks in its place, as it was drafted.
    splits: dict[str, Data] = field(default_factory=dict[str, Data])
    # What was set aside for calls that were sent and broken off.
    lost: list[Usage] = field(default_factory=list[Usage])
    # Tokens counted for each call that came to an end without saying what it used.
    estimated: list[int] = field(default_factory=list[int])
    # What reopened tasks had used, and the results of calls that are made anew: paid for all the same.
    set_aside: list[Usage] = field(default_factory=list[Usage])
    unused: list[Data] = field(default_factory=list[Data])
    spent_tokens: int = 0
    spent_usd: float = 0.0
    # By how many tokens settled calls went over what was set aside for them, in all.
    short: int = 0
    # Output tokens of the workers: what the synthesizer will have to read.
    written: int = 0
    # task -> (tokens, usd) of the above, with those of its parts and of its team.
    spent_by_task: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])
    # key -> (tokens, usd) set aside and never settled, and the keys of calls sent, both in the last session only.
    reserved: dict[str, tuple[int, float | None]] = field(default_factory=dict[str, tuple[int, float | None]])
    sent: set[str] = field(default_factory=set[str])
    # By key, what was in flight when a session died, is counted, and is not settled on the record: a session after it
    # does that.
    written_off: dict[str, InFlight] = field(default_factory=dict[str, InFlight])
    # Seconds some process owned and ran this run.
    owned_s: float = 0.0
    status: str = "running"
    report: Data | None = None
    # How often each of these was told (see `telling`).
    told: Counter[tuple[str, str | None, str]] = field(default_factory=Counter[tuple[str, str | None, str]])
    _session_began: float = 0.0
    _owned_before: float = 0.0
    # task -> owned seconds of its waits for people that are over; how many questions are open, since when any was.
    _waited: dict[str, float] = field(default_factory=dict[str, float])
    _waiting: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])

    def apply(self, event: Event) -> None:
        data = event.data
        self.run, self.seq = event.run, event.seq
        match event.kind:
            case "run_started":
                # A resumed session says what it changes: a topped-up budget, a later deadline.
                self.start = {**self.start, **{name: value for name, value in data.items() if value is not None}}
                self.sessions += 1
                self._write_off()
                self._session_began, self._owned_before = event.at, self.owned_s
                self.status, self.report = "running", None
            case "plan_approved" if data.get("within"):
                self.approved_within[data["within"]] = data
            case "plan_drafted" if data.get("within"):
                pass  # of a nested team: what counts is what was approved
            case "plan_drafted" if data.get("source") == "added":
                pass  # what it is added to is the plan until that is approved
            case "plan_drafted" if event.task is not None:
                self.splits[event.task] = data["plan"]
            case "plan_drafted":
                self.plan_given = data.get("source") == "given"
                if not any(problem["severity"] == "error" for problem in data.get("problems") or ()):
                    self.drafted = data.get("plan")
            case "plan_approved":
                self.plan, self.approved = data["plan"], data
            case "extension" if not data.get("within"):
                self._extend(data)
            case "model_called" | "tool_called":
                self.intents[data["key"]] = data
                self.sent.add(data["key"])
            case "model_replied" if data["result"].get("cut"):
                pass  # broken off: what had arrived is there to be read by people, the call is made again
            case "model_replied" | "tool_returned" | "reused":
                called = self.intents.pop(data["key"], None)
                if called is not None and called.get("role") == "worker":
                    self.written += _output_tokens(data["result"])
                self.committed[data["key"]] = data
            case "decision":
                self._decide(data)
            case "attempt_started":
                if event.task is not None and event.attempt is not None:
                    self.attempts[event.task] = event.attempt
                    now = self._owned_at(event) - self._waits_of(event.task)
                    self.begun.setdefault(event.task, now)
                    self.begun.setdefault(f"{event.task}/{event.attempt}", now)
            case "attempt_ended":
                if data.get("outcome") is not None:
                    self.attempted[f"{event.task}/{event.attempt}"] = Outcome.model_validate(data["outcome"])
            case "task_ended":
                outcome = Outcome.model_validate(data["outcome"])
                self.ended[event.task or outcome.task] = outcome
            case "question_asked":
                self.questions[data["key"]] = data["question"]
                for task in TaskPath.parse(event.task).lineage if event.task is not None else ():
                    number, since = self._waiting.get(task, (0, self._owned_at(event)))
                    self._waiting[task] = number + 1, since
            case "question_answered":
                self.answers[data["key"]] = data["answer"]
                # While it only waited for the person, the run did not run.
                self._owned_before -= data.get("parked_s") or 0.0
                for task in TaskPath.parse(event.task).lineage if event.task is not None else ():
                    if task in self._waiting:
                        self._end_wait(task, self._owned_at(event))
            case "budget_reserved":
                self.written_off.pop(data["key"], None)
                self.reserved[data["key"]] = (data["tokens"], data["usd"])
            case "budget_settled" if data["key"] in self.written_off:
                del self.written_off[data["key"]]  # counted when its session was found to have died
            case "budget_settled":
                self._settle(event.task, data)
            case kind if kind in TOLD_ONCE:
                self.told[telling(kind, event.task, data)] += 1
            case "run_ended":
                self.status, self.report = data["status"], data.get("report")
            case _:
                pass
        self.owned_s = self._owned_at(event)

    def _owned_at(self, event: Event) -> float:
        """The run's own seconds at an event; none pass while nobody runs it."""
        return self.owned_s if event.outside else self._owned_before + max(0.0, event.at - self._session_began)

    def _end_wait(self, task: str, now: float) -> None:
        number, since = self._waiting.pop(task)
        if number > 1:
            self._waiting[task] = number - 1, since
        else:
            self._waited[task] = self._waited.get(task, 0.0) + now - since

    def _waits_of(self, task: str) -> float:
        since = self._waiting[task][1] if task in self._waiting else self.owned_s
        return self._waited.get(task, 0.0) + self.owned_s - since

    def waits(self) -> dict[str, float]:
        """Task -> owned seconds it has waited for people, open questions included."""
        return {task: self._waits_of(task) for task in (*self._waited, *self._waiting)}

    def open_questions(self) -> dict[str, Data]:
        """Questions without an answer, by key, in the order they were asked."""
        return {key: question for key, question in self.questions.items() if key not in self.answers}

    def spent_by(self, task: str) -> tuple[int, float]:
        """Tokens and USD a task has used, the tasks it was split into and those of its team included."""
        return self.spent_by_task.get(task, (0, 0.0))

    def _settle(self, task: str | None, data: Data) -> None:
        set_aside, _ = self.reserved.pop(data["key"], (data["tokens"], None))
        self.short += max(data["tokens"] - set_aside, 0)
        self.spent_tokens += data["tokens"]
        self.spent_usd += data["usd"] or 0.0
        if data.get("lost"):
            self.lost.append(Usage.model_validate(data["lost"]))
        elif data.get("estimated"):
            self.estimated.append(data["tokens"])
        for whole in () if task is None else TaskPath.parse(task).wholes:
            tokens, usd = self.spent_by_task.get(whole, (0, 0.0))
            self.spent_by_task[whole] = (tokens + data["tokens"], usd + (data["usd"] or 0.0))

    def used_before_reopening(self) -> Usage:
        """What was used before tasks were reopened and is in no outcome any more."""
        return Usage.total([*self.set_aside, *usages(self.unused)])

    def in_flight(self) -> list[InFlight]:
        """Calls under way where the record stops. One that waited for its slot was never sent and used nothing."""
        found: list[InFlight] = []
        for key, (tokens, usd) in self.reserved.items():
            # A hedge is the same call once more.
            called = self.intents.get(key.removesuffix(_HEDGE)) or {}
            if key in self.sent:
                output = min(called.get("max_output") or 0, tokens)
                model = called.get("model")
                usage = Usage(
                    input_tokens=tokens - output,
                    output_tokens=output,
                    usd=None,
                    calls=1,
                    models=(model,) if model else (),
                )
                found.append(InFlight(key, tokens, usd, usage))
        return found

    def _write_off(self) -> None:
        """A new session counts what the one before left in flight as spent."""
        for each in self.in_flight():
            self.spent_tokens += each.tokens
            self.spent_usd += each.usd or 0.0
            self.lost.append(each.usage)
            self.written_off[each.key] = each
        self.reserved.clear()
        self.sent.clear()

    def _extend(self, data: Data) -> None:
        assert self.plan is not None
        known = {task["id"] for task in self.plan["tasks"]}
        new = [task for task in data["tasks"] if task["id"] not in known]
        self.plan = {**self.plan, "tasks": [*self.plan["tasks"], *new]}
        self.fills.update(data.get("fills") or {})

    def is_replaced(self, task: str) -> bool:
        """Whether tasks that were added have taken its place, all of them done."""
        by = self.fills.get(task)
        return bool(by) and all(id in self.ended and self.ended[id].ok for id in by or ())

    def _decide(self, data: Data) -> None:
        if data["decision"] == "reopen":
            self.reopen(data["value"]["tasks"])
        elif data["decision"] == "hedge":
            self.sent.add(data["key"])  # it is sent as soon as this is on disk
        self.decisions[data["key"]] = data["value"]

    def reopen(self, tasks: Iterable[str]) -> None:
        """Let tasks run again, attempts counting on; of a task that was split only the parts that are not done.

        The supervisor's own failed calls are made again as well, and the answer is judged and written anew.
        """
        for task in tasks:
            parts = self._parts_again(task)
            if task in self.ended and task not in self.splits:  # what parts used is counted with the whole again
                self.set_aside.append(self.ended[task].usage)
            self.ended.pop(task, None)
            self.begun.pop(task, None)
            for id in parts or (task, *(part for part in self.attempts if part.startswith(f"{task}.s."))):
                self.ended.pop(id, None)
                self.begun.pop(id, None)
                self.reopened[id] = self.attempts.get(id, 0)
        for key, value in list(self.decisions.items()):
            if key.startswith("@") and (key.endswith("/deadline") or value is False):
                del self.decisions[key]
            elif key.startswith("@extend/") and key.endswith("/gaps"):
                # What was added for a draft is there before the answer that is written now.
                self.decisions[f"{key.removesuffix('gaps')}whether"] = self.decisions.pop(key)
        for key, data in list(self.committed.items()):
            if key.startswith("@") and (not key.startswith(_PLANNING) or data["result"].get("error")):
                self.unused.append(data["result"])
                del self.committed[key]
        self.told = Counter({mark: times for mark, times in self.told.items() if mark[0] == "extension"})

    def _parts_again(self, task: str) -> list[str]:
        """The parts of a split task that are not done, and those that rest on them; none when all are done."""
        found: list[str] = []
        for part in parse(self.splits[task]).in_order() if task in self.splits else ():
            id = f"{task}.s.{part.id}"
            rests_on = {f"{task}.s.{dependency}" for dependency in part.depends_on}
            if id in self.ended and (not self.ended[id].ok or rests_on.intersection(found)):
                found.append(id)
        return found


def telling(kind: str, task: str | None, data: Data) -> tuple[str, str | None, str]:
    """What is told, to be known again."""
    return kind, task, json.dumps(data, sort_keys=True, default=str)


def _output_tokens(result: Data) -> int:
    reply: Data = result.get("reply") or {}
    counted: Data = reply.get("usage") or result.get("estimated") or {}
    return counted.get("output_tokens") or 0


def usages(results: Iterable[Data]) -> Iterator[Usage]:
    """What each result of a model call used."""
    from chargehand.values.effect import ModelResult, usage_of

    for result in results:
        if result.get("reply"):
            yield usage_of(ModelResult.model_validate(result), result["reply"].get("model", ""))


def replay(events: Iterable[Event], run: str = "") -> Replay:
    """The fold over a record; RecordDamaged names the event that has not the shape it was written with."""
    state = Replay(run=run)
    for event in events:
        try:
            state.apply(event)
        except (*MISSHAPEN, InvalidPlan) as error:
            what = f"event {event.seq}, {event.kind}, cannot be read: {type(error).__name__}"
            raise damage_error(f"of run {event.run}", what) from error
    return state
