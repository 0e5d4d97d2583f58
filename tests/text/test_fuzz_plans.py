"""Ten thousand mutilated plans: only InvalidPlan or problems come of them, never an untyped exception.

That many in a soak, a tenth of them else.
"""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

from chargehand.errors import InvalidPlan
from chargehand.record.event_json import pack
from chargehand.text.json_repair import read_object
from chargehand.text.plan_json import parse, with_valid_ids
from tests.counts import count

SEED = os.environ.get("CHARGEHAND_SEED", "1")
CHUNKS, PLANS = 4, count(2_500)
TEXTS = count(2_000)

WORDS: tuple[Any, ...] = (
    *(
        "",
        " ",
        "a",
        "t1",
        "t2",
        "\u0000",
        "\ud800",
        "\U0001f9e8" * 5,
        "x" * 5_000,
        "../../etc",
        "ann",
        "١",
        "\u202et1",
        "NaN",
    ),
)
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1e308, float("nan"), float("inf"), -0.0, 10**30),
    *([], {}, [[]], {"": None}, {"\ud800": 1}, "text"),
)
FIELDS = (
    *("goal", "tasks", "synthesis", "team", "workers", "id", "worker", "instruction", "context", "success_criterion"),
    *(
        "depends_on",
        "on_dependency_failure",
        "budget",
        "timeout_s",
        "tier",
        "best_of",
        "mode",
        "name",
        "tools",
        "extra",
    ),
)


def sample(chance: random.Random) -> dict[str, Any]:
    ids = [
        chance.choice(("t1", "t2", "t3", "9", "a b", "é", "T-1", chance.choice(WORDS)))
        for _ in range(chance.randint(0, 6))
    ]
    tasks = [
        {
            "id": id,
            "worker": chance.choice(("ann", "bob", "nobody")),
            "instruction": chance.choice(("Do one clear thing.", "etc", chance.choice(WORDS))),
            "context": chance.choice((None, "c", {"k": [1, 2]}, nested(chance.choice((3, 50, 400))))),
            "success_criterion": "It is done.",
            "depends_on": chance.sample([*ids, "ghost"], chance.randint(0, min(len(ids), 3))),
        }
        for id in ids
    ]
    return {"goal": "A goal", "tasks": tasks, "synthesis": {"mode": "merge"}}


def nested(depth: int) -> Any:
    data: Any = "deep"
    for level in range(depth):
        data = [data] if level % 2 else {"k": data}
    return data


def mutilate(data: Any, chance: random.Random, depth: int = 0) -> Any:
    """The same data with some of it replaced, removed, doubled or added."""
    roll = chance.random()
    if roll < 0.015:
        return chance.choice((*WORDS, *ODD, nested(300)))
    if isinstance(data, dict) and depth < 5:
        items: list[tuple[Any, Any]] = [(k, mutilate(v, chance, depth + 1)) for k, v in data.items()]
        if roll < 0.05 and items:
            items.pop(chance.randrange(len(items)))
        if roll > 0.97:
            items.append((chance.choice((*FIELDS, *WORDS)), chance.choice((*WORDS, *ODD))))
        return dict(items)
    if isinstance(data, list) and depth < 5:
        values = [mutilate(v, chance, depth + 1) for v in data]
        if roll < 0.15 and values:
            values.append(values[chance.randrange(len(values))])
        if roll > 0.9:
            values.append(chance.choice((*WORDS, *ODD)))
        if roll > 0.995:
            values *= 200
        return values
    return data


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_plan_breaks_the_checks(chunk: int) -> None:
    """Wrong types, deep nesting, huge, odd unicode, NaN, doubled ids: a plan with problems, or InvalidPlan."""
    valid = problems = 0
    for number in range(PLANS):
        seed = f"{SEED}/{chunk}/{number}"
        data = mutilate(sample(random.Random(seed)), random.Random(f"{seed}/m"))
        try:
            plan = parse(data)
            fixed, _ = with_valid_ids(plan)
            assert with_valid_ids(fixed)[0] == fixed
            problems += len(fixed.problems(("ann", "bob"), max_tasks=100, budget_tokens=1_000))
            assert fixed.strategy in ("single", "sequential", "parallel", "hybrid")
            pack({"plan": fixed.to_json()})
            valid += 1
        except InvalidPlan as error:
            str(error).encode("utf-8", "replace")
        except BaseException as error:
            error.add_note(f"plan {seed!r}")
            raise
    # Both ways out are taken often, or the fuzzing says nothing.
    assert PLANS * 0.1 < valid < PLANS * 0.9
    assert problems > PLANS


def test_no_text_breaks_the_reading_of_a_plan() -> None:
    """The same as a model would send it: JSON text cut, doubled and garbled at random."""
    read = named = 0
    for number in range(TEXTS):
        chance = random.Random(f"{SEED}/text/{number}")
        data = mutilate(sample(chance), chance)
        text = json.dumps(data, default=str)
        for _ in range(chance.choice((0, 0, 1, 3))):
            at = chance.randrange(len(text) + 1)
            text = (
                text[:at]
                + chance.choice(("", '"', "}", "]", "\\", "\ud800", "```", "//", "'", "{"))
                + text[at + chance.choice((0, 1, 9)) :]
            )
        found, complaints = read_object(text)
        assert (found is None) == bool(complaints)
        if found is not None:
            read += 1
            try:
                with_valid_ids(parse(found))[0].problems(("ann",))
            except InvalidPlan as error:
                named += len(error.problems)
    assert read > TEXTS / 4
    assert named > TEXTS / 20
