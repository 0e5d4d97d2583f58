"""`chargehand eval` from end to end on scripted models: all kinds, side by side, resumed, against a baseline."""

from __future__ import annotations

import re
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Shell, finished, process
from tests.evaluation.samples import as_plan, lines, task
from tests.loopback import Answer, Seen, answer_json, serving
from tests.pace import PATIENCE_S

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
    {"id": "merge", "plan": PLAN, "outcomes": OUTCOMES,
     "expect": {"cites": ["t1"], "gaps": ["t2"], "contains": "1,308"}},
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


@pytest.mark.slow
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
    for place in range(1, 6):
        assert f"evals/all.jsonl:{place}: " in said
    assert all(
        part in said for part in ("primary: ", "graph: ", "numeric 1308: ", "rubric: It is a list.", "cites t1: ")
    )


def test_a_share_of_passed_cases_can_be_asked_for(shell: Shell) -> None:
    """Exit code 1 under it, with the figures; 0 at it."""
    folder = team(shell.folder / "desk", ROUTE)
    good = shell("eval", folder, "--model", model(shell), "--fail-under", "1")
    assert good.code == 0
    bad = model(shell, {"when": {"role": "router"}, "reply": {"json": {"primary": "teller"}}}, name="bad.json")
    got = shell("eval", folder, "--model", bad, "--fail-under", "0.5")
    assert got.code == 1
    assert "0 of 1 passed, 1 failed (0.00), less than --fail-under 0.5." in got.err
    assert shell("eval", folder, "--model", bad, "--fail-under", "0").code == 0
    assert shell("eval", folder, "--model", bad, "--fail-under", "90").code == 2


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
    assert page.index("Cases that did not pass (12)") < page.index("<h2>Workers</h2>") < page.index("that passed (12)")
    assert page.count('<svg class="plot') == 2
    table = shell("eval", folder, "--model", model(shell), "--model", bad).out
    assert "worker passed differs by -1.00\n" in table
    assert table.endswith("scripted:good.json: 12 of 12 passed\nscripted:bad.json: 0 of 12 passed, 12 failed\n")


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
    assert all(part in wrong.err for part in ("evals/all.jsonl:1: ", "'finder'", "'rival'"))


def test_cases_are_repeated(shell: Shell) -> None:
    """Each repeat is a measurement of its own; figures count the case once."""
    folder = team(shell.folder / "desk", GOLDEN)
    document = shell("eval", folder, "--model", model(shell), "--repeat", 3, "--json").json
    assert [result["repeat"] for result in document["results"]] == [1, 2, 3]
    kind = document["candidates"][0]["kinds"][0]
    assert (kind["cases"], kind["results"], kind["metrics"]["passed"]["estimate"]["n"]) == (1, 3, 1)
    bad = model(shell, says("finder", "No."), name="bad.json")
    told = [
        line for line in shell("eval", folder, "--model", bad, "--repeat", 2).out.splitlines() if "failed with" in line
    ]
    assert [f"(repeat {number}): numeric" in line for number, line in enumerate(told, 1)] == [True, True]


def test_a_second_worker_that_a_case_does_not_ask_for_is_a_figure(shell: Shell) -> None:
    """The case passes by its primary; where it names a secondary worker, that one is checked instead."""
    folder = team(shell.folder / "desk", ROUTE, {**ROUTE, "id": "both", "request": "A map?", "secondary": "teller"})
    both = {"when": {"role": "router"}, "reply": {"json": {"primary": "finder", "secondary": "teller"}}}
    document = shell("eval", folder, "--model", model(shell, both), "--json").json
    assert outcomes(document) == {"route": True, "both": True}
    metric = document["candidates"][0]["kinds"][0]["metrics"]["extra_worker"]
    assert (metric["estimate"]["mean"], metric["estimate"]["n"], metric["better"]) == (1, 1, "lower")


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


def test_rules_of_the_team_route_without_a_model(shell: Shell) -> None:
    """`by_rule` says so, and nothing is spent on it; what no rule knows goes to the router."""
    asked_for = {"id": "card", "request": "Write a card", "primary": "teller"}
    folder = team(shell.folder / "desk", ROUTE, asked_for)
    (folder / "team.toml").write_text(TEAM + '\n[[routes]]\nmatch = ["card"]\nworker = "teller"\n')
    document = shell("eval", folder, "--model", model(shell), "--json").json
    by_rule = {result["case"]: result["metrics"]["by_rule"] for result in document["results"]}
    tokens = {result["case"]: result["usage"]["input_tokens"] > 0 for result in document["results"]}
    assert (by_rule, tokens) == ({"route": 0, "card": 1}, {"route": True, "card": False})
    confusion = document["candidates"][0]["kinds"][0]["confusion"]
    assert confusion == {"workers": ["finder", "teller"], "counts": [[1, 0], [0, 1]]}


