"""An order to a run, from any process -> the verdict of the process that owns the run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from chargehand.events import Control
from chargehand.record.task_list import ACCEPTED, Judgement, TaskList
from chargehand.values.base import Value
from chargehand.values.order import Order, OrderKind, Verdict
from chargehand.values.status_words import FINISHED

if TYPE_CHECKING:
    from chargehand.record.replay import Replay
    from chargehand.record.run_source import RunSource

# How long a sender waits for the owner's verdict. The owner looks for orders twice a second.
VERDICT_WAIT_S = 3.0
_LOOK_AGAIN_S = 0.05


class SentOrder(Value):
    """The result of an order."""

    run: str
    id: str
    order: OrderKind
    task: str | None = None
    # None while there is none: `reason` says when there will be.
    verdict: Verdict | None = None
    # Why it was not accepted, or when it takes effect, and what to do.
    reason: str = ""


async def send_order(source: RunSource, run: str, order: Order, wait_s: float = VERDICT_WAIT_S) -> SentOrder:
    """Send an order and wait for the owner's verdict.

    Without an owner the order waits in the mailbox of the run and takes effect at the next resume. An order that is
    impossible by the record is then not sent.
    """
    sent = SentOrder(run=run, id=order.id, order=order.order, task=order.task)
    if (owner := source.owner(run)) is None:
        judged = _judge(run, source.state(run), order)
        if judged.verdict != "accepted":
            return sent.model_copy(update={"verdict": judged.verdict, "reason": judged.reason})
    source.orders(run).send(order)
    if owner is not None and (control := await _wait_for_verdict(source, run, order, wait_s)) is not None:
        return sent.model_copy(update={"verdict": control.verdict, "reason": control.reason or ""})
    if source.owner(run) is not None:
        return sent.model_copy(update={"reason": _when_sent(run, order, owner)})
    return sent.model_copy(update={"reason": f"No process runs {run}: the order takes effect when it is resumed."})


def _when_sent(run: str, order: Order, owner: str | None) -> str:
    """When an order without a verdict takes effect."""
    if order.order == "tell":
        when = f"The worker of {order.task} gets it before its next model call. If it makes none, it is too late"
        return f"Sent. {when}."
    return f"Sent, but not taken yet by {owner}, which runs {run}."


def _judge(run: str, state: Replay, order: Order) -> Judgement:
    """The verdict from the record of a run that no process owns; it is final unless it is `accepted`."""
    match order.order:
        case "restart":
            return TaskList.of(state).judge(order, state.stopped, state.start.get("team", {}))
        case "pause" if state.status in (*FINISHED, "cancelled"):
            return Judgement("too_late", f"{run} has ended ({state.status}): there is nothing to pause.")
        case "stop" | "tell":
            found = TaskList.of(state).judge(order, state.stopped, state.start.get("team", {}))
            if found.verdict == "accepted" and state.status in FINISHED:
                why = f"{run} has ended ({state.status}), without a result of {order.task}."
                return Judgement("too_late", f"{why} Restart {order.task} to run it again.")
            return found
        case _ if state.status in FINISHED:
            return Judgement("too_late", f"{run} has ended ({state.status}).")
        case "pause":
            return Judgement("refused", f"No process runs {run}, so there is nothing to pause.")
        case "continue" | "answer" | "top_up":
            return ACCEPTED


async def _wait_for_verdict(source: RunSource, run: str, order: Order, wait_s: float) -> Control | None:
    loop = asyncio.get_running_loop()
    until, seq = loop.time() + wait_s, 0
    while True:
        owned = source.owner(run) is not None
        for event in source.events(run, seq):
            seq = event.seq
            if isinstance(event.body, Control) and event.body.key == order.key:
                return event.body
        if not owned or loop.time() >= until:
            return None
        await asyncio.sleep(_LOOK_AGAIN_S)
