"""Flows that run on both engines: one of each shape that a run can have."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

from chargehand.errors import ModelError
from chargehand.models import Attribution
from chargehand.team import Team, Worker
from chargehand.tools import tool
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, ToolRequest
from chargehand.values.plan import Plan
from chargehand.values.plan.task import SynthesisSpec
from chargehand.values.recovery_policy import Policy
from tests.flows import Flow, Said, clerks, escalate, task, tasks, works
from tests.kernel import result


def fails_once(call: ModelCall, attribution: Attribution) -> Said:
    """The first attempt at `a` has no result."""
    if call.role == "worker" and attribution.task == "a" and attribution.attempt == 1:
        return {"summary": "", "output": None, "claims": [], "findings": [], "confidence": 10}
    return works(call, attribution)


def always_fails(call: ModelCall, attribution: Attribution) -> Said:
    if call.role == "worker" and attribution.task == "a":
        return ModelError("bad_request", "The model refuses it.")
    return works(call, attribution)


def escalates(call: ModelCall, attribution: Attribution) -> Said:
    if call.role == "worker" and attribution.task == "a":
        return escalate("out_of_scope")
    return works(call, attribution)


def plans(call: ModelCall, attribution: Attribution) -> Said:
    """The planner makes a plan; after a failure it adds a task."""
    if call.role != "planner":
        return always_fails(call, attribution)
    if "x1" in call.messages[-1].text or "failed" in call.messages[-1].text:
        return {"tasks": [{"id": "more", "worker": "clerk", "instruction": "Work out the rest of it.",
                           "success_criterion": "There is a result.", "depends_on": []}]}  # fmt: skip
    return tasks(task("a"), task("b")).to_json()


@tool(effect="read")
def lookup(name: str) -> str:
    """What is known of a name."""
    return f"{name} is known."


def uses_tool(call: ModelCall, attribution: Attribution) -> Said:
    if call.role == "worker" and attribution.task == "a" and not any(m.role == "tool" for m in call.messages):
        return Reply(tool_calls=(ToolRequest(id="1", name="lookup", arguments={"name": "x"}, raw="{}"),), stop="tools")
    return works(call, attribution)


def large(call: ModelCall, attribution: Attribution) -> Said:
    return result("x" * 300_000) if call.role == "worker" else works(call, attribution)


FLOWS: dict[str, Callable[[], Flow]] = {
    "one task": lambda: Flow(works, tasks(task("a"))),
    "a diamond": lambda: Flow(works, tasks(task("a"), task("b"), task("c", "a", "b"), task("d", "c", "a"))),
    "a fan of twenty": lambda: Flow(works, tasks(*(task(f"t{n}") for n in range(20)), task("z", "t1", "t2"))),
    "a retry": lambda: Flow(fails_once, tasks(task("a"), task("b", "a"))),
    "a failure that is skipped": lambda: Flow(always_fails, tasks(task("a"), task("b", "a"), task("c"))),
    "a failure that others proceed with": lambda: Flow(
        always_fails, tasks(task("a"), task("b", "a", on_dependency_failure="proceed"), task("c"))
    ),
    "an escalation": lambda: Flow(escalates, tasks(task("a"), task("b"))),
    "another worker": lambda: Flow(
        lambda call, who: escalate("out_of_scope") if call.worker == "clerk" and who.task == "a" else works(call, who),
        tasks(task("a"), task("b")),
        clerks(Worker("other", "Does other work")),
    ),
    "a planner and an extension": lambda: Flow(plans, None),
    "tools": lambda: Flow(
        uses_tool, tasks(task("a"), task("b", "a")), Team([Worker("clerk", "Does clerical work", tools=[lookup])])
    ),
    "large results": lambda: Flow(large, tasks(task("a"), task("b", "a"))),
    "no retries": lambda: Flow(fails_once, tasks(task("a"), task("b")), clerks(recovery=Policy(attempts=1))),
}


@tool(effect="once")
def send(what: str) -> str:
    """Send something."""
    return f"{what} was sent"


def sends(call: ModelCall, attribution: Attribution) -> Said:
    """Two tools of effect `once` in one step, then one more."""
    said = sum(message.role == "assistant" for message in call.messages)
    if call.role != "worker" or attribution.task != "a" or said > 1:
        return works(call, attribution)
    wanted = (("first", "second"), ("third",))[said]
    requests = (ToolRequest(id=what, name="send", arguments={"what": what}, raw="{}") for what in wanted)
    return Reply(tool_calls=tuple(requests), stop="tools")


def part(id: str, *needs: str, worker: str = "clerk") -> dict[str, Any]:
    return {"id": id, "worker": worker, "instruction": "Work out a part of it.",
            "success_criterion": "There is a result.", "depends_on": list(needs)}  # fmt: skip


def splits(call: ModelCall, attribution: Attribution) -> Said:
    """`a` is too much for one call, and is planned again as two parts."""
    if call.role == "planner":
        of = [part("p1"), part("p2", "p1")] if attribution.task else [part("a"), part("b", "a")]
        return {"goal": "g", "tasks": of}
    if call.role == "worker" and attribution.task == "a":
        return ModelError("context_too_long", "It is too much.")
    return works(call, attribution)


def compete(plan: Plan) -> Flow:
    """Each member says something else of `a`; the judge takes what has RESULT-2 or else RESULT-b in it."""

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.role == "worker" and attribution.task == "a":
            keys = [who.idempotency_key for _, _, who in flow.model.asked if who.task == "a"]
            return result(f"RESULT-{keys.index(attribution.idempotency_key) + 1}")
        if call.role != "judge" or "Result 1" not in call.messages[-1].text:
            return works(call, attribution)
        shown = re.findall(r"Result (\d).*?RESULT-(\w)", call.messages[-1].text, re.DOTALL)
        scores = [{"candidate": int(at), "score": 90 if name in "2b" else 40} for at, name in shown]
        best = max(scores, key=lambda each: each["score"])
        return {"scores": scores, "best": best["candidate"], "reason": "It says most."}

    flow = Flow(talk, plan)
    return flow


def delegates(call: ModelCall, attribution: Attribution) -> Said:
    if call.role == "planner":
        return {"goal": "g", "tasks": [part("t1", worker="digger"), part("t2", "t1", worker="sifter")]}
    if call.role == "synthesizer" and attribution.task is not None:
        return {"answer": "Gold [t1] and sand [t2].", "confidence": 60}
    return works(call, attribution)


def climbs(call: ModelCall, attribution: Attribution) -> Said:
    """`a` breaks its contract twice: another tier, then other words, then a result."""
    if call.role == "worker" and attribution.task == "a" and (attribution.attempt or 0) < 3:
        return "no JSON at all"
    return works(call, attribution)


def scores_low(call: ModelCall, attribution: Attribution) -> Said:
    """The first result of `a` does not meet its criterion."""
    if call.role == "scorer" and attribution.task == "a" and attribution.attempt == 1:
        return {"score": 10, "met": False, "reason": "It is not there."}
    return works(call, attribution)


def hangs(call: ModelCall, attribution: Attribution) -> Any:
    """`slow` has no answer within the deadline of the run."""

    async def wait() -> Said:
        await asyncio.sleep(600)
        return works(call, attribution)

    return wait() if call.role == "worker" and attribution.task == "slow" else works(call, attribution)


DIGGERS = Team([Worker("digger", "Digs"), Worker("sifter", "Sifts")], name="diggers")
NESTED = Team(
    [Worker("clerk", "Does clerical work"), Worker("crew", "Finds out", kind="delegate", team=DIGGERS)], name="office"
)


def combined(mode: Any, *of: str) -> Plan:
    return Plan(goal="A goal", tasks=tuple(map(task, of)), synthesis=SynthesisSpec(mode=mode, instruction="As told."))


FLOWS |= {
    "a team within": lambda: Flow(delegates, tasks(task("a"), task("b", "a", worker="crew")), NESTED),
    "tools that run once": lambda: Flow(
        sends, tasks(task("a"), task("b", "a")), Team([Worker("clerk", "Does clerical work", tools=[send])])
    ),
    "a split": lambda: Flow(splits, None),
    "best of three": lambda: compete(tasks(task("a", best_of=3), task("b", "a"))),
    "select": lambda: compete(combined("select", "a", "b", "c")),
    "reduce": lambda: Flow(works, combined("reduce", *(f"t{n}" for n in range(12)))),
    "a ladder": lambda: Flow(climbs, tasks(task("a"), task("b", "a"))),
    "a criterion": lambda: Flow(scores_low, tasks(task("a"), task("b", "a")), clerks(recovery=Policy(score=True))),
    "a deadline": lambda: Flow(hangs, tasks(task("fast"), task("slow"), task("c", "slow")), request={"deadline_s": 5}),
}
