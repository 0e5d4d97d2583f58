"""Every shipped team folder is complete: workers, routes, examples, evaluation, material that says what it is."""

from __future__ import annotations

import json
import re
from itertools import combinations

import pytest

from chargehand.team import load, shipped_teams
from chargehand.team.team_tools import shipped_home
from chargehand.workers.check_result import asks_for_findings
from tests.cli.terminal import Shell
from tests.teams.plays import EXAMPLES, ROOT, cases, material, readme, script

ALL = pytest.mark.parametrize("name", EXAMPLES)


def test_all_the_teams_that_were_promised_ship() -> None:
    """With review and testgen, which have commands of their own."""
    assert set(shipped_teams()) >= {*EXAMPLES, "review", "testgen"}


@ALL
def test_a_shipped_team_passes_check_without_a_warning(name: str, shell: Shell) -> None:
    """As a user would check a folder of their own."""
    got = shell("check", shipped_home() / name, "--json")
    assert (got.code, got.json) == (0, {"ok": True, "problems": []})


@ALL
def test_at_least_three_workers_hold_tools_that_no_other_holds(name: str) -> None:
    """A worker is told apart by what it can do, not only by what it is told."""
    team = load(name)
    assert 3 <= len(team.workers) <= 7
    assert team.shared_tools == ()
    for one, other in combinations(team.workers, 2):
        assert not set(one.tool_names) & set(other.tool_names)
    assert sum(bool(worker.tools) for worker in team.workers) >= 3


@ALL
def test_every_prompt_says_what_to_do_what_not_and_when_to_hand_back(name: str) -> None:
    """And how sure is how sure."""
    for worker in load(name).workers:
        for part in ("\nDo:\n", "\nDo not:\n", "\nConfidence", "\nEscalate"):
            assert part in worker.prompt, (worker.name, part)
        assert worker.description.endswith(".")


@ALL
def test_a_worker_that_answers_in_text_has_an_example_for_small_models(name: str) -> None:
    """In its own words, as a result and not as a shape: a model that copies it has not answered."""
    for worker in load(name).workers:
        if worker.output_schema is None and not asks_for_findings(worker.prompt, worker.description):
            assert re.search(r'such as "[A-Z][^"]{20,}\."', worker.small_prompt), worker.name


@ALL
def test_a_team_has_routes_and_two_good_plans_to_learn_from(name: str) -> None:
    """No example is a case of the evaluation: that would be measuring memory."""
    team = load(name)
    assert team.routes
    assert len(team.examples) >= 2
    asked = {case.get("request") for case in cases(name)}
    assert not asked & {each.request for each in (*team.examples, *team.route_examples)}
    for each in team.examples:
        assert each.plan.problems(team.names) == []


@ALL
def test_an_evaluation_measures_every_step(name: str) -> None:
    """Routing, single workers, the synthesis alone and whole runs; plans where there is a planner."""
    kinds = {case["kind"] for case in cases(name)}
    assert kinds == {"routing", "worker", "synthesis", "run"} | (set() if name == "support" else {"plan"})


@ALL
def test_sample_material_says_that_it_is_synthetic(name: str) -> None:
    """Texts in their first line, tables by the README beside them."""
    texts = sorted(material(name).rglob("*.md"))
    assert len(texts) >= 3
    for text in texts:
        assert text.read_text(encoding="utf-8").splitlines()[0].removeprefix("<!-- ").startswith("Synthetic sample")
    assert "synthetic" in readme(name)


def test_no_file_of_a_shipped_team_is_a_link() -> None:
    """What a link into the checkout leads to is not there once the package is installed."""
    assert [path for path in shipped_home().rglob("*") if path.is_symlink()] == []


@ALL
def test_the_readme_gives_the_command_of_the_run_that_is_tested(name: str) -> None:
    """Copied from there, it is the run of these tests."""
    (first, *_) = [case["request"] for case in cases(name) if case["kind"] == "run"]
    assert f'chargehand run "{first}"' in readme(name)
    assert json.loads(script(name))["replies"]


def test_the_reference_page_names_every_team_worker_and_tool() -> None:
    """With the line that closes its answers, where it has one."""
    page = (ROOT / "docs" / "reference" / "teams.md").read_text(encoding="utf-8")
    for name in EXAMPLES:
        team = load(name)
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert team.description in section
        assert team.disclaimer in section
        for worker in team.workers:
            tools = ", ".join(f"`{tool}`" for tool in worker.tool_names) or "none"
            assert f"| `{worker.name}` | {tools} |" in section
