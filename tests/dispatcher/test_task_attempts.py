"""Each rung of the ladder really acts, on the record; criteria are checked; a crash anywhere changes no decision."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_core import from_json

from chargehand.dispatcher.available_workers import AvailableWorkers
from chargehand.engine.port import Engine
from chargehand.errors import ErrorKind, ModelError
from chargehand.models import Attribution
from chargehand.models.schema_modes import fit
from chargehand.record.memory_journal import MemoryStore
from chargehand.record.replay import replay
from chargehand.steps.join_parts import join_parts
from chargehand.steps.supervisor_help import SupervisorHelp
from chargehand.team import Team, Worker
from chargehand.testing import run_virtual
from chargehand.values.effect import ModelCall, Question
from chargehand.values.outcome import Finding, Outcome, done, escalated, failed
from chargehand.values.plan import Plan, Tier
from chargehand.values.recovery_policy import Policy
from chargehand.values.report import Report
from chargehand.workers import Assignment
from chargehand.workers.human import Human
from tests.flows import Flow, Said, by_task, clerks, escalate, task, tasks, texts, works
from tests.kernel import FunctionModel, after, engine, result, run_plan, stored
from tests.simulation.world import idempotency_key

SCHEMA: dict[str, Any] = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def troubled(trouble: Callable[[ModelCall, Attribution], Said | None]) -> Callable[[ModelCall, Attribution], Said]:
    """Everything works but for the workers' calls that `trouble` answers."""

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        said = trouble(call, attribution) if call.role == "worker" else None
        return works(call, attribution) if said is None else said

    return talk


# -- the rungs -------------------------------------------------------------------------------------------------------


def busy_at_first() -> Flow:
    left = [5]

    def trouble(call: ModelCall, attribution: Attribution) -> Said | None:
        left[0] -= 1
        return ModelError("connection", "no line") if left[0] >= 0 else None

    policy = Policy(ladder={"transient": ("retry",)})
    return Flow(troubled(trouble), tasks(task("a")), clerks(recovery=policy))


@pytest.mark.parametrize("error", ["rate_limited", "overloaded", "connection"])
def test_an_error_that_never_ends_is_a_gap_after_a_minute(error: ErrorKind) -> None:
    """Five sends of one task's call and no second attempt: nothing would be different. The others are done."""

    def trouble(call: ModelCall, attribution: Attribution) -> Said | None:
        return ModelError(error, "for ever") if attribution.task == "a" else None

    flow = Flow(troubled(trouble), tasks(task("a"), *(task(f"t{n}") for n in range(5))))
    report = flow.run()
    assert (report.status, [gap.task for gap in report.gaps]) == ("partial", ["a"])
    assert (report.outcomes[0].attempts, len([who for _, _, who in flow.model.asked if who.task == "a"])) == (1, 5)
    assert 30 < flow.took < 90


def test_a_provider_that_is_away_for_half_a_minute_costs_no_task() -> None:
    """Also where there is one task only, so that no other call finds out that it works again."""

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.role == "worker" and 2 < asyncio.get_running_loop().time() < 32:
            return ModelError("overloaded", "restarting")
        return works(call, attribution)

    report = Flow(talk, tasks(task("first"), task("a", "first"))).run()
    assert (report.status, {outcome.attempts for outcome in report.outcomes}) == ("complete", {1})


def test_retry_waits_and_tries_the_same_again() -> None:
    """Where a team says so, a call that failed with all its transport retries makes a second attempt after a pause."""
    flow = busy_at_first()
    report = flow.run()
    assert report.status == "complete"
    assert report.outcomes[0].attempts == 2
    decision = flow.decisions()["a/1/recovery"]
    assert decision["kind"] == "retry"
    assert 0 < decision["after_s"] < 1
    assert len(flow.calls()) == 6


