"""A shipped team and its example become a whole run on the scripted model, with what its tools returned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chargehand import Supervisor
from chargehand.events import Event
from chargehand.team import Team, load
from chargehand.team.team_tools import shipped_home
from chargehand.values.report import Report

ROOT = Path(__file__).resolve().parents[2]
# Teams with a folder of the same name in examples/.
EXAMPLES = ("general", "support", "competitive", "patient", "portfolio", "curriculum", "launch", "contract")


@dataclass(frozen=True)
class Returned:
    """One call of a tool on the record."""

    task: str
    worker: str
    tool: str
    text: str
    failed: bool


@dataclass(frozen=True)
class Played:
    report: Report
    returned: tuple[Returned, ...]
    # The run's own folder.
    folder: Path

    def texts(self, tool: str) -> str:
        return "\n".join(each.text for each in self.returned if each.tool == tool)


def readme(team: str) -> str:
    """What its example says."""
    return (ROOT / "examples" / team / "README.md").read_text(encoding="utf-8")


def material(team: str) -> Path:
    return shipped_home() / team / "examples" / "material"


def script(team: str) -> str:
    return (shipped_home() / team / "script.json").read_text(encoding="utf-8")


def cases(team: str) -> list[dict[str, Any]]:
    """Every case of the team's evaluation."""
    files = sorted(shipped_home().glob(f"{team}/evals/*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def requests(team: str) -> list[str]:
    """What is asked from end to end, the main example first."""
    return [case["request"] for case in cases(team) if case["kind"] == "run"]


def play(team: str, home: Path, request: str | None = None) -> Played:
    events: list[Event] = []
    door = Supervisor(team, model="scripted", home=home)
    report = door.run_sync(request or requests(team)[0], material=[material(team)], on_event=events.append)
    return Played(report, tuple(_returned(events)), door.home.folder(report.run))


def _returned(events: list[Event]) -> Iterator[Returned]:
    called = {event.key: event for event in map(_Seen, events) if event.kind == "tool_called"}
    for event in map(_Seen, events):
        if event.kind == "tool_returned":
            call, result = called[event.key], event.data["result"]
            failed = result.get("error") is not None
            yield Returned(event.data["task"], call.data["worker"], call.data["tool"], result.get("text", ""), failed)


class _Seen:
    def __init__(self, event: Event) -> None:
        self.data = event.to_json()
        self.kind = self.data["kind"]
        self.key = str(self.data.get("key"))


def teams() -> dict[str, Team]:
    return {name: load(name) for name in EXAMPLES}
