"""A seed -> a whole world for one run: plan, team, limits, a model and tools with faults, and when the run is stopped.

What the model answers is a function of the seed and the call's idempotency key alone, as with a provider that honours
such keys: a repeated call gets the same reply, whatever happened between.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args

from chargehand.dispatcher.recovery import LADDER
from chargehand.errors import ModelError, ToolError
from chargehand.models import Attribution
from chargehand.models.resolve import Models
from chargehand.runs.make_steps import RunJob
from chargehand.settings import Settings
from chargehand.team import Team, Worker
from chargehand.tools import tool
from chargehand.values.budget import Budget
from chargehand.values.effect import ModelCall, Question
from chargehand.values.message import Reply, TokenCount, ToolRequest
from chargehand.values.outcome import EscalationReason
from chargehand.values.plan import Plan, SynthesisSpec, Task
from chargehand.values.recovery_policy import Condition, Policy, Rung
from chargehand.values.request import Request

RUN = "simulated"
# So many teams there are: each with its own ladder, fallbacks, scorer and hedges.
TEAMS = 40
EPOCH = 1_800_000_000.0


@dataclass(frozen=True, slots=True)
class Stop:
    """How one session is ended before its time. `cut` keeps that share of the record; `again` interrupts twice.

    While the person is away the run parks with what it has to ask them.
    """

    at: float | None = None
    again: float | None = None
    cut: float | None = None
    away: bool = False


@dataclass
class World:
    """Everything outside of the kernel. It outlives sessions, as providers and mailboxes do."""

    seed: str
    # Without time limits, token limits, hedges, refused keys, unknown usage and `once` tools: unless workers are taken
    # out, the outcomes depend on the plan and the model alone.
    calm: bool = False
    # How many calls at once, where it is not left to chance.
    slots: int | None = None
    team: Team = field(init=False)
    plan: Plan = field(init=False)
    planned: bool = field(init=False)
    request: Request = field(init=False)
    stops: tuple[Stop, ...] = field(init=False)
    in_flight: int = 0
    most_in_flight: int = 0
    # Idempotency keys of the model calls, in the order they came in.
    asked: list[str] = field(default_factory=list[str])
    # Idempotency key -> the tokens it was billed for, each time it was answered.
    billed: Counter[str] = field(default_factory=Counter[str])
    _tries: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        chance = random.Random(self.seed)
        self.planned = chance.random() < 0.4
        self.team = _team(chance.randrange(TEAMS), calm=self.calm)
        budget = None if self.calm or chance.random() < 0.6 else chance.choice((3_000, 8_000, 20_000, 60_000))
        self.plan = _plan(chance, calm=self.calm, odd_ids=self.planned and chance.random() < 0.2)
        self.request = Request(
            text="Simulate the simulated.",
            budget=Budget(tokens=budget),
            deadline_s=None if self.calm or chance.random() < 0.6 else chance.uniform(0.5, 20),
            max_concurrent=self.slots or chance.choice((1, 2, 3, 8, 40)),
            ask=chance.random() < 0.3,
        )
        self.stops = (
            () if self.calm or chance.random() < 0.5 else tuple(_stop(chance) for _ in range(chance.randint(1, 3)))
        )

    @property
    def job(self) -> RunJob:
        return RunJob(
            RUN,
            self.request,
            self.team,
            Settings(home="unused", model="scripted:world"),
            None if self.planned else self.plan,
        )

    def models(self) -> Models:
        return Models({}, {}, {"world": self})

    # -- the person --------------------------------------------------------------------------------------------------

    async def person(self, question: Question, wrong: str | None) -> str:
        """Says something that fits, at once or after a long while; hands a task back rather than be asked twice."""
        chance = random.Random(f"{self.seed}/{question.kind}/{question.prompt}")
        await asyncio.sleep(0.0 if chance.random() < 0.2 else chance.expovariate(0.05))
        if question.kind == "tool" and question.answer_schema is not None:
            return chance.choice(("happened", "happened: it is there", "send", "give up"))
        if question.kind == "tool":
            return chance.choice(("approve", "reject not now"))
        if wrong is not None or chance.random() < 0.2:
            return "escalate: not mine"
        return chance.choice(("The left one.", '{"n": 3}'))

    # -- the model ---------------------------------------------------------------------------------------------------

    async def complete(
        self, call: ModelCall, max_output: int, attribution: Attribution, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        key = attribution.idempotency_key
        chance = random.Random(f"{self.seed}/{key}")
        self.asked.append(key)
        self._tries[key] += 1
        usage = TokenCount(
            input_tokens=sum(len(m.packed) for m in call.messages) // 4,
            output_tokens=min(chance.randint(5, 400), max_output),
        )
        faults = chance.choice((0, 0, 0, 0, 0, 0, 1, 2, 4, 99))
        delay = 0.0 if chance.random() < 0.1 else chance.expovariate(1.0)
        async with _Flight(self):
            if self._tries[key] <= faults and not (self.calm and faults > 2):
                await asyncio.sleep(delay / 4)
                kind = chance.choice(("rate_limited", "overloaded", "connection"))
                raise ModelError(kind, "busy", retry_after=chance.choice((None, None, 0.0, 1.5)))
            if chance.random() < 0.05:
                await asyncio.sleep(delay)
                lasting = ("bad_request", "context_too_long", "refused")
                raise ModelError(chance.choice(lasting if self.calm else (*lasting, "timeout", "auth")), "no")
            # Before the reply: a provider bills it also when nobody waits for it any more.
            self.billed[key] += usage.input_tokens + usage.output_tokens
            await asyncio.sleep(delay)
        reply = self._reply(call, attribution, chance)
        said = None if chance.random() < 0.05 and not self.calm else usage
        return reply.model_copy(update={"usage": said, "model": call.model})

    async def close(self) -> None:
        """Nothing is held."""

    def _reply(self, call: ModelCall, attribution: Attribution, chance: random.Random) -> Reply:
        match chance.random():
            case p if p < 0.03:
                return Reply(text="I will not.", stop="refused")
            case p if p < 0.06:
                return Reply(text='{"summary": "half of', stop="length")
            case p if p < 0.09:
                return Reply(text="")
            case p if p < 0.15:
                return Reply(text="Here you are: {broken json")
            case _:
                pass
        match call.role:
            case "planner":
                return Reply(text=self._draft(chance) if attribution.task is None else _parts(chance))
            case "refiner":
                words = {"instruction": f"Do it better, way {chance.randint(0, 99)}."}
                return Reply(text=json.dumps(words | ({"context": "less"} if chance.random() < 0.3 else {})))
            case "scorer":
                met = chance.random() < 0.7
                return Reply(text=json.dumps({"score": 90 if met else 20, "met": met, "reason": "So it seems."}))
            case "judge":
                scores = [{"candidate": n, "score": chance.randint(0, 100)} for n in (1, 2)]
                return Reply(text=json.dumps({"scores": scores, "best": chance.choice((1, 2)), "reason": "So."}))
            case "synthesizer":
                return Reply(text=json.dumps(self._synthesis(chance)))
            case _:
                return self._work(call, chance)

    def _draft(self, chance: random.Random) -> str:
        data = self.plan.to_json() | {"thoughts": "a field nobody asked for"}
        if chance.random() < 0.25:
            tasks: list[Any] = data["tasks"]
            broken: dict[str, Any] = chance.choice(
                (
                    {"depends_on": [tasks[0]["id"]]},
                    {"worker": "nobody"},
                    {"depends_on": ["ghost"]},
                    {"success_criterion": ""},
                    {"id": 7},
                )
            )
            data["tasks"] = [tasks[0] | broken, *tasks[1:]]
        return json.dumps(data)

    def _synthesis(self, chance: random.Random) -> dict[str, Any]:
        cites = [task.id for task in self.plan.tasks if chance.random() < 0.7]
        if chance.random() < 0.1:
            cites.append("t999")
        answer: dict[str, Any] = {
            "answer": "It is so. " + " ".join(f"[{id}]" for id in cites),
            "confidence": chance.randint(0, 100),
        }
        if chance.random() < 0.5:
            rest = [task.id for task in self.plan.tasks if task.id not in cites]
            answer["left_out"] = [{"task": rest, "reason": "It adds nothing."}]
        if chance.random() < 0.2:
            answer["gaps"] = [{"task": None, "reason": "something is missing"}, "another thing"]
        if chance.random() < 0.2:
            answer["contradictions"] = [{"subject": "size", "claims": ["t1: big", "t2: small"], "resolved": False}]
        return answer

    def _work(self, call: ModelCall, chance: random.Random) -> Reply:
        if call.tools and chance.random() < 0.3:
            wishes = [self._wish(call, chance, n) for n in range(chance.choice((1, 1, 2, 3)))]
            return Reply(tool_calls=tuple(wishes), stop="tools")
        output: Any = (
            {"n": chance.randint(0, 9)}
            if call.worker == "typed" and chance.random() < 0.8
            else "word " * chance.randint(1, 20)
        )
        answer = {
            "summary": f"Result {chance.randint(0, 99)}",
            "output": output,
            "claims": [{"statement": "Water is wet", "confidence": 90, "sources": ["https://example.org"]}],
            "findings": [{"message": "A finding", "severity": "info"}] if chance.random() < 0.2 else [],
            "confidence": chance.choice((None, chance.randint(0, 100))),
        }
        return Reply(text=json.dumps(answer))

    def _wish(self, call: ModelCall, chance: random.Random, number: int) -> ToolRequest:
        names = [spec.name for spec in call.tools] + ["no_such_tool"]
        name = chance.choice([n for n in names if n != "escalate"] if chance.random() < 0.8 else names)
        arguments: dict[str, Any] | None = {"subject": chance.choice("abc")}
        if name == "escalate":
            arguments = {
                "reason": chance.choice(get_args(EscalationReason)),
                "message": "Which one?",
                "partial": chance.choice((None, {"so": "far"})),
            }
        elif chance.random() < 0.1:
            arguments = chance.choice((None, {}, {"subject": 5, "more": 1}))
        return ToolRequest(id=f"call_{number}", name=name, arguments=arguments, raw="{")

    def enter(self) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def leave(self) -> None:
        self.in_flight -= 1


# The world a session is played in; tools are made once and look it up.
CURRENT: ContextVar[World] = ContextVar("CURRENT")


class _Flight:
    """Counts something the world is busy with."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def __aenter__(self) -> None:
        self._world.enter()

    async def __aexit__(self, *exc: object) -> None:
        self._world.leave()


