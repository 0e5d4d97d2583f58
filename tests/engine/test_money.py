"""`--usd` and a task's own: money is kept for the answer, clamps what is written, and is never guessed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor
from chargehand.errors import UsageError
from chargehand.models import Attribution, prices
from chargehand.models.prices import Price
from chargehand.testing import ScriptedModel, run_virtual
from chargehand.values.budget import Budget
from chargehand.values.effect import ModelCall
from chargehand.values.ledger import Deny, Grant, Ledger, Wait, Wish
from chargehand.values.message import Reply, TokenCount
from chargehand.values.plan import Task
from tests.flows import Flow, by_task, clerks, task, tasks, works
from tests.kernel import FunctionModel, engine, question

PRICE = Price(input=1, output=10, cached=0.1)
PER_TOKEN = (PRICE.input / 1e6, PRICE.output / 1e6)


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> Callable[[Price | None], None]:
    """Gives every model this price."""

    def set_price(price: Price | None) -> None:
        monkeypatch.setattr(prices, "price", lambda provider, name: price)

    set_price(PRICE)
    return set_price


@pytest.mark.usefixtures("priced")
def test_money_is_held_back_for_the_answer() -> None:
    """Twenty workers with half the money they want leave enough for the synthesis, and finish what is left for them."""
    usage = TokenCount(input_tokens=500, output_tokens=256)
    usd = 20 * PRICE.usd(usage) / 2
    flow = Flow(works, tasks(*(task(f"t{n}") for n in range(20))), request={"budget": Budget(usd=usd)}, usage=usage)
    report = flow.run()
    assert len(flow.calls("synthesizer")) >= 1
    assert report.answer.startswith("All in all.")
    assert sum(outcome.ok for outcome in report.outcomes) >= 7
    assert report.usage.usd is not None
    assert report.usage.usd <= usd + PRICE.usd(usage)


def test_what_is_held_back_in_money_is_what_the_writer_costs() -> None:
    """Writing at its output price, at most a fifth of all, and reading what the workers have written."""
    ledger = Ledger(Budget(usd=1.0), writer=PER_TOKEN)
    assert ledger.held_back_usd == 0
    ledger.to_write, ledger.to_read = 10_000, 50_000
    assert ledger.held_back_usd == pytest.approx(0.1 + 0.05)
    ledger.to_write = 1_000_000
    assert ledger.held_back_usd == pytest.approx(0.2 + 0.05)
    denied = ledger.reserve(Wish("a", 760_000, 6_000, PER_TOKEN))
    assert isinstance(denied, Deny)
    assert isinstance(ledger.reserve(Wish("s", 760_000, 6_000, PER_TOKEN, held=True)), Grant)


def test_what_a_worker_writes_is_set_aside_in_money_twice() -> None:
    """Written at its own price, read at the writer's; settled, only what was written stays held back."""
    ledger = Ledger(Budget(usd=1.0), writer=PER_TOKEN)
    granted = ledger.reserve(Wish("a", 1_000, 4_000, PER_TOKEN, echo=True))
    assert isinstance(granted, Grant)
    assert granted.reservation.usd_set_aside == pytest.approx(0.001 + 0.04 + 0.004)
    ledger.settle("a", 1_100, 0.002, written=100)
    assert ledger.held_back_usd == pytest.approx(0.0001)
    assert ledger.spent_usd == pytest.approx(0.002)


