"""The events of a run -> the orders about its tasks that came too late: nothing was done because of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chargehand.trace.number_text import short

if TYPE_CHECKING:
    from chargehand.events import Event

# The most orders to name, and the most characters of the words to a worker.
MOST = 5
LONGEST_WORDS = 100


class LateOrders:
    """Takes the events of a run in order. A task that is restarted afterwards has no late orders any more."""

    def __init__(self) -> None:
        # Task, kind of order and its words.
        self._found: list[tuple[str, str, str]] = []

    def take(self, event: Event) -> None:
        if event.kind != "control" or event.task is None:
            return
        data = event.data
        if data.get("order") == "restart" and data.get("verdict") == "accepted":
            self._found = [each for each in self._found if each[0] != event.task]
        elif data.get("verdict") == "too_late":
            value: dict[str, Any] = data.get("value") or {}
            self._found.append((event.task, str(data.get("order")), str(value.get("text") or "")))

    def describe(self) -> list[str]:
        """One line for each order, the oldest first."""
        lines = [_describe(*each) for each in self._found[:MOST]]
        return lines if len(self._found) <= MOST else [*lines, f"and {len(self._found) - MOST} more that came too late"]


def restart_command(run: str, task: str) -> str:
    """What follows the reason why an order about a task came too late."""
    from chargehand.values.key import TaskPath

    return f"With: chargehand steer {run} {TaskPath.parse(task).whole} --restart"


def _describe(task: str, order: str, words: str) -> str:
    if order == "tell":
        return f'the words for {task} came too late, no worker has read them: "{short(words, LONGEST_WORDS)}"'
    return f"the order to {order} {task} came too late"
