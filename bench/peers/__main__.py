"""Runs the same job by other libraries and by chargehand in turns, and prints speed, record, faults and kill -9.

Environments are made at the first use, in .bench/peers. `--write` puts the tables into bench/RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from bench.peers.provider import FAILING

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".bench" / "peers"
RESULTS = ROOT / "bench" / "RESULTS.md"
BEGIN, END = "<!-- table: bench/peers -->", "<!-- end of table -->"
# How long a job may take; a library that hangs is reported as such.
LONGEST_S = 900.0
# What is answered at once is on its way into a record: so long is waited before the process is killed.
SETTLE_S = 1.0
# How often a run for speed is made until it is complete: on a busy machine clients run into their own limits of time.
TRIES = 4


class Peer(NamedTuple):
    """A script and what its environment holds; without requirements it runs in this one."""

    name: str
    module: str
    requirements: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return ENVIRONMENTS / self.module

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python") if self.requirements else sys.executable


PEERS = (
    Peer("openai and gather", "openai_gather", ("openai",)),
    Peer("pydantic-ai", "pydantic_ai_gather", ("pydantic-ai-slim[openai]",)),
    Peer("openai-agents", "openai_agents_gather", ("openai-agents",)),
    Peer("langgraph, SQLite", "langgraph_sqlite", ("langgraph", "langgraph-checkpoint-sqlite", "langchain-openai")),
    Peer("crewai, async tasks", "crewai_async", ("crewai",)),
    Peer("chargehand", "chargehand_run"),
)


def make_environments() -> None:
    for peer in PEERS:
        if peer.requirements and not is_made(peer):
            print(f"== making {peer.folder}", file=sys.stderr, flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(peer.folder)], check=True)
            subprocess.run([peer.python, "-m", "pip", "install", "--quiet", *peer.requirements], check=True)
            (peer.folder / "made").touch()


def is_made(peer: Peer) -> bool:
    return (peer.folder / "made").exists()


def versions() -> str:
    """The distributions that were compared, as they are installed."""
    code = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    found: list[str] = []
    for peer in PEERS:
        if names := [requirement.partition("[")[0] for requirement in peer.requirements]:
            said = subprocess.run([peer.python, "-c", code, *names], check=True, capture_output=True, text=True)
            found += [f"{name} {number}" for name, number in zip(names, said.stdout.split(), strict=True)]
    return ", ".join(found)


@contextmanager
def provider(fault: str = "", log: Path | None = None) -> Iterator[str]:
    """The model server as a process of its own; gives its base URL."""
    command = [sys.executable, "-m", "tests.loopback", "--handler", "bench.peers.provider:answer"]
    env = os.environ | {"BENCH_FAULT": fault, "BENCH_LOG": str(log or "")}
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.terminate()


def begin(peer: Peer, base: str, tasks: int, folder: str, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
    command = [peer.python, "-m", f"bench.peers.{peer.module}", base, str(tasks), folder]
    # No tracing service and no proxy: nothing but the provider on loopback is called.
    env = os.environ | {"LANGSMITH_TRACING": "false", "NO_PROXY": "*", "no_proxy": "*"}
    if peer.requirements:
        # crewai writes task outputs into its storage folder, and a key into the home folder.
        env |= {"CREWAI_STORAGE_DIR": folder, "HOME": str(peer.folder)}
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=stderr, text=True)


def finish(peer: Peer, process: subprocess.Popen[str]) -> dict[str, Any]:
    try:
        out, err = process.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return {"wall_s": LONGEST_S, "ended": f"no end after {LONGEST_S:g} s", "results": 0}
    if process.returncode:
        sys.exit(f"{peer.name} failed:\n{err}")
    return json.loads(out.splitlines()[-1])


def run_once(peer: Peer, base: str, tasks: int, folder: str) -> dict[str, Any]:
    return finish(peer, begin(peer, base, tasks, folder))


def compare_speed(tasks: int, rounds: int) -> Iterator[str]:
    """Medians of all of them, taken in turns so that a noisy minute hits all."""
    runs: dict[str, list[dict[str, Any]]] = {peer.name: [] for peer in PEERS}
    kept: dict[str, str] = {}
    incomplete: Counter[str] = Counter()
    with provider() as base:
        for _ in range(rounds):
            for peer in PEERS:
                for _ in range(TRIES):
                    with tempfile.TemporaryDirectory() as folder:
                        run = run_once(peer, base, tasks, folder)
                        if run["results"] == tasks:
                            runs[peer.name].append(run)
                            kept[peer.name] = describe_record(Path(folder))
                            break
                    incomplete[f"{peer.name}: {run['ended']}, {run['results']} results"] += 1
                else:
                    sys.exit(f"{peer.name} has {run['results']} of {tasks} results: {run['ended']}")
    yield f"| {tasks} tasks | s | CPU ms a task | peak MB | on record afterwards |"
    yield "|---|---|---|---|---|"
    for name, each in runs.items():
        wall, cpu, peak = (
            statistics.median(run[key] for run in each) for key in ("wall_s", "cpu_ms_per_task", "peak_mb")
        )
        yield f"| {name} | {wall:.2f} | {cpu:.2f} | {peak:.0f} | {kept[name]} |"
    if incomplete:
        yield ""
        yield f"Not complete and made again: {'; '.join(f'{number} x {what}' for what, number in incomplete.items())}."


def describe_record(folder: Path) -> str:
    """The rows of each table in the SQLite files of a folder, and the bytes of all files."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    if not files:
        return "nothing"
    rows: Counter[str] = Counter()
    for path in files:
        if path.suffix not in (".sqlite", ".db"):
            continue
        with closing(sqlite3.connect(path)) as database:
            tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
            rows.update({name: database.execute(f'select count(*) from "{name}"').fetchone()[0] for name in tables})
    size = sum(path.stat().st_size for path in files) / 1000
    listed = ", ".join(f"{number} {name}" for name, number in rows.items() if number > 1)
    return f"{size:,.0f} kB: {listed}"


