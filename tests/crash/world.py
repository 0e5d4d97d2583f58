"""The world crash tests run in: plan shapes, a team whose tools keep a ledger, and a provider that is a function.

Every answer carries a mark, the hash of all texts of its request. A run that differs anywhere so ends in another
answer, and a committed reply can be found again among the requests the provider saw.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.loopback import Answer, Seen, answer_json

Wire = Literal["openai", "anthropic"]

# What the provider saw: one line of JSON a request, written before it is answered.
SEEN = "CRASH_SEEN"
# What the tools did: one line a call, written in the middle of it.
LEDGER = "CRASH_LEDGER"
# Stretches the provider's delays, for tests that need a run to stay under way.
SLOWNESS = "CRASH_SLOWNESS"

MARK = re.compile(r"<([0-9a-f]{16})>")
_DO = re.compile(r"\[do ([^\]]*)\]")
_SHAPE = re.compile(r"shape (\w+)")


@dataclass(frozen=True)
class Shape:
    """A plan by name: tasks as `id: (what it does with tools, dependencies)`."""

    tasks: dict[str, tuple[str, tuple[str, ...]]]
    tokens: int | None = None

    def plan(self) -> dict[str, Any]:
        return {"goal": "Survive", "tasks": [self._task(id, do, needs) for id, (do, needs) in self.tasks.items()]}

    @staticmethod
    def _task(id: str, do: str, needs: tuple[str, ...]) -> dict[str, Any]:
        return {
            "id": id,
            # What is to be done in a shape of its own is a team's.
            "worker": "crew" if _SHAPE.match(do) else "clerk" if do else "writer",
            "instruction": f"Write the part called {id} from what it depends on." + (f" [do {do}]" if do else ""),
            "success_criterion": f"The part called {id} is written.",
            "depends_on": list(needs),
        }


def _plain(**needs: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {id: ("", tuple(names.split())) for id, names in needs.items()}


SHAPES = {
    "fan": Shape(_plain(**{f"t{n}": "" for n in range(1, 13)})),
    # Output is clamped, to another figure for each call: a repeat must ask for the recorded one. What 12 calls reserve
    # is most of the budget, and only the two in flight may count as spent when it is killed.
    "clamped": Shape(_plain(**{f"t{n}": "" for n in range(1, 13)}), tokens=60_000),
    "chain": Shape(_plain(a="", b="a", c="b", d="c", e="d")),
    "diamond": Shape(_plain(a="", b="a", c="a", d="b c")),
    "chains": Shape(_plain(a1="", a2="a1", a3="a2", b1="", b2="b1", b3="b2")),
    # Steps are separated by `;`, calls of one step by `+`.
    "tools": Shape(
        {
            "r1": ("look alpha + look beta; look gamma", ()),
            "i1": ("put one; put two + look two", ()),
            "r2": ("look delta", ("r1",)),
            "end": ("", ("r2", "i1")),
        }
    ),
    # A team within the team, and one within that: most of the run is inside of them.
    "nested": Shape({"n1": ("shape inner", ()), "n2": ("shape other", ()), "end": ("", ("n1", "n2"))}),
    "inner": Shape({"a": ("", ()), "b": ("look deep", ("a",)), "c": ("shape small", ("a",))}),
    "small": Shape({"p": ("put low", ()), "q": ("", ("p",))}),
    "other": Shape({"v": ("put high", ()), "w": ("look wide", ())}),
    "once": Shape(
        {
            "o1": ("send first", ()),
            "o2": ("send second + send third; look after", ()),
            "o3": ("send fourth", ("o1",)),
            "free": ("", ()),
        }
    ),
}

# The teams within are made of the same workers; the innermost has none within.
CREW = "---\nname: crew\ndescription: A team of its own\nkind: delegate\nteam: {}\n---\nIt is yours.\n"
TEAM = {
    "workers/crew.md": CREW.format("inner"),
    "inner/team.toml": 'name = "inner"\ndescription = "Works inside."\n',
    "inner/workers/crew.md": CREW.format("small"),
    "inner/small/team.toml": 'name = "small"\ndescription = "Works inside of that."\n',
    "team.toml": 'name = "crash"\ndescription = "Works on the record."\n',
    "workers/writer.md": "---\nname: writer\ndescription: Writes\ntools: []\n---\nWrite what you are asked for.\n",
    "workers/clerk.md": (
        "---\nname: clerk\ndescription: Uses tools\ntools: look, put, send\n---\nUse your tools as you are told.\n"
    ),
    "tools.py": f'''"""Tools of each effect; each call is one line in the ledger."""
import os
import time

from chargehand import tool


def _enter(line: str) -> None:
    # Time on both sides, as real work has it: a kill can come before and after the deed.
    time.sleep(0.008)
    handle = os.open(os.environ["{LEDGER}"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, (line + "\\n").encode())
    os.close(handle)
    time.sleep(0.008)


@tool(effect="read")
def look(what: str) -> str:
    """Look something up."""
    _enter(f"look {{what}}")
    return f"{{what}} was seen"


@tool(effect="idempotent")
def put(what: str) -> str:
    """Put something down."""
    _enter(f"put {{what}}")
    return f"{{what}} is there"


@tool(effect="once")
def send(what: str) -> str:
    """Send something."""
    _enter(f"send {{what}}")
    return f"{{what}} was sent"
''',
}


def make_team(folder: Path) -> Path:
    inside = {f"{inner}/{name}": TEAM[name] for inner in ("inner", "inner/small") for name in _SHARED}
    for name, text in {**TEAM, **inside}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


# `send` stays where it is in doubt by name: one ledger, one team.
_SHARED = ("workers/writer.md", "workers/clerk.md", "tools.py")


def mark(seen: Seen) -> str:
    return hashlib.sha256(seen.text.encode()).hexdigest()[:16]


def answer(seen: Seen) -> Answer:
    """The provider: the same request always gets the same answer, after the same few milliseconds."""
    name = mark(seen)
    _note(seen, name)
    delay = (8 + int(name, 16) % 24) / 1000 * float(os.environ.get(SLOWNESS, "1"))
    match seen.role:
        case "planner":
            return answer_json({**_shape(seen).plan(), "goal": f"Survive <{name}>"}, delay=delay)
        case "synthesizer":
            cited = " ".join(f"[{id}]" for id in _shape(seen).tasks)
            return answer_json({"answer": f"All of it <{name}> {cited}.", "confidence": 70}, delay=delay)
        case "judge":
            return answer_json({"contradictions": [], "note": f"None <{name}>"}, delay=delay)
        case _:
            return answer_worker(seen, name, delay)


def answer_worker(seen: Seen, name: str, delay: float) -> Answer:
    """The next step of what the instruction says to do; after the last one the result."""
    told = _DO.search(seen.text)
    steps = told[1].split(";") if told else []
    taken = sum(message["role"] == "assistant" for message in seen.body["messages"])
    if taken < len(steps):
        calls = [call.split() for call in steps[taken].split("+")]
        tools = tuple((tool, {"what": what}) for tool, what in calls)
        return Answer(text=f"Step {taken + 1} <{name}>", tools=tools, delay=delay)
    result = {"summary": f"{seen.task} is written <{name}>", "output": {"part": seen.task}, "confidence": 80}
    return answer_json(result, delay=delay)


def _shape(seen: Seen) -> Shape:
    """The shape of the request this is about: a team within is asked for its own before anything else is told."""
    found = _SHAPE.search(seen.text)
    assert found, seen.text
    return SHAPES[found[1]]


def _note(seen: Seen, name: str) -> None:
    line = {
        "run": seen.headers["x-chargehand-run"],
        "role": seen.role,
        "key": seen.key,
        "mark": name,
        "body": hashlib.sha256(seen.raw).hexdigest(),
    }
    with open(os.environ[SEEN], "a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")