def test_a_synthesis_is_held_to_the_contradictions_in_its_outcomes(shell: Shell) -> None:
    """Claims of fixed outcomes have their task as a source, as in a run, and are judged against each other."""
    plan = as_plan(task("t1", "finder"), task("t2", "finder"))
    deep = [{"task": id, "status": "done", "summary": "Deep.", "output": f"{metres} m",
             "claims": [{"statement": f"The depth of the Sognefjord is {metres} m.", "confidence": 80}]}
            for id, metres in (("t1", "1,308"), ("t2", "1,205"))]  # fmt: skip
    found = {"contradictions": 1, "cites": ["t1", "t2"]}
    folder = team(
        shell.folder / "desk",
        {"id": "found", "plan": plan, "outcomes": deep, "expect": found},
        {"id": "missed", "plan": plan, "outcomes": deep, "expect": {"contradictions": 0}},
    )
    answer = "It is 1,308 m [t1] or 1,205 m [t2] deep; the sources differ."
    script = model(
        shell,
        {"when": {"role": "judge"}, "reply": {"json": {"verdict": "unclear", "reason": "No source says."}}},
        {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": answer}}},
    )
    document = shell("eval", folder, "--model", script, "--json").json
    assert outcomes(document) == {"found": True, "missed": False}


# --- going on -------------------------------------------------------------------------------------------------------


def test_what_was_measured_is_not_measured_again(shell: Shell) -> None:
    """The same command gives the same document; more repeats measure only those; --fresh measures all."""
    folder, script = team(shell.folder / "desk", *CASES), model(shell)
    first = shell("eval", folder, "--model", script, "--json")
    again = shell("eval", folder, "--model", script, "--json")
    assert again.json == first.json
    assert "6 of 6 results are known" in again.err
    assert asked(shell) == 1
    more = shell("eval", folder, "--model", script, "--repeat", 2, "--json")
    assert "6 of 12 results are known" in more.err
    assert asked(shell) == 2
    assert "from before" not in shell("eval", folder, "--model", script, "--fresh").err
    assert asked(shell) == 3


def test_a_suite_that_grows_is_measured_only_where_it_is_new(shell: Shell) -> None:
    """A case more in the file, in front of the others; and --fresh of one file leaves what the rest of them has."""
    folder, script = team(shell.folder / "desk", GOLDEN), model(shell)
    shell("eval", folder, "--model", script)
    lines(folder / "evals" / "all.jsonl", ROUTE, GOLDEN)
    assert "1 of 2 results are known" in shell("eval", folder, "--model", script).err
    new = lines(folder / "evals" / "new.jsonl", {**GOLDEN, "id": "g2", "instruction": "How deep is fjord 2?"})
    assert "2 of 3 results are known" in shell("eval", folder, "--model", script).err
    assert "from before" not in shell("eval", new, "--model", script, "--fresh").err
    assert "3 of 3 results are known" in shell("eval", folder, "--model", script).err


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


@pytest.mark.slow
def test_a_killed_evaluation_goes_on_where_it_was(shell: Shell) -> None:
    """kill -9 in the middle of a call over HTTP: only the case it was at is asked again."""
    cases = [{**GOLDEN, "id": f"g{n}", "instruction": f"How deep is fjord {n}?"} for n in range(6)]
    folder = team(shell.folder / "desk", *cases)
    hangs, seen, asked_for_4 = [True], list[str](), threading.Event()

    def answer(request: Seen) -> Answer:
        [number] = re.findall(r"fjord (\d)", request.text)
        seen.append(number)
        if number == "4":
            asked_for_4.set()
        return answer_json({"summary": "x", "output": "1,308 m"}, silent=hangs[0] and number == "4")

    with serving(answer) as server:
        env = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{server.url}/v1"}
        command = ("eval", folder, "--model", "openai:test", "--jobs", 1)
        child = process(*command, home=shell.home, env=env)
        assert child.stderr is not None
        said = [child.stderr.readline() for _ in range(4)]
        assert said[-1].startswith("[4/6] passed"), said
        assert asked_for_4.wait(PATIENCE_S)
        child.kill()
        child.communicate(timeout=PATIENCE_S)
        hangs[0] = False
        found = finished(process(*command, "--json", home=shell.home, env=env))
    assert found.code == 0, found.err
    assert "4 of 6 results are known" in found.err
    assert seen == ["0", "1", "2", "3", "4", "4", "5"]
    assert outcomes(found.json) == dict.fromkeys([f"g{n}" for n in range(6)], True)


def test_an_interrupted_evaluation_says_how_to_go_on(shell: Shell) -> None:
    """Ctrl-C: exit 130, and what was measured is kept."""
    folder = team(shell.folder / "desk", GOLDEN, {**GOLDEN, "id": "late", "instruction": "How deep is the LAST?"})
    late = {**says("finder", "1308", contains="the LAST"), "delay_ms": 60_000}
    child = process("eval", folder, "--model", model(shell, late), "--jobs", 1, home=shell.home)
    assert child.stderr is not None
    assert child.stderr.readline().startswith("[1/2] passed")
    child.send_signal(signal.SIGINT)
    found = finished(child)
    assert found.code == 130
    assert "1 of 2" in found.err
    assert "Traceback" not in found.err


# --- what cannot be tried -------------------------------------------------------------------------------------------


def test_a_case_that_could_not_be_tried_is_tried_again_next_time(shell: Shell) -> None:
    """Exit 3 while there are some, and they are in no figure."""
    folder = team(shell.folder / "desk", GOLDEN, ROUTE)
    lost = {"when": {"role": "router"}, "reply": {"error": {"status": 401, "message": "no such key"}}}
    found = shell("eval", folder, "--model", model(shell, {**lost, "reply": {"error": {"status": 400}}}), "--json")
    assert found.code == 3
    assert [kind["errors"] for kind in found.json["candidates"][0]["kinds"]] == [1, 0]
    assert "bad_request" in found.err
    again = shell("eval", folder, "--model", f"scripted:{shell.folder / 'good.json'}")
    assert "1 of 2 results are known" in again.err
    assert shell("eval", folder, "--model", model(shell, lost)).code == 2


def test_nothing_tried_is_a_failure(shell: Shell) -> None:
    """Exit 1 when no case could be."""
    folder = team(shell.folder / "desk", ROUTE)
    lost = {"when": {"role": "router"}, "reply": {"error": {"status": 400}}}
    assert shell("eval", folder, "--model", model(shell, lost)).code == 1


@pytest.mark.parametrize(
    ("case", "role"),
    [
        (CASES[1], "planner"),
        (CASES[2], "worker"),
        (CASES[3], "scorer"),
        (CASES[4], "synthesizer"),
        (CASES[5], "planner"),
    ],
)
def test_a_model_that_cannot_be_reached_fails_no_case(shell: Shell, case: dict[str, Any], role: str) -> None:
    """A fault of the line is not a wrong answer, whichever role it hits."""
    folder = team(shell.folder / "desk", case)
    lost = {"when": {"role": role}, "reply": {"error": {"status": 400, "message": "the line is down"}}}
    found = shell("eval", folder, "--model", model(shell, lost), "--json")
    assert found.code == 1
    [result] = found.json["results"]
    assert (result["error"]["kind"], result["passed"]) == ("bad_request", False)
    assert "the line is down" in result["error"]["message"]


def test_a_scorer_that_cannot_be_read_settles_nothing(shell: Shell) -> None:
    """The case is neither passed nor failed."""
    folder = team(shell.folder / "desk", CASES[3])
    mumbles = {"when": {"role": "scorer"}, "reply": {"text": "Hm."}}
    found = shell("eval", folder, "--model", model(shell, mumbles), "--json")
    assert (found.code, found.json["results"][0]["error"]["kind"]) == (1, "contract")


def test_a_planner_without_a_valid_plan_has_failed_its_case(shell: Shell) -> None:
    """Validity 0, and why."""
    folder = team(shell.folder / "desk", CASES[1])
    mumbles = {"when": {"role": "planner"}, "reply": {"text": "I would rather not."}}
    found = shell("eval", folder, "--model", model(shell, mumbles), "--json")
    assert found.code == 0
    [result] = found.json["results"]
    assert (result["metrics"]["validity"], result["score"], result["passed"]) == (0, 0, False)
    assert "no valid plan" in result["checks"][0]["said"]


def test_nobody_waits_for_a_person(shell: Shell) -> None:
    """A person's golden answer cannot be measured: the case fails and says so."""
    case = {"worker": "chief", "instruction": "Decide about it.", "expect": {"exact": "yes"}}
    folder = team(shell.folder / "desk", case)
    (folder / "workers" / "chief.md").write_text("---\nname: chief\ndescription: Decides\nkind: human\n---\nDecide.\n")
    found = shell("eval", folder, "--model", model(shell), "--json")
    [result] = found.json["results"]
    assert not result["passed"]
    assert "Waiting for a person" in result["checks"][0]["said"]


def test_a_case_that_cannot_begin_does_not_stop_the_others(shell: Shell) -> None:
    """A plan over its budget is told with its line; the rest is measured."""
    greedy = {**PLAN, "tasks": [{**PLAN["tasks"][0], "budget": {"tokens": 10**9}}]}
    folder = team(shell.folder / "desk", {"request": "x", "plan": greedy, "expect": {"gaps": 0}}, GOLDEN)
    found = shell("eval", folder, "--model", model(shell), "--json")
    assert found.code == 3
    assert "evals/all.jsonl:1: " in found.err
    assert found.json["results"][1]["passed"]


def test_a_home_that_cannot_be_written_is_told(shell: Shell) -> None:
    """Exit 2, and no traceback out of several cases at once."""
    folder = team(shell.folder / "desk", *CASES[:4])
    shell.home.mkdir()
    (shell.home / "evals").write_text("a file")
    found = shell("eval", folder, "--model", model(shell))
    assert found.code == 2
    assert "evals" in found.complaint


def test_scripts_of_one_name_are_told_apart(shell: Shell) -> None:
    """By their folders; a figure never mixes two candidates."""
    folder = team(shell.folder / "desk", GOLDEN)
    (shell.folder / "other").mkdir()
    bad = model(shell, says("finder", "No."), name="other/good.json")
    document = shell("eval", folder, "--model", model(shell), "--model", bad, "--json").json
    assert [(result["candidate"], result["passed"]) for result in document["results"]] == [
        (f"scripted:{shell.folder.name}/good.json", True),
        ("scripted:other/good.json", False),
    ]


def test_teams_of_one_name_are_told_apart_by_their_folders(shell: Shell) -> None:
    """As many parts of the path as are needed; a team that is given twice is one candidate."""
    first, second, third = (team(shell.folder / name, GOLDEN) for name in ("desk", "other", "below/desk"))
    for number, folder in enumerate((second, third)):
        (folder / "workers" / "finder.md").write_text(WORKER.format(name="finder", what=f"Finds {number}"))

    def names(*teams: str | Path) -> list[str]:
        options = [part for each in teams for part in ("--team", each)]
        document = shell("eval", first / "evals" / "all.jsonl", *options, "--model", model(shell), "--json").json
        return [candidate["name"] for candidate in document["candidates"]]

    assert names(first, second) == ["desk", "other"]
    assert names(first, third) == [f"{shell.folder.name}/desk", "below/desk"]
    assert names(first, "./desk") == ["desk · scripted:good.json"]


@pytest.mark.slow
def test_equal_candidates_share_results_and_each_has_all_of_them(shell: Shell) -> None:
    """Also fresh, and when the results are known; each case is measured once."""
    first, second = (team(shell.folder / name, *CASES) for name in ("desk", "copy"))
    command = ("eval", first / "evals" / "all.jsonl", "--team", first, "--team", second, "--model", model(shell))
    for options in ((), ("--fresh",), ()):
        found = shell(*command, "--json", *options)
        by_name: dict[str, list[str]] = {"desk": [], "copy": []}
        for each in found.json["results"]:
            by_name[each["candidate"]].append(each["case"])
        assert by_name == {name: [case["id"] for case in CASES] for name in ("desk", "copy")}
        assert [kind["results"] for each in found.json["candidates"] for kind in each["kinds"]] == [1, 1, 2, 1, 1] * 2
    assert "12 of 12 results are known" in found.err
    assert asked(shell) == 2


def test_equal_cases_each_have_a_result(shell: Shell) -> None:
    """With their own ids, though they are measured once."""
    folder = team(shell.folder / "desk", GOLDEN, {**GOLDEN, "id": "again"})
    document = shell("eval", folder, "--model", model(shell), "--json").json
    assert outcomes(document) == {"golden": True, "again": True}


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"request": "x", "primary": "nobody"}, "evals/all.jsonl:1: 'primary' names the worker 'nobody'"),
        ({"kind": "smoke"}, "evals/all.jsonl:1: there is no kind of case 'smoke'"),
        ("{", "evals/all.jsonl:1:2: not JSON"),
        ("", "there is no case in it"),
    ],
)
def test_a_bad_suite_is_refused_with_file_and_line(shell: Shell, case: Any, said: str) -> None:
    """Exit 2 before anything is spent."""
    folder = team(shell.folder / "desk", case)
    found = shell("eval", folder, "--model", model(shell))
    assert found.code == 2
    assert said in found.err
    checked = shell("check", folder)
    assert checked.code == 2
    assert said in checked.out
    assert not shell.home.exists()


