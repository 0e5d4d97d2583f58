"""Lists of hostile names, and a folder of material with every kind of trap in it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from chargehand.tools import ToolContext
from chargehand.values.request import Material

SECRET = "outside-and-secret"


def listed(name: str) -> list[str]:
    """The lines of a list beside this file, escapes as in JSON; lines that begin with # are comments."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return [json.loads('"' + line.replace('"', '\\"') + '"') for line in lines if not line.startswith("#")]


def paths(outside: Path) -> list[str]:
    """The hostile paths, for material that `trapped` made in a folder."""
    words = {"OUT": str(outside), "LONG": "x" * 5000 + ".md", "DEEP": "../" * 500}
    word = re.compile("|".join(words))
    return [word.sub(lambda found: words[found[0]], path) for path in listed("hostile_paths.txt")]


def trapped(outside: Path) -> ToolContext:
    """Material `docs` beside a secret, and a run's folder."""
    (outside / "secret.txt").write_text(SECRET)
    (outside / "docs-private").mkdir()
    (outside / "docs-private" / "secret.txt").write_text(SECRET)
    root = outside / "docs"
    (root / "src").mkdir(parents=True)
    (root / "a.txt").write_text("alpha\n")
    (root / "src" / "main.py").write_text("print('x')\n")
    (root / ".git").mkdir()
    links = {
        "out_file": str(outside / "secret.txt"),
        "out_relative": "../secret.txt",
        "out_dir": str(outside),
        "out_sibling": str(outside / "docs-private"),
        "out_chain": "out_file",
        "out_hop": "src/../..",
        "loop_a": "loop_b",
        "loop_b": "loop_a",
        "self": "self",
        "dangling": "nowhere",
        "slash": "/",
        "root": "/proc/self/root",
        "zero": "/dev/zero",
        "null": "/dev/null",
        "environ": "/proc/self/environ",
        "cwd": "/proc/self/cwd",
        "fd": "/proc/self/fd",
    }
    for name, goal in links.items():
        (root / name).symlink_to(goal)
    os.mkfifo(root / "pipe")
    (outside / "run").mkdir()
    return ToolContext(material=(Material(name="docs", path=str(root)),), folder=outside / "run")