def clumsy() -> Flow:
    def trouble(call: ModelCall, attribution: Attribution) -> Said | None:
        return None if "BETTER-WORDS" in texts([call]) else ModelError("bad_request", "THE-ERROR")

    return Flow(troubled(trouble), tasks(task("a")))


def test_a_long_rate_limit_does_not_use_up_the_retries_of_one_task() -> None:
    """Fifty seconds of 429 without Retry-After: the calls take turns to ask, and none has to begin anew."""

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        if asyncio.get_running_loop().time() < 50:
            return ModelError("rate_limited", "busy")
        return works(call, attribution)

    flow = Flow(talk, tasks(task("b"), *(task(f"t{n}") for n in range(9))), seconds=0.1)
    report = flow.run()
    assert report.status == "complete"
    assert {outcome.attempts for outcome in report.outcomes} == {1}
    sends = Counter(who.idempotency_key for _, _, who in flow.model.asked)
    assert max(sends.values()) <= 3
    assert sends.total() < 30


def test_refine_rewrites_the_instruction_from_the_error_on_the_record() -> None:
    """First the same again, then with the supervisor's words; the rewrite is an event with its reason."""
    flow = clumsy()
    report = flow.run()
    assert report.status == "complete"
    assert flow.rungs("a") == ["retry", "refine"]
    assert flow.decisions("rewrite") == {"a/2/rewrite": {"instruction": "BETTER-WORDS for it."}}
    assert "THE-ERROR" in texts(flow.calls("refiner"))
    assert "Work out the part a." not in texts(flow.calls()[2:])
    assert report.outcomes[0].attempts == 3


def shapeless() -> Flow:
    def trouble(call: ModelCall, attribution: Attribution) -> Said | None:
        return result({"n": 1}) if call.model == "scripted:large" else result("no number")

    return Flow(
        troubled(trouble), tasks(task("a", worker="typed")), clerks(Worker("typed", "Counts", output_schema=SCHEMA))
    )


def test_upgrade_uses_the_next_tiers_model() -> None:
    """An answer that does not keep to its shape, asked for twice, is worth a better model."""
    flow = shapeless()
    report = flow.run()
    assert report.status == "complete"
    assert flow.decisions()["a/1/recovery"]["tier"] == "large"
    assert [call.model for call in flow.calls()] == ["scripted:medium", "scripted:medium", "scripted:large"]


def not_mine() -> Flow:
    def trouble(call: ModelCall, attribution: Attribution) -> Said | None:
        return escalate("out_of_scope") if call.worker in ("clerk", "second") else None

    third = Worker("third", "Comes third")
    return Flow(
        troubled(trouble),
        tasks(task("a", worker="clerk")),
        clerks(third, Worker("second", "Stands in", fallback="third")),
    )


def test_reassign_goes_through_the_roster_and_never_back() -> None:
    """Out of scope: the next worker in roster order gets it; one that failed it does not get it again."""
    flow = not_mine()
    report = flow.run()
    assert report.status == "complete"
    assert [call.worker for call in flow.calls()] == ["clerk", "third"]
    assert report.outcomes[0].worker == "third"


def test_reassign_takes_the_fallback_first() -> None:
    """The worker named as fallback comes before those that stand earlier in the roster."""
    flow = not_mine()
    flow.team = clerks(Worker("third", "Comes third"), Worker("second", "Stands in"), name="team")
    flow.team = type(flow.team)(
        [Worker("clerk", "Does clerical work", fallback="second"), *flow.team.workers[1:]], name="team"
    )
    report = flow.run()
    assert [call.worker for call in flow.calls()] == ["clerk", "second", "third"]
    assert report.status == "complete"


@pytest.mark.parametrize("number", [1, 40])
def test_a_server_that_answers_pages_ends_a_run_soon(number: int) -> None:
    """All attempts of all tasks, without a deadline: nothing waits long for a provider that never answered."""
    page = ModelError("contract", "PAGE; check that this address is a model server's", transient=True)
    flow = Flow(lambda call, who: page, tasks(*(task(f"t{n}") for n in range(number))))
    report = flow.run()
    assert (report.status, len(report.gaps)) == ("failed", number)
    assert flow.took < 30
    assert any("PAGE" in gap.reason for gap in report.gaps)


