"""What tests of programs share: a repository, teams of one program, stand-ins for coding agents."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from chargehand import Report, Supervisor, Team, Worker
from chargehand.team.program_fields import make_program

SAFE = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    ended = subprocess.run(["git", *who, *arguments], cwd=folder, env=SAFE, check=True, capture_output=True, text=True)
    return ended.stdout


def repository(path: Path, files: dict[str, str] | None = None) -> Path:
    """With one commit, and a hook that would tell if it ran."""
    path.mkdir(parents=True)
    git(path, "init", "-q")
    for name, text in (files or {"a.txt": "one\n"}).items():
        (path / name).write_text(text, encoding="utf-8")
    git(path, "add", "-A")
    git(path, "commit", "-qm", "first")
    for hook in ("post-checkout", "pre-commit", "post-commit"):
        place = path / ".git" / "hooks" / hook
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"#!/bin/sh\ntouch {path}/HOOK\n", encoding="utf-8")
        place.chmod(0o755)
    return path


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def worker(name: str = "program", **fields: Any) -> Worker:
    program = make_program(fields, Path("/nowhere"))
    assert program is not None
    return Worker(name, "Does it", kind="command", program=program)


def run(
    tmp_path: Path, *workers: Worker, material: list[Path] | None = None, plan: Any = None, **options: Any
) -> Report[str]:
    """A run of a plan with one task for each worker, or of the given plan."""
    tasks = [
        {"id": f"t{n}", "worker": each.name, "instruction": "Do the thing.", "success_criterion": "It is done."}
        for n, each in enumerate(workers, 1)
    ]
    supervisor = Supervisor(Team(workers), home=tmp_path / "home")
    given = plan or {"goal": "Try it", "tasks": tasks}
    return supervisor.run_sync(plan=given, material=[str(each) for each in material or ()], **options)


def stand_in(folder: Path, name: str, body: str) -> None:
    """A program of that name."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{body}", encoding="utf-8")
    path.chmod(0o755)
