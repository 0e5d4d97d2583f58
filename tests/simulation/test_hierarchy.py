"""Random worlds with teams within teams and pools: every invariant of the kernel holds for them too."""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass
from typing import Any

import pytest

from chargehand.models import Attribution
from chargehand.record.memory_journal import MemoryStore
from chargehand.team import Team, Worker
from chargehand.values.budget import Budget
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply
from chargehand.values.plan import Plan
from tests.counts import STEP, count
from tests.simulation.play import Played, _tokens, play  # pyright: ignore[reportPrivateUsage]
from tests.simulation.test_simulation import _taken_out, _without_time  # pyright: ignore[reportPrivateUsage]
from tests.simulation.world import World, look

BASE = os.environ.get("CHARGEHAND_SEED", "1")
CHUNKS, WORLDS = 4, count(30)
NARROW_WORLDS = count(30)
CRASH_WORLDS = 3
POOL = ("p1", "p2", "p3")


def _inner(chance: random.Random, depth: int, *, calm: bool) -> Team:
    workers = [Worker("plain", "Does anything", tools=[look]), Worker("bare", "Has no tools")]
    if depth:
        workers.append(Worker("group", "Has it done", kind="delegate", team=_inner(chance, depth - 1, calm=calm)))
    budget = Budget() if calm or chance.random() < 0.8 else Budget(tokens=chance.choice((800, 4_000)))
    mode = chance.choice(("plan", "plan", "route"))
    return Team(workers, name=f"inner{depth}", budget=budget, mode=mode)


@dataclass
class Nested(World):
    """Some tasks are for a group, which is a team with perhaps a team in it, some for a pool."""

    def __post_init__(self) -> None:
        super().__post_init__()
        chance = random.Random(f"{self.seed}/nested")
        team = self.team
        more = [
            Worker(
                "group", "Has it done", kind="delegate", team=_inner(chance, chance.choice((0, 1, 2)), calm=self.calm)
            )
        ]
        more += [Worker(name, "Is like the others", pool="pool", tools=[look]) for name in POOL]
        self.team = Team([*team.workers, *more], shared_tools=["look"], recovery=team.recovery)
        # Who of a pool is free depends on the time of day: not where outcomes are compared.
        others = () if self.calm else ("pool",)
        tasks = [
            task.model_copy(update={"worker": chance.choice((task.worker, "group", *others))})
            for task in self.plan.tasks
        ]
        self.plan = Plan(goal=self.plan.goal, tasks=tuple(tasks), synthesis=self.plan.synthesis)

    def _reply(self, call: ModelCall, attribution: Attribution, chance: random.Random) -> Reply:
        if call.role == "planner" and attribution.task is not None and "You split" not in call.messages[0].text:
            return Reply(text=json.dumps(self._nested_draft(call, chance)))
        if call.role == "router":
            good = {"primary": chance.choice(("plain", "bare")), "reason": "So."}
            return Reply(text=json.dumps(good) if chance.random() < 0.8 else "somebody")
        return super()._reply(call, attribution, chance)

    @staticmethod
    def _nested_draft(call: ModelCall, chance: random.Random) -> dict[str, Any]:
        workers = [name for name in ("plain", "bare", "group") if f"- {name}:" in call.messages[0].text]
        told = {"instruction": "Work out a part of it.", "success_criterion": "There is a result."}
        # Ids that look like other parts of a key are as good as any.
        ids = chance.sample(("a", "b1", "model", "t1", "route"), chance.randint(1, 3))
        return {
            "goal": "A nested goal",
            "tasks": [
                {
                    "id": id,
                    "worker": chance.choice(workers),
                    "depends_on": ids[:n] if chance.random() < 0.4 else [],
                    **told,
                }
                for n, id in enumerate(ids)
            ],
        }


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_teams_within_teams_keep_every_invariant(chunk: int) -> None:
    """Faults, limits, interruptions and crashes at every depth: each run ends and breaks no rule."""
    for number in range(WORLDS):
        seed = f"{BASE}/hierarchy/{chunk}/{number}"
        try:
            world = Nested(seed)
            played = play(world)
            _check_team_budgets(world, played)
            if number % 5 == 0:
                assert play(Nested(seed)).events == played.events, "the same seed gave another trace"
        except BaseException as error:
            error.add_note(f"world {seed!r}: replay it with play(Nested({seed!r}))")
            raise


def _check_team_budgets(world: World, played: Played) -> None:
    """No attempt of a team uses more than its own [budget] or its task's, but for what estimates were off."""
    if played.cuts:
        return
    replies = [event for event in played.events if event.kind == "model_replied"]
    budgets = {team.name: team.budget.tokens for team in _teams(world.team)}
    of_tasks = {task.id: task.budget.tokens for task in world.plan.tasks if task.budget}
    for event in played.events:
        if event.kind != "decision" or event.data["decision"] != "delegate":
            continue
        scope = event.data["key"].removesuffix("@start")
        used = sum(_tokens([each for each in replies if each.data["key"].startswith(scope)]))
        limits = (budgets[event.data["value"]["team"]], of_tasks.get(event.task or ""))
        assert all(limit is None or used <= limit + played.short for limit in limits)


def _teams(team: Team) -> list[Team]:
    return [team, *(each for inner in team.nested for each in _teams(inner))]


def test_one_call_at_a_time_ends_every_nested_run() -> None:
    """Delegates hold no slot, so that a single one is enough however deep they nest."""
    for number in range(NARROW_WORLDS):
        seed = f"{BASE}/hierarchy/narrow/{number}"
        try:
            play(Nested(seed, slots=1))
        except BaseException as error:
            error.add_note(f"world {seed!r}: replay it with play(Nested({seed!r}, slots=1))")
            raise


@pytest.mark.parametrize("number", range(CRASH_WORLDS))
def test_a_crash_after_any_event_of_a_nested_run_gives_the_same_outcomes(number: int) -> None:
    """Cut after every fifth event (every fiftieth but in a soak), the resumed run ends as the uninterrupted one did."""
    seed = f"{BASE}/hierarchy/crash/{number}"
    whole = play(Nested(seed, calm=True))
    expected = _without_time(whole)
    for kept in range(1 + number % STEP, len(whole.store.events), 5 * STEP):
        resumed = play(Nested(seed, calm=True), store=MemoryStore(whole.store.events[:kept], dict(whole.store.blobs)))
        if not _taken_out(whole) and not _taken_out(resumed):
            assert _without_time(resumed) == expected, f"world {seed!r} cut after event {kept}"
