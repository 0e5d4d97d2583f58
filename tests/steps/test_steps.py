"""A run on an engine that carries out steps elsewhere: only plain JSON goes into a step and comes out of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from chargehand import flow
from chargehand.dispatcher import Rungs, assemble, dispatch
from chargehand.engine.port import StepEngine
from chargehand.testing import run_virtual
from chargehand.values.base import JSON
from chargehand.values.budget import Budget
from chargehand.values.outcome import Outcome, Usage, done, escalated, failed
from chargehand.values.plan import Plan, Task, Tier
from chargehand.values.recovery_policy import Policy
from chargehand.values.step import Head, PlanHead, StepKind, StepRefs, WorkerHead

SECRET = "words that only steps may see"
USED = Usage(input_tokens=7, output_tokens=3, calls=1)


@dataclass
class Facts:
    """All a dispatch knows of a worker."""

    tier: Tier = "medium"
    waits_for_person: bool = False


@dataclass
class Nothing:
    """A record without an earlier session, a budget without limits, and no orders."""

    def stop_reason(self, task: str) -> None: ...

    ended_tasks: dict[str, Head] = field(default_factory=dict[str, Head])

    def decision(self, key: str) -> JSON:
        return None

    def end_of(self, task: str) -> Head | None:
        return self.ended_tasks.get(task)

    def end_of_attempt(self, task: str, attempt: int) -> Head | None:
        return None

    def began(self, task: str, attempt: int | None = None) -> float | None:
        return None

    def attempts(self, task: str) -> int:
        return 0

    def has_sent(self, task: str, attempt: int) -> bool:
        return False

    def hold(self, tokens: int) -> None: ...

    def release(self) -> None: ...

    def allot(self, task: str, budget: Budget) -> None: ...

    def affordable(self, tokens: int = 0) -> bool:
        return True

    def expect(self, tasks: int, within: str = "") -> None: ...


class Clock:
    """The loop's own clock; chance is always the same."""

    def now(self, task: str | None = None) -> float:
        return asyncio.get_running_loop().time()

    def until_deadline(self) -> float | None:
        return None

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    @asynccontextmanager
    async def timeout(self, task: str, left: Callable[[], float | None]) -> AsyncGenerator[asyncio.Timeout]:
        async with asyncio.timeout(left()) as timeout:
            yield timeout

    def chance(self) -> float:
        return 0.5


Work = Callable[[str, StepKind, StepRefs], Outcome | Head]


class JsonEngine:
    """Steps are done by a function; what goes in and out passes through JSON, as it would between machines."""

    run = "run"

    def __init__(self, work: Work, slow: str = "") -> None:
        self.work = work
        # The task whose steps take ten times as long.
        self.slow = slow
        self.record: Any = Nothing()
        self.budget: Any = self.record
        self.clock: Any = Clock()
        self.orders: Any = self.record
        self.wire: list[str] = []
        self.steps: list[str] = []
        self.events: list[str] = []
        self.ended: dict[str, Head] = {}
        self.recalled: dict[str, asyncio.Event] = {}
        self.decisions: dict[str, JSON] = {}

    async def step(self, key: str, kind: StepKind, refs: StepRefs) -> Head:
        sent = json.dumps([key, kind, refs.to_json()])
        self.wire.append(sent)
        self.steps.append(f"{kind} {key}")
        stop = self.recalled[key] = asyncio.Event()
        try:
            async with asyncio.timeout(10 if refs.task == self.slow else 1):
                await stop.wait()
            made: Outcome | Head = Head(task=refs.task, worker=refs.worker, status="skipped")
        except TimeoutError:
            arrived = json.loads(sent)
            made = self.work(arrived[0], arrived[1], StepRefs(**arrived[2]))
        head = made if isinstance(made, Head) else Head.of(made, key).model_copy(update={"why": f"<{key}>"})
        self.wire.append(head.model_dump_json())
        return Head.model_validate_json(self.wire[-1])

    def recall(self, key: str) -> None:
        self.recalled[key].set()

    async def decide(self, key: str, decision: str, choose: Callable[[], JSON], reason: str = "") -> JSON:
        self.decisions[key] = json.loads(json.dumps(choose()))
        return self.decisions[key]

    def emit(self, *event: Any, **data: Any) -> None:
        self.events.append(str(event))

    def end_task(self, head: Head) -> None:
        self.wire.append(head.model_dump_json())
        self.ended[head.task] = head


def task(id: str, *depends_on: str, **fields: Any) -> Task:
    return Task(id=id, worker="ann", instruction=SECRET, success_criterion=SECRET, depends_on=depends_on, **fields)


