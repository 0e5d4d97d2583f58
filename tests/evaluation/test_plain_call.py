"""One plain call as a candidate of its own beside each team."""

from __future__ import annotations

from typing import Any

from chargehand.evaluation import against
from tests.cli.terminal import Shell
from tests.evaluation.samples import evaluated, result
from tests.evaluation.test_eval_command import REQUEST, model, team

WHOLE = {"id": "whole", "request": REQUEST, "expect": {"contains": "1,308", "cites": ["t1"], "gaps": 0}}
COSTS = {"id": "costs", "request": REQUEST, "expect": {"max_tokens": 99_999}}
ROUTE = {"id": "route", "request": "Find me a map", "primary": "finder"}
ASSISTANT: dict[str, Any] = {"when": {"worker": "assistant"}, "reply": {"text": "It is 1,308 m deep."}}


def test_one_plain_call_is_shown_beside_the_team(shell: Shell) -> None:
    """On whole runs with an expected answer, held to what an answer alone can have; its cost is said first."""
    folder = team(shell.folder / "fjord", WHOLE, COSTS, ROUTE)
    done = shell("eval", str(folder), "--model", model(shell, ASSISTANT), "--single", "--json")
    assert "one plain call gives 1 answer" in done.err
    assert {each["name"]: each["is_plain"] for each in done.json["candidates"]} == {
        "desk · scripted:good.json": False,
        "one plain call": True,
    }
    plain = [each for each in done.json["results"] if each["candidate"] == "one plain call"]
    assert [(each["case"], each["passed"]) for each in plain] == [("whole", True)]
    [kind] = done.json["candidates"][1]["kinds"]
    assert {"passed", "score", "tokens", "seconds"} <= kind["metrics"].keys()
    page = shell.folder / "page.html"
    text = shell("eval", str(folder), "--model", model(shell, ASSISTANT), "--single", "-o", str(page))
    assert "one plain call" in text.out
    assert "one plain call" in page.read_text()


def test_a_scripted_model_is_not_asked_for_a_plain_call_unless_wanted(shell: Shell) -> None:
    """Its script has no reply for one."""
    folder = team(shell.folder / "fjord", WHOLE)
    done = shell("eval", str(folder), "--model", model(shell), "--json")
    assert [each["is_plain"] for each in done.json["candidates"]] == [False]
    assert "plain call" not in done.err


def test_one_plain_call_is_never_a_regression() -> None:
    """Neither against the only candidate of a saved evaluation nor as the one that others are compared with."""
    before, now = evaluated(result("c")), evaluated(result("c"), result("c", False, candidate="plain"))
    marked = tuple(each.model_copy(update={"is_plain": each.name == "plain"}) for each in now.candidates)
    verdict = against(now.model_copy(update={"candidates": marked}), before)
    assert verdict.regressions == ()
    assert verdict.unknown == ()
