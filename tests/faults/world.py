"""A kind of fault and a seed -> a run against a provider that has it, over real HTTP, and everything to check after.

The loop's clock goes faster than the wall's, so that the pauses a run really makes take a fortieth of their time, on
a slow machine more: what a run does in between must fit into the same time by the loop's clock.
"""

from __future__ import annotations

import asyncio
import json
import random
import selectors
import ssl
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cached_property
from typing import Any, Literal

from chargehand.engine.local.retry_rule import TRANSPORT_RETRIES
from chargehand.events import Event
from chargehand.models.resolve import Models, Provider
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.record.replay import replay
from chargehand.runs.make_steps import RunJob
from chargehand.runs.session import Session
from chargehand.settings import Settings
from chargehand.team import Team, Worker
from chargehand.tools import tool
from chargehand.values.budget import Budget
from chargehand.values.plan import Plan, Task
from chargehand.values.report import Report
from chargehand.values.request import Request
from chargehand.values.status_words import FINISHED
from tests.loopback import Answer, Seen, answer_json, error, serve, whole
from tests.pace import slowness

SPEED = 40.0
KEY = "sk-canary-fault-0123456789"
FOR_GOOD = 10**6
HUGE = b'{"pad": "' + b"x" * 10_000_000 + b'"}'
# Virtual seconds after which a run counts as hanging.
HANGS_AFTER_S = 2_400.0
# Where the calls of a world go: the provider, and one that is out of reach.
ADDRESSES = 2
TYPED: dict[str, Any] = {"type": "object", "required": ["value"], "properties": {"value": {"type": "string"}}}

# What became of a fault once it is over: `sent_again` is repaired by the transport, `worker` by another attempt.
Remedy = Literal["sent_again", "another_attempt", "never"]
# The request, what a good provider would say, and chance -> what this one says.
Say = Callable[[Seen, Answer, random.Random], Answer]


