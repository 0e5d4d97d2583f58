"""Runs every benchmark, ours and the bare client interleaved, and prints the figures as a table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HELP_RUNS = 20


@contextmanager
def provider() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.loopback", "--handler", "bench.provider:answer"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
    finally:
        server.terminate()
        server.wait()


def once(module: str, base: str, kind: str, tasks: int, **settings: str) -> dict[str, float]:
    command = [sys.executable, "-m", module, base, kind, str(tasks)]
    env = os.environ | settings
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{module} {kind} {tasks} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def median(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


# What sends the requests: aiohttp alone, which is the yardstick; aiohttp with replies that come whole; our transport
# alone; chargehand; chargehand in a process that has done a run before.
SENDERS: dict[str, tuple[str, dict[str, str]]] = {
    "bare": ("bench.bare", {}),
    "whole": ("bench.bare", {"BENCH_STREAM": "no"}),
    "own": ("bench.bare", {"BENCH_TRANSPORT": "own"}),
    "ours": ("bench.ours", {}),
    "again": ("bench.ours", {"BENCH_AGAIN": "yes"}),
}


# How many workers there are: with one call each, and with three calls and a tool between them.
JOBS = {"fan": (10, 100, 500, 2000), "tools": (100, 500)}


def compare(base: str, kind: str, tasks: int, rounds: int) -> dict[str, dict[str, float]]:
    """The medians of all senders, taken in turns so that a noisy minute hits all of them."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in SENDERS}
    for _ in range(rounds):
        for name, (module, settings) in SENDERS.items():
            runs[name].append(once(module, base, kind, tasks, **settings))
    return {name: median(each) for name, each in runs.items()}


def compare_with_bare(base: str, kind: str, rounds: int) -> None:
    """bare: aiohttp and `gather`, streamed like ours; whole: the same without streaming; own: our transport alone.

    again: ours after a small run in the same process, so without what the first run imports and compiles.
    """
    print("\n| job | bare s | ours s | times | again s | times | CPU ms/task: bare | whole | own | ours | again | MB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for tasks in JOBS[kind]:
        found = compare(base, kind, tasks, rounds if tasks <= 500 else max(rounds // 2, 1))
        bare, ours, again = found["bare"], found["ours"], found["again"]
        cpu = {name: each["cpu_ms_per_task"] for name, each in found.items()}
        times = [f"{each['wall_s']:.3f} | {each['wall_s'] / bare['wall_s']:.2f}" for each in (ours, again)]
        more = {name: f"{cpu[name]:.2f} ({cpu[name] - cpu['bare']:+.2f})" for name in ("ours", "again")}
        print(
            f"| {kind} of {tasks:,} | {bare['wall_s']:.3f} | {' | '.join(times)} | {cpu['bare']:.2f} "
            f"| {cpu['whole']:.2f} | {cpu['own']:.2f} | {more['ours']} | {more['again']} | {ours['peak_mb']:.0f} |",
            flush=True,
        )


def many(base: str, rounds: int) -> None:
    found = median([once("bench.many", base, "runs", 200) for _ in range(rounds)])
    ratio = found["together_cpu_ms"] / found["alone_cpu_ms"]
    print(
        f"\n200 runs of 5 tasks at once: longest stall of the loop {found['stall_ms']:.0f} ms, of it CPU "
        f"{found['stall_cpu_ms']:.0f} ms; CPU a task {found['together_cpu_ms']:.2f} ms, {ratio:.2f} times one run's.",
        flush=True,
    )


def chains(base: str, rounds: int) -> None:
    run = median([once("bench.ours", base, "chains", 4) for _ in range(rounds)])
    # The synthesis call comes after the chains.
    print(f"\nTwo chains 1.0+0.1 s and 0.1+1.0 s: {run['wall_s'] - 0.2:.3f} s, ideal 1.1 s.", flush=True)


def reconcile(rounds: int) -> None:
    """No provider in it: merging findings and grouping statements are code."""
    print("\n| items | number | CPU s | CPU ms each | peak MB |")
    print("|---|---|---|---|---|")
    for kind in ("mixed", "equal", "words", "place", "claims"):
        for number in (500, 5_000, 50_000):
            runs = [once("bench.reconcile", "-", kind, number) for _ in range(rounds if number < 50_000 else 1)]
            each, peak = median(runs)["cpu_ms_per_task"], median(runs)["peak_mb"]
            print(f"| {kind} | {number:,} | {each * number / 1000:.2f} | {each:.3f} | {peak:.0f} |", flush=True)


def help_time() -> None:
    """A new process each time, ours and the yardstick in turns."""

    def seconds(command: list[str]) -> float:
        began = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began

    chargehand = str(Path(sys.executable).with_name("chargehand"))
    base: list[float] = []
    ours: list[float] = []
    for _ in range(HELP_RUNS):
        base.append(seconds([sys.executable, "-c", "import argparse, json, sqlite3"]))
        ours.append(seconds([chargehand, "--help"]))
    median_ms, ratio = statistics.median(ours) * 1000, statistics.median(ours) / statistics.median(base)
    print(f"\n`chargehand --help`: {median_ms:.0f} ms, {ratio:.2f} x python with three stdlib imports.")


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--only", choices=["fan", "tools", "many", "chains", "reconcile", "factory", "review", "startup", "help"]
    )
    arguments = parser.parse_args()
    git = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or "none"
    python = platform.python_version()
    print(f"commit {commit}, Python {python}, {os.cpu_count()} cores, median of {arguments.rounds}")
    with provider() as base:
        for kind in JOBS:
            if arguments.only in (None, kind):
                compare_with_bare(base, kind, arguments.rounds)
        if arguments.only in (None, "many"):
            many(base, arguments.rounds)
        if arguments.only in (None, "chains"):
            chains(base, arguments.rounds)
    if arguments.only in (None, "reconcile"):
        reconcile(arguments.rounds)
    if arguments.only in (None, "factory"):
        command = [sys.executable, "-m", "bench.factory", str(20 * arguments.rounds)]
        subprocess.run(command, cwd=ROOT, check=True)
    if arguments.only in (None, "review"):
        subprocess.run([sys.executable, "-m", "bench.review"], cwd=ROOT, check=True)
    if arguments.only in (None, "startup"):
        subprocess.run([sys.executable, "-m", "bench.startup", str(3 * arguments.rounds)], cwd=ROOT, check=True)
    if arguments.only in (None, "help"):
        help_time()


if __name__ == "__main__":
    main()