def too_much(second: dict[str, Any] | None = None) -> Flow:
    part = {"worker": "clerk", "instruction": "Do a part.", "success_criterion": "It is there.", "depends_on": []}
    parts = {"goal": "g", "tasks": [part | {"id": "p1"}, part | {"id": "p2", "depends_on": ["p1"]} | (second or {})]}
    whole = {"goal": "g", "tasks": [part | {"id": "a"}, part | {"id": "b", "depends_on": ["a"]}]}

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.role == "planner" and ", a gap" in call.messages[-1].text:
            return {"tasks": []}
        if call.role == "planner":
            return parts if attribution.task else whole
        if call.role == "worker" and attribution.task == "a":
            return ModelError("context_too_long", "It is too much.")
        if call.role == "worker" and attribution.task == "a.s.p2" and second == {"instruction": "Fail."}:
            return ModelError("refused", "No.")
        return works(call, attribution)

    return Flow(talk, None)


def test_split_puts_smaller_tasks_in_a_tasks_place() -> None:
    """They are planned and validated like any plan, run as dataflow, and their results are the task's one outcome."""
    flow = too_much()
    report = flow.run()
    assert report.status == "complete"
    outcomes = by_task(report)
    assert list(outcomes) == ["a", "b"]
    assert outcomes["a"].output == {"a.s.p1": "RESULT-a.s.p1", "a.s.p2": "RESULT-a.s.p2"}
    assert outcomes["a"].attempts == 1
    assert "RESULT-a.s.p1" in texts(flow.calls(task="a.s.p2"))
    assert "RESULT-a.s.p2" in texts(flow.calls(task="b"))
    assert outcomes["a"].usage.calls == 4, "its own attempt, the split, two parts"
    assert [e.task for e in flow.events if e.kind == "task_ended"] == ["a.s.p1", "a.s.p2", "a", "b"]


def test_the_planner_is_held_to_the_shape_of_tasks_in_a_split_and_in_an_extension() -> None:
    """Both schemas name the workers, and providers' strict modes take them: what comes back is tasks, not text."""
    flow = too_much({"instruction": "Fail."})
    flow.run()
    _, split, extension = flow.calls("planner")
    for call, more in ((split, set()), (extension, {"replaces"})):
        fitted = fit(call.packed_schema, all_required=True)
        assert fitted is not None
        task = from_json(fitted)["properties"]["tasks"]["items"]
        assert {"id", "instruction", "depends_on", *more} <= task["properties"].keys()
        assert task["properties"]["worker"]["enum"] == ["clerk"]


def test_a_split_with_a_failed_part_keeps_what_is_there() -> None:
    """The task failed, its partial result names the parts that are done, and the gap says which are not."""
    flow = too_much({"instruction": "Fail."})
    report = flow.run()
    a = by_task(report)["a"]
    assert (a.status, a.partial, a.output) == ("failed", True, {"a.s.p1": "RESULT-a.s.p1"})
    assert "a.s.p2" in a.summary
    assert [gap.task for gap in report.gaps] == ["a", "b"]


@pytest.mark.parametrize("broken", [{"worker": "nobody"}, {"depends_on": ["p2"]}, {"success_criterion": ""}])
def test_a_split_that_cannot_be_run_is_passed_over(broken: dict[str, Any]) -> None:
    """An invalid sub-plan is on the record with its problems, and the next rung is taken."""
    flow = too_much(broken)
    flow.run()
    assert flow.rungs("a")[:2] == ["split", "upgrade"]
    (drafted,) = [e for e in flow.events if e.kind == "plan_drafted" and e.task == "a"]
    assert drafted.data["problems"]
    assert flow.rungs("a").count("split") == 1


