"""A script's `run` -> one line of JSON: time, CPU, memory, how it ended, how many results there are.

Every script of this folder that is called like a library runs in that library's environment: nothing but the standard
library may be imported here.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

# As in bench/provider.py.
MODEL = "gpt-4.1"
CLERK = "You are a clerk. You look figures up."


@dataclass(frozen=True)
class Job:
    """A plan, so many tasks at once, one synthesis. What is kept goes into the folder; a second run continues there."""

    base: str
    tasks: int
    folder: Path

    @property
    def request(self) -> str:
        return f"Look up the figures: a fan of {self.tasks}"


class Incomplete(Exception):
    """The run ended without all of its results; `results` says how many there are."""

    def __init__(self, how: str, results: int) -> None:
        super().__init__(how)
        self.results = results


def headers(role: str, task: str = "") -> dict[str, str]:
    """What the provider on loopback goes by."""
    return {"X-Chargehand-Role": role, "X-Chargehand-Task": task}


def measure(run: Callable[[Job], Awaitable[int]]) -> None:
    """Run the job of the command line and print what it took. `run` gives the number of results, or raises."""
    job = Job(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    ended, results = "complete", 0
    try:
        results = asyncio.run(run(job))
    except Incomplete as error:
        ended, results = str(error), error.results
    except Exception as error:  # noqa: BLE001 -- how a library fails is what is asked
        ended = f"raises {type(error).__name__}"
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {"wall_s": wall, "cpu_ms_per_task": cpu * 1000 / job.tasks, "peak_mb": peak}
    print(json.dumps({**figures, "ended": ended, "results": results}))