def test_what_is_no_suite_is_told(shell: Shell) -> None:
    """With the nearest shipped team; a model that is missing is told before anything else is done."""
    found = shell("eval", "generl", "--model", model(shell))
    assert found.code == 2
    assert "Did you mean 'general'?" in found.complaint
    folder = team(shell.folder / "desk", ROUTE)
    assert shell("eval", folder).code == 2
    assert shell("eval", folder, "--model", "scripted:none.json").code == 2


def test_a_scorer_of_its_own_is_asked(shell: Shell) -> None:
    """Rubrics of all candidates are checked by the same model when one is named."""
    folder = team(shell.folder / "desk", CASES[3])
    strict = {"when": {"role": "scorer"}, "reply": {"json": {"score": 5, "met": False, "reason": "Too short."}}}
    judge = shell.script(strict, name="judge.json")
    document = shell("eval", folder, "--model", model(shell), "--judge", judge, "--json").json
    [result] = document["results"]
    assert [check["said"] for check in result["checks"] if check["by"] == "judge"] == ["Too short."]
    assert not result["passed"]


# --- against a baseline ---------------------------------------------------------------------------------------------


def test_a_regression_against_a_baseline_is_exit_1(shell: Shell) -> None:
    """Equal is 0; a case that passed and now fails is told with its place, on stderr and in the page."""
    folder = team(shell.folder / "desk", *CASES)
    assert shell("eval", folder, "--model", model(shell), "-o", "base.json").code == 0
    same = shell("eval", folder, "--model", model(shell), "--baseline", "base.json")
    assert same.code == 0
    assert "in 6 comparisons" in same.err
    bad = model(shell, says("finder", "No idea.", contains="How deep"), name="bad.json")
    found = shell("eval", folder, "--model", bad, "--baseline", "base.json", "-o", "page.html", "--json")
    assert found.code == 1
    assert "golden (evals/all.jsonl:3)" in found.err
    told = [(each["metric"], each["case"]) for each in found.json["baseline"]["regressions"]]
    assert told == [(None, "golden")]
    assert "Regressions against the baseline" in (shell.folder / "page.html").read_text()