def test_a_given_plan_is_never_planned_on() -> None:
    """With --plan there is no planner call at all, so no split either."""
    flow = too_much()
    flow.plan = tasks(task("a"))
    flow.run()
    assert flow.calls("planner") == []
    assert "split" not in flow.rungs("a")


def asked_of(flow_said: list[str], people: Any, worker: Any, policy: Policy | None = None) -> Outcome:
    """One task of a worker made of code, with a person to ask."""

    def about(task: Any, outcome: Outcome) -> Question:
        flow_said.append(outcome.summary)
        return Question(id=task.id, kind="escalation", prompt=outcome.summary)

    async def main() -> Outcome:
        async with engine(FunctionModel(after(0)), people=people) as local:
            help = SupervisorHelp(ask=about)
            plan = tasks(task("a"))
            return (await run_plan(plan, {"clerk": worker}, local, help=help, policy=policy))["a"]

    return run_virtual(main())[0]


class Coded:
    """A worker made of a function of its assignment."""

    tier: Tier = "large"
    check: str | None = None
    output_schema: dict[str, Any] | None = None
    waits_for_person: bool = False

    def __init__(self, does: Callable[[Assignment], Outcome]) -> None:
        self.does = does
        self.assignments: list[Assignment] = []

    def model_for(self, tier: Tier | None) -> str | None:
        return None

    async def work(self, assignment: Assignment, engine: Engine) -> Outcome:
        self.assignments.append(assignment)
        await engine.clock.sleep(1)
        return self.does(assignment)


async def blue(_: Question) -> str:
    return "The blue one."


def unsure(assignment: Assignment) -> Outcome:
    if "blue" in str(assignment.task.context):
        return done("a", "clerk", summary="Done.", output="blue")
    return escalated("a", "clerk", "ambiguous_input", "Which one?")


def test_ask_puts_the_answer_into_the_task() -> None:
    """The next attempt sees what was asked and what the person said."""
    asked: list[str] = []
    worker = Coded(unsure)
    outcome = asked_of(asked, blue, worker)
    assert outcome.output == "blue"
    assert outcome.attempts == 2
    assert asked == ["Which one?"]
    assert worker.assignments[1].task.context["their answer"] == "The blue one."  # type: ignore[index]


def test_after_the_last_attempt_the_answer_is_the_result() -> None:
    """A task that used up its attempts is not tried again: what the person says stands."""
    asked: list[str] = []
    worker = Coded(unsure)
    outcome = asked_of(asked, blue, worker, Policy(attempts=1))
    assert (outcome.status, outcome.output, outcome.worker) == ("done", "The blue one.", "person")
    assert len(worker.assignments) == 1


@pytest.mark.parametrize(
    ("said", "status", "kind"),
    [("escalate: no idea", "escalated", None), ("dunno", "failed", "contract"), ('{"total": 3}', "done", None)],
)
def test_a_result_a_person_gives_is_held_to_what_a_worker_is_held_to(said: str, status: str, kind: str | None) -> None:
    """Handing it back is an escalation, and the worker's schema holds for people too."""

    async def answers(_: Question) -> Any:
        return json.loads(said) if said.startswith("{") else said

    worker = Coded(unsure)
    worker.output_schema = {"type": "object", "required": ["total"]}
    outcome = asked_of([], answers, worker, Policy(attempts=1))
    assert outcome.status == status
    assert (outcome.error.kind if outcome.error else None) == kind


