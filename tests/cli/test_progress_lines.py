"""Lines of progress where there is no terminal."""

from __future__ import annotations

import pytest

from chargehand.cli.progress_lines import Lines
from chargehand.cli.screen import Screen
from chargehand.text.redaction import Redactor
from chargehand.trace import RunState
from tests.events import make_event


def test_a_run_that_begins_again_in_the_same_process_is_announced_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A restart of a task begins another session: the line about the restart says it."""
    lines = Lines(Screen(Redactor()), RunState())
    resumed = {"request": {"text": "Say it"}, "team": {"name": "g"}, "resumed": True}
    lines.on_event(make_event("run_started", seq=1, at=1.0, **resumed, epoch=2))
    lines.on_event(make_event("control", "t1", seq=2, at=1.0, order="restart", verdict="accepted"))
    lines.on_event(make_event("run_started", seq=3, at=1.0, **resumed, epoch=3))
    said = capsys.readouterr().err
    assert (said.count("resumed"), "a person restarted t1" in said) == (1, True)
