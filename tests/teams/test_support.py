"""The support team's routing: labelled queries, rules that are never wrong, and who gets what nobody can tell."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor
from chargehand.planner.route import by_rule
from chargehand.team import load
from chargehand.testing import ScriptedModel
from tests.teams.plays import cases, play, requests

LABELLED = [case for case in cases("support") if case["kind"] == "routing"]


def test_there_are_enough_labelled_queries_as_many_for_each_worker() -> None:
    """Forty at least, some of them hard for every worker, none twice."""
    assert len({case["request"] for case in LABELLED}) == len(LABELLED) >= 40
    each = Counter(case["primary"] for case in LABELLED)
    assert set(each) == set(load("support").names)
    assert max(each.values()) - min(each.values()) <= 2
    hard = Counter(case["primary"] for case in LABELLED if case.get("note", "").startswith("hard"))
    assert min(hard[worker] for worker in each) >= 4


@pytest.mark.parametrize("case", LABELLED, ids=lambda case: case["id"])
def test_a_rule_that_matches_is_right(case: dict[str, Any]) -> None:
    """What is not plain is left to the router."""
    ruled = by_rule(case["request"], load("support"))
    if ruled is not None:
        assert ruled.primary == case["primary"], ruled.reason
        assert case.get("secondary") in (None, ruled.secondary)


def test_rules_take_a_good_part_of_the_queries_and_leave_the_rest() -> None:
    """Rules for everything would be guesses; without any, each request would cost a call."""
    ruled = [case for case in LABELLED if by_rule(case["request"], load("support"))]
    assert 0.2 <= len(ruled) / len(LABELLED) <= 0.6
    assert {case["primary"] for case in ruled} == set(load("support").names)


@pytest.mark.slow
def test_a_company_that_stands_still_gets_two_workers_and_one_answer(tmp_path: Path) -> None:
    """The handover and the cause side by side, from the tables and from the documents."""
    run = play("support", tmp_path, requests("support")[2])
    assert [outcome.worker for outcome in run.report.outcomes] == ["escalator", "troubleshooter"]
    assert run.report.status == "complete"
    assert "INC-234" in run.texts("query_data")
    assert "LB-503" in run.texts("search_files")
    for words in ("INC-234", "30 minutes"):
        assert words in run.report.answer


def test_what_the_router_cannot_tell_goes_to_the_troubleshooter(tmp_path: Path) -> None:
    """Unreadable twice: the default, on the record."""
    done: dict[str, Any] = {
        "summary": "Looked at.",
        "output": "Looked at.",
        "claims": [],
        "findings": [],
        "confidence": 80,
    }
    model = ScriptedModel(
        [
            {"when": {"role": "router"}, "reply": {"text": "hm"}},
            {"when": {"role": "worker", "worker": "troubleshooter"}, "reply": {"json": done}},
        ]
    )
    door = Supervisor("support", model=model, home=tmp_path)
    report = asyncio.run(door.run("It is all a bit odd today."))
    assert (report.status, report.outcomes[0].worker) == ("complete", "troubleshooter")