def test_what_an_earlier_attempt_had_is_not_lost() -> None:
    """A partial result of the first attempt stays when the others had nothing."""

    def does(assignment: Assignment) -> Outcome:
        if assignment.attempt == 1:
            return escalated("a", "clerk", "confidence_too_low", "Not sure.", "HALF-OF-IT")
        return failed("a", "clerk", "tool", "no")

    async def main() -> Outcome:
        async with engine(FunctionModel(after(0))) as local:
            policy = Policy(ladder={"failure": ("retry", "retry"), "confidence_too_low": ("retry",)})
            return (await run_plan(tasks(task("a")), {"clerk": Coded(does)}, local, policy=policy))["a"]

    outcome = run_virtual(main())[0]
    assert (outcome.status, outcome.output, outcome.partial) == ("failed", "HALF-OF-IT", True)


def test_parts_that_are_done_keep_their_findings() -> None:
    """A split with one part missing fails, and what the other part found is still in the report."""
    found = Finding(severity="critical", message="A hole.")
    good = done("a.s.x", "clerk", summary="s", output=1, findings=[found])
    outcome = join_parts(task("a"), [good, failed("a.s.y", "clerk", "tool", "no")])
    assert outcome.status == "failed"
    assert [(f.message, f.sources) for f in outcome.findings] == [("A hole.", ("a",))]
    alone = join_parts(task("a"), [failed("a.s.y", "clerk", "tool", "no")])
    assert [each.summary.partition(".")[0] for each in (outcome, alone)] == ["Split into 2 tasks", "Split into 1 task"]


def test_people_get_what_others_could_not_do_only_where_they_may_be_asked() -> None:
    """Without --ask a human worker is neither the next in the roster nor a fallback."""
    roster = {"clerk": Coded(unsure), "boss": Human("boss")}
    assert AvailableWorkers(roster, {"clerk": "boss"}).others("clerk", ()) == ()
    assert AvailableWorkers(roster, {"clerk": "boss"}).fallback_for("clerk", ()) is None
    assert AvailableWorkers(roster, {"clerk": "boss"}, ask=True).others("clerk", ()) == ("boss",)


def test_a_person_is_asked_once_a_task() -> None:
    """Asked, tried again, unclear again: no second question."""
    asked: list[str] = []
    worker = Coded(lambda _: escalated("a", "clerk", "ambiguous_input", "Which one?"))
    outcome = asked_of(asked, blue, worker)
    assert outcome.status == "escalated"
    assert len(asked) == 1


def hopeless() -> Flow:
    return Flow(troubled(lambda call, who: ModelError("bad_request", "NO-WAY") if who.task == "a" else None),
                tasks(task("a"), task("b")))  # fmt: skip


def test_giving_up_is_a_gap_with_its_reason() -> None:
    """Three attempts, then the task is failed; the report names it, why, and what it costs."""
    flow = hopeless()
    report = flow.run()
    assert report.status == "partial"
    assert flow.rungs("a") == ["retry", "refine", "give_up"]
    (gap,) = report.gaps
    assert gap.task == "a"
    assert "NO-WAY" in gap.reason
    assert gap.impact
    assert by_task(report)["a"].attempts == 3


def test_every_decision_is_an_event_with_its_reason() -> None:
    """Whoever reads the record sees why each rung was taken."""
    flow = hopeless()
    flow.run()
    decided = [e for e in flow.events if e.kind == "decision" and e.data["decision"] == "recovery"]
    assert decided
    assert all("NO-WAY" in e.data["reason"] and e.task == "a" and e.attempt for e in decided)


# -- criteria --------------------------------------------------------------------------------------------------------


def scored(met: Callable[[int], Said]) -> Flow:
    times = [0]

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.role == "scorer":
            times[0] += 1
            return met(times[0])
        return works(call, attribution)

    return Flow(talk, tasks(task("a")), clerks(recovery=Policy(score=True)))


def test_no_exception_is_not_success() -> None:
    """A result that does not meet its criterion is a contract failure: a better model does it again."""
    flow = scored(lambda n: {"score": 20 if n == 1 else 90, "met": n > 1, "reason": "THE-LACK"})
    report = flow.run()
    assert report.status == "complete"
    assert flow.rungs("a") == ["upgrade"]
    assert [call.model for call in flow.calls()] == ["scripted:medium", "scripted:large"]
    assert [call.model for call in flow.calls("scorer")] == ["scripted:small"] * 2
    assert report.usage.calls == 4, "the scorer's calls are counted"