@pytest.mark.parametrize(("points", "told"), [(79, False), (20, True)])
def test_a_score_of_one_case_trips_no_gate(shell: Shell, points: int, told: bool) -> None:
    """A point less is nothing; far less is said, and that one case cannot tell."""
    folder = team(shell.folder / "desk", CASES[3])
    shell("eval", folder, "--model", model(shell), "-o", "base.json")
    harsher = {"when": {"role": "scorer"}, "reply": {"json": {"score": points, "met": True, "reason": "Hm."}}}
    found = shell("eval", folder, "--model", model(shell, harsher), "--baseline", "base.json")
    assert found.code == 0
    assert ("worker score was 0.9" in found.err) == told


@pytest.mark.parametrize(("data", "said"), [("{", "is not JSON"), ('{"version": 1}', "is not a baseline")])
def test_a_bad_baseline_is_refused_before_anything_is_measured(shell: Shell, data: str, said: str) -> None:
    """Exit 2."""
    folder = team(shell.folder / "desk", GOLDEN)
    shell.write("base.json", data)
    found = shell("eval", folder, "--model", model(shell), "--baseline", "base.json")
    assert found.code == 2
    assert said in found.complaint


def test_a_baseline_of_other_cases_is_no_gate(shell: Shell) -> None:
    """A gate that compares nothing does not pass."""
    first, second = team(shell.folder / "desk", GOLDEN), team(shell.folder / "other", ROUTE)
    shell("eval", first, "--model", model(shell), "-o", "base.json")
    found = shell("eval", second, "--model", model(shell), "--baseline", "base.json")
    assert found.code == 2
    assert "Nothing was compared" in found.complaint


def test_secrets_leave_neither_by_the_page_nor_by_the_document(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with every other way out."""
    secret = "sk-ant-api03-" + "Ab1" * 20
    monkeypatch.setenv("ANTHROPIC_API_KEY", secret)
    folder = team(shell.folder / "desk", {**GOLDEN, "expect": {"exact": "x"}})
    found = shell(
        "eval", folder, "--model", model(shell, says("finder", f"The key is {secret}.")), "-o", "p.html", "--json"
    )
    assert found.code == 0
    assert secret not in found.out + found.err + (shell.folder / "p.html").read_text()
    assert "[redacted" in found.out