class _FastSelector(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed

    def select(self, timeout: float | None = None) -> Any:
        return super().select(timeout / self._speed if timeout else timeout)


class FastLoop(asyncio.SelectorEventLoop):
    """Real sockets, a clock that is some times too fast."""

    def __init__(self) -> None:
        self._speed = SPEED / min(slowness(), 5.0)
        super().__init__(_FastSelector(self._speed))

    def time(self) -> float:
        return time.monotonic() * self._speed


# --- the faults -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    say: Say | None
    remedy: Remedy = "sent_again"


def _status(status: int, **headers: str) -> Say:
    return lambda seen, good, chance: error(status, f"busy, says {KEY}", **headers)


def _raw(body: bytes) -> Say:
    return lambda seen, good, chance: Answer(raw=body)


def _cut(seen: Seen, good: Answer, chance: random.Random) -> Answer:
    return replace(good, cut=chance.choice((0, 1, 40)))


def _drip(seen: Seen, good: Answer, chance: random.Random) -> Answer:
    """A piece now and then: it would take minutes, and a task has one."""
    return replace(good, drip=20.0) if seen.role == "worker" else replace(good, drip=0.01)


def _wrong_schema(seen: Seen, good: Answer, chance: random.Random) -> Answer:
    if chance.random() < 0.5:
        return Answer(raw=chance.choice((b'{"object": "list", "data": []}', b'{"choices": "none"}', b'{"ok": true}')))
    return answer_json(chance.choice(([1, 2], {"verdict": "fine"}, {"summary": 5, "output": []})), usage=good.usage)


def _truncated(seen: Seen, good: Answer, chance: random.Random) -> Answer:
    if chance.random() < 0.5:
        body = json.dumps(whole(seen, good)).encode()
        return Answer(raw=body[: chance.randrange(1, len(body) // 2)])
    return replace(good, text=good.text[:7], tools=())


def _huge(seen: Seen, good: Answer, chance: random.Random) -> Answer:
    return Answer(raw=HUGE)


def _wrong_id(seen: Seen, good: Answer, chance: random.Random) -> Answer:
    """Another reply's id, and tool calls that share one or have none."""
    if not good.tools:
        return Answer(raw=json.dumps({**whole(seen, good), "id": "someone-elses", "model": "another"}).encode())
    document = whole(seen, replace(good, tools=good.tools * 2))
    same = chance.choice(("", "one"))
    calls = (
        document["content"]
        if seen.wire == "anthropic"
        else document["choices"][0]["message"]["tool_calls"]
    )  # fmt: skip
    for call in calls:
        call["id"] = same
    return Answer(raw=json.dumps(document).encode())


def _refusal(seen: Seen, good: Answer, chance: random.Random) -> Answer:
    stop = "refusal" if seen.wire == "anthropic" else "content_filter"
    return Answer(text="I will not do that.", stop=stop, usage=good.usage)


def _skewed(seen: Seen, good: Answer, chance: random.Random) -> Answer:
    """A date to come back at, by a clock that is hours off, which the Date header may or may not tell."""
    off = timedelta(hours=chance.choice((-30, -3, 3, 30)))
    theirs = datetime.now(UTC) + off
    headers = {"Retry_After": format_datetime(theirs + timedelta(seconds=1), usegmt=True)}
    if chance.random() < 0.7:
        headers["Date"] = format_datetime(theirs, usegmt=True)
    return error(chance.choice((429, 503)), "later", **headers)


KINDS: dict[str, Kind] = {
    "429_with_retry_after": Kind(_status(429, Retry_After="0.5")),
    "429_without_retry_after": Kind(_status(429)),
    "500": Kind(_status(500)),
    "502": Kind(_status(502)),
    "503": Kind(_status(503, Retry_After="1")),
    "529": Kind(_status(529)),
    "connection_reset": Kind(lambda seen, good, chance: Answer(reset=True)),
    "cut_reply": Kind(_cut),
    "slow_drip": Kind(_drip, "another_attempt"),
    "empty_body": Kind(_raw(b""), "another_attempt"),
    "html_body": Kind(_raw(b"<!doctype html><title>Bad gateway</title>"), "another_attempt"),
    "wrong_schema": Kind(_wrong_schema, "another_attempt"),
    "truncated_json": Kind(_truncated, "another_attempt"),
    "ten_megabytes": Kind(_huge, "another_attempt"),
    "wrong_id": Kind(_wrong_id),
    "refusal": Kind(_refusal, "another_attempt"),
    "context_too_long": Kind(
        lambda seen, good, chance: error(400, "maximum context length", code="context_length_exceeded"),
        "another_attempt",
    ),
    "auth": Kind(lambda seen, good, chance: error(401, f"Incorrect API key provided: {KEY}"), "never"),
    "dns": Kind(None, "never"),
    "tls": Kind(None, "never"),
    "clock_skew": Kind(_skewed, "never"),
}


# --- the world ------------------------------------------------------------------------------------------------------


@tool(effect="read")
def look(name: str) -> str:
    """Looks a part up."""
    return f"{name} is there"


@dataclass
class World:
    """One provider with one kind of fault, one plan, and all that the provider saw."""

    kind: str
    seed: str
    requests: list[Seen] = field(default_factory=list[Seen])
    # Tasks and roles that got an answer without a fault, and what was billed.
    answered: set[str] = field(default_factory=set[str])
    billed: int = 0
    faults: int = 0
    _tries: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        chance = self.chance = random.Random(f"{self.kind}/{self.seed}")
        self.wire: Literal["openai", "anthropic"] = chance.choice(("openai", "anthropic"))
        # Of these kinds it is not the provider that fails but the way to it, for one of the two workers.
        self.out_of_reach = KINDS[self.kind].say is None
        self.planned = chance.random() < 0.4
        self.with_tools = chance.random() < 0.4 or self.kind == "wrong_id"
        self.fallback = chance.random() < 0.5
        # One that both have limits and none of the others.
        self.limited = chance.random() < 0.3
        self.plan = self._plan(chance)
        ids = [task.id for task in self.plan.tasks]
        hit = [id for id in ids if chance.random() < 0.5] or ids[:1]
        self.victims = {id: chance.choice((1, 1, 2, TRANSPORT_RETRIES)) for id in hit}
        if chance.random() < 0.5:
            self.victims[chance.choice(hit)] = FOR_GOOD
        if chance.random() < 0.25:
            self.victims["synthesizer"] = chance.choice((1, 2, FOR_GOOD))
        if chance.random() < 0.15:
            self.victims["planner"] = chance.choice((1, 2, FOR_GOOD))
        self.request = Request(
            text="Put the parts together.",
            budget=Budget(tokens=chance.choice((25_000, 500_000)) if self.limited else 500_000),
            deadline_s=chance.uniform(40, 200) if self.limited else None,
            max_concurrent=chance.choice((1, 3, 8)),
            # What a provider asks to wait for longer than a call may is a failure here.
            wait_s=0,
        )

    @property
    def passing(self) -> bool:
        """Whether every fault is one the run should get over without a gap."""
        worst = {"sent_again": TRANSPORT_RETRIES, "another_attempt": 1, "never": 0}[KINDS[self.kind].remedy]
        supervisors = 0 if KINDS[self.kind].remedy == "another_attempt" else worst
        return not self.limited and all(
            count <= (supervisors if id in ("planner", "synthesizer") else worst) for id, count in self.victims.items()
        )

    def _plan(self, chance: random.Random) -> Plan:
        ids = [f"t{n}" for n in range(1, chance.randint(6, 10) + 1)]
        return Plan(
            goal="All parts",
            tasks=tuple(
                Task(
                    id=id,
                    worker=chance.choice(("ann", "bob")),
                    instruction=f"Write the part called {id} in one sentence.",
                    success_criterion=f"The part {id} is there.",
                    depends_on=tuple(chance.sample(ids[:n], min(n, chance.choice((0, 0, 1, 2))))),
                    on_dependency_failure=chance.choice(("skip", "proceed")),
                    timeout_s=60.0 if self.kind == "slow_drip" else None,
                )
                for n, id in enumerate(ids)
            ),
        )

    # -- the provider ------------------------------------------------------------------------------------------------

    def handle(self, seen: Seen) -> Answer:
        self.requests.append(seen)
        who = seen.task.partition(".")[0] or seen.role
        name = f"{seen.role}/{who}"
        self._tries[name] += 1
        chance = random.Random(f"{self.seed}/{name}/{self._tries[name]}")
        good = replace(self._good(seen), delay=chance.uniform(0.05, 0.4))
        say = KINDS[self.kind].say
        faulty = say is not None and seen.role in ("worker", who) and self._tries[name] <= self.victims.get(who, 0)
        if faulty and say is not None:
            self.faults += 1
            if self.kind == "wrong_id":  # odd, and an answer all the same
                self._deliver(seen, good)
            return replace(say(seen, good, chance), delay=chance.uniform(0, 0.2))
        self._deliver(seen, good)
        return good

    def _deliver(self, seen: Seen, good: Answer) -> None:
        assert good.usage is not None
        self.billed += good.usage[0] + good.usage[1]
        if not good.tools:
            self.answered.add(seen.task or seen.role)

    def _good(self, seen: Seen) -> Answer:
        answer = self._answer(seen)
        text = answer.text + json.dumps(answer.tools)
        return replace(answer, usage=(len(seen.raw) // 4, len(text) // 4 + 1, 0))

    def _answer(self, seen: Seen) -> Answer:
        match seen.role:
            case "worker":
                if self.with_tools and seen.body.get("tools") and not _tool_results(seen):
                    return Answer(tools=(("look" if "look" in _tool_names(seen) else "stare", {"name": seen.task}),))
                return answer_json(
                    {"summary": f"Part {seen.task}.", "output": {"value": f"{seen.task} ok"}, "confidence": 80}
                )
            case "planner" if seen.task:
                return answer_json({"goal": "Smaller", "tasks": [_part("p1"), _part("p2", "p1")]})
            case "planner":
                return answer_json(self.plan.to_json())
            case "refiner":
                return answer_json({"instruction": f"Write the part called {seen.task} once more, in short."})
            case _:
                cites = ", ".join(task.id for task in self.plan.tasks)
                said = {"answer": f"All of it [{cites}].", "gaps": [], "contradictions": [], "confidence": 70}
                return answer_json(said)

    # -- the run -----------------------------------------------------------------------------------------------------

    async def play(self, tls: ssl.SSLContext | None = None) -> Played:
        """The run to its end, then the same once more from its record without the last event."""
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(serve(self.handle))
            away = f"http://{self.kind}-{self.seed}.invalid"
            if tls is not None:
                away = (await stack.enter_async_context(serve(self.handle, tls=tls))).url
            self.models = Models(
                {"main": self._provider("main", server.url), "away": self._provider("away", away)}, {"FAULT_KEY": KEY}
            )
            store = MemoryStore()
            try:
                report = await self._session(store)
                seen = len(self.requests)
                ended = store.events.pop()
                again = await self._session(store)
                return Played(self, report, again, [*MemoryJournal.read(store).events()], seen, ended)
            finally:
                await self.models.close()

    async def _session(self, store: MemoryStore) -> Report:
        journal = MemoryJournal(store)
        events = list(MemoryJournal.read(store).events())
        earlier = replay(events) if events else None
        session = Session(self._job, journal, self.models, earlier=earlier, chance=random.Random(self.seed))
        async with asyncio.timeout(HANGS_AFTER_S):
            return await session.work()

    def _provider(self, name: str, url: str) -> Provider:
        base = url if self.wire == "anthropic" else f"{url}/v1"
        return Provider(name=name, base_url=base, wire=self.wire, key_env="FAULT_KEY")

    @cached_property
    def _job(self) -> RunJob:
        bobs = "away:model" if self.out_of_reach else "main:model"
        tools = [look] if self.with_tools else []
        backs: dict[str, Any] = {"fallback": "ann"} if self.fallback else {}
        team = Team(
            [
                Worker("bob", "Writes parts", tools=tools, output_schema=TYPED, model=bobs, **backs),
                Worker("ann", "Writes parts too", tools=tools, output_schema=TYPED),
            ],
            shared_tools=[t.name for t in tools],
        )
        settings = Settings(home="unused", tiers={"medium": "main:model"})
        plan = None if self.planned else self.plan
        return RunJob(f"run-{self.kind}-{self.seed}", self.request, team, settings, plan)


def _part(id: str, *depends_on: str) -> dict[str, Any]:
    return {
        "id": id,
        "worker": "ann",
        "instruction": f"Write the smaller part called {id}.",
        "success_criterion": "It is there.",
        "depends_on": list(depends_on),
    }


def _tool_names(seen: Seen) -> list[str]:
    return [t["name"] if seen.wire == "anthropic" else t["function"]["name"] for t in seen.body["tools"]]


def _tool_results(seen: Seen) -> list[str]:
    """The ids of the calls the conversation has results for."""
    if seen.wire == "openai":
        return [m["tool_call_id"] for m in seen.body["messages"] if m["role"] == "tool"]
    return [block["tool_use_id"] for block in _blocks(seen) if block["type"] == "tool_result"]


def _tool_calls(seen: Seen) -> list[str]:
    """The ids of the calls the conversation holds."""
    if seen.wire == "openai":
        return [call["id"] for m in seen.body["messages"] for call in m.get("tool_calls") or ()]
    return [block["id"] for block in _blocks(seen) if block["type"] == "tool_use"]


def _blocks(seen: Seen) -> list[dict[str, Any]]:
    lists = [m["content"] for m in seen.body["messages"] if isinstance(m["content"], list)]
    return [block for blocks in lists for block in blocks]


# --- what must hold -------------------------------------------------------------------------------------------------


@dataclass
class Played:
    world: World
    report: Report
    again: Report
    events: list[Event]
    # Requests before the second session.
    seen: int
    ended: Any

    def check(self) -> None:
        self._check_status()
        self._check_calls()
        self._check_money()
        self._check_secrets()
        assert len(self.world.requests) == self.seen, "a run that had all its results asked again"
        if not self._supervisor_ran_out_of_time:
            first, second = _without_time(self.report), _without_time(self.again)
            differs = {name: (first[name], second[name]) for name in first if first[name] != second[name]}
            assert not differs, differs
        if self.world.passing and not self._machine_too_slow:
            assert self.report.status == "complete", self.report.gaps

    @property
    def _supervisor_ran_out_of_time(self) -> bool:
        """Whether planning or synthesis was stopped: a reply in that very moment is read by the next session."""
        return self.world.limited and (self.report.plan is None or any("deadline" in n for n in self.report.notes))

    @property
    def _machine_too_slow(self) -> bool:
        """Whether a connection on loopback took longer than a connection may: no fault of the provider's."""
        return any("no connection to main" in str(event.data.get("reason")) for event in self.events)

    def _check_status(self) -> None:
        """It ends; what is not done is a gap; what is said to be done was answered without a fault."""
        report = self.report
        assert report.status in FINISHED
        done = {outcome.task for outcome in report.outcomes if outcome.ok}
        undone = {outcome.task for outcome in report.outcomes} - done
        assert undone <= {gap.task for gap in report.gaps}
        assert report.plan is None or [o.task for o in report.outcomes] == [task.id for task in report.plan.tasks]
        if report.status == "complete":
            assert not undone
            assert not report.gaps
        if report.status == "failed":
            assert not done
            assert report.gaps
        for outcome in report.outcomes:
            if outcome.ok:
                parts = {name for name in self.world.answered if name.startswith(f"{outcome.task}.s.")}
                assert outcome.task in self.world.answered or parts, f"{outcome.task} is done and nobody said so"
                assert outcome.output == {"value": f"{outcome.task} ok"} or set(outcome.output) == parts
                assert outcome.attempts <= 3

    def _check_calls(self) -> None:
        by_key: dict[str, list[Seen]] = defaultdict(list)
        by_attempt: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        for seen in self.world.requests:
            by_key[seen.key].append(seen)
            attempt = seen.headers.get("x-chargehand-attempt", "")
            by_attempt[seen.task, attempt, seen.role].add(seen.key)
            assert _tool_results(seen) == _tool_calls(seen), "a result for a call that was not made"
            assert not attempt or int(attempt) <= 3
        for sent in by_key.values():
            assert len(sent) <= 1 + TRANSPORT_RETRIES + 1
            assert len({seen.raw for seen in sent}) == 1, "the same key with other bytes"
        # A call that meets a kept connection that was closed is sent again at once: one for each address.
        assert sum(len(sent) > 1 + TRANSPORT_RETRIES for sent in by_key.values()) <= ADDRESSES
        for (task, _, role), keys in by_attempt.items():
            steps = 1 + self.world.with_tools if role == "worker" else 1
            # A plan has two repairs; an extension of it and a re-ask of that come on top.
            repairs = 4 if role == "planner" and not task else 1
            assert len(keys) <= steps + repairs, f"{len(keys)} calls of {role} for {task}"

    def _check_money(self) -> None:
        limit = self.world.request.budget.tokens
        assert limit is not None
        assert self.world.billed <= limit
        # Calls that were broken off count at what was set aside, though the provider may not have seen them.
        broken_off = [e.data["lost"] for e in self.events if e.data.get("lost")]
        lost = sum(usage["input_tokens"] + usage["output_tokens"] for usage in broken_off)
        sent = sum(len(seen.raw) for seen in self.world.requests if self.world.faults)
        assert self.report.usage.tokens <= self.world.billed + sent + lost

    def _check_secrets(self) -> None:
        told = json.dumps([self.report.to_json(), *(event.data for event in self.events)], default=str)
        assert KEY not in told


def _without_time(report: Report) -> dict[str, Any]:
    data = report.to_json()
    del data["timing"]
    for usage in (data["usage"], *(outcome["usage"] for outcome in data["outcomes"])):
        del usage["seconds"], usage["waiting_s"]
    return data