def test_a_criterion_never_met_is_a_gap_that_keeps_the_result() -> None:
    """What there is stays as a partial result, with what is missing."""
    flow = scored(lambda _: {"score": 20, "met": False, "reason": "THE-LACK"})
    report = flow.run()
    outcome = report.outcomes[0]
    assert outcome.error is not None
    assert outcome.error.kind == "criterion_not_met"
    assert "THE-LACK" in outcome.summary
    assert (outcome.output, outcome.partial) == ("RESULT-a", True)


@pytest.mark.parametrize("said", ["no json", ModelError("bad_request", "no"), {"score": "high", "met": 1}])
def test_a_scorer_that_fails_refutes_nothing(said: Said) -> None:
    """The result stands, unscored, and a warning says so."""
    flow = scored(lambda _: said)
    report = flow.run()
    assert report.status == "complete"
    assert any(e.kind == "warning" and "not scored" in e.data["message"] for e in flow.events)


def test_without_the_teams_wish_nothing_is_scored() -> None:
    """A scorer costs a call a task, so it is off by default."""
    flow = Flow(works, tasks(task("a")))
    flow.run()
    assert flow.calls("scorer") == []


def has_figures(output: str) -> str:
    """What is missing; nothing when it is good."""
    return "" if any(c.isdigit() for c in output) else "THE-CHECK wants a figure"


def test_a_workers_own_check_decides_without_a_model() -> None:
    """A deterministic check that fails is criterion_not_met; once it holds the task is done."""

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        return works(call, attribution) if call.role != "worker" else result("7" if attribution.attempt == 2 else "few")

    flow = Flow(talk, tasks(task("a", worker="counter")), clerks(Worker("counter", "Counts", check=has_figures)))
    report = flow.run()
    assert report.status == "complete"
    assert report.outcomes[0].output == "7"
    ended = [e.data for e in flow.events if e.kind == "attempt_ended"]
    assert ended[0]["error"]["kind"] == "criterion_not_met"
    assert "THE-CHECK" in ended[0]["error"]["message"]


# -- time ------------------------------------------------------------------------------------------------------------


def test_a_tasks_seconds_are_for_all_its_attempts() -> None:
    """`budget.seconds` is the task's total: an attempt that failed late leaves the next one what is left."""
    worker = Coded(
        lambda a: failed("a", "clerk", "tool", "no") if a.attempt == 1 else done("a", "x", summary="", output=1)
    )

    async def main() -> Outcome:
        async with engine(FunctionModel(after(0))) as local:
            return (await run_plan(tasks(task("a", budget={"seconds": 1.5})), {"clerk": worker}, local))["a"]

    outcome, seconds = run_virtual(main())
    assert outcome.error is not None
    assert outcome.error.kind == "timeout"
    assert seconds == pytest.approx(1.5)


@pytest.mark.parametrize("role", ["refiner", "planner"])
def test_the_deadline_holds_while_a_task_is_being_recovered(role: str) -> None:
    """A rewrite or a split that takes for ever is cut off like any work, and what it used is counted."""
    flow = clumsy() if role == "refiner" else too_much()
    talk = flow.talk

    async def slow(call: ModelCall, attribution: Attribution) -> Said:
        if call.role == role and attribution.task:
            await asyncio.sleep(1_000)
        return talk(call, attribution)  # type: ignore[return-value]

    flow.talk, flow.request = slow, {"deadline_s": 10}
    report = flow.run()
    assert flow.took <= 10
    error = by_task(report)["a"].error
    assert error is not None
    assert error.kind == "deadline"


