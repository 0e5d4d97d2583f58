"""The command line as tests use it: in this process where that is enough, as a real one where it is not."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chargehand.cli import main
from tests.pace import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "src" / "chargehand" / "apps" / "demo" / "tutorial.json"
COMMAND = [sys.executable, "-m", "chargehand"]
# By the test that runs; what it leaves running is killed after it.
STARTED: list[subprocess.Popen[str]] = []


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """What went wrong, in the one place where it is said."""
        assert "Traceback" not in self.err
        said = [line for line in self.err.splitlines() if line.startswith("chargehand: ")]
        assert len(said) == 1, self.err
        return said[0]


class Shell:
    """Runs commands in this process, in a folder and a home of their own."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._patch = patch
        self._capture = capture

    def __call__(self, *args: object, stdin: bytes = b"") -> Result:
        self._patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self._capture.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(arg) for arg in args])
        said = self._capture.readouterr()
        assert isinstance(left.value.code, int)
        return Result(left.value.code, said.out, said.err)

    def write(self, name: str, data: object) -> Path:
        path = self.folder / name
        path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
        return path

    def script(self, *replies: dict[str, Any], name: str = "script.json") -> str:
        """A scripted model; workers and synthesizer answer something unless a rule before says otherwise."""
        return f"scripted:{self.write(name, {'replies': [*replies, *DEFAULTS]})}"


def lines_left(seen: str) -> list[str]:
    """The lines that a terminal shows after all of this: the cursor may have gone up and erased lines."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|\x1b\][^\x1b]*\x1b\\\\|[^\x1b]", seen):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part == "\r":
            column = 0
        elif part.endswith("A") and part.startswith("\x1b["):
            row = max(row - int(part[2:-1] or 1), 0)
        elif part == "\x1b[2K":
            lines[row] = ""
        elif not part.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines if line.strip()]


def process(*args: object, home: Path, env: dict[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
    """A real process; both streams are pipes."""
    given = {**os.environ, "CHARGEHAND_HOME": str(home), "PYTHONPATH": str(ROOT / "src"), **(env or {})}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    child = subprocess.Popen([*COMMAND, *map(str, args)], env=given, text=True, **pipes)
    STARTED.append(child)
    return child


def finished(child: subprocess.Popen[str]) -> Result:
    out, err = child.communicate(timeout=PATIENCE_S)
    return Result(child.returncode, out, err)


def task(id: str, *depends_on: str, worker: str = "writer", **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "worker": worker,
        "instruction": f"Write the text called {id} in one sentence.",
        "success_criterion": "One sentence.",
        "depends_on": list(depends_on),
        **more,
    }


def plan(*tasks: dict[str, Any], goal: str = "Say something") -> dict[str, Any]:
    return {"goal": goal, "tasks": list(tasks)}


def planned(*tasks: dict[str, Any]) -> dict[str, Any]:
    return {"when": {"role": "planner"}, "reply": {"json": plan(*tasks)}}


def slow(seconds: float = 20.0, task: str | None = None) -> dict[str, Any]:
    """A worker that is at it for long."""
    when = {"role": "worker"} | ({"task": task} if task else {})
    return {"when": when, "delay_ms": seconds * 1000, "reply": {"json": {"summary": "late", "output": "late"}}}


DEFAULTS: list[dict[str, Any]] = [
    {"when": {"role": "planner"}, "reply": {"json": plan(task("t1"), task("t2"))}},
    {"when": {"role": "worker"}, "reply": {"json": {"summary": "Done.", "output": "Words.", "confidence": 80}}},
    {
        "when": {"role": "synthesizer"},
        "reply": {"json": {"answer": "# Both\n\nAll is *well* [t1, t2].", "confidence": 70}},
    },
]
