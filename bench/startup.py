"""What one command costs before it does anything: CPU time of new processes against Python with three stdlib imports.

    python -m bench.startup [ROUNDS]

CPU time (user and system), because others may use the machine; the yardstick and all commands take turns, so that a
noisy minute hits all. Files are compiled before the first figure. The model is a script, the output goes into a pipe.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROUNDS = 15
YARDSTICK = "import argparse, json, sqlite3"
_MODEL = "from pydantic import BaseModel\nclass Model(BaseModel): field: int"
# What libraries cost by themselves. Together they cost less than the sum, since they share imports.
FLOORS = {
    "click": "import click",
    "asyncio": "import asyncio",
    "one pydantic model": _MODEL,
    "click and one pydantic model": f"import click\n{_MODEL}",
    "click, asyncio and one pydantic model": f"import click, asyncio\n{_MODEL}",
}
PLAN: dict[str, Any] = {
    "goal": "One line about Oslo",
    "tasks": [{"id": "t1", "worker": "writer", "instruction": "Write a line about Oslo.", "success_criterion": "One."}],
}
SCRIPT: dict[str, Any] = {
    "replies": [
        {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "Oslo is a capital [t1]."}}},
        {"reply": {"json": {"summary": "A line.", "output": "Oslo is the capital of Norway.", "confidence": 80}}},
    ]
}
# The command and how many times the yardstick it may cost.
COMMANDS: dict[str, tuple[list[str], float]] = {
    "--help": (["--help"], 4),
    "runs": (["runs"], 6),
    "check plan.json": (["check", "plan.json"], 6),
    "show last": (["show", "last"], 6),
    "show last --json": (["show", "last", "--json"], 6),
    "run --plan plan.json, one task, scripted": (
        ["run", "--plan", "plan.json", "--model", "scripted:script.json", "One line about Oslo"],
        8,
    ),
}
_COUNT = """
import sys
from chargehand.cli import main
try: main({args!r})
finally: print(len(sys.modules), file=sys.stderr)
"""


def prepare(folder: Path) -> dict[str, str]:
    """Write the plan and the script into the folder; the environment in which commands run there."""
    (folder / "plan.json").write_text(json.dumps(PLAN))
    (folder / "script.json").write_text(json.dumps(SCRIPT))
    return user_environment(folder / "home")


def user_environment(home: Path) -> dict[str, str]:
    """The environment of a command as users run it: what is compiled once stays compiled, as an installer leaves it."""
    left_out = ("CHARGEHAND_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return kept | {"CHARGEHAND_HOME": str(home)}


def cpu_ms(command: list[str], folder: Path, env: dict[str, str]) -> float:
    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (usage.ru_utime + usage.ru_stime) * 1000

    before = spent()
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return spent() - before


def modules(args: list[str], folder: Path, env: dict[str, str]) -> int:
    command = [sys.executable, "-c", _COUNT.format(args=args)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True)
    return int(done.stderr.split()[-1])


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    chargehand = str(Path(sys.executable).with_name("chargehand"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = prepare(folder)
        measured = {"yardstick": [sys.executable, "-c", YARDSTICK]}
        measured |= {name: [sys.executable, "-c", f"{YARDSTICK}\n{code}"] for name, code in FLOORS.items()}
        # The run comes first when files are compiled, so that there is one to show.
        measured |= {label: [chargehand, *args] for label, (args, _) in reversed(COMMANDS.items())}
        for command in measured.values():
            cpu_ms(command, folder, env)
        figures: dict[str, list[float]] = {label: [] for label in measured}
        for _ in range(rounds):
            for label, command in measured.items():
                figures[label].append(cpu_ms(command, folder, env))
        counts = {label: modules(args, folder, env) for label, (args, _) in COMMANDS.items()}
    medians = {label: statistics.median(values) for label, values in figures.items()}
    base = medians["yardstick"]
    print(f"\nStart-up, CPU time, median of {rounds}; the yardstick is `python -c '{YARDSTICK}'`: {base:.0f} ms.\n")
    print("| process | CPU ms | times the yardstick | at most | modules |")
    print("|---|---|---|---|---|")
    for name in FLOORS:
        print(f"| yardstick and {name} | {medians[name]:.0f} | {medians[name] / base:.1f} | | |")
    for label, (_, most) in COMMANDS.items():
        print(f"| `{label}` | {medians[label]:.0f} | {medians[label] / base:.1f} | {most:g} | {counts[label]} |")


if __name__ == "__main__":
    main()