def test_a_pause_before_a_retry_ends_with_the_deadline() -> None:
    """Waiting for a provider that is out counts too."""
    flow = Flow(troubled(lambda *_: ModelError("connection", "no line")), tasks(task("a")), request={"deadline_s": 5})
    report = flow.run()
    assert flow.took <= 5
    assert report.status == "failed"


def test_a_resumed_attempt_has_what_is_left_of_its_time() -> None:
    """Three of five seconds were used before the interruption: two are left after it."""

    async def slow(call: ModelCall, attribution: Attribution) -> Said:
        await asyncio.sleep(100)
        return works(call, attribution)

    flow = Flow(slow, tasks(task("a", timeout_s=9)), clerks(recovery=Policy(attempts=1)), seconds=0)
    first = flow.run(interrupt_at=1)
    assert first.status == "interrupted"
    assert flow.took == pytest.approx(6), "calls in flight get five seconds to end"
    report = flow.run(number=1)
    assert flow.took == pytest.approx(3)
    assert report.outcomes[0].error is not None
    assert report.outcomes[0].error.kind == "timeout"


# -- the record ------------------------------------------------------------------------------------------------------

SCENES: dict[str, Callable[[], Flow]] = {
    "retry": busy_at_first,
    "refine": clumsy,
    "upgrade": shapeless,
    "reassign": not_mine,
    "split": too_much,
    "failed split": lambda: too_much({"instruction": "Fail."}),
    "give up": hopeless,
    "score": lambda: scored(lambda n: {"score": 20 if n == 1 else 90, "met": n > 1, "reason": "THE-LACK"}),
}


def _essence(report: Report) -> list[tuple[Any, ...]]:
    return [(o.task, o.status, o.worker, o.output, o.attempts, o.usage.calls, o.usage.tokens) for o in report.outcomes]


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
def test_a_crash_in_the_middle_of_any_rung_changes_no_decision(scene: str) -> None:
    """The record is cut after each event; the resumed run decides nothing again and repeats no committed call.

    The troubles go by what is asked, or are used up by calls that were made: a resumed run has none of those.
    """
    whole = SCENES[scene]()
    expected = whole.run()
    for kept in range(1, len(whole.events)):
        flow = SCENES[scene]()
        flow.store = MemoryStore(whole.store.events[:kept], dict(whole.store.blobs))
        known = replay(stored(flow.store))
        if scene in ("retry", "score"):  # what these answer depends on how often they were asked
            _use_up(flow, whole, known.committed)
        made = len(flow.model.asked)
        report = flow.run(number=1)
        sent = [who.idempotency_key for _, _, who in flow.model.asked[made:]]
        done_before = _keys(known.committed)
        assert done_before.isdisjoint(sent), f"cut after event {kept}"
        again = {**flow.decisions(), **flow.decisions("rewrite")}
        assert {
            k: v for k, v in known.decisions.items() if k.endswith(("recovery", "rewrite"))
        }.items() <= again.items()
        if scene != "retry":
            assert _essence(report) == _essence(expected), f"cut after event {kept}"
        assert report.status == expected.status


def _use_up(flow: Flow, whole: Flow, committed: dict[str, Any]) -> None:
    """Make the calls whose results are on the record, as the session before the crash did."""
    for call, _, who in whole.model.asked:
        if who.idempotency_key in _keys(committed):
            flow.talk(call, who)


def _keys(committed: dict[str, Any]) -> set[str]:
    """The idempotency keys of the committed calls."""
    return {idempotency_key("run", key, effect.fingerprint) for key, effect in committed.items()}


def test_parts_of_a_split_that_ended_stay_ended() -> None:
    """Interrupted between two parts, the resumed run makes only the second one, from the plan on the record."""
    flow = too_much()
    flow.run(interrupt_at=3.5)
    assert [e.task for e in flow.events if e.kind == "task_ended"] == ["a.s.p1"]
    report = flow.run(number=1)
    assert report.status == "complete"
    assert len(flow.calls("planner")) == 2
    assert len(flow.calls(task="a.s.p1")) == 1


