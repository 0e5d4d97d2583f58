"""The provider of `python -m bench` with a fault: BENCH_FAULT is a status that t7 is always answered with, or `slow`.

`slow`: tasks with an even number are answered after SLOW_S, so that a process can be killed between the two halves.
BENCH_LOG is a file that gets a line for each call.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace

from bench.peers.job import headers
from bench.provider import answer as usual_answer
from tests.loopback import Answer, Seen, error

FAULT = os.environ.get("BENCH_FAULT", "")
LOG = os.environ.get("BENCH_LOG", "")
FAILING = "t7"
SLOW_S = 4.0


def answer(seen: Seen) -> Answer:
    seen = seen if seen.role or seen.task else mark_by_text(seen)
    if LOG:
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(json.dumps({"role": seen.role, "task": seen.task}) + "\n")
    if seen.role in ("worker", "") and seen.task == FAILING and FAULT.isdigit():
        return error(int(FAULT), "this one is not answered")
    if seen.role == "planner" and "a gap\n" in seen.text:
        return Answer(text=json.dumps({"tasks": []}), delay=0.2)
    if seen.role in ("refiner", "scorer"):
        return Answer(text="{}", delay=0.2)
    said = usual_answer(seen)
    if FAULT == "slow" and seen.role == "worker" and int(seen.task[1:]) % 2 == 0:
        return replace(said, delay=SLOW_S)
    return said


def mark_by_text(seen: Seen) -> Seen:
    """Role and task of a call by a library that sets no headers for one call: a task has its number in its text."""
    if number := re.search(r"Look up figure number (\d+)", seen.text):
        marks = headers("worker", f"t{number[1]}")
    else:
        marks = headers("planner" if "a fan of" in seen.text else "synthesizer")
    return replace(seen, headers=seen.headers | {name.lower(): value for name, value in marks.items()})