def compare_faults(tasks: int, statuses: Sequence[str] = ("429", "500")) -> Iterator[str]:
    """One task is answered with an error, always; then a kill -9 after half of the answers, and a second start."""
    heads = [f"{tasks} tasks", *(f"{FAILING} always {status}" for status in statuses), "killed, started again"]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for peer in PEERS:
        ends = [*(say_fault(peer, tasks, status) for status in statuses), kill_and_continue(peer, tasks)]
        yield f"| {peer.name} | {' | '.join(ends)} |"


def say_fault(peer: Peer, tasks: int, status: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        home = Path(folder, "home")
        home.mkdir()
        with provider(status, log) as base:
            run = run_once(peer, base, tasks, str(home))
        calls = count_calls(log)[FAILING]
    return f"{run['ended']} after {run['wall_s']:.1f} s and {calls} calls of it; {run['results']} results kept"


def kill_and_continue(peer: Peer, tasks: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        home = Path(folder, "home")
        home.mkdir()
        with provider("slow", log) as base:
            # Nobody reads what it writes while it is waited for: a full pipe would stop it.
            process = begin(peer, base, tasks, str(home), stderr=subprocess.DEVNULL)
            wait_for_calls(log, tasks, process)
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            before = count_calls(log)
            run = run_once(peer, base, tasks, str(home))
            again = count_calls(log) - before
    answered = [f"t{number}" for number in range(1, tasks + 1, 2)]
    repeated = sum(task in again for task in answered)
    return f"{run['ended']}; {repeated} of {len(answered)} answered calls made again"


def wait_for_calls(log: Path, tasks: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + LONGEST_S
    while len(count_calls(log)) < tasks:
        if process.poll() is not None or time.monotonic() > until:
            sys.exit("The job ended before all of its calls were made.")
        time.sleep(0.02)
    time.sleep(SETTLE_S)


def count_calls(log: Path) -> Counter[str]:
    """How often each task was sent, by its id."""
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return Counter(line["task"] for line in lines if line.get("role") == "worker")


def write_section(section: str) -> None:
    text = RESULTS.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    RESULTS.write_text(f"{before}{BEGIN}\n{section}{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.peers", description=__doc__)
    parser.add_argument("--n", type=int, action="append", help="tasks; may be given again (default: 100 and 500)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="also write the tables into bench/RESULTS.md")
    arguments = parser.parse_args()
    make_environments()
    sizes: list[int] = arguments.n or [100, 500]
    git = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or "none"
    lines = [
        f"{datetime.now(UTC):%Y-%m-%d}, commit {commit}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}, medians of {arguments.rounds}. {versions()}.",
    ]
    print(lines[0], flush=True)
    for part in (*(compare_speed(tasks, arguments.rounds) for tasks in sizes), compare_faults(sizes[0])):
        print(flush=True)
        lines.append("")
        for line in part:
            print(line, flush=True)
            lines.append(line)
    if arguments.write:
        write_section("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