async def _carry_out(tool: str, subject: str) -> random.Random:
    """Take the time the tool takes in the world of this run; the chance is the tool's own."""
    world = CURRENT.get()
    chance = random.Random(f"{world.seed}/{tool}/{subject}")
    async with _Flight(world):
        await asyncio.sleep(chance.expovariate(2.0))
    return chance


@tool(effect="read")
async def look(subject: str) -> str:
    """Looks at a subject."""
    return f"{subject} is {(await _carry_out('look', subject)).randint(0, 99)}"


@tool(effect="idempotent")
async def store(subject: str) -> str:
    """Stores a subject, where there is room."""
    if (await _carry_out("store", subject)).random() < 0.5:
        raise ToolError(f"there is no room for {subject}")
    return "stored"


@tool(effect="idempotent", approve=True)
async def sign(subject: str) -> str:
    """Signs a subject, if a person lets it."""
    await _carry_out("sign", subject)
    return f"signed {subject}"


@tool(effect="read")
async def divide(subject: str) -> str:
    """Has a bug."""
    return str(1 / ((await _carry_out("divide", subject)).randint(0, 1) - 1))


@tool(effect="once")
async def send(subject: str) -> str:
    """Sends a subject; must not happen twice."""
    await _carry_out("send", subject)
    return f"sent {subject}"


