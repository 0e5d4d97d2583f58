"""Whole runs on virtual time for tests of recovery: a team, a plan or a planner, and a model made of a function."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from chargehand.events import Event
from chargehand.models import Attribution
from chargehand.models.resolve import Models
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.record.replay import replay
from chargehand.runs.make_steps import RunJob
from chargehand.runs.session import Session
from chargehand.settings import Settings
from chargehand.team import Team, Worker
from chargehand.testing import run_virtual
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, TokenCount, ToolRequest
from chargehand.values.outcome import Outcome
from chargehand.values.plan import Plan, Task
from chargehand.values.report import Report
from chargehand.values.request import Request
from tests.kernel import FunctionModel, result, stored

Said = str | dict[str, Any] | Reply | Exception
Talk = Callable[[ModelCall, Attribution], Said | Awaitable[Said]]
TIERS = {"small": "scripted:small", "medium": "scripted:medium", "large": "scripted:large"}


def task(id: str, *depends_on: str, worker: str = "clerk", **fields: Any) -> Task:
    return Task(
        id=id, worker=worker, instruction=f"Work out the part {id}.", success_criterion="There is a result.",
        depends_on=depends_on, **fields,
    )  # fmt: skip


def tasks(*of: Task) -> Plan:
    return Plan(goal="A goal", tasks=of)


def escalate(reason: str, message: str = "It is not for me.") -> Reply:
    wish = ToolRequest(id="call_1", name="escalate", arguments={"reason": reason, "message": message}, raw="{")
    return Reply(tool_calls=(wish,), stop="tools")


def clerks(*others: Worker, **fields: Any) -> Team:
    return Team([Worker("clerk", "Does clerical work"), *others], **fields)


@dataclass
class Flow:
    """One job that can be run, cut off anywhere and run again. A call takes a second and 110 tokens."""

    talk: Talk
    plan: Plan | None
    team: Team = field(default_factory=clerks)
    request: dict[str, Any] = field(default_factory=dict[str, Any])
    scripts: tuple[str, ...] = ("small", "medium", "large", "other")
    seconds: float = 1.0
    usage: TokenCount | None = field(default_factory=lambda: TokenCount(input_tokens=100, output_tokens=10))
    model: FunctionModel = field(init=False)
    store: MemoryStore = field(default_factory=MemoryStore)
    took: float = 0.0
    short: int = 0

    def __post_init__(self) -> None:
        self.model = FunctionModel(self._answer)

    async def _answer(self, call: ModelCall, attribution: Attribution) -> Reply:
        await asyncio.sleep(self.seconds)
        said = self.talk(call, attribution)
        if isinstance(said, Awaitable):
            said = await said
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Reply):
            return said.model_copy(update={"usage": said.usage or self.usage})
        return Reply(text=said if isinstance(said, str) else json.dumps(said), usage=self.usage)

    def run(
        self, *, interrupt_at: float | None = None, number: int = 0, reopen: tuple[str, ...] | None = None
    ) -> Report:
        """One session, going on from what is in the store."""
        before = stored(self.store)
        job = RunJob(
            "run",
            Request(text="The request.", **self.request),
            self.team,
            Settings(home="unused", tiers=TIERS),  # type: ignore[arg-type]
            self.plan,
            reopen=reopen,
        )
        session = Session(
            job,
            MemoryJournal(self.store),
            Models({}, {}, dict.fromkeys(self.scripts, self.model)),
            earlier=replay(before) if before else None,
            chance=random.Random(number),
            wall_clock=lambda: 1_000_000.0 * number + asyncio.get_running_loop().time(),
        )

        async def work() -> Report:
            if interrupt_at is not None:
                asyncio.get_running_loop().call_later(interrupt_at, session.interrupt)
            report = await session.work()
            self.short = session._engine.ledger.short  # type: ignore[union-attr]  # pyright: ignore
            return report

        report, self.took = run_virtual(work())
        return report

    @property
    def events(self) -> list[Event]:
        return stored(self.store)

    def decisions(self, kind: str = "recovery") -> dict[str, Any]:
        """Key -> what was decided there."""
        return {
            e.data["key"]: e.data["value"] for e in self.events if e.kind == "decision" and e.data["decision"] == kind
        }

    def rungs(self, task: str) -> list[str]:
        return [value["kind"] for key, value in self.decisions().items() if key.startswith(f"{task}/")]

    def calls(self, role: str = "worker", task: str | None = None) -> list[ModelCall]:
        return [c for c, _, who in self.model.asked if c.role == role and task in (None, who.task)]

    def states(self, name: str) -> list[str]:
        """The states a breaker went through."""
        return [e.data["state"] for e in self.events if e.kind == "breaker_changed" and e.data["name"] == name]


def works(call: ModelCall, attribution: Attribution) -> Said:
    """Every role does what it should."""
    match call.role:
        case "synthesizer":
            return {"answer": f"All in all. [{', '.join(shown(call))}]"}
        case "refiner":
            return {"instruction": "BETTER-WORDS for it."}
        case "judge":
            return {"contradictions": []}
        case "scorer":
            return {"score": 95, "met": True, "reason": "It is there."}
        case _:
            return result(f"RESULT-{attribution.task}")


def shown(call: ModelCall) -> list[str]:
    """The tasks whose results the synthesizer is shown."""
    return re.findall(r"^Task (\S+), by ", call.messages[1].text, re.MULTILINE)


def texts(calls: Iterable[ModelCall]) -> str:
    return "\n".join(message.text for call in calls for message in call.messages)


def by_task(report: Report) -> dict[str, Outcome]:
    return {outcome.task: outcome for outcome in report.outcomes}
