"""The provider of `python -m bench` with a fault: BENCH_FAULT is a status that t7 is always answered with, or `slow`.

`slow`: tasks with an even number are answered after SLOW_S, so that a process can be killed between the two halves.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace

from bench.provider import answer as usual_answer
from tests.loopback import Answer, Seen, error

FAULT = os.environ.get("BENCH_FAULT", "")
FAILING = "t7"
SLOW_S = 4.0


def answer(seen: Seen) -> Answer:
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
