"""A name -> a new team folder that passes `check` and runs on its own script; nothing is overwritten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chargehand.errors import UsageError
from chargehand.values.plan import WORKER_NAME

REQUEST = "Describe the river Thames in two sentences, with its length."

_TOML = """# A team: what it is for and its limits. `chargehand schema team` prints all keys, for editors too.
name = "{name}"
description = "Say in one sentence what requests this team is for."

[supervisor]
mode = "plan"            # "route" hands each request to one or two workers, without a plan
# default = "writer"     # gets the requests that fit no other worker

# [[routes]]             # tried before the router, in order
# match = ["invoice", "refund"]
# worker = "writer"

[synthesis]
instruction = "Answer in a few plain sentences, and cite the tasks."

[limits]
max_concurrent = 4
"""
_RESEARCHER = """---
name: researcher
description: Looks facts and figures up in the material of the request, and works figures out. Writes no prose.
tools: read_file, search_files, list_files, calculate
tier: medium
---
You find facts. For each one give its file and line, and how sure you are.
If the material does not say it, say so: never fill a gap from memory without marking it.
If the task asks for something else than facts, escalate it as out_of_scope.
"""
_WRITER = """---
name: writer
description: Writes short texts from facts it is given. Adds no facts of its own.
tier: medium
---
You write plain, short prose from the results you are given. Keep every figure and unit as it is.
If a fact you need is missing, say which one instead of leaving it out.
"""


def new_team(folder: Path) -> list[Path]:
    """Write the team and return its files. UsageError if the name is not valid or the folder is not empty."""
    name = folder.resolve().name
    if not WORKER_NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be the name of a team: use letters, digits, '-', '_' and '.'.")
    files = {
        "team.toml": _TOML.format(name=name),
        "workers/researcher.md": _RESEARCHER,
        "workers/writer.md": _WRITER,
        "examples/plan.json": _json({"request": REQUEST, "plan": _plan()}),
        "evals/first.jsonl": json.dumps(_EVAL) + "\n",
        "script.json": _json(_script()),
    }
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} exists already: name a folder that is new or empty.")
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}. Name a folder you may write to.") from None
    return [folder / path for path in files]


_EVAL = {"kind": "run", "request": REQUEST, "expect": {"status": "complete", "contains": "346", "cites": ["t2"]}}


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _plan() -> dict[str, Any]:
    return {
        "goal": "Two sentences about the Thames",
        "tasks": [
            {
                "id": "t1",
                "worker": "researcher",
                "instruction": "Find the length of the river Thames in kilometres, where it rises and where it ends.",
                "success_criterion": "Length with its unit, source and mouth.",
                "depends_on": [],
            },
            {
                "id": "t2",
                "worker": "writer",
                "instruction": "Write two sentences about the river Thames from the facts found; give its length.",
                "success_criterion": "Two sentences with the length.",
                "depends_on": ["t1"],
            },
        ],
        "synthesis": {"mode": "merge", "instruction": "Give the two sentences as they are."},
    }


def _script() -> dict[str, Any]:
    """What a model could answer, so that the team runs before there is a key."""
    facts = "346 km long, from Thames Head to the North Sea"
    text = "The Thames is 346 km long. It rises at Thames Head and ends in the North Sea."
    answers: list[tuple[dict[str, str], dict[str, Any]]] = [
        ({"role": "planner"}, _plan()),
        ({"role": "worker", "worker": "researcher"}, _result("Length, source and mouth.", facts)),
        ({"role": "worker", "worker": "writer"}, _result("Two sentences with the length.", text)),
        ({"role": "synthesizer"}, {"answer": f"{text} [t1, t2]", "confidence": 80}),
        ({"role": "judge"}, {"verdict": "both", "reason": "They say the same.", "confidence": 90}),
    ]
    return {"replies": [{"when": when, "reply": {"json": reply}} for when, reply in answers]}


def _result(summary: str, output: str) -> dict[str, Any]:
    return {"summary": summary, "output": output, "claims": [], "findings": [], "confidence": 80}
