"""examples/nested runs as its README says: three teams under one, on one record, complete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal import Shell

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "nested"


@pytest.mark.slow
def test_three_teams_under_one_answer_the_question(shell: Shell) -> None:
    """Real tools on the material, every nested task done and on the record under its parent."""
    got = shell(
        "run", "Should the town build a cycle path on Mill Road?", "--with", str(EXAMPLE / "material"),
        "--team", str(EXAMPLE / "office"), "--model", f"scripted:{EXAMPLE / 'script.json'}", "--json",
    )  # fmt: skip
    assert got.code == 0, got.err
    assert [outcome["worker"] for outcome in got.json["outcomes"]] == ["research", "analysis", "report"]
    assert got.json["gaps"] == []
    events = [json.loads(line) for line in shell("trace", "last", "--format", "jsonl").out.splitlines()]
    ended = [event["task"] for event in events if event["kind"] == "task_ended"]
    assert {"t1/1/counts", "t1/1/costs", "t1/1/check", "t2/1/share", "t2/1/cost", "t2/1/meaning", "t3/1/t1"} < {*ended}
    returned = " ".join(event["result"].get("text", "") for event in events if event["kind"] == "tool_returned")
    assert "13.9" in returned
    assert "840 in May" in returned
    page = Path(shell("trace", "last", "--format", "html").out.strip()).read_text()
    assert page.count('"depth": 1,') == 7
    decided = [event for event in events if event["kind"] == "decision"]
    routed = [event["value"]["source"] for event in decided if event["decision"] == "route"]
    assert routed == ["rule"]


def test_every_team_of_the_example_passes_its_check(shell: Shell) -> None:
    """Also on its own."""
    for name in ("office", "research", "analysis", "report"):
        assert shell("check", str(EXAMPLE / name)).code == 0


def test_a_nested_team_counts_for_its_task_wherever_it_is_shown(shell: Shell) -> None:
    """The record's summary, which the live table and the page show, and the outcomes have the same figures."""
    report = shell(
        "run", "Should the town build a cycle path on Mill Road?", "--with", str(EXAMPLE / "material"),
        "--team", str(EXAMPLE / "office"), "--model", f"scripted:{EXAMPLE / 'script.json'}", "--json",
    ).json  # fmt: skip
    shown = {each["id"]: each["tokens"] for each in shell("trace", "last").json["summary"]["tasks"]}
    for outcome in report["outcomes"]:
        usage = outcome["usage"]
        assert shown[outcome["task"]] == usage["input_tokens"] + usage["output_tokens"]
        assert shown[outcome["task"]] > 0