def test_a_reopened_split_repeats_only_the_parts_that_are_not_done() -> None:
    """`--retry-failed` goes on with the parts there are: no new attempt at the whole, no new split, no done part."""
    flow = too_much({"instruction": "Fail."})
    assert flow.run().status == "failed"
    made = len(flow.model.asked)
    fine = too_much({"instruction": "Do what is left."})
    fine.store = flow.store
    report = fine.run(number=1, reopen=("a", "b"))
    assert report.status == "complete"
    assert by_task(report)["a"].output == {"a.s.p1": "RESULT-a.s.p1", "a.s.p2": "RESULT-a.s.p2"}
    assert len(flow.model.asked) == made
    assert [(call.role, who.task) for call, _, who in fine.model.asked] == [
        ("worker", "a.s.p2"),
        ("worker", "b"),
        ("judge", None),
        ("synthesizer", None),
    ]
    assert Plan.model_validate(replay(fine.events).plan).tasks[0].id == "a", "the plan is the run's, not the split's"


def test_a_part_that_rests_on_a_reopened_one_is_done_again() -> None:
    """What it was given is about to change; a part beside it stays as it is."""
    flow = too_much()
    flow.run()
    state = replay(flow.events)
    state.ended["a.s.p1"] = failed("a.s.p1", "clerk", "refused", "No.")
    state.reopen(["a"])
    assert [id for id in state.ended if id.startswith("a")] == []
    assert state.reopened == {"a.s.p1": 1, "a.s.p2": 1}


def test_a_split_whose_parts_are_all_done_is_reopened_as_a_whole() -> None:
    """It was the whole that would not do: it is tried anew, and none of its parts is taken for done."""
    flow = too_much()
    flow.run()
    state = replay(flow.events)
    state.reopen(["a"])
    assert not any(id.startswith("a") for id in state.ended)
    assert state.reopened == {"a": 1, "a.s.p1": 1, "a.s.p2": 1}


# -- a split's result ------------------------------------------------------------------------------------------------


def splitting(schema: dict[str, Any] | None = None, check: Any = None) -> Flow:
    flow = too_much()
    flow.team = Team([Worker("clerk", "Does clerical work", output_schema=schema, check=check)])
    return flow


def test_a_splits_result_is_held_to_the_workers_schema() -> None:
    """Parts that are done each for itself do not make a result of another shape done; what is there stays."""
    flow = splitting(schema={"type": "object", "required": ["total"]})
    talk = flow.talk

    def shaped(call: ModelCall, attribution: Attribution) -> Said:
        part = call.role == "worker" and (attribution.task or "").startswith("a.s.")
        return result({"total": 1}) if part else talk(call, attribution)  # type: ignore[return-value]

    flow.talk = shaped
    a = by_task(flow.run())["a"]
    assert a.error is not None
    assert (a.error.kind, a.partial) == ("contract", True)
    assert "agreed shape" in a.error.message
    assert a.output == {"a.s.p1": {"total": 1}, "a.s.p2": {"total": 1}}


def test_a_splits_result_is_held_to_the_workers_check() -> None:
    """The check sees the joined result, under a key of its own."""
    seen: list[Any] = []

    def complete(output: Any) -> str:
        """What is missing."""
        seen.append(output)
        return "THE-WHOLE is missing" if isinstance(output, dict) else ""

    a = by_task((flow := splitting(check=complete)).run())["a"]
    assert a.error is not None
    assert (a.error.kind, a.partial) == ("criterion_not_met", True)
    assert "THE-WHOLE" in a.error.message
    assert {"a.s.p1": "RESULT-a.s.p1", "a.s.p2": "RESULT-a.s.p2"} in seen
    assert "a/1/split/check" in [e.data["key"] for e in flow.events if e.kind == "tool_called"]
