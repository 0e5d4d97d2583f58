"""What a caller in Python reads: the fact and what to do. Commands of the shell are added by the command line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.errors import ChargehandError, InvalidAnswer, NoOpenQuestion, RunNotFound, RunOwned, StorageError
from chargehand.testing import ScriptedModel

TASK = {"id": "t1", "worker": "w", "instruction": "Do the one thing.", "success_criterion": "It is done."}
RULES = [
    {"when": {"role": "planner"}, "reply": {"json": {"goal": "g", "tasks": [TASK]}}},
    {"when": {"role": "worker"}, "reply": {"json": {"summary": "s", "output": "x"}}},
]


@pytest.fixture
def waiting(tmp_path: Path) -> Supervisor:
    """A supervisor whose last run waits for the approval of its plan."""
    supervisor = Supervisor(Team([Worker("w", "Works")]), model=ScriptedModel(RULES), home=tmp_path)
    assert supervisor.run_sync("Do it", approve=True).status == "waiting"
    return supervisor


def resume_while_owned(supervisor: Supervisor) -> None:
    with closing(supervisor.home.open(supervisor.find_run("last"))):
        asyncio.run(supervisor.resume("last"))


def write_to_a_file(supervisor: Supervisor) -> None:
    (supervisor.home.path / "a file").write_text("")
    Supervisor(supervisor.team, model=ScriptedModel(RULES), home=supervisor.home.path / "a file" / "x").run_sync(
        "Do it"
    )


RAISED: dict[type[ChargehandError], Callable[[Supervisor], object]] = {
    RunNotFound: lambda supervisor: supervisor.report("nothing"),
    RunOwned: resume_while_owned,
    NoOpenQuestion: lambda supervisor: asyncio.run(supervisor.answer("last", "plam", "approve")),
    InvalidAnswer: lambda supervisor: asyncio.run(supervisor.answer("last", "plan", " ")),
    StorageError: write_to_a_file,
}


@pytest.mark.parametrize("error", RAISED)
def test_an_error_names_no_command(error: type[ChargehandError], waiting: Supervisor) -> None:
    """The command line prints the message with the command that helps there."""
    with pytest.raises(error) as raised:
        RAISED[error](waiting)
    for words in ("`chargehand ", "CHARGEHAND_HOME", "@FILE"):
        assert words not in str(raised.value)
    assert raised.value.with_command.startswith(str(raised.value))
    assert raised.value.command or error is NoOpenQuestion  # its message lists the open questions


def test_a_report_of_a_run_that_waits_names_no_command(waiting: Supervisor) -> None:
    """It names the questions to answer; once they are answered, it says to resume."""
    for _ in ("asked", "answered"):
        report = waiting.report("last")
        assert report.status == "waiting"
        assert "chargehand" not in report.answer
        asyncio.run(waiting.answer("last", "plan", "approve"))


def test_the_verdict_on_an_order_names_no_command(waiting: Supervisor) -> None:
    """Refused, too late, and before there is a verdict."""
    refused = asyncio.run(waiting.steer("last", "t1", "Use euros."))
    asyncio.run(waiting.answer("last", "plan", "approve"))
    assert asyncio.run(waiting.resume("last")).status == "complete"
    late = asyncio.run(waiting.steer("last", "t1", stop=True))
    sent = asyncio.run(waiting.steer("last", "t1", restart=True))
    assert [each.verdict for each in (refused, late, sent)] == ["refused", "too_late", None]
    assert not any("chargehand" in each.reason for each in (refused, late, sent))
