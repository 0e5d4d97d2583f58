"""One plain call as a candidate of its own beside each team."""

from __future__ import annotations

from typing import Any

import pytest

from chargehand.evaluation import against
from tests.cli.terminal import Shell, finished, process
from tests.evaluation.samples import as_plan, evaluated, result, task
from tests.evaluation.test_eval_command import REQUEST, model, team
from tests.loopback import Answer, Seen, answer_json, serving

WHOLE = {"id": "whole", "request": REQUEST, "expect": {"contains": "1,308", "cites": ["t1"], "gaps": 0}}
COSTS = {"id": "costs", "request": REQUEST, "expect": {"max_tokens": 99_999}}
ROUTE = {"id": "route", "request": "Find me a map", "primary": "finder"}
ASSISTANT: dict[str, Any] = {"when": {"worker": "assistant"}, "reply": {"text": "It is 1,308 m deep."}}


def test_one_plain_call_is_shown_beside_the_team(shell: Shell) -> None:
    """On whole runs with an expected answer, held to what an answer alone can have; its cost is said first."""
    folder = team(shell.folder / "fjord", WHOLE, COSTS, ROUTE)
    done = shell("eval", str(folder), "--model", model(shell, ASSISTANT), "--single", "--json")
    assert "one plain call each (1 answer)" in done.err
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


@pytest.mark.slow
def test_a_real_model_is_asked_for_a_plain_call_unless_left_out(shell: Shell) -> None:
    """By default, so that nobody has to think of it; `--no-single` saves its cost."""
    folder = team(shell.folder / "fjord", {"id": "whole", "request": REQUEST, "expect": {"contains": "1,308"}})
    one_task = as_plan(task("t1", "finder"))

    def answer(seen: Seen) -> Answer:
        return answer_json(one_task) if seen.role == "planner" else Answer(text="It is 1,308 m deep, they say.")

    with serving(answer) as server:
        env = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{server.url}/v1"}
        command = ("eval", folder, "--model", "openai:test", "--json")
        both = finished(process(*command, home=shell.home, env=env))
        team_alone = finished(process(*command, "--no-single", home=shell.home, env=env))
    assert [each["is_plain"] for each in both.json["candidates"]] == [False, True], both.err
    assert [each["passed"] for each in both.json["results"]] == [True, True]
    assert [each["is_plain"] for each in team_alone.json["candidates"]] == [False]
    assert "plain call" not in team_alone.err


def test_one_plain_call_is_never_a_regression() -> None:
    """Neither against the only candidate of a saved evaluation nor as the one that others are compared with."""
    before, now = evaluated(result("c")), evaluated(result("c"), result("c", False, candidate="plain"))
    marked = tuple(each.model_copy(update={"is_plain": each.name == "plain"}) for each in now.candidates)
    verdict = against(now.model_copy(update={"candidates": marked}), before)
    assert verdict.regressions == ()
    assert verdict.unknown == ()
