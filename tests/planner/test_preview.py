"""What running a plan would take: calls for one word, which only small models are asked."""

from __future__ import annotations

import re

import pytest

from chargehand.planner.preview import KNOWN_PAIRS, STATEMENTS, preview
from chargehand.runs.roster import roster
from chargehand.settings import Settings
from chargehand.team import Team, Worker
from chargehand.values.budget import Budget
from chargehand.values.request import Request
from tests.flows import task, tasks

LARGE, SMALL = "lab:large", "lab:qwen-1.5b"


def count_calls(worker: str, judge: str) -> int:
    team, plan = Team([Worker("clerk", "Works")]), tasks(task("a"), task("b"))
    workers = roster(team, Settings(home="unused", model=worker))
    text = preview(plan, team, workers, LARGE, Request(text="x"), judge=judge)
    found = re.search(r"Estimated: (\d+) calls", text)
    assert found is not None, text
    return int(found[1])


@pytest.mark.parametrize(("judge", "calls"), [(LARGE, 1), (SMALL, KNOWN_PAIRS + 2 * 2 * STATEMENTS)])
def test_a_small_judge_takes_many_short_calls(judge: str, calls: int) -> None:
    """It is measured on known pairs, then asked twice about each of the nearest; another judge is asked once."""
    assert count_calls(LARGE, judge) == 2 + 1 + calls


def test_an_estimate_above_the_limit_says_what_happens_and_which_limit_is_enough() -> None:
    """Only there; a command without an option for it says where the limit is set."""
    team, plan = Team([Worker("clerk", "Works")]), tasks(task("a"), task("b"))
    workers = roster(team, Settings(home="unused", model=LARGE))
    said = [
        preview(
            plan, team, workers, LARGE, Request(text="x", budget=Budget(tokens=limit)), raise_limit="more: {tokens}"
        )
        for limit in (100_000, 500)
    ]
    tokens = re.search(r"([\d,]+) tokens", said[0])
    assert tokens is not None
    assert "above" not in said[0]
    enough = re.search(r"Probably enough: more: (\d+)\.", said[1])
    assert enough is not None
    assert 1.2 <= int(enough[1]) / int(tokens[1].replace(",", "")) < 1.35
