"""kill -9 around orders of every kind: each is acted on once or not yet, never twice, never lost.

Orders are sent at random moments to a run that lives or is dead; the process that has it dies at random moments after
that, and the run is resumed until it has ended. 100 deaths in a soak, a tenth of them else.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from chargehand.events import Control, Decided, Event, ModelReplied, QuestionAnswered
from chargehand.record.home import Home
from chargehand.record.replay import Replay
from chargehand.values.order import Order, OrderKind, new_order
from chargehand.values.status_words import FINISHED
from tests.counts import count
from tests.crash.stage import Case, Stage, Trigger, Victim, staged
from tests.crash.world import SHAPES

KILLS = count(25)
MOST_LIVES = 12
TOKENS = 1_000
KINDS: tuple[OrderKind, ...] = ("pause", "stop", "restart", "tell", "top_up")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    # Slow enough for orders, which are looked for twice a second, to arrive at every point.
    with staged(tmp_path_factory.mktemp("orders"), slowness=12) as running:
        yield running


class Ordered:
    """A run through all its lives, and the orders that were sent to it."""

    def __init__(self, stage: Stage, shape: str, chance: random.Random) -> None:
        self.case: Case = stage.case(shape, "openai", given=False)
        self.tasks = list(SHAPES[shape].tasks)
        self.chance = chance
        self.sent: list[Order] = []
        self.deaths = 0

    @property
    def home(self) -> Home:
        return Home(self.case.home)

    @property
    def run(self) -> str:
        return self.home.find("last")

    def begin(self) -> None:
        """The plan waits for a person, and the answer waits in the mailbox."""
        args = ["run", f"Do all of shape {self.case.shape}", "--team", str(self.case.stage.team), "--json"]
        victim = self.case.start(*args, "--model", "openai:crash-model", "--approve")
        assert victim.wait() == 4, victim.err
        self.send(new_order("answer", question="plan", text="approve"))

    def send(self, order: Order) -> None:
        self.sent.append(order)
        self.home.orders(self.run).send(order)

    def send_any(self) -> None:
        kind = self.chance.choice(KINDS)
        fields: dict[str, object] = {"tokens": TOKENS} if kind == "top_up" else {}
        if kind in ("stop", "restart", "tell"):
            fields = {"task": self.chance.choice(self.tasks), "text": f"Words {len(self.sent)}."}
        self.send(new_order(kind, **fields))

    def live(self) -> bool:
        """One life with orders in it; whether it was ended by a kill."""
        chance = self.chance
        if chance.random() < 0.3:
            self.send_any()  # nobody owns it
        victim = self.case.resume()
        for _ in range(chance.randint(1, 2)):
            if not victim.lives_until(passed(chance.uniform(0.1, 0.9))):
                return False
            self.send_any()
        # Around the moment in which the owner looks, records and removes.
        victim.lives_until(passed(chance.choice((0.0, 0.2, 0.45, 0.5, 0.55, 0.8)) + chance.uniform(0, 0.05)))
        if victim.kill() != -9:
            return False
        self.deaths += 1
        return True

    def finish(self) -> Victim:
        """The life that came to an end: a pause ends one too, and the next resume continues it."""
        for _ in range(len(self.sent) + 2):
            victim = self.case.resume()
            if victim.wait() != 4 and not self.home.orders(self.run).pending():
                return victim
        raise AssertionError(f"the run does not end: {victim.err}")


def passed(seconds: float) -> Trigger:
    at = time.monotonic() + seconds
    return lambda: time.monotonic() >= at


def controls_of(events: list[Event]) -> list[Control]:
    return [event.body for event in events if isinstance(event.body, Control)]


def check_orders(ordered: Ordered, events: list[Event], state: Replay) -> Counter[str]:
    """One verdict for each order, and one effect for each that was accepted."""
    controls = controls_of(events)
    keys = Counter(control.key for control in controls)
    assert {order.key: keys[order.key] for order in ordered.sent} == {order.key: 1 for order in ordered.sent}
    assert ordered.home.orders(ordered.run).pending() == []
    accepted = {control.key: control for control in controls if control.verdict == "accepted"}
    decided = [event.body for event in events if isinstance(event.body, Decided)]
    reopened = Counter(key for each in decided if each.decision == "reopen" for key in each.value.get("restarts", ()))
    conversations = Counter(
        (key, each.key.rpartition("/model/")[0]) for each in decided if each.decision == "words" for key in each.value
    )
    assert all(number == 1 for number in conversations.values())
    words = {key for key, _ in conversations}
    for key, control in accepted.items():
        match control.order:
            case "restart":
                assert reopened[key] == 1
            case "tell":
                assert key in words
            case "answer":
                assert sum(isinstance(event.body, QuestionAnswered) for event in events) == 1
            case _:
                pass
    assert {key for key in reopened if "/" not in key.removeprefix("@control/")} <= accepted.keys()
    assert words <= accepted.keys()
    added = sum(control.order == "top_up" for control in accepted.values())
    assert state.start["request"]["budget"]["tokens"] == 500_000 + TOKENS * added
    stopped = {task: state.ended[task].error for task in state.stopped}
    assert all(error is not None and error.kind == "cancelled" for error in stopped.values())
    assert not state.restarts
    assert not state.paused
    return Counter(f"{control.order} {control.verdict}" for control in controls)


@pytest.mark.parametrize("shape", ["chain", "tools", "diamond", "fan"])
def test_orders_survive_kills(stage: Stage, shape: str, record_property: Callable[[str, object], None]) -> None:
    """Of every kind, sent to a living or a dead run; and no call whose result was recorded is made again."""
    chance = random.Random(f"orders {shape}")
    deaths, verdicts = 0, Counter[str]()
    while deaths < KILLS:
        ordered = Ordered(stage, shape, chance)
        ordered.begin()
        for _ in range(MOST_LIVES):
            if ordered.deaths + deaths >= KILLS or not ordered.live():
                break
        last = ordered.finish()
        events = list(ordered.home.events(ordered.run))
        state = ordered.home.state(ordered.run)
        assert state.status in FINISHED, last.err
        assert json.loads(last.out)["run"] == ordered.run
        replies = Counter(
            event.body.key
            for event in events
            if isinstance(event.body, ModelReplied)
            and not event.body.key.startswith("@")
            and "cut" not in event.body.result
        )
        assert not {key: number for key, number in replies.items() if number > 1}
        verdicts += check_orders(ordered, events, state)
        deaths += ordered.deaths
    record_property("verdicts", json.dumps(verdicts))