def run(
    plan: Plan, work: Work, rungs: Rungs | None = None, slow: str = "", **options: Any
) -> tuple[dict[str, Head], JsonEngine]:
    async def main() -> tuple[dict[str, Head], JsonEngine]:
        engine = JsonEngine(work, slow)
        port: StepEngine = engine
        crew = assemble({"ann": Facts(), "bob": Facts()}, port)
        return await dispatch(plan, crew, port, rungs=rungs, **options), engine

    (heads, engine), _ = run_virtual(main())
    assert not any(SECRET in text for text in engine.wire)
    assert {id: engine.ended[id] for id in heads} == heads
    return heads, engine


def finish(refs: StepRefs) -> Outcome:
    outcome = done(refs.task, refs.worker, summary=SECRET, output=SECRET, confidence=80)
    return outcome.model_copy(update={"usage": USED, "attempts": refs.attempt})


def test_results_are_handed_on_by_the_ids_of_their_tasks() -> None:
    """A step is told which outcomes it sees, never what is in them."""
    heads, engine = run(Plan(tasks=(task("a"), task("b"), task("c", "a", "b"))), lambda key, kind, refs: finish(refs))
    assert [(head.status, head.ref, head.confidence) for head in heads.values()] == [
        ("done", "a/1", 80),
        ("done", "b/1", 80),
        ("done", "c/1", 80),
    ]
    assert engine.steps == ["attempt a/1", "attempt b/1", "attempt c/1"]
    assert json.loads(engine.wire[-3])[2]["inputs"] == ["a", "b"]


def test_what_is_rewritten_stays_in_the_step_and_is_named_by_its_ref() -> None:
    """The next attempt is told under which ref its words are; what all of it used is summed from heads."""

    def work(key: str, kind: StepKind, refs: StepRefs) -> Outcome | Head:
        if kind == "refine":
            assert refs.outcome == "a/1"
            return Head(task=refs.task, worker=refs.worker, status="done", words=key, usage=USED)
        if refs.words is None:
            return failed(refs.task, refs.worker, "refused", SECRET, output=SECRET).model_copy(update={"usage": USED})
        return finish(refs)

    heads, engine = run(Plan(tasks=(task("a"),)), work, Rungs(refine=True))
    assert engine.steps == ["attempt a/1", "refine a/1/refine", "attempt a/2"]
    assert (heads["a"].attempts, heads["a"].usage.calls) == (2, 3)


def test_a_partial_result_of_an_earlier_attempt_is_named_by_its_ref() -> None:
    """What the first attempt had found is the output of a task whose last attempt had nothing."""

    def work(key: str, kind: StepKind, refs: StepRefs) -> Outcome | Head:
        found = SECRET if refs.attempt == 1 else None
        return failed(refs.task, refs.worker, "tool", SECRET, output=found).model_copy(
            update={"attempts": refs.attempt}
        )

    heads, _ = run(Plan(tasks=(task("a"), task("b", "a"))), work, policy=Policy(attempts=2))
    assert (heads["a"].ref, heads["a"].output_of, heads["a"].partial) == ("a/2", "a/1", True)
    assert (heads["b"].status, heads["b"].because) == ("skipped", ("a",))


def test_the_parts_of_a_split_are_dispatched_without_their_words() -> None:
    """Each is an attempt of its own, and one more step puts together what they came to."""

    def work(key: str, kind: StepKind, refs: StepRefs) -> Outcome | Head:
        if kind == "split":
            parts = tuple(Task(id=f"a.s.{name}", worker="bob") for name in ("p", "q"))
            return Head(task=refs.task, worker=refs.worker, status="done", parts=parts)
        if kind == "attempt" and refs.task == "a":
            return failed("a", refs.worker, "timeout", SECRET)
        if kind == "join":
            assert list(refs.parts) == ["a.s.p", "a.s.q"]
        return finish(refs)

    heads, engine = run(Plan(tasks=(task("a"),)), work, Rungs(split=True))
    assert engine.steps[1:] == ["split a/1/split", "attempt a.s.p/1", "attempt a.s.q/1", "join a/1/join"]
    assert (heads["a"].status, heads["a"].ref) == ("done", "a/1/join")


def test_a_router_and_a_person_are_asked_in_steps() -> None:
    """Which worker is next comes back as a name; what a person answers stays in the step."""

    def work(key: str, kind: StepKind, refs: StepRefs) -> Outcome | Head:
        if kind == "reroute":
            return Head(task=refs.task, worker=refs.among[-1], status="done")
        if kind == "attempt":
            return escalated(refs.task, refs.worker, "out_of_scope", SECRET)
        return finish(refs)

    plan, rungs = Plan(tasks=(task("a"),)), Rungs(ask=True, reroute=True)

    async def main() -> tuple[dict[str, Head], list[str]]:
        engine = JsonEngine(work)
        crew = assemble({"ann": Facts(), "bob": Facts(), "eve": Facts()}, engine)
        return await dispatch(plan, crew, engine, rungs=rungs, policy=Policy(attempts=2)), engine.steps

    (heads, steps), _ = run_virtual(main())
    assert steps == ["attempt a/1", "reroute a/1/reroute", "attempt a/2", "ask_result a/2/ask_result"]
    assert heads["a"].ok


