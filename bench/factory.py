"""Ten tasks by ten workers the plan defines, against the same ten in the team: CPU time of whole runs, in turns.

    python -m bench.factory [ROUNDS]

No provider in it: the model is a script in memory, so that nothing but chargehand's own work is measured. The record is
on disk on both sides.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import tempfile
import time
from typing import Any

from chargehand import Supervisor, Team, Worker
from chargehand.models.scripted import ScriptedModel

TASKS = 10
MOST = 0.02
REPLIES: list[dict[str, Any]] = [
    {
        "when": {"role": "synthesizer"},
        "reply": {"json": {"answer": "All. " + " ".join(f"[t{n}]" for n in range(TASKS))}},
    },
    {"when": {"role": "worker"}, "reply": {"json": {"summary": "Found.", "output": "A figure.", "confidence": 80}}},
]
SPECS = [
    {"name": f"clerk{n}", "description": f"Looks figures of part {n} up", "prompt": f"You look part {n} up.",
     "tools": ["calculate"], "tier": "medium"}
    for n in range(TASKS)
]  # fmt: skip


def plan(*, dynamic: bool) -> dict[str, Any]:
    fields = {"instruction": "Look the figure of this part up.", "success_criterion": "A figure.", "depends_on": []}
    tasks = [{"id": f"t{n}", "worker": f"clerk{n}", **fields} for n in range(TASKS)]
    return {"goal": "Figures", "tasks": tasks, **({"workers": SPECS} if dynamic else {})}


def team(*, dynamic: bool) -> Team:
    if dynamic:
        return Team([Worker("lead", "Leads")], factory_tools=["calculate"])
    specs = [(str(s["name"]), str(s["description"]), str(s["prompt"])) for s in SPECS]
    workers = [Worker(name, about, prompt=prompt, tools=["calculate"], tier="medium") for name, about, prompt in specs]
    return Team([Worker("lead", "Leads"), *workers], shared_tools=["calculate"])


def once(home: str, *, dynamic: bool) -> float:
    """CPU seconds of one run, from a team and a plan as data."""
    supervisor = Supervisor(team(dynamic=dynamic), model=ScriptedModel(REPLIES), home=home)
    began = time.process_time()
    report = asyncio.run(supervisor.run("Look the figures up", plan=plan(dynamic=dynamic)))
    took = time.process_time() - began
    assert report.status == "complete", report.answer
    assert [outcome.worker for outcome in report.outcomes] == [spec["name"] for spec in SPECS]
    return took


def overhead(rounds: int) -> tuple[float, float, float]:
    """Median CPU milliseconds of a run with a static and with a dynamic roster, and the share the latter is more."""
    static: list[float] = []
    dynamic: list[float] = []
    with tempfile.TemporaryDirectory() as home:
        once(home, dynamic=False)
        once(home, dynamic=True)
        for number in range(rounds):
            gc.collect()
            # In turns, and in either order: who comes second finds caches warm.
            for side in (False, True) if number % 2 else (True, False):
                (dynamic if side else static).append(once(home, dynamic=side))
    pairs = [more / base - 1 for base, more in zip(static, dynamic, strict=True)]
    return statistics.median(static) * 1000, statistics.median(dynamic) * 1000, statistics.median(pairs)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    static, dynamic, more = overhead(rounds)
    kept = "kept" if more <= MOST else "not kept"
    print(f"{TASKS} tasks, {rounds} rounds: static {static:.2f} ms CPU, dynamic {dynamic:.2f} ms, {more:+.1%} ({kept})")


if __name__ == "__main__":
    main()
