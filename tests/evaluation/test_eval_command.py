"""`chargehand eval` from end to end on scripted models: all kinds, side by side, resumed, against a baseline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Shell, finished, process
from tests.evaluation.samples import as_plan, lines, task

WORKER = """---
name: {name}
description: {what}
---
You do it.
"""
TEAM = 'name = "desk"\ndescription = "Answers people."\n'
REQUEST = "Tell me all about the fjord, please."
PLAN = as_plan(task("t1", "finder"), task("t2", "finder"), task("t3", "teller", "t1", "t2"))
OUTCOMES = [
    {"task": "t1", "status": "done", "summary": "Deep.", "output": "The fjord is 1,308 m deep."},
    {"task": "t2", "status": "failed", "summary": "No.", "error": {"kind": "tool", "message": "no data"}},
    {"task": "t3", "status": "done", "summary": "Told.", "output": "A text."},
]
ROUTE = {"id": "route", "request": "Find me a map", "primary": "finder"}
GOLDEN = {"id": "golden", "worker": "finder", "instruction": "How deep is it?", "expect": {"numeric": 1308}}
CASES: list[dict[str, Any]] = [
    ROUTE,
    {"id": "plan", "request": REQUEST, "plan": PLAN},
    GOLDEN,
    {"id": "rubric", "worker": "teller", "instruction": "Tell it.", "expect": {"rubric": "It is a text."}},
    {"id": "merge", "plan": PLAN, "outcomes": OUTCOMES, "expect": {"cites": ["t1"], "gaps": ["t2"], "contains": "1,308"}},
    {"id": "whole", "request": REQUEST, "expect": {"status": "complete", "cites": ["t1", "t3"], "max_tokens": 99_999}},
]  # fmt: skip
RULES: list[dict[str, Any]] = [
    {"when": {"role": "router"}, "reply": {"json": {"primary": "finder", "reason": "It is to be found."}}},
    {"when": {"role": "planner"}, "reply": {"json": PLAN}},
    {"when": {"worker": "finder"}, "reply": {"json": {"summary": "Deep.", "output": "It is 1,308 m deep."}}},
    {"when": {"worker": "teller"}, "reply": {"json": {"summary": "Told.", "output": "A text.", "confidence": 90}}},
    {"when": {"role": "scorer"}, "reply": {"json": {"score": 80, "met": True, "reason": "It is."}}},
    {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "It is 1,308 m deep [t1], as told [t3]."}}},
]


def team(folder: Path, *cases: dict[str, Any] | str) -> Path:
    (folder / "workers").mkdir(parents=True)
    (folder / "team.toml").write_text(TEAM)
    for name, what in (("finder", "Finds things"), ("teller", "Tells things")):
        (folder / "workers" / f"{name}.md").write_text(WORKER.format(name=name, what=what))
    lines(folder / "evals" / "all.jsonl", *cases)
    return folder


def model(shell: Shell, *before: dict[str, Any], name: str = "good.json") -> str:
    return shell.script(*before, *RULES, name=name)


def says(worker: str, output: Any, **when: Any) -> dict[str, Any]:
    return {"when": {"worker": worker, **when}, "reply": {"json": {"summary": "x", "output": output}}}


def outcomes(document: Any) -> dict[str, bool]:
    return {result["case"]: result["passed"] for result in document["results"]}


def asked(shell: Shell) -> int:
    return len([*(shell.home / "runs").glob("*.sqlite")])


def test_every_kind_of_case_is_measured(shell: Shell) -> None:
    """Routing, plan, golden answer, rubric, synthesis and whole run, on one team, with what each is about."""
    folder = team(shell.folder / "desk", *CASES)
    found = shell("eval", folder, "--model", model(shell), "--json")
    assert found.code == 0, found.err
    document = found.json
    assert outcomes(document) == dict.fromkeys(["route", "plan", "golden", "rubric", "merge", "whole"], True)
    kinds = {kind["kind"]: kind for kind in document["candidates"][0]["kinds"]}
    means = {
        (name, metric): figure["estimate"]["mean"]
        for name, kind in kinds.items()
        for metric, figure in kind["metrics"].items()
    }
    assert means["routing", "accuracy"] == 1
    assert kinds["routing"]["confusion"] == {"workers": ["finder"], "counts": [[1]]}
    assert means["plan", "edge_f1"] == 1
    assert means["plan", "parallelism"] == 1.5
    assert means["worker", "score"] == pytest.approx(0.95)
    assert means["synthesis", "gaps"] == 1
    assert (means["run", "gaps"], means["run", "complete"]) == (0, 1)
    assert means["run", "tokens"] > 0
    assert "[6/6] passed" in found.err


def test_a_whole_run_is_on_the_record_and_nothing_else_is(shell: Shell) -> None:
    """`show` works for it; plans, workers, routes and syntheses leave no run behind."""
    folder = team(shell.folder / "desk", *CASES)
    document = shell("eval", folder, "--model", model(shell), "--json").json
    [run] = [result["run"] for result in document["results"] if result["run"]]
    assert asked(shell) == 1
    assert shell("show", run, "--json").json["status"] == "complete"


def test_wrong_answers_fail_their_cases_and_say_why(shell: Shell) -> None:
    """Measured is exit 0; what failed is listed with file and line."""
    folder = team(shell.folder / "desk", *CASES)
    chain = as_plan(task("t1", "teller"), task("t2", "teller", "t1"))
    bad = model(
        shell,
        {"when": {"role": "router"}, "reply": {"json": {"primary": "teller"}}},
        {"when": {"role": "planner"}, "reply": {"json": chain}},
        says("finder", "It is 13 m deep."),
        {"when": {"role": "scorer"}, "reply": {"json": {"score": 10, "met": False, "reason": "It is a list."}}},
        {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "Nothing is known [t3]."}}},
        name="bad.json",
    )
    found = shell("eval", folder, "--model", bad)
    assert found.code == 0
    said = found.out
    assert "evals/all.jsonl:1: route failed with desk · scripted:bad.json: primary: chose teller, not finder" in said
    assert "evals/all.jsonl:2: plan failed with desk · scripted:bad.json: graph: graph F1 0.00, under 0.7" in said
    assert "numeric 1308: the figures in it: 13" in said
    assert "rubric: It is a list." in said
    assert "cites t1: cites t3" in said


def test_models_are_put_side_by_side(shell: Shell) -> None:
    """A column for each in the table, a difference with an interval for each figure, both in the page."""
    cases = [{**GOLDEN, "id": f"g{n}", "instruction": f"How deep is fjord {n}?"} for n in range(12)]
    folder = team(shell.folder / "desk", *cases)
    bad = model(shell, says("finder", "No idea."), name="bad.json")
    found = shell("eval", folder, "--model", model(shell), "--model", bad, "-o", "page.html", "--json")
    document = found.json
    assert [candidate["name"] for candidate in document["candidates"]] == ["scripted:good.json", "scripted:bad.json"]
    [passed] = [each for each in document["comparisons"] if each["metric"] == "passed"]
    assert passed["difference"] == {"mean": -1.0, "low": -1.0, "high": -1.0, "n": 12}
    assert passed["clear"]
    page = (shell.folder / "page.html").read_text()
    assert "12 of 12 passed" in page
    assert "0 of 12 passed" in page
    assert page.count('<svg class="plot') == 2
    table = shell("eval", folder, "--model", model(shell), "--model", bad).out
    assert "scripted:bad.json against scripted:good.json: worker passed differs by -1 (-1 to -1)" in table


def test_teams_are_put_side_by_side(shell: Shell) -> None:
    """The same cases on another team, which has to have the workers they name."""
    first = team(shell.folder / "desk", GOLDEN)
    second = team(shell.folder / "other", GOLDEN)
    (second / "team.toml").write_text(TEAM.replace("desk", "rival"))
    (second / "workers" / "finder.md").write_text(WORKER.format(name="finder", what="Finds") + "\nIN-SHORT\n")
    script = model(shell, says("finder", "Short.", contains="IN-SHORT"))
    options = ("--team", first, "--team", second, "--model", script, "--json")
    document = shell("eval", first / "evals" / "all.jsonl", *options).json
    assert [result["candidate"] for result in document["results"]] == ["desk", "rival"]
    assert [result["passed"] for result in document["results"]] == [True, False]
    (second / "workers" / "finder.md").unlink()
    wrong = shell("eval", first, *options)
    assert wrong.code == 2
    assert "evals/all.jsonl:1: 'worker' names the worker 'finder', which the team 'rival' does not have." in wrong.err


def test_cases_are_repeated(shell: Shell) -> None:
    """Each repeat is a measurement of its own; figures count the case once."""
    folder = team(shell.folder / "desk", GOLDEN)
    document = shell("eval", folder, "--model", model(shell), "--repeat", 3, "--json").json
    assert [result["repeat"] for result in document["results"]] == [1, 2, 3]
    kind = document["candidates"][0]["kinds"][0]
    assert (kind["cases"], kind["results"], kind["metrics"]["passed"]["estimate"]["n"]) == (1, 3, 1)


def test_a_script_is_whole_for_every_case(shell: Shell) -> None:
    """`times` counts within a case, so that neither order nor number of cases changes an answer."""
    folder = team(shell.folder / "desk", GOLDEN, {**GOLDEN, "id": "again", "instruction": "And how deep now?"})
    once = {**says("finder", "1308"), "times": 1}
    document = shell("eval", folder, "--model", model(shell, once, says("finder", "None.")), "--json").json
    assert outcomes(document) == {"golden": True, "again": True}


def test_an_escalation_can_be_the_golden_answer(shell: Shell) -> None:
    """One attempt by the worker itself: nobody else answers in its place."""
    case = {"id": "not-mine", "worker": "finder", "instruction": "Sell it.", "expect": {"status": "escalated"}}
    folder = team(shell.folder / "desk", case)
    wish = {"name": "escalate", "arguments": {"reason": "out_of_scope", "message": "I do not sell."}}
    script = model(shell, {"when": {"worker": "finder"}, "reply": {"tool_calls": [wish]}})
    assert outcomes(shell("eval", folder, "--model", script, "--json").json) == {"not-mine": True}
    assert outcomes(shell("eval", folder, "--model", model(shell), "--json").json) == {"not-mine": False}


# --- going on -------------------------------------------------------------------------------------------------------


def test_what_was_measured_is_not_measured_again(shell: Shell) -> None:
    """The same command gives the same document; more repeats measure only those; --fresh measures all."""
    folder, script = team(shell.folder / "desk", *CASES), model(shell)
    first = shell("eval", folder, "--model", script, "--json")
    again = shell("eval", folder, "--model", script, "--json")
    assert again.json == first.json
    assert "6 of 6 results are there from before" in again.err
    assert asked(shell) == 1
    more = shell("eval", folder, "--model", script, "--repeat", 2, "--json")
    assert "6 of 12 results are there from before" in more.err
    assert asked(shell) == 2
    assert "from before" not in shell("eval", folder, "--model", script, "--fresh").err
    assert asked(shell) == 3


@pytest.mark.parametrize("what", ["prompt", "script", "case"])
def test_whatever_could_change_an_answer_is_measured_again(shell: Shell, what: str) -> None:
    """A worker's words, the script, a case."""
    folder = team(shell.folder / "desk", GOLDEN)
    shell("eval", folder, "--model", model(shell))
    match what:
        case "prompt":
            with (folder / "workers" / "finder.md").open("a") as file:
                file.write("Be brief.\n")
        case "script":
            model(shell, says("finder", "None."))
        case _:
            lines(folder / "evals" / "all.jsonl", {**GOLDEN, "expect": {"numeric": 1}})
    found = shell("eval", folder, "--model", f"scripted:{shell.folder / 'good.json'}", "--json")
    assert "from before" not in found.err
    assert outcomes(found.json) == {"golden": what == "prompt"}


def test_a_killed_evaluation_goes_on_where_it_was(shell: Shell) -> None:
    """kill -9 in the middle: what is on disk is not measured again, and everything is there in the end."""
    cases = [{**GOLDEN, "id": f"g{n}", "instruction": f"How deep is fjord {n}?"} for n in range(6)]
    folder = team(shell.folder / "desk", *cases)
    stuck = {**says("finder", "1308", contains="fjord 4"), "delay_ms": 60_000}
    script = model(shell, stuck, name="slow.json")
    child = process("eval", folder, "--model", script, "--jobs", 1, home=shell.home)
    assert child.stderr is not None
    said = [child.stderr.readline() for _ in range(4)]
    assert said[-1].startswith("[4/6] passed")
    child.kill()
    child.communicate(timeout=30)
    kept = [*(shell.home / "evals").glob("*.jsonl")][0].read_text().splitlines()
    assert [json.loads(line)["case"] for line in kept] == ["g0", "g1", "g2", "g3"]
    # The same command, in which the one that was stuck is not stuck any more: the key knows the script by its words.
    document = shell("eval", folder, "--model", script, "--jobs", 2, "--json") if False else None
    assert document is None
