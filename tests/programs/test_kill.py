"""Runs of programs, killed at many points and resumed: what is `once` happened once, nothing is left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.counts import count
from tests.programs.helping import git, repository

TEAM = """
import asyncio, json, sys
from pathlib import Path
from chargehand import Supervisor, Team, Worker
from chargehand.team.program_fields import make_program
folder = Path(sys.argv[1])
python = sys.executable
def worker(name, code, **fields):
    return Worker(name, "Does it", kind="command", program=make_program({"command": (python, "-c", code), **fields}, folder))
log = folder / "log"
team = Team([
    worker("once", f"import time; open({str(log)!r}, 'a').write('ran\\\\n'); time.sleep(0.2); print('It ran.')", sandbox="off"),
    worker("coder", "import time; open('a.txt', 'a').write('two\\\\n'); time.sleep(0.3); print('Changed.')", worktree=True),
    worker("check", "import sys; print('Read ' + str(len(sys.stdin.read())))", effect="read"),
])
task = {"instruction": "Do the thing.", "success_criterion": "It is done."}
plan = {"goal": "Try", "tasks": [
    {"id": "a", "worker": "once", **task}, {"id": "b", "worker": "coder", **task},
    {"id": "c", "worker": "check", "depends_on": ["a", "b"], "on_dependency_failure": "proceed", **task},
]}
supervisor = Supervisor(team, home=folder / "home")
if len(sys.argv) > 2:
    report = asyncio.run(supervisor.resume(sys.argv[2]))
else:
    report = supervisor.run_sync(plan=plan, material=[str(folder / "repo")])
print(json.dumps({"run": report.run, "status": report.status,
    "outcomes": {o.task: [o.status, o.error.kind if o.error else None] for o in report.outcomes}}))
"""  # noqa: E501


def test_programs_killed_at_many_points_and_resumed(tmp_path: Path) -> None:
    """kill -9 at points spread over the run; then the run ends, and `once` is done once or in doubt, never twice."""
    whole = tmp_path / "whole"
    repository(whole / "repo")
    began = time.monotonic()
    assert _ended(_start(whole))["status"] == "complete"
    lasts = time.monotonic() - began
    points = count(50)
    doubts = 0
    for point in range(points):
        folder = tmp_path / str(point)
        repo = repository(folder / "repo")
        victim = _start(folder)
        try:
            victim.communicate(timeout=lasts * (0.3 + 0.7 * point / points))
        except subprocess.TimeoutExpired:
            victim.kill()
            victim.communicate()
        runs = [path.stem for path in (folder / "home" / "runs").glob("*.sqlite")]
        if not runs:
            continue  # killed before there was a run
        said = _start(folder, runs[0]).communicate(timeout=120)[0]
        if not said:
            assert not (folder / "log").exists(), "a run that cannot be resumed was killed before anything began"
            continue
        ended: dict[str, Any] = json.loads(said)
        ran = (folder / "log").read_text(encoding="utf-8").count("ran") if (folder / "log").exists() else 0
        status, kind = ended["outcomes"]["a"]
        assert ran == 1 or (kind == "in_doubt" and ran == 0), f"once ran {ran} times: {ended}"
        assert (status, kind) in (("done", None), ("failed", "in_doubt"))
        doubts += kind == "in_doubt"
        assert ended["outcomes"]["b"] == ["done", None]
        assert git(repo, "status", "--porcelain") == ""
        assert not (Path(tempfile.gettempdir()) / f"chargehand-programs-{os.getuid()}" / runs[0]).exists()
        assert not _marked(runs[0])
    assert doubts < points


def _start(folder: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", TEAM, str(folder), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def _ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    return json.loads(process.communicate(timeout=120)[0])


def _marked(run: str) -> list[str]:
    """Processes that a program of the run left."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"/{run}/".encode() in entry.read_bytes():
                found.append(entry.parent.name)
        except OSError:
            continue
    return found
