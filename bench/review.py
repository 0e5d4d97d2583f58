"""Times a review of a generated project of 50,000 lines against bandit alone, all in one run.

`python -m bench.review [--lines N]`: a table of wall times and ratios, and the peak memory of all processes together.
Short reviews and bandit are measured several times in turns; their figures are medians.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.startup import user_environment
from chargehand.apps.review.analyzers import ANALYZERS
from chargehand.engine.analyzer_port import Scope

ROOT = Path(__file__).resolve().parent.parent
LINES_A_FILE = 200
FILES_IN_DIFF = 10
TURNS = 3
BANDIT = "bandit itself"

_BODIES = (
    'def {name}(db, key):\n    row = db.execute("select value from item where key = ?", (key,)).fetchone()\n'
    "    return None if row is None else row[0]\n",
    "def {name}(values):\n    total = 0\n    for number, value in enumerate(values):\n        if value % 2:\n"
    "            total += value * number\n        else:\n            total -= value\n    return total\n",
    'class {Name}:\n    """Keeps a few values."""\n\n    def __init__(self, size):\n        self.size = size\n'
    "        self.values = {{}}\n\n    def put(self, key, value):\n        if len(self.values) >= self.size:\n"
    "            self.values.pop(next(iter(self.values)))\n        self.values[key] = value\n",
    "def {name}(path):\n    try:\n        with open(path, encoding='utf-8') as file:\n            return file.read()\n"
    "    except OSError:\n        return ''\n",
    "async def {name}(client, urls):\n    found = []\n    for url in urls:\n        answer = await client.get(url)\n"
    "        found.append(answer.text)\n    return found\n",
)
# One in so many functions has a defect.
_DEFECTS = (
    "def {name}(db, who):\n    return db.execute(\"select * from person where name = '%s'\" % who)\n",
    "def {name}(command):\n    import subprocess\n    return subprocess.call(command, shell=True)\n",
    "def {name}(items=[]):\n    items.append(1)\n    return items\n",
)
_RARE = 40


def generate(root: Path, lines: int, seed: int = 7) -> int:
    """Modules in packages, some defects; the number of lines written."""
    chance = random.Random(seed)
    written = number = 0
    while written < lines:
        folder = root / f"package_{number // 20:02d}"
        folder.mkdir(parents=True, exist_ok=True)
        parts = [f'"""Module {number}."""\n\nimport json\nimport os\n']
        while sum(part.count("\n") + 2 for part in parts) < LINES_A_FILE:
            body = chance.choice(_DEFECTS if chance.randrange(_RARE) == 0 else _BODIES)
            name = f"work_{number}_{len(parts)}"
            parts.append(body.format(name=name, Name=name.title().replace("_", "")))
        parts.append("def main(path):\n    return json.loads(os.environ[path])\n")
        text = "\n\n".join(parts)
        (folder / f"module_{number:03d}.py").write_text(text, encoding="utf-8")
        written += text.count("\n")
        number += 1
    return written


class Memory(threading.Thread):
    """Watches what this process's descendants use together; `peak` is in MB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0.0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.05):
            self.peak = max(self.peak, sum(_resident(pid) for pid in _descendants(os.getpid())) / 1e6)

    def stop(self) -> float:
        self._over.set()
        self.join()
        return self.peak


def _descendants(pid: int) -> Iterator[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in map(int, children):
        yield child
        yield from _descendants(child)


def _resident(pid: int) -> int:
    """Proportional, so that what processes share is counted once."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class Times:
    """What was measured -> wall seconds of each take, and CPU seconds of all processes."""

    def __init__(self) -> None:
        self._takes: dict[str, list[tuple[float, float]]] = {}

    @contextmanager
    def take(self, what: str) -> Iterator[None]:
        began, spent = time.perf_counter(), _cpu_seconds()
        yield
        taken = time.perf_counter() - began, _cpu_seconds() - spent
        self._takes.setdefault(what, []).append(taken)
        print(f"  {what}: {taken[0]:.2f} s, {taken[1]:.2f} s of CPU", file=sys.stderr)

    def wall(self, what: str) -> float:
        return statistics.median(wall for wall, _ in self._takes[what])

    def cpu(self, what: str) -> float:
        return statistics.median(cpu for _, cpu in self._takes[what])


def _cpu_seconds() -> float:
    return sum(os.times()[:4])


def review(home: Path, *args: object) -> None:
    command = [sys.executable, "-m", "chargehand", "-q", "review", *map(str, args)]
    done = subprocess.run(command, env=user_environment(home), cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"the review failed:\n{done.stderr.decode()}")


def alone(root: Path, times: Times) -> None:
    """Every analyzer by itself on the whole tree, in one process of its own."""
    files = tuple(path.relative_to(root).as_posix() for path in sorted(root.rglob("*.py")))
    for analyzer in ANALYZERS.values():
        if analyzer.per_file:
            with times.take(analyzer.name):
                asyncio.run(analyzer.run(Scope(root=root, files=files)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=50_000)
    lines = parser.parse_args().lines
    with tempfile.TemporaryDirectory() as folder:
        root, home = Path(folder) / "project", Path(folder) / "home"
        written = generate(root, lines)
        git = ["git", "-C", str(root), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        for args in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "begin"]):
            subprocess.run([*git, *args], check=True)
        times = Times()
        alone(root, times)
        review(Path(folder) / "compiled", root, "--diff", "HEAD")
        with times.take("whole tree"):
            review(home, root)
        # A run of its own: asking the system for these figures holds up what is measured.
        memory = Memory()
        memory.start()
        review(Path(folder) / "watched", root)
        peak = memory.stop()
        edited = sorted(root.rglob("*.py"))
        for number in range(TURNS):
            with times.take(BANDIT):
                command = [sys.executable, "-m", "bandit", "-q", "-r", str(root)]
                subprocess.run(command, env=user_environment(home), capture_output=True, check=False)
            edited[0].write_text(edited[0].read_text() + f"\n\ndef more_{number}():\n    return undefined\n")
            with times.take("again after editing one file"):
                review(home, root)
        for path in edited[1:FILES_IN_DIFF]:
            path.write_text(path.read_text() + "\n\ndef more(x=[]):\n    return x\n")
        for number in range(TURNS):
            other = Path(folder) / f"other_{number}"
            for what in ("ten-file diff, nothing known", "the same diff again"):
                with times.take(what):
                    review(other, root, "--diff", "HEAD")
    bandit = times.wall(BANDIT)
    print(f"\n{written:,} lines, {os.cpu_count()} cores; bandit itself {bandit:.2f} s\n")
    print("| what | s | s of CPU | limit | holds |\n|---|---|---|---|---|")
    for what, limit in (
        ("whole tree", 1.3 * bandit),
        ("again after editing one file", 0.2 * bandit),
        ("ten-file diff, nothing known", 3.0),
        ("the same diff again", 1.0),
    ):
        took = times.wall(what)
        print(f"| {what} | {took:.2f} | {times.cpu(what):.2f} | {limit:.2f} | {'yes' if took <= limit else 'NO'} |")
    print(f"| peak memory of all processes, MB | {peak:.0f} | | 300 | {'yes' if peak < 300 else 'NO'} |")


if __name__ == "__main__":
    main()