def test_a_call_waits_for_money_that_others_may_free() -> None:
    """Denied only when nobody could."""
    ledger = Ledger(Budget(usd=0.02))
    assert isinstance(ledger.reserve(Wish("a", 100, 1_900, PER_TOKEN)), Grant)
    assert isinstance(ledger.reserve(Wish("b", 100, 1_900, PER_TOKEN)), Wait)
    ledger.settle("a", 2_000, 0.0191)
    assert isinstance(ledger.reserve(Wish("b", 100, 1_900, PER_TOKEN)), Deny)


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize(("usd", "most"), [(1.0, 4_096), (0.025, 2_272)])
def test_the_money_left_clamps_what_a_call_may_write(usd: float, most: int) -> None:
    """The cap that is sent is what can be paid for, and it is on the record before it is sent."""
    flow = Flow(works, tasks(task("a")), request={"budget": Budget(usd=usd)})
    assert flow.run().status == "complete"
    ((_, sent, _),) = flow.model.asked
    assert most - 150 < sent <= most
    called = next(event for event in flow.events if event.kind == "model_called")
    assert called.data["max_output"] == sent


@pytest.mark.usefixtures("priced")
def test_money_is_shared_between_the_tasks_that_are_left() -> None:
    """One reservation does not take what the others need: ten at once each get a tenth, not the first one all."""
    flow = Flow(works, tasks(task("b"), *(task(f"t{n}") for n in range(9))), request={"budget": Budget(usd=0.2)})
    assert flow.run().status != "failed"
    first = [max_output for call, max_output, _ in flow.model.asked if call.role == "worker"][:8]
    assert max(first) < 2_000
    sent = {round(event.at, 3) for event in flow.events if event.kind == "model_called" and event.task}
    assert len(sent) == 2, "eight at once, then two"


def test_waiters_are_woken_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty calls that fit one after the other ask a few times each, not once for every call that ends."""
    asked: list[str] = []
    reserve = Ledger.reserve

    def counting(ledger: Ledger, wish: Wish) -> Grant | Wait | Deny:
        asked.append(wish.key)
        return reserve(ledger, wish)

    monkeypatch.setattr(Ledger, "reserve", counting)
    usage = TokenCount(input_tokens=20, output_tokens=30)

    async def reply(call: ModelCall, attribution: Attribution) -> Reply:
        await asyncio.sleep(1)
        return Reply(text="ok", usage=usage)

    model = FunctionModel(reply)

    async def main() -> None:
        async with (
            engine(model, budget=Budget(tokens=4_000), max_concurrent=100) as local,
            asyncio.TaskGroup() as group,
        ):
            for number in range(60):
                call = question(f"number {number:02}", cap=900).model_copy(update={"role": "planner"})
                group.create_task(local.perform(f"@{number:02}/1", call))

    _, seconds = run_virtual(main())
    assert seconds > 10, "they had to wait for each other"
    assert len(model.asked) == 60
    assert len(asked) <= 6 * 60, "waking all of them each time asks more than a thousand times"


# -- an unknown price ------------------------------------------------------------------------------------------------


def test_a_tasks_money_with_a_model_without_a_price_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """Exit 2 names the setting, the task and the remedy; no run is left behind."""
    door = Supervisor(clerks(), model=ScriptedModel([]), home=tmp_path)
    made = tasks(task("a"), task("b", budget=Budget(usd=0.5)))
    with pytest.raises(UsageError, match=r"budget\.usd of task b cannot be kept.*budget\.tokens") as caught:
        door.run_sync("Do it", plan=made)
    assert caught.value.exit_code == 2
    assert not list(tmp_path.glob("runs/*.sqlite"))


def test_a_planned_tasks_money_with_an_unknown_price_is_not_guessed() -> None:
    """A plan the planner made comes too late to refuse: the call is denied, its reason named, nothing is spent."""

    def plans(call: Any, attribution: Any) -> Any:
        if call.role != "planner":
            return works(call, attribution)
        drafted: list[Task] = [task("a", budget=Budget(usd=0.5)), task("b")]
        return {"goal": "A goal", "tasks": [each.to_json() for each in drafted]}

    flow = Flow(plans, None)
    outcomes = by_task(flow.run())
    assert outcomes["a"].error is not None
    assert outcomes["a"].error.kind == "budget"
    assert "the price is unknown" in outcomes["a"].error.message
    assert flow.calls(task="a") == []
    assert outcomes["b"].ok
