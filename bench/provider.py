"""The provider both sides call: plans a fan of N tasks, answers each worker, writes the synthesis, 200 ms a call."""

from __future__ import annotations

import json
import re

from tests.loopback import Answer, Seen

DELAY_S = 0.2
# One whose window holds the outcomes of all tasks: the job is one synthesis call, not a tree of them.
MODEL = "gpt-4.1"
_ANSWER = json.dumps(
    {
        "summary": "The figure was looked up in the register and checked against last year's.",
        "output": "42 units, up from 40; the register gives both figures on one page.",
        "claims": [{"statement": "There are 42 units.", "confidence": 90, "sources": ["register.txt:12"]}],
        "findings": [],
        "confidence": 90,
    }
)


def plan(tasks: int) -> dict[str, object]:
    return {
        "goal": "Look the figures up",
        "tasks": [
            {
                "id": f"t{n}",
                "worker": "clerk",
                "instruction": f"Look up figure number {n} in the register and compare it with last year's.",
                "context": "",
                "success_criterion": "Both figures are given with their page.",
                "depends_on": [],
            }
            for n in range(1, tasks + 1)
        ],
        "synthesis": {"mode": "merge", "instruction": "One paragraph."},
    }


def chains() -> dict[str, object]:
    """Two chains whose slow halves are in different places: waves take 2.0 s, dataflow 1.1 s."""
    edges = {"a1": [], "a2": ["a1"], "b1": [], "b2": ["b1"]}
    task = {"worker": "clerk", "context": "", "success_criterion": "It is done."}
    return {
        "goal": "Two chains",
        "tasks": [
            task | {"id": id, "instruction": f"Do the part {id} of the work.", "depends_on": d}
            for id, d in edges.items()
        ],
        "synthesis": {"mode": "merge", "instruction": ""},
    }


CHAIN_DELAYS = {"a1": 1.0, "a2": 0.1, "b1": 0.1, "b2": 1.0}


def answer(seen: Seen) -> Answer:
    match seen.role:
        case "planner":
            tasks = int(re.findall(r"fan of (\d+)", seen.text)[-1])
            return Answer(text=json.dumps(plan(tasks)), delay=DELAY_S)
        case "synthesizer":
            found = re.search(r"Task (\w+), by", seen.text)
            first = found[1] if found else "t1"
            text = json.dumps(
                {"answer": f"There are 42 units [{first}].", "contradictions": [], "gaps": [], "confidence": 90}
            )
            return Answer(text=text, delay=DELAY_S)
        case _:
            if seen.task in CHAIN_DELAYS:
                return Answer(text=_ANSWER, delay=CHAIN_DELAYS[seen.task])
            turns = len(seen.body["messages"])
            if "two tools" in seen.body["messages"][0]["content"] and turns < 6:
                return Answer(tools=(("calculate", {"expression": f"40 + {turns}"}),), delay=DELAY_S)
            return Answer(text=_ANSWER, delay=DELAY_S)
