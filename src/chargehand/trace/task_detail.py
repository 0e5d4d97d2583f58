"""The events of one task, and the messages they name -> its detail: attempts, prompts, replies, tool calls, result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from chargehand.events import (
    AttemptEnded,
    AttemptStarted,
    Control,
    Decided,
    Event,
    ModelCalled,
    ModelReplied,
    Reused,
    TaskEnded,
    ToolCalled,
    ToolRefused,
    ToolReturned,
)
from chargehand.trace.run_parts import STOPPED, Data, TaskState

# The word before the number of a call, in its key -> the role that made it. Other calls of models are the worker's.
_ROLES = {"refine": "refiner", "reroute": "router", "score": "scorer", "select": "judge", "split": "planner"}

Messages = Callable[[Iterable[str]], dict[str, bytes]]
StatusOf = Callable[[TaskState], str]


def task_details(
    tasks: Iterable[TaskState], events: Iterable[Event], messages: Messages, status_of: StatusOf
) -> Iterator[tuple[str, Data]]:
    """The details of these tasks of a run, by id.

    `messages` gives the bodies of messages by hash, `status_of` the status of a task now.
    """
    details = {task.id: _Detail(task) for task in tasks}
    for event in events:
        if event.task is not None and (detail := details.get(event.task)) is not None:
            detail.take(event)
    for id, detail in details.items():
        yield id, detail.to_json(messages, status_of)


class _Detail:
    def __init__(self, task: TaskState) -> None:
        self._task = task
        self._attempts: dict[int, Data] = {}
        self._calls: dict[str, Data] = {}
        self._decisions: list[Data] = []
        self._orders: list[Data] = []
        self._outcome: Data | None = None

    def take(self, event: Event) -> None:
        match event.body:
            case AttemptStarted(worker=worker, model=model, tier=tier):
                attempt = self._attempt(event)
                attempt |= {"worker": worker, "model": model or "", "tier": tier or "", "started": event.at}
            case AttemptEnded(status=status, error=error):
                self._attempt(event).update(status=status, error=error, ended=event.at)
            case ModelCalled() as body:
                made = {"kind": "model", "name": body.model, "role": body.role, "tools": body.tools}
                self._begin(event, body.key, {**made, "messages": body.messages, "send": body.send})
            case ToolCalled() as body:
                made = {"kind": "tool", "name": body.tool, "arguments": body.arguments, "send": body.send}
                self._begin(event, body.key, made)
            case ModelReplied(key=key, result=result) | ToolReturned(key=key, result=result):
                if (call := self._calls.get(key)) is not None:
                    call |= {"ended": event.at, "result": result}
            case Reused(key=key, result=result, source=source):
                kind = "model" if "reply" in result else "tool"
                taken = {"kind": kind, "name": "", "reused": True, "source": source, "result": result}
                if role := _ROLES.get(key.split("/")[-2]):
                    taken["role"] = role
                self._begin(event, key, taken)
            case ToolRefused(tool=tool, reason=reason):
                self._begin(event, f"refused/{event.seq}", {"kind": "tool", "name": tool, "refused": reason})
            case Decided(decision="retry_sent"):
                pass  # the retry itself is a decision
            case Decided(decision=decision, reason=reason, value=value):
                decided = {"at": event.at, "decision": decision, "reason": reason, "value": value}
                self._decisions.append({**decided, "seq": event.seq, "attempt": event.attempt})
            case Control(order=order, verdict=verdict, reason=reason, value=value):
                text = (value or {}).get("text") or ""
                ordered = {"at": event.at, "order": order, "text": text, "verdict": verdict, "reason": reason or ""}
                self._orders.append({**ordered, "seq": event.seq})
            case TaskEnded(outcome=outcome):
                self._outcome = outcome
            case _:
                pass

    def _attempt(self, event: Event) -> Data:
        number = event.attempt or 1
        return self._attempts.setdefault(number, {"number": number, "calls": [], "seq": event.seq})

    def _begin(self, event: Event, key: str, call: Data) -> None:
        if key not in self._calls:
            self._calls[key] = {"key": key, "started": event.at, "seq": event.seq}
            self._attempt(event)["calls"].append(self._calls[key])
        self._calls[key] |= call

    def to_json(self, messages: Messages, status_of: StatusOf) -> Data:
        hashes = dict.fromkeys(hash for call in self._calls.values() for hash in call.get("messages", ()))
        found = messages(hashes)
        for attempt in self._task.attempts:
            if (seconds := self._task.attempt_seconds(attempt)) is not None and attempt.number in self._attempts:
                self._attempts[attempt.number]["seconds"] = seconds
        for call in self._calls.values():
            if "messages" in call:
                call["messages"] = [_read(found[hash]) for hash in call["messages"] if hash in found]
        self._name_open_attempts(status_of(self._task))
        return {
            "instruction": self._task.instruction,
            "success_criterion": self._task.success_criterion,
            "attempts": list(self._attempts.values()),
            "decisions": self._decisions,
            "orders": self._orders,
            "outcome": self._outcome,
        }

    def _name_open_attempts(self, status: str) -> None:
        """Give attempts without an end a status: the last one has that of its task, if that has not ended."""
        is_open = status in ("running", "waiting")
        last = max(self._attempts, default=None)
        for number, attempt in self._attempts.items():
            attempt.setdefault("status", status if is_open and number == last else STOPPED)


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
