"""A person's words to the workers of a run -> the model calls that they come before, each on the record with its call.

Words wait for the next model call of their task, or of a part of it. The verdict on the order is known then: accepted
with that call, or too late when the task ends without one. Later conversations about the same task, such as the next
attempt, get the words with their first call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from chargehand.events import Decided, EventBody
from chargehand.record.replay import Replay
from chargehand.values.key import Key, TaskPath
from chargehand.values.order import Order

Emit = Callable[[EventBody, str | None, int | None], None]
_AT_CALL = "/words"


class _Said(NamedTuple):
    text: str
    task: str


class WordsToWorkers:
    """One per session."""

    def __init__(self, replay: Replay, emit: Emit) -> None:
        self._replay = replay
        self._emit = emit
        # Words by key of the order: those that a call has taken, and those that no call has taken.
        self._said = {key: _Said(*said) for key, said in replay.words.items()}
        self._waiting: dict[str, Order] = {}
        # Conversation -> the keys of the orders whose words it has.
        self._heard: dict[str, set[str]] = {}
        for key, orders in replay.decisions.items():
            if key.endswith(_AT_CALL):
                self._heard.setdefault(_conversation(key.removesuffix(_AT_CALL)), set()).update(orders)

    def add(self, order: Order) -> None:
        """Keep words until a call takes them. Adding again does nothing."""
        self._waiting[order.key] = order

    def before(self, task: str, call: str, accept: Callable[[Order, str], None]) -> list[str]:
        """The words that come before a call: those it had in an earlier session, or those that are due.

        `accept` puts the verdict on an order on the record, with the call that it comes before.
        """
        decided = self._replay.decisions.get(f"{call}{_AT_CALL}")
        if decided is not None:
            return list(decided.values())
        # A call that was sent is sent again as it was.
        if not (self._said or self._waiting) or call in self._replay.committed or call in self._replay.intents:
            return []
        wholes, heard = TaskPath.parse(task).wholes, self._heard.setdefault(_conversation(call), set())
        for key, order in list(self._waiting.items()):
            if order.task in wholes:
                accept(order, call)
                self._said[key] = _Said(order.text, order.task)
                del self._waiting[key]
        due = {key: said.text for key, said in self._said.items() if said.task in wholes and key not in heard}
        if due:
            heard.update(due)
            at = Key.parse(call)
            reason = "a person's words to the worker"
            self._emit(
                Decided(key=f"{call}{_AT_CALL}", decision="words", value=due, reason=reason), at.task, at.attempt
            )
        return list(due.values())

    def drop(self, order: Order) -> None:
        """Keep words no longer: the verdict on them is known."""
        self._waiting.pop(order.key, None)

    def take_unheard(self, task: str) -> list[Order]:
        """The words to a task that has ended, or to one within it, that no call has taken."""
        found = [order for order in self._waiting.values() if task in TaskPath.parse(order.task or "").wholes]
        for order in found:
            del self._waiting[order.key]
        return found


def _conversation(call: str) -> str:
    """`t3/1` of `t3/1/model/2`: the attempt, or the member of it."""
    return call.rpartition("/model/")[0]
