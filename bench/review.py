"""Times a review of a generated project of 50,000 lines against bandit alone, all in one run.

`python -m bench.review [--lines N]`: a table of wall times and ratios, and the peak memory of all processes together.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chargehand.apps.review.analyzers import ANALYZERS
from chargehand.engine.analyzer_port import Scope

ROOT = Path(__file__).resolve().parent.parent
LINES_A_FILE = 200
FILES_IN_DIFF = 10

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


@contextmanager
def timed(what: str, times: dict[str, float]) -> Iterator[None]:
    began = time.perf_counter()
    yield
    times[what] = time.perf_counter() - began
    print(f"  {what}: {times[what]:.2f} s", file=sys.stderr)


def review(home: Path, *args: object) -> None:
    command = [sys.executable, "-m", "chargehand", "-q", "review", *map(str, args)]
    env = {**os.environ, "CHARGEHAND_HOME": str(home)}
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"the review failed:\n{done.stderr.decode()}")


def alone(root: Path, times: dict[str, float]) -> None:
    """Every analyzer by itself on the whole tree, in one process of its own."""
    files = tuple(path.relative_to(root).as_posix() for path in sorted(root.rglob("*.py")))
    for analyzer in ANALYZERS.values():
        if analyzer.per_file:
            with timed(analyzer.name, times):
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
        single: dict[str, float] = {}
        times: dict[str, float] = {}
        alone(root, single)
        with timed("bandit itself", times):
            subprocess.run([sys.executable, "-m", "bandit", "-q", "-r", str(root)], capture_output=True, check=False)
        with timed("first review", times):
            review(home, root)
        # A run of its own: asking the system for these figures holds up what is measured.
        memory = Memory()
        memory.start()
        review(Path(folder) / "watched", root)
        peak = memory.stop()
        edited = sorted(root.rglob("*.py"))
        edited[0].write_text(edited[0].read_text() + "\n\ndef more():\n    return undefined\n")
        with timed("after editing one file", times):
            review(home, root)
        for path in edited[1:FILES_IN_DIFF]:
            path.write_text(path.read_text() + "\n\ndef more(x=[]):\n    return x\n")
        with timed("ten-file diff", times):
            review(Path(folder) / "other", root, "--diff", "HEAD")
        spent = os.times()
        with timed("ten-file diff again", times):
            review(Path(folder) / "other", root, "--diff", "HEAD")
        computed = sum(now - then for now, then in zip(os.times()[2:4], spent[2:4], strict=True))
    first, bandit = times["first review"], times["bandit itself"]
    print(f"\n{written:,} lines, {os.cpu_count()} cores; bandit itself {bandit:.2f} s\n")
    print("| what | s | limit | holds |\n|---|---|---|---|")
    for what, value, limit in (
        ("whole tree", first, 1.3 * bandit),
        ("again after editing one file", times["after editing one file"], 0.2 * bandit),
        ("ten-file diff, nothing known", times["ten-file diff"], 3.0),
        (f"the same diff again ({computed:.2f} s of CPU)", times["ten-file diff again"], 1.0),
    ):
        print(f"| {what} | {value:.2f} | {limit:.2f} | {'yes' if value <= limit else 'NO'} |")
    print(f"| peak memory of all processes, MB | {peak:.0f} | 300 | {'yes' if peak < 300 else 'NO'} |")


if __name__ == "__main__":
    main()
