"""Every shipped team works from end to end on its scripted model, with real tools on its sample material."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from chargehand import Supervisor
from chargehand.team import load
from tests.cli.terminal import Shell
from tests.teams.plays import EXAMPLES, Played, cases, material, requests, script

ALL = pytest.mark.parametrize("name", EXAMPLES)
Run = Callable[[str], Played]


@ALL
def test_the_example_is_complete_with_every_figure_supported(name: str, played: Run) -> None:
    """No gap, no citation or figure that no result holds, no result that is left unused."""
    report = played(name).report
    assert (report.status, report.gaps) == ("complete", ())
    assert {outcome.status for outcome in report.outcomes} == {"done"}
    assert (report.provenance.problems, report.provenance.unused) == ((), ())


@ALL
def test_the_example_uses_real_tools_and_none_of_them_fails(name: str, played: Run) -> None:
    """Every worker of the plan that holds tools has used one of its own."""
    run, team = played(name), {worker.name: worker for worker in load(name).workers}
    assert run.returned
    assert not [each for each in run.returned if each.failed]
    for each in run.returned:
        names = team[each.worker].tool_names
        assert each.tool in names or (each.tool == "read_material" and "read_file" in names)
    working = {outcome.worker for outcome in run.report.outcomes if team[outcome.worker].tools}
    assert {each.worker for each in run.returned} == working


@ALL
def test_sources_point_into_the_material(name: str, played: Run) -> None:
    """A `file:line` that a worker gives exists."""
    outcomes = played(name).report.outcomes
    claimed = [source for outcome in outcomes for claim in outcome.claims for source in claim.sources]
    found = [(finding.path, finding.line) for outcome in outcomes for finding in outcome.findings if finding.path]
    places = [*(_place(source) for source in claimed if source.startswith("material/")), *found]
    for path, line in places:
        lines = (material(name).parent / str(path)).read_text(encoding="utf-8").splitlines()
        assert line is not None
        assert 1 <= line <= len(lines), (path, line)
        assert lines[line - 1].strip(), f"{path}:{line} is empty"


@ALL
def test_the_evaluation_passes_on_the_scripted_model(name: str, shell: Shell) -> None:
    """Every case of every kind, but for support's routing: words decide there, and words alone are wrong at times."""
    got = shell("eval", name, "--model", "scripted", "--json", "--jobs", "2")
    assert got.code == 0, got.err
    kinds = {kind["kind"]: kind for kind in got.json["candidates"][0]["kinds"]}
    assert {kind: each["results"] for kind, each in kinds.items()} == Counter(case["kind"] for case in cases(name))
    assert {each["errors"] for each in kinds.values()} == {0}
    shares = {kind: each["passed"] / each["results"] for kind, each in kinds.items()}
    if name == "support":
        assert 0.8 <= shares.pop("routing") < 1
    assert set(shares.values()) == {1.0}, [each["case"] for each in got.json["results"] if not each["passed"]]


@ALL
def test_a_script_knows_no_label(name: str) -> None:
    """Its router goes by single words: a rule with a whole request would measure only that it was copied."""
    rules = json.loads(script(name))["replies"]
    words = [rule["when"].get("contains", "") for rule in rules if rule.get("when", {}).get("role") == "router"]
    assert all(len(word.removeprefix('<data>\n"').split()) <= 3 for word in words)


def _place(source: str) -> tuple[str, int]:
    path, _, line = source.rpartition(":")
    return path, int(line)


def test_a_script_gives_its_figures_only_for_what_the_tools_returned(tmp_path: Path) -> None:
    """With another price in an offer the scripted worker never gets to its result: it is not recited."""
    shutil.copytree(material("general"), tmp_path / "material")
    offer = tmp_path / "material" / "offers" / "alte-weberei.md"
    offer.write_text(offer.read_text(encoding="utf-8").replace("Rent 6,900 EUR", "Rent 7,900 EUR"), encoding="utf-8")
    door = Supervisor("general", model="scripted", home=tmp_path / "home")
    report = door.run_sync(requests("general")[0], material=[tmp_path / "material"])
    ended = {outcome.task: outcome.status for outcome in report.outcomes}
    assert (ended["prices"], ended["terms"], ended["totals"]) == ("failed", "done", "skipped")
    assert report.status == "partial"
