"""Whole syntheses on virtual time for tests: outcomes, a model made of a function, and what came of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from chargehand.events import Event
from chargehand.models import Attribution
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.synthesizer import Synthesis, write_answer
from chargehand.testing import run_virtual
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, TokenCount
from chargehand.values.outcome import Claim, Finding, Outcome, done
from chargehand.values.plan import Plan, Task
from chargehand.values.plan import SynthesisSpec as Mode
from chargehand.values.request import Request
from tests.kernel import MODEL, FunctionModel, engine, stored

Talk = Callable[[ModelCall], Any]
BRAIN = SupervisorModel(model=MODEL)


async def synthesize(*args: Any, **options: Any) -> Synthesis:
    """The whole answer at once, whatever gaps it states."""
    made = await write_answer(*args, **options)
    assert isinstance(made, Synthesis)
    return made


def result(id: str, *claims: str, output: Any = None, worker: str | None = None, **fields: Any) -> Outcome:
    """A done task; its claims are as sure as they are of 80."""
    return done(
        id,
        worker or f"worker-{id}",
        summary=fields.pop("summary", f"Summary of {id}."),
        output=output,
        claims=[Claim(statement=claim, confidence=80) for claim in claims],
        **fields,
    )


def finding(message: str, **fields: Any) -> Finding:
    return Finding(message=message, **({"severity": "warning", "category": "bug", "confidence": 80} | fields))


def plan_of(outcomes: Iterable[Outcome], mode: str = "merge", edges: dict[str, Sequence[str]] | None = None) -> Plan:
    tasks = tuple(
        Task(
            id=outcome.task, worker=outcome.worker, instruction=f"Do {outcome.task}.", success_criterion="It is done.",
            depends_on=tuple((edges or {}).get(outcome.task, ())),
        )
        for outcome in outcomes
    )  # fmt: skip
    return Plan(goal="The goal", tasks=tasks, synthesis=Mode.model_validate({"mode": mode}))


@dataclass(frozen=True)
class Made:
    synthesis: Synthesis
    calls: list[ModelCall]
    events: list[Event]
    keys: list[str]
    seconds: float

    def of(self, role: str) -> list[ModelCall]:
        return [call for call in self.calls if call.role == role]


def text_of(call: ModelCall) -> str:
    return "\n".join(message.text for message in call.messages)


def make(
    outcomes: Sequence[Outcome],
    talk: Talk | None = None,
    *,
    plan: Plan | None = None,
    request: Request | None = None,
    brain: SupervisorModel | None = BRAIN,
    seconds: float | None = None,
    each_takes: float = 1.0,
    options: dict[str, Any] | None = None,
    **fields: Any,
) -> Made:
    """One synthesis. `talk` answers each call: a reply, an exception, text or JSON."""

    async def answer(call: ModelCall, attribution: Attribution) -> Reply:
        await asyncio.sleep(each_takes)
        assert talk is not None
        said = talk(call)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Reply):
            return said
        text = said if isinstance(said, str) else json.dumps(said)
        return Reply(text=text, usage=TokenCount(input_tokens=10, output_tokens=5))

    model, store = FunctionModel(answer), MemoryStore()
    by_task = {outcome.task: outcome for outcome in outcomes}

    async def main() -> Synthesis:
        async with engine(model, MemoryJournal(store), **(options or {})) as local:
            return await synthesize(
                request or Request(text="The request."), plan or plan_of(outcomes), by_task, local, brain, seconds,
                **fields,
            )  # fmt: skip

    synthesis, took = run_virtual(main())
    events = stored(store)
    keys = [event.data["key"] for event in events if event.kind == "model_called"]
    return Made(synthesis, [call for call, _, _ in model.asked], events, keys, took)
