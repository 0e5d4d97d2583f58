"""The world of runs whose workers and server are killed: plans of many shapes, and a provider that is a function.

As in the world of the crash tests, every answer carries the hash of all texts of its request: a run that differs
anywhere ends in another answer. The team and its ledger are theirs, with a person added.
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash import world
from tests.crash.world import SEEN, SLOWNESS, mark
from tests.loopback import Answer, Seen, answer_json, error

# What a person says to the question of the shape `people`.
GRANTED = "It is granted."
_CANDIDATE = re.compile(r"Result (\d+)(.*?)(?=Result \d+|\Z)", re.DOTALL)


def _task(id: str, *needs: str, worker: str = "writer", do: str = "", **fields: Any) -> dict[str, Any]:
    return {
        "id": id,
        "worker": worker,
        "instruction": f"Write the part called {id} from what it depends on. {do}",
        "success_criterion": f"The part called {id} is written.",
        "depends_on": list(needs),
        **fields,
    }


@dataclass(frozen=True)
class Job:
    """What is run: a plan, given or made by the planner, and the options of the command."""

    tasks: tuple[dict[str, Any], ...]
    given: bool = True
    options: tuple[str, ...] = ()
    synthesis: dict[str, str] = field(default_factory=dict[str, str])
    # Whether the clock decides what comes of it, so that two runs need not be equal.
    timed: bool = False

    @property
    def plan(self) -> dict[str, Any]:
        plan: dict[str, Any] = {"goal": "Survive", "tasks": list(self.tasks)}
        return {**plan, "synthesis": self.synthesis} if self.synthesis else plan


def _known(shape: str, *, given: bool) -> Job:
    return Job(tuple(world.SHAPES[shape].plan()["tasks"]), given)


JOBS: dict[str, Job] = {
    **{shape: _known(shape, given=True) for shape in ("fan", "tools", "once", "nested")},
    "chain": _known("chain", given=False),
    "diamond": _known("diamond", given=False),
    "people": Job((_task("a"), _task("b", "a", worker="boss"), _task("c", "b"), _task("d")), options=("--ask",)),
    # No result until a model has put it in other words.
    "ladder": Job((_task("a", do="[vague]"), _task("b", "a"), _task("c"))),
    # What `a` cannot do, another task that the planner adds can.
    "extension": Job((_task("a", do="[refused]"), _task("b"), _task("c", "b")), given=False),
    # Too much for one call: the planner makes two parts of it.
    "split": Job((_task("a", do="[long]"), _task("b", "a"), _task("c")), given=False),
    "best": Job((_task("a", best_of=3), _task("b", "a"), _task("c", best_of=2))),
    "select": Job(
        (_task("a"), _task("b"), _task("c")), synthesis={"mode": "select", "instruction": "The part called b."}
    ),
    "reduce": Job(
        tuple(_task(f"t{n}") for n in range(1, 13)), synthesis={"mode": "reduce", "instruction": "All of it."}
    ),
    "deadline": Job((_task("a"), _task("b", do="[hang]"), _task("c", "b"), _task("d", "a")), timed=True),
}


def make_team(folder: Path) -> Path:
    world.make_team(folder)
    boss = "---\nname: boss\ndescription: A person who grants things\nkind: human\n---\nGrant it.\n"
    (folder / "workers" / "boss.md").write_text(boss, encoding="utf-8")
    return folder


def answer(seen: Seen) -> Answer:
    """The provider: the same request always gets the same answer, after the same time."""
    name, text = mark(seen), seen.text
    _note(seen)
    delay = (8 + int(name, 16) % 24) / 1000 * float(os.environ.get(SLOWNESS, "1"))
    match seen.role:
        case "planner":
            return answer_json(_plan(seen, name), delay=delay)
        case "synthesizer":
            cited = " ".join(f"[{id}]" for id in dict.fromkeys(re.findall(r"^Task (\S+), by ", text, re.MULTILINE)))
            return answer_json({"answer": f"All of it <{name}> {cited}.", "confidence": 70}, delay=delay)
        case "refiner":
            return answer_json({"instruction": f"Write the part in CLEAR words <{name}>."}, delay=delay)
        case "judge" if "did the same task" in text:
            return answer_json(_choose(text), delay=delay)
        case "judge":
            return answer_json({"contradictions": [], "note": f"None <{name}>"}, delay=delay)
        case _ if "[hang]" in text and "called b " in text:
            return Answer(silent=True)
        case _ if "[vague]" in text and "CLEAR" not in text:
            return Answer(text=f"I do not know <{name}>", delay=delay)
        case _ if "[refused]" in text:
            return error(400, "The model refuses it.", code="invalid_request_error")
        case _ if "[long]" in text and ".s." not in seen.task:
            return error(400, "The prompt is too long.", code="context_length_exceeded")
        case _:
            return world.answer_worker(seen, name, delay)


def _plan(seen: Seen, name: str) -> dict[str, Any]:
    if "You split one task" in seen.text:
        return {"tasks": [_task("p1"), _task("p2", "p1")]}
    if "something is missing" in seen.text:
        return {"tasks": [_task("n1", replaces=["a"])]}
    found = re.search(r"shape (\w+)", seen.text)
    assert found, seen.text
    plan = JOBS[found[1]].plan if found[1] in JOBS else world.SHAPES[found[1]].plan()
    return {**plan, "goal": f"Survive <{name}>"}


def _choose(text: str) -> dict[str, Any]:
    """The candidate with the part called b, or else the one whose text is first in order: wherever it is shown."""
    shown = _CANDIDATE.findall(text)
    best = min(shown, key=lambda each: ('"b"' not in each[1], each[1]))[0]
    scores = [{"candidate": int(at), "score": 90 if at == best else 40} for at, _ in shown]
    return {"scores": scores, "best": int(best), "reason": "It says most."}


def _note(seen: Seen) -> None:
    line = {"at": time.time(), "run": seen.headers["x-chargehand-run"], "task": seen.task, "key": seen.key}
    with open(os.environ[SEEN], "a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")