async def is_short(output: str | dict[str, int]) -> str:
    """Long outputs are not good enough."""
    return "" if len(str(output)) < 70 else "it is too long"


@cache
def _team(number: int, *, calm: bool) -> Team:
    """One of the teams there are; their workers are the same but for who stands in for whom."""
    chance = random.Random(f"team {number}")
    tools = [look, store, divide, sign] if calm else [look, store, divide, sign, send]
    typed: dict[str, Any] = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    fallbacks: dict[str, str] = chance.choice(({}, {"plain": "bare"}, {"bare": "typed", "typed": "plain"}))
    check = is_short if chance.random() < 0.3 else None
    return Team(
        [
            Worker("plain", "Does anything", tools=tools, max_steps=3, fallback=fallbacks.get("plain")),
            Worker("typed", "Gives a number", tools=[look], output_schema=typed, fallback=fallbacks.get("typed")),
            Worker("bare", "Has no tools", fallback=fallbacks.get("bare"), check=check),
        ],
        shared_tools=["look"],
        recovery=_policy(chance, calm=calm),
    )


def _policy(chance: random.Random, *, calm: bool) -> Policy:
    conditions: list[Condition] = [condition for condition in LADDER if chance.random() < 0.3]
    return Policy(
        attempts=chance.choice((1, 2, 3, 3)),
        ladder={condition: tuple(chance.choices(get_args(Rung), k=chance.randint(0, 4))) for condition in conditions},
        score=chance.random() < 0.3,
        hedge_after_s=None if calm or chance.random() < 0.7 else chance.uniform(0.3, 3),
    )


