"""What `eval` says: what is wrong with a suite, why a case failed, and how results compare with earlier ones."""

from __future__ import annotations

from pathlib import Path

from tests.cli.terminal import Shell
from tests.evaluation.samples import as_plan, lines, result, task
from tests.evaluation.test_eval_command import CASES, GOLDEN, model, says, team
from tests.evaluation.test_suite import ROUTE, problems
from tests.evaluation.test_summary import verdict
from tests.golden import check_wording

WORK = '"worker": "writer", "instruction": "Go."'
WRONG = {
    "not JSON": '{"request": "x",',
    "a list": "[1]",
    "a kind that is not known": '{"kind": "routng", "request": "x"}',
    "no kind": '{"request": "x"}',
    "a worker that is not known": '{"request": "x", "primary": "wrter"}',
    "a field that is missing": '{"primary": "writer"}',
    "a field that is not known": '{"request": "x", "primary": "writer", "secondry": "writer"}',
    "no expectation": f'{{{WORK}, "expect": {{}}}}',
    "an expectation that is not known": f'{{{WORK}, "expect": {{"regex": "x"}}}}',
    "a number that JSON does not have": f'{{{WORK}, "expect": {{"numeric": NaN}}}}',
    "a file that is missing": '{"request": "x", "with": ["no.csv"], "expect": {"gaps": 0}}',
    "a plan without tasks": '{"kind": "plan", "request": "x", "plan": {"tasks": []}}',
    "a status that is not known": '{"kind": "run", "request": "x", "expect": {"status": "great"}}',
}


def test_problems_of_suites(tmp_path: Path) -> None:
    """Each with its file and line."""
    messages: dict[str, str] = {}
    for name, line in WRONG.items():
        path = lines(tmp_path / f"{len(messages)}.jsonl", ROUTE, line)
        [(code, text)] = problems(path)
        messages[name] = f"{code}: {text}".replace(str(path), "FILE").replace(str(tmp_path), "…")
    path = lines(tmp_path / "twice.jsonl", ROUTE, ROUTE)
    messages["a case twice"] = problems(path)[0][1].replace(str(path), "FILE")
    path.write_text("")
    messages["an empty file"] = problems(path)[0][1].replace(str(path), "FILE")
    check_wording("suite_problems", messages)


def test_evaluations(shell: Shell) -> None:
    """What is printed of failed cases and of results that are known, and what a baseline is compared to."""
    folder = team(shell.folder / "desk", *CASES[:4])
    bad = model(
        shell,
        {"when": {"role": "router"}, "reply": {"json": {"primary": "teller"}}},
        {"when": {"role": "planner"}, "reply": {"json": as_plan(task("t1", "teller"), task("t2", "teller", "t1"))}},
        says("finder", "It is 13 m deep."),
        {"when": {"role": "scorer"}, "reply": {"json": {"score": 10, "met": False, "reason": "It is a list."}}},
        name="bad.json",
    )
    failed = [line for line in shell("eval", folder, "--model", bad).out.splitlines() if " failed " in line]
    one = team(shell.folder / "one", GOLDEN)
    shell("eval", one, "--model", model(shell), "-o", "base.json")
    same = shell("eval", one, "--model", model(shell), "--baseline", "base.json").err
    equal = team(shell.folder / "copy", GOLDEN)
    twice = shell("eval", one / "evals" / "all.jsonl", "--team", one, "--team", equal, "--model", model(shell)).err
    lost = {"when": {"worker": "finder"}, "reply": {"error": {"status": 400}}}
    untried = shell("eval", one, "--model", model(shell, lost, name="lost.json")).err
    before = [result(str(n), by="judge", score=0.9) for n in range(4)]
    unclear = verdict([result(str(n), by="judge", score=0.7) for n in range(4)], before).unclear[0]
    worse = verdict([result("0", passed=False)], [result("0")]).regressions[0]
    messages = {
        "failed cases": "\n".join(failed),
        "the same results as before": same,
        "two equal teams": twice,
        "a case that could not be tried": untried.splitlines()[-1],
        "a case that fails now": worse.message,
        "too few cases with a rubric": unclear.message,
    }
    check_wording("evaluations", {name: text.replace(str(shell.folder), "…") for name, text in messages.items()})