def test_attempts_of_a_worker_that_is_taken_out_are_recalled() -> None:
    """A step that says it was recalled has not been made, and is made again once the worker is back."""
    asked: list[str] = []

    def work(key: str, kind: StepKind, refs: StepRefs) -> Outcome | Head:
        asked.append(key)
        return failed(refs.task, refs.worker, "internal", SECRET) if len(asked) <= 3 else finish(refs)

    plan = Plan(tasks=tuple(task(f"t{number}") for number in range(1, 5)))
    heads, engine = run(plan, work, slow="t4", policy=Policy(attempts=2))
    assert engine.steps.count("attempt t4/1") == 2
    assert [head.status for head in heads.values()] == ["done"] * 4
    assert [head.attempts for head in heads.values()] == [2, 2, 2, 1]


def plan_head(**changes: Any) -> PlanHead:
    head = PlanHead(
        ceiling=None,
        stop_at=None,
        workers={"ann": WorkerHead(tier="medium", waits_for_person=False)},
        fallbacks={},
        pools={},
        max_concurrent=8,
        ask=False,
        policy=Policy(attempts=1),
        rungs={},
        extensions=2,
        max_tasks=10,
        synthesis_tokens=100,
    )
    return head.model_copy(update=changes)


def run_flow(work: Work) -> tuple[Head, JsonEngine]:
    async def main() -> tuple[Head, JsonEngine]:
        engine = JsonEngine(work)
        return await flow.run(engine), engine

    made, _ = run_virtual(main())
    return made


def test_a_whole_run_is_in_order_by_heads_alone() -> None:
    """What failed is planned for again, and a draft that lacks something is finished when nothing can be added."""
    seen: dict[str, StepRefs] = {}

    def work(key: str, kind: StepKind, refs: StepRefs) -> Outcome | Head:
        seen[key] = refs
        match key:
            case "@plan":
                return Head(
                    status="done", parts=(Task(id="a", worker="ann"), Task(id="b", worker="ann")), plan=plan_head()
                )
            case "@extend/1":
                return Head(status="done", parts=(Task(id="x1.n1", worker="ann"),), fills={"a": ("x1.n1",)})
            case "@extend/2":
                return Head(status="skipped")
            case "@synthesis":
                return Head(status="done", ref=key, lacks=True, tokens_read=50)
            case "@synthesis/rest":
                return Head(status="done", ref=key, report="partial")
            case "a/1":
                return failed("a", "ann", "tool", SECRET)
            case _:
                return finish(refs)

    head, engine = run_flow(work)
    assert engine.steps == [
        "plan @plan",
        "attempt a/1",
        "attempt b/1",
        "extend @extend/1",
        "attempt x1.n1/1",
        "write @synthesis",
        "extend @extend/2",
        "finish @synthesis/rest",
    ]
    assert (head.ref, head.report) == ("@synthesis/rest", "partial")
    assert [key for key in engine.decisions if key.startswith("@")] == ["@extend/1/whether", "@extend/2/gaps"]
    rest = seen["@synthesis/rest"]
    assert (list(rest.inputs), list(rest.filled), rest.draft) == (["a", "b", "x1.n1"], ["a"], "@synthesis")
    assert not any(SECRET in text for text in engine.wire)


def test_an_answer_is_written_again_after_tasks_were_added_for_what_it_lacked() -> None:
    """The second answer names the draft it replaces, and may not lack anything once no round is left."""
    seen: dict[str, StepRefs] = {}

    def work(key: str, kind: StepKind, refs: StepRefs) -> Outcome | Head:
        seen[key] = refs
        match key:
            case "@plan":
                return Head(status="done", parts=(Task(id="a", worker="ann"),), plan=plan_head(extensions=1))
            case "@extend/1":
                return Head(status="done", parts=(Task(id="x1.n1", worker="ann", depends_on=("a",)),))
            case "@synthesis":
                return Head(status="done", ref=key, lacks=True)
            case "@synthesis/x1":
                return Head(status="done", ref=key, report="complete")
            case _:
                return finish(refs)

    head, engine = run_flow(work)
    assert engine.steps[-3:] == ["extend @extend/1", "attempt x1.n1/1", "write @synthesis/x1"]
    assert head.report == "complete"
    again = seen["@synthesis/x1"]
    assert (again.draft, again.round, seen["@synthesis"].may_lack, again.may_lack) == ("@synthesis", 1, True, False)


def test_a_run_without_a_plan_ends_with_the_report_of_the_plan_step() -> None:
    """Nothing is dispatched and nothing is written."""
    head, engine = run_flow(lambda key, kind, refs: Head(status="failed", ref=key, report="failed"))
    assert (head.ref, engine.steps) == ("@plan", ["plan @plan"])