def _parts(chance: random.Random) -> str:
    """A draft of smaller tasks; now and then one that cannot be run."""
    second = {"depends_on": chance.choice((["p1"], [], ["ghost"]) if chance.random() < 0.3 else (["p1"], []))}
    part = {"instruction": "Do a part.", "success_criterion": "It is there.", "depends_on": []}
    workers = chance.choices(("plain", "typed", "bare"), k=2)
    tasks = [part | {"id": "p1", "worker": workers[0]}, part | second | {"id": "p2", "worker": workers[1]}]
    return json.dumps({"goal": "The same in two", "tasks": tasks})


def idempotency_key(run: str, key: str, fingerprint: str) -> str:
    """As the engine makes it; recomputed from the record to find calls that were made again."""
    return hashlib.sha256(f"{run}\n{key}\n{fingerprint}".encode()).hexdigest()[:40]


def _stop(chance: random.Random) -> Stop:
    at, away = chance.expovariate(0.4), chance.random() < 0.5
    match chance.randrange(5):
        case 0:
            return Stop(cut=chance.random(), away=away)
        case 1:
            return Stop(at=at, again=chance.uniform(0, 2), away=away)
        case 2:
            return Stop(at=at, cut=chance.random(), away=away)
        case 3:
            return Stop(at=at, away=away)
        case _:
            return Stop(away=True)


def _plan(chance: random.Random, *, calm: bool, odd_ids: bool) -> Plan:
    size = 1 if chance.random() < 0.08 else min(1 + int(chance.expovariate(0.16)), 6 if calm else 30)
    shape = chance.choice((_chain, _fan, _diamonds, _any_dag))
    ids = [f"{n}. step" if odd_ids else f"t{n}" for n in range(1, size + 1)]
    tasks = [_task(chance, id, [ids[d] for d in shape(chance, n)], calm=calm) for n, id in enumerate(ids)]
    chance.shuffle(tasks)
    return Plan(goal="A simulated goal", tasks=tuple(tasks), synthesis=SynthesisSpec(instruction="Put it together."))


def _task(chance: random.Random, id: str, depends_on: list[str], *, calm: bool) -> Task:
    budget = None
    if not calm and chance.random() < 0.2:
        budget = Budget(
            tokens=chance.choice((None, 500, 3_000)),
            steps=chance.choice((None, 1, 2)),
            seconds=chance.choice((None, chance.uniform(0.3, 5))),
        )
    return Task(
        id=id,
        worker=chance.choice(("plain", "plain", "typed", "bare")),
        instruction=f"Work out the part of {id}.",
        success_criterion="There is a result.",
        depends_on=tuple(depends_on),
        on_dependency_failure=chance.choice(("skip", "proceed")),
        budget=budget,
        timeout_s=None if calm or chance.random() < 0.75 else chance.uniform(0.2, 6),
        tier=chance.choice((None, None, "small", "medium", "large")),
        best_of=chance.choice((None, None, None, None, None, 1, 2, 3)),
    )


def _chain(chance: random.Random, number: int) -> list[int]:
    return [number - 1] if number else []


def _fan(chance: random.Random, number: int) -> list[int]:
    return [0] if number and chance.random() < 0.8 else []


def _diamonds(chance: random.Random, number: int) -> list[int]:
    top = number - number % 3
    return [] if not number else [top - 2, top - 1] if number % 3 == 0 else [top]


def _any_dag(chance: random.Random, number: int) -> list[int]:
    return chance.sample(range(number), chance.randint(0, min(number, 3)))
