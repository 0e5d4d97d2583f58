"""The events and the mailbox of a run -> a line about each order that came too late, or waits for the next resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chargehand.record.mailbox import UnreadableOrder
from chargehand.trace.number_text import short

if TYPE_CHECKING:
    from chargehand.events import Event
    from chargehand.record.run_source import RunSource
    from chargehand.values.order import Order

# The most late orders to name, and the most characters of the words of an order.
MOST = 5
LONGEST_WORDS = 100


class LateOrders:
    """Takes the events of a run in order and keeps the orders about its tasks that came too late: nothing was done.

    A task that is restarted afterwards has no late orders any more.
    """

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
        lines = [_describe_late(*each) for each in self._found[:MOST]]
        return lines if len(self._found) <= MOST else [*lines, f"and {len(self._found) - MOST} more that came too late"]


def _describe_late(task: str, order: str, words: str) -> str:
    if order == "tell":
        return f'the words for {task} came too late, no worker has read them: "{short(words, LONGEST_WORDS)}"'
    return f"the order to {order} {task} came too late"


def restart_command(run: str, task: str) -> str:
    """What follows the reason why an order about a task came too late."""
    from chargehand.values.key import TaskPath

    return f"With: chargehand steer {run} {TaskPath.parse(task).whole} --restart"


def describe_pending_orders(source: RunSource, run: str, task: str | None = None) -> list[str]:
    """The orders to a run that no process has, or only those about one of its tasks, the oldest first.

    The process of a run takes its orders at once.
    """
    if source.owner(run) is not None:
        return []
    pending = source.orders(run).pending()
    about = [each for each in pending if task is None or (not isinstance(each, UnreadableOrder) and each.task == task)]
    return list(dict.fromkeys(map(_describe_pending, about)))


def _describe_pending(order: Order | UnreadableOrder) -> str:
    if isinstance(order, UnreadableOrder):
        return f"the next resume refuses the order {order.id}: {order.problem}"
    words = short(order.text, LONGEST_WORDS)
    match order.order:
        case "stop":
            does = f"stops {order.task}" + (f": {words}" if words else "")
        case "restart":
            model = f" with {order.model}" if order.model else ""
            does = f"restarts {order.task}{model}" + (f": {words}" if words else "")
        case "tell":
            does = f'gives the worker of {order.task} the words "{words}"'
        case "answer":
            does = f'takes the answer to {order.question}: "{words}"'
        case "top_up":
            does = f"adds {_limits(order)}"
        case "pause" | "continue":
            does = f"takes the order to {order.order}"
    return f"the next resume {does}"


def _limits(order: Order) -> str:
    from chargehand.trace.number_text import duration, money

    tokens = "" if order.tokens is None else f"{order.tokens:,} tokens"
    usd = "" if order.usd is None else money(order.usd)
    return ", ".join(filter(None, [tokens, usd, "" if order.deadline is None else duration(order.deadline)]))
