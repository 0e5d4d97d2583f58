"""People's orders to a run -> a verdict on each, from the record and on the record; then the workflow acts on them.

Words to a worker, answers, and orders about a task within a nested team are passed to their step, which gives the
verdict.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from chargehand.engine.judge_orders import judge_model, judge_top_up
from chargehand.engine.temporal.blob_journal import BlobJournal
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.engine.temporal.step_order import RUN, StepOrder, StepResult
from chargehand.errors import InvalidAnswer, NoOpenQuestion
from chargehand.events import Control, Event
from chargehand.models.resolve import Models
from chargehand.record.mailbox import UnreadableOrder
from chargehand.record.replay import Replay, replay
from chargehand.record.task_list import ACCEPTED, Judgement, TaskList
from chargehand.runs.answer_question import check_answer
from chargehand.runs.temporal.blob_source import BlobRecord, fold_run
from chargehand.runs.temporal.stored_run import BlobMailbox, hold_steps
from chargehand.values.budget import Budget
from chargehand.values.key import Key
from chargehand.values.order import Order, control_key
from chargehand.values.status_words import FINISHED


class RunLimits(NamedTuple):
    """What a run may use, as its workflow knows it, and how many seconds it has run."""

    tokens: int | None
    usd: float | None
    deadline_s: float | None
    now: float

    @staticmethod
    def of(order: StepOrder) -> RunLimits:
        return RunLimits(order.refs.get("tokens"), order.refs.get("usd"), order.refs.get("deadline_s"), order.now)


def segment_for(order: Order, state: Replay) -> str | None:
    """The segment whose step gives the verdict on an order; None for an order to the run as a whole."""
    if order.order == "answer":
        for key, asked in state.questions.items():
            if asked["id"] == order.question and key not in state.answers:
                path = Key.parse(key).path
                return "@plan" if path is None else path.lineage[0].partition("/")[0]
        return None
    if order.task is not None and (order.order == "tell" or (order.order == "stop" and "/" in order.task)):
        return order.task.partition("/")[0]
    return None


async def take_orders(store: BlobStore, order: StepOrder, token: int, models: Models) -> StepResult:
    """The verdicts on the orders that waited, without their words: `acts` is what the workflow has to do."""
    journal = BlobJournal.open(store, order.run, RUN, token)
    taken = await take_pending(store, order.run, journal, models, RunLimits.of(order))
    # An earlier try may have given the verdict.
    wanted = control_key(str(order.refs["id"]))
    if wanted not in taken and (control := _find_control(journal, wanted)) is not None:
        taken[wanted] = control
    tasks = (
        TaskList.of(fold_run(store, order.run))
        if any(_runs_again(event) is not None for event in taken.values())
        else None
    )
    return StepResult(page={"acts": [_act(event, tasks) for event in taken.values()]})


async def take_pending(
    store: BlobStore, run: str, journal: BlobJournal, models: Models, limits: RunLimits
) -> dict[str, Event]:
    """Give a verdict on each order in the mailbox of the run; the controls by key."""
    mailbox, taken = BlobMailbox(store, run, RUN), dict[str, Event]()
    for order in mailbox.pending():
        record = BlobRecord(store, run)
        record.refresh()
        state = replay(record.events(), run)
        key = control_key(order.id)
        if isinstance(order, UnreadableOrder):
            refused = Judgement("refused", f"The order cannot be read: {order.problem}.")
            control = Control(key=key, order="unreadable", by="", sent_at=0.0, **_words(refused))
            taken[key] = await _append(journal, control, None)
        elif key not in state.controls:
            judged = _judge(order, state, store, models, limits)
            segment = segment_for(order, state)
            if judged == ACCEPTED and segment is not None:
                BlobMailbox(store, run, segment).send(order)
            else:
                value = order.details | (_grown_limits(order, state, limits) if judged == ACCEPTED else {})
                if judged == ACCEPTED and (held := _holds(order, value)) is not None:
                    hold_steps(store, run, held=held)
                control = Control(
                    key=key, order=order.order, by=order.by, sent_at=order.sent_at, **_words(judged, value)
                )
                taken[key] = await _append(journal, control, order.task)
                limits = _after(limits, value)
        mailbox.remove(order.id)
    return taken


def _judge(order: Order, state: Replay, store: BlobStore, models: Models, limits: RunLimits) -> Judgement:
    if state.status in FINISHED and state.report is not None and order.order in ("pause", "continue", "top_up"):
        return Judgement("too_late", f"{state.run} has ended ({state.status}).")
    if order.order == "top_up":
        has = {"tokens": limits.tokens, "usd": limits.usd, "deadline": limits.deadline_s}
        return judge_top_up(order, has)
    if order.order == "answer":
        return _judge_answer(order, state, store)
    judged = TaskList.of(state).judge(order, state.stopped, state.start.get("team", {}))
    if judged == ACCEPTED and order.model is not None:
        return judge_model(models, order.model, needs_price=limits.usd is not None)
    return judged


def _judge_answer(order: Order, state: Replay, store: BlobStore) -> Judgement:
    """The first answer that can be used counts, also before the step that asked has taken it."""
    question = order.question or ""
    try:
        _, answer = check_answer(state.run, state, question, order.text, is_owned=True)
        segment = segment_for(order, state)
        sent = [] if segment is None else BlobMailbox(store, state.run, segment).pending()
        for each in sent:
            if isinstance(each, Order) and each.question == question and each.id != order.id:
                _, first = check_answer(state.run, state, question, each.text, is_owned=True)
                if first != answer:
                    return Judgement("refused", f"{question} has been answered: {each.text}")
    except (InvalidAnswer, NoOpenQuestion) as error:
        return Judgement("refused", str(error))
    return ACCEPTED


def _grown_limits(order: Order, state: Replay, limits: RunLimits) -> dict[str, Any]:
    """The limits after an order has raised them, and the tasks that run again because they had reached them."""
    if order.order != "top_up":
        return {}
    tokens = None if limits.tokens is None else limits.tokens + (order.tokens or 0)
    usd = None if limits.usd is None else limits.usd + (order.usd or 0.0)
    grown: dict[str, Any] = {
        "limit": Budget(tokens=tokens, usd=usd).to_json(),
        "tasks": TaskList.of(state).short_of(order.raised),
    }
    if order.deadline is not None:
        grown["deadline_s"] = round(limits.now + order.deadline, 3)
    return grown


def _holds(order: Order, value: dict[str, Any]) -> bool | None:
    """Whether steps under way must begin nothing new from now on; None changes nothing."""
    if order.order == "continue":
        return False
    return True if order.order in ("pause", "restart") or value.get("tasks") or "deadline_s" in value else None


def _after(limits: RunLimits, value: dict[str, Any]) -> RunLimits:
    if "limit" not in value:
        return limits
    limit = Budget.model_validate(value["limit"])
    return limits._replace(tokens=limit.tokens, usd=limit.usd, deadline_s=value.get("deadline_s", limits.deadline_s))


def _words(judged: Judgement, value: dict[str, Any] | None = None) -> dict[str, Any]:
    said = {"reason": judged.reason, "value": value}
    return {"verdict": judged.verdict} | {name: each for name, each in said.items() if each}


async def _append(journal: BlobJournal, control: Control, task: str | None) -> Event:
    event = Event(journal.run, journal.last_seq + 1, time.time(), task, None, control)
    await journal.append([event], {})
    return event


def _find_control(journal: BlobJournal, key: str) -> Event | None:
    found = (event for event in journal.events() if isinstance(event.body, Control) and event.body.key == key)
    return next(found, None)


def _runs_again(event: Event) -> list[str] | None:
    """The tasks that run again after an accepted order; empty if it only adds time; None if nothing runs again."""
    control = event.body
    assert isinstance(control, Control)
    value = control.value or {}
    if control.verdict != "accepted":
        return None
    if control.order == "restart" and event.task is not None:
        return [event.task]
    return list(value["tasks"]) if value.get("tasks") or "deadline_s" in value else None


def _act(event: Event, tasks: TaskList | None) -> dict[str, Any]:
    """An order as the workflow gets it: names and numbers."""
    control = event.body
    assert isinstance(control, Control)
    act: dict[str, Any] = {"key": control.key, "order": control.order, "verdict": control.verdict}
    if control.verdict != "accepted":
        return act
    value = control.value or {}
    act |= {"task": event.task} if event.task is not None else {}
    act |= value.get("limit", {})
    act |= {"deadline_s": value["deadline_s"]} if "deadline_s" in value else {}
    if (again := _runs_again(event)) is not None and tasks is not None:
        act["again"] = sorted(tasks.with_dependents(again))
    return act
