"""Estimates: by constants without history, by what runs of the same team and model took where there are any."""

from __future__ import annotations

import sqlite3

import pytest

from chargehand.record.home import Home
from chargehand.record.index import Lesson
from chargehand.values.estimate import Figures, PastRun, learn
from tests.cli.terminal import Shell, plan, planned, slow, task

BY_PLAN = Figures(20, 50_000, 100.0, 0.50)


def past(*factors: float, usd: float | None = 0.1) -> list[PastRun]:
    """Runs that used so much of what constants said."""
    by_plan = Figures(10, 1_000, 10.0, 0.2)
    used = [Figures(10 * each, 1_000 * each, 10.0 * each, usd) for each in factors]
    return [PastRun(by_plan, by_plan, figures) for figures in used]


def test_without_history_the_constants_hold() -> None:
    """Low, expected and high are one figure."""
    assert learn(BY_PLAN, []) == (BY_PLAN, BY_PLAN, BY_PLAN)


def test_past_runs_give_a_low_an_expected_and_a_high_figure() -> None:
    """The least, the middle and the most that they used for each unit of their own estimates."""
    low, expected, high = learn(BY_PLAN, past(0.5, 0.2, 0.3))
    assert (low.tokens, expected.tokens, high.tokens) == pytest.approx((10_000, 15_000, 25_000))
    assert (low.seconds, expected.seconds, high.seconds) == pytest.approx((20, 30, 50))
    assert expected.calls == pytest.approx(6)
    assert expected.usd == pytest.approx(0.25)


def test_of_two_runs_the_middle_is_expected() -> None:
    """Halfway between them."""
    assert learn(BY_PLAN, past(0.5, 0.2)).expected.tokens == pytest.approx(17_500)


def test_a_run_that_used_nothing_teaches_nothing() -> None:
    """Its model failed, or all of it was reused."""
    assert learn(BY_PLAN, past(0.0, usd=0.0)).expected == BY_PLAN


def test_an_unknown_price_stays_unknown() -> None:
    """Of this plan, or of the past runs."""
    assert learn(BY_PLAN._replace(usd=None), past(0.5)).expected.usd is None
    assert learn(BY_PLAN, past(0.5, usd=None)).expected.usd == BY_PLAN.usd


def test_a_home_keeps_what_runs_took_by_team_and_models(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Oldest first, apart for each team and model; a damaged index only means that there is no history."""
    home = Home(tmp_path_factory.mktemp("home"))
    for number, each in enumerate(past(0.5, 0.2)):
        home.note(f"r{number}", started=1.0, status="complete", lesson=Lesson("a", "m", each))
    assert home.past_runs("a", "m") == past(0.5, 0.2)
    assert home.past_runs("a", "other") == home.past_runs("b", "m") == []
    with sqlite3.connect(home.path / "index.sqlite") as index:
        index.execute("UPDATE past SET figures = '[1]'")
    assert home.past_runs("a", "m") == []


def test_a_second_plan_is_estimated_by_the_first_run(shell: Shell) -> None:
    """And what the last one used is stated beside what had been estimated for it."""
    model = shell.script(planned(task("t1"), task("t2")))
    assert "Estimated: " in shell("plan", "x", "--model", model).err
    ran = shell("run", "x", "--model", model, "--json")
    used = ran.json["usage"]["input_tokens"] + ran.json["usage"]["output_tokens"]
    said = shell("plan", "x", "--model", model).err
    assert (
        f"from 1 earlier run of this team and model, planning included: {ran.json['usage']['calls']} calls, {used:,}"
        in said
    )
    assert f"The last run used {used:,} tokens" in said


def test_a_person_who_approves_a_plan_gets_the_learned_estimate(shell: Shell) -> None:
    """In the question itself, below instructions that are not cut: they are what is approved."""
    instruction = "Count the words of each page of the material, leave out headings, and give a table of them. " * 2
    model = shell.script(planned(task("t1", instruction=instruction), task("t2")))
    shell("run", "x", "--model", model)
    assert shell("run", "x", "--model", model, "--approve").code == 4
    [question] = shell("show", "last", "--json").json["questions"]
    assert instruction.strip() in question["prompt"]
    assert "from 1 earlier run of this team and model" in question["prompt"]


def test_a_run_that_took_results_over_teaches_nothing(shell: Shell) -> None:
    """A rerun uses no tokens for what it takes over, and a run that failed says little."""
    model = shell.script(planned(task("t1"), task("t2")))
    shell("run", "x", "--model", model)
    shell("rerun", "last")
    shell.write("plan.json", plan(task("t1", worker="nobody")))
    shell("run", "--plan", "plan.json", "--model", model)
    assert "from 1 earlier run " in shell("plan", "x", "--model", model).err


def test_a_run_that_reached_its_budget_teaches_nothing(shell: Shell) -> None:
    """Not when it was cut, and not when it is continued: it does not show what an uncut run takes."""
    model = shell.script()
    shell.write("plan.json", plan(task("t1"), task("t2", budget={"tokens": 10})))
    cut = shell("run", "--plan", "plan.json", "--model", model, "--json").json
    assert [each["status"] for each in cut["outcomes"]] == ["done", "failed"]
    shell("resume", "last", "--tokens", "50000")
    assert "Estimated: " in shell("plan", "x", "--model", model).err


def test_a_run_that_reached_its_deadline_teaches_nothing(shell: Shell) -> None:
    """The tokens of its broken-off call are those that were reserved."""
    model = shell.script(slow(task="t2"))
    shell.write("plan.json", plan(task("t1"), task("t2")))
    cut = shell("run", "--plan", "plan.json", "--model", model, "--deadline", "1", "--json").json
    assert cut["status"] == "partial"
    assert "Estimated: " in shell("plan", "x", "--model", model).err
