"""The report as it is on record: the same as a folded one, and only where printing it is enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.record import stored_report
from chargehand.record.home import Home
from chargehand.record.stored_report import read_stored_report
from chargehand.runs.report_from_record import report_so_far
from chargehand.testing import ScriptedModel

TASK = {"worker": "w", "instruction": "Find one number.", "success_criterion": "A number."}
PLAN = {"goal": "g", "tasks": [{"id": "t1", **TASK}, {"id": "t2", **TASK, "depends_on": ["t1"]}]}
ANSWER = {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "Seven and eight [t1, t2]."}}}
WORK = {"when": {"role": "worker"}, "reply": {"json": {"summary": "s", "output": "seven", "confidence": 80}}}
REFUSE = {"when": {"role": "worker", "task": "t2"}, "reply": {"error": {"status": 400}}}


def _run(home: Path, *rules: dict[str, Any]) -> str:
    return Supervisor(Team([Worker("w", "Works")]), model=ScriptedModel(rules), home=home).run_sync(plan=PLAN).run


@pytest.mark.parametrize("rules", [(WORK, ANSWER), (REFUSE, WORK, ANSWER)])
def test_a_stored_report_is_what_folding_the_record_gives(rules: tuple[dict[str, Any], ...], tmp_path: Path) -> None:
    """`show` prints either, and nobody can tell which."""
    run, home = _run(tmp_path, *rules), Home(tmp_path)
    assert read_stored_report(home, run) == report_so_far(home, home.state(run)).to_json()


def test_the_record_of_another_version_is_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its report may lack fields that this version prints."""
    run = _run(tmp_path, WORK, ANSWER)
    monkeypatch.setattr(stored_report, "__version__", "0.0.0")
    assert read_stored_report(Home(tmp_path), run) is None


def test_a_run_that_has_not_ended_is_folded(tmp_path: Path) -> None:
    """It has no report, or one of a run that was cancelled and may have open questions."""
    run = Home(tmp_path).create().run
    assert read_stored_report(Home(tmp_path), run) is None
