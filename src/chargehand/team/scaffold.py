"""A name -> a new team folder that passes `check`, `pytest` and `eval` on its own script; nothing is overwritten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chargehand.errors import UsageError
from chargehand.team.team_folder import shipped_teams
from chargehand.values.plan import WORKER_NAME

REQUEST = "Which of the three offers is cheapest over 36 months?"
MATERIAL = "examples/material"

_TOML = """# A team: what it is for and its limits. `chargehand schema team` prints all keys, for editors too.
name = "{name}"
description = "Compares offers: reads each one, computes what it costs, recommends one."

[supervisor]
mode = "plan"            # "route" hands each request to one or two workers, without a plan
# default = "reader"     # gets the requests that fit no other worker

# [[routes]]             # tried before the router, in order
# match = ["invoice", "refund"]
# worker = "reader"

[synthesis]
instruction = "Name the cheapest offer in the first sentence, then all totals, and cite the tasks."

[limits]
max_concurrent = 4
"""
_READER = """---
name: reader
description: Reads one offer and returns its prices with file and line. Does not compute. Give it one offer a task.
tools: read_file, search_files, list_files
tier: small
---
You read one offer. Return the price a month and the price of setting it up exactly as written, each with file and line.
If a price is missing, say so; do not guess.
If the task asks for something else than what an offer says, escalate it as out_of_scope.
"""
_PRICER = """---
name: pricer
description: Computes what offers cost from prices given by the tasks it depends on. Cannot open files.
tools: total_cost
tier: medium
---
You compute prices. Use `total_cost` for every figure, and give the figures it was computed from.
If a price you need was not found, say which one, and leave that offer out of the comparison.
"""
_TOOLS = '''"""The tools of this team: typed functions. A worker has those that its file lists."""

from chargehand import tool


@tool(effect="read")
def total_cost(monthly_eur: float, setup_eur: float, months: int) -> float:
    """What an offer costs in all.

    Args:
        monthly_eur: the price a month
        setup_eur: what is paid once, at the beginning
        months: how long it runs
    """
    return round(monthly_eur * months + setup_eur, 2)
'''
_TEST = '''"""The team on its script: no key and no network."""

from pathlib import Path

from chargehand import Supervisor
from chargehand.testing import ScriptedModel, load_team

FOLDER = Path(__file__).parent
REQUEST = "{request}"


def test_the_offers_are_read_in_parallel_and_the_cheapest_is_named(tmp_path: Path) -> None:
    model = ScriptedModel.load(FOLDER / "script.json")
    supervisor = Supervisor(load_team(FOLDER), model=model, home=tmp_path)
    report = supervisor.run_sync(REQUEST, material=[FOLDER / "{material}"])
    assert (report.status, report.strategy) == ("complete", "hybrid")
    assert "South" in report.answer
    # The tool computed it, and the model was given its result.
    assert any("1264" in message.text for call, _ in model.calls for message in call.messages)
'''
# Name -> price a month, price of setting it up.
_OFFERS = {"north": (39, 0), "south": (34, 40), "west": (36, 120)}


def new_team(folder: Path) -> list[Path]:
    """Write the team and return its files. UsageError if the name is not valid or the folder is not empty."""
    name = folder.resolve().name
    if not WORKER_NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be the name of a team: use letters, digits, '-', '_' and '.'.")
    if name in shipped_teams():
        raise UsageError(f"A shipped team is called {name}: `--team {name}` would use that one. Choose another name.")
    files = {
        "team.toml": _TOML.format(name=name),
        "workers/reader.md": _READER,
        "workers/pricer.md": _PRICER,
        "tools.py": _TOOLS,
        f"test_{name.replace('-', '_').replace('.', '_')}.py": _TEST.format(request=REQUEST, material=MATERIAL),
        **{f"{MATERIAL}/{offer}.md": _offer(offer) for offer in _OFFERS},
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


_EVAL = {
    "kind": "run",
    "request": REQUEST,
    "with": [MATERIAL],
    "expect": {"status": "complete", "contains": ["South", "1,264"], "cites": ["totals"]},
}


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _offer(name: str) -> str:
    monthly, setup = _OFFERS[name]
    once = f"Setting it up costs {setup} EUR, once." if setup else "Setting it up is free."
    return f"# Offer of {name.title()}\n\nThe service costs {monthly} EUR a month.\n{once}\n"


def _plan() -> dict[str, Any]:
    readers: list[dict[str, Any]] = [
        {
            "id": offer,
            "worker": "reader",
            "instruction": f"Find the price a month and the price of setting it up in material/{offer}.md.",
            "success_criterion": "Both prices with unit, file and line.",
            "depends_on": [],
        }
        for offer in _OFFERS
    ]
    totals = {
        "id": "totals",
        "worker": "pricer",
        "instruction": "Compute what each of the three offers costs over 36 months, and name the cheapest.",
        "success_criterion": "Three totals in EUR and the cheapest offer.",
        "depends_on": list(_OFFERS),
    }
    return {
        "goal": "The cheapest of three offers over 36 months",
        "tasks": [*readers, totals],
        "synthesis": {"mode": "merge", "instruction": "The cheapest first, then all three totals."},
    }


def _script() -> dict[str, Any]:
    """What a model could answer, so that the team runs before there is a key."""
    rules = [_rule({"role": "planner", "contains": f"Request\n{REQUEST}"}, {"json": _plan()})]
    for offer, (monthly, setup) in _OFFERS.items():
        said = f"{offer.title()} costs {monthly} EUR a month and {setup} EUR once."
        source = f"material/{offer}.md:3"
        found = {offer: {"monthly_eur": monthly, "setup_eur": setup}}
        rules.append(_rule({"task": offer}, {"json": _result(said, found, source)}))
    totals = {offer: monthly * 36 + setup for offer, (monthly, setup) in _OFFERS.items()}
    listed = ", ".join(f"{offer.title()} {total:,} EUR" for offer, total in totals.items())
    calls = [
        {"name": "total_cost", "arguments": {"monthly_eur": monthly, "setup_eur": setup, "months": 36}}
        for monthly, setup in _OFFERS.values()
    ]
    # The result of the tool in the prompt decides: first the tool is called, then it is answered.
    cheapest = str(min(totals.values()))
    rules += [
        _rule({"task": "totals", "contains": cheapest}, {"json": _result(f"Over 36 months: {listed}.", totals)}),
        _rule({"task": "totals"}, {"tool_calls": calls}),
        _rule({"role": "judge"}, {"json": {"contradictions": []}}),
        _rule(
            {"role": "synthesizer"},
            {"text": f"South is cheapest over 36 months: {listed} [north, south, west, totals].\n"},
        ),
    ]
    return {"replies": rules}


def _rule(when: dict[str, str], reply: dict[str, Any]) -> dict[str, Any]:
    return {"when": when, "reply": reply}


def _result(said: str, output: Any, *sources: str) -> dict[str, Any]:
    claim = {"statement": said, "confidence": 90, "sources": list(sources)}
    return {"summary": said, "output": output, "claims": [claim], "findings": [], "confidence": 90}
