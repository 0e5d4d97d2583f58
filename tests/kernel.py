"""Parts for tests of the kernel on virtual time: a model made of a function, journals that wait or break, an engine."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chargehand.dispatcher import assemble, dispatch
from chargehand.engine.engine_session import EngineInputs
from chargehand.engine.local.engine import LocalEngine
from chargehand.errors import ModelError
from chargehand.events import Event
from chargehand.models import Attribution
from chargehand.models.resolve import Models
from chargehand.record.journal import Journal
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.steps.supervisor_help import SupervisorHelp
from chargehand.steps.task_steps import TaskSteps
from chargehand.tools import Tool
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, TokenCount, user
from chargehand.values.outcome import Outcome
from chargehand.values.plan import Plan
from chargehand.values.recovery_policy import Policy
from chargehand.workers import Roster

MODEL = "scripted:model"
# The same under a name that makes it a small one.
SMALL_MODEL = "scripted:model-1b"
Answer = Callable[[ModelCall, Attribution], Awaitable[Reply]]


@dataclass
class FunctionModel:
    """A model client that answers with a function and remembers what it was asked."""

    answer: Answer
    asked: list[tuple[ModelCall, int, Attribution]] = field(default_factory=list[tuple[ModelCall, int, Attribution]])

    async def complete(
        self, call: ModelCall, max_output: int, attribution: Attribution, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        self.asked.append((call, max_output, attribution))
        return await self.answer(call, attribution)

    async def close(self) -> None:
        """Nothing is held."""


def after(seconds: float, text: str = "ok") -> Answer:
    """Answers the same after some virtual seconds."""

    async def answer(call: ModelCall, attribution: Attribution) -> Reply:
        await asyncio.sleep(seconds)
        return Reply(text=text, usage=TokenCount(input_tokens=10, output_tokens=5))

    return answer


def failing(times: int, error: ModelError, then: Answer) -> Answer:
    """Raises that often, then answers."""
    left = [times]

    async def answer(call: ModelCall, attribution: Attribution) -> Reply:
        if left[0]:
            left[0] -= 1
            raise error
        return await then(call, attribution)

    return answer


@dataclass
class SlowJournal:
    """A memory journal whose appends take virtual seconds, wait for a gate, or fail from the nth on."""

    store: MemoryStore = field(default_factory=MemoryStore)
    seconds: float = 0.0
    gate: asyncio.Event | None = None
    breaks_at: int | None = None
    error: Exception | None = None
    appends: int = 0

    def __post_init__(self) -> None:
        self._inner = MemoryJournal(self.store)
        self.epoch = self._inner.epoch

    async def append(self, events: Sequence[Event], blobs: Mapping[str, bytes]) -> None:
        self.appends += 1
        if self.breaks_at is not None and self.appends >= self.breaks_at and self.error is not None:
            raise self.error
        if self.seconds:
            await asyncio.sleep(self.seconds)
        if self.gate is not None:
            await self.gate.wait()
        await self._inner.append(events, blobs)

    def events(self, after: int = 0) -> Any:
        return self._inner.events(after)

    def blobs(self, hashes: Any) -> dict[str, bytes]:
        return self._inner.blobs(hashes)

    def close(self) -> None:
        """Nothing is held."""


def engine(
    model: FunctionModel, journal: Journal | None = None, tools: Mapping[str, Tool] | None = None, **options: Any
) -> LocalEngine:
    models = Models({}, {}, {"model": model, "model-1b": model})
    given: dict[str, Any] = {"journal": journal or MemoryJournal(), "models": models, "tools": tools or {}, **options}
    return LocalEngine(EngineInputs(run="run", chance=random.Random(1), **given))


def question(text: str = "hello", cap: int = 1000, **fields: Any) -> ModelCall:
    return ModelCall(role="worker", model=MODEL, messages=(user(text),), output_cap=cap, **fields)


def result(output: Any = "done", **fields: Any) -> str:
    """A worker's answer in the agreed shape."""
    return json.dumps({"summary": "A summary.", "output": output, **fields})


def stored(store: MemoryStore) -> list[Event]:
    return list(MemoryJournal.read(store).events())


def kinds(store: MemoryStore) -> list[str]:
    return [event.kind for event in stored(store)]


async def run_plan(
    plan: Plan,
    roster: Roster,
    local: LocalEngine,
    *,
    help: SupervisorHelp | None = None,
    policy: Policy | None = None,
    stop_at: float | None = None,
) -> dict[str, Outcome]:
    """The outcomes of a plan, dispatched on a local engine with the steps that a run has."""
    steps = TaskSteps(local, roster, help or SupervisorHelp())
    steps.add_tasks(plan.tasks)
    local.serve(steps)
    crew = assemble(roster, local)
    heads = await dispatch(plan, crew, local, stop_at=stop_at, policy=policy, rungs=steps.help.rungs)
    return {id: local.outcomes.at(id) for id in heads}
