"""`best_of`: one attempt made several times side by side, the best result kept, all of it on the record."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from chargehand import tool
from chargehand.engine.port import Engine
from chargehand.errors import StorageError
from chargehand.models import Attribution
from chargehand.planner.preview import preview
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.record.replay import replay
from chargehand.runs.roster import roster
from chargehand.settings import Settings
from chargehand.steps.supervisor_help import SupervisorHelp
from chargehand.team import Worker
from chargehand.testing import run_virtual
from chargehand.text.plan_json import read
from chargehand.text.redaction import Redactor
from chargehand.trace import fold, to_html
from chargehand.values.effect import ModelCall
from chargehand.values.key import Key
from chargehand.values.outcome import Outcome, Usage, done, failed
from chargehand.values.plan import Task, Tier
from chargehand.values.recovery_policy import Policy
from chargehand.values.request import Request
from chargehand.workers import Assignment
from tests.flows import TIERS, Flow, Said, by_task, clerks, task, tasks, works
from tests.kernel import FunctionModel, after, engine, result, run_plan, stored
from tests.simulation.world import idempotency_key

NUMBERS = range(1, 6)
Talks = Callable[[int, ModelCall, Attribution], Said]


def member(call: ModelCall, who: Attribution) -> int:
    """Which member makes this call; 0 when it is nobody's."""
    keys = {idempotency_key("run", f"{who.task}/{who.attempt}/b{n}/model/1", call.fingerprint): n for n in NUMBERS}
    return keys.get(who.idempotency_key, 0)


def several(talks: Talks, number: int = 3, worker: Worker | None = None, **fields: Any) -> Flow:
    """One task with so many members, the nth of which is answered by `talks(n, ...)`."""

    def talk(call: ModelCall, who: Attribution) -> Said:
        if call.role == "judge":
            return judged(call)
        return talks(member(call, who), call, who) if call.role == "worker" else works(call, who)

    team = clerks(*([worker] if worker else []), recovery=Policy(attempts=fields.pop("attempts", 3)))
    of = task("a", worker=worker.name if worker else "clerk", best_of=number, **fields)
    return Flow(talk, tasks(of), team)


def judged(call: ModelCall) -> Said:
    """The judge takes RESULT-2 where it is shown, else the first it sees."""
    shown = re.findall(r"Result (\d).*?(RESULT-\d)", call.messages[-1].text, re.DOTALL)
    scores = [{"candidate": int(n), "score": 90 if name == "RESULT-2" else 50 - int(n)} for n, name in shown]
    best = max(scores, key=lambda each: each["score"])
    return {"scores": scores, "best": best["candidate"], "reason": "It says most."}


def surer(number: int, call: ModelCall, who: Attribution) -> Said:
    """The second is the surest."""
    return result(f"RESULT-{number}", confidence={1: 40, 2: 65, 3: 50}.get(number))


def chosen(flow: Flow) -> dict[str, Any]:
    return flow.decisions("best_of")


# -- choosing --------------------------------------------------------------------------------------------------------


def test_members_work_side_by_side_and_the_best_counts() -> None:
    """Three calls at once under keys of their own, in one attempt; what they and the judge used is the task's."""
    flow = several(surer)
    (outcome,) = flow.run().outcomes
    assert (outcome.output, outcome.attempts, flow.took) == ("RESULT-2", 1, pytest.approx(1 + 1))
    assert (outcome.usage.calls, outcome.usage.tokens) == (4, 440)
    called = sorted(event.data["key"] for event in flow.events if event.kind == "model_called")
    assert called == ["a/1/b1/model/1", "a/1/b2/model/1", "a/1/b3/model/1", "a/1/select/1"]
    assert {Key.parse(key)[1:] for key in called} == {("a", 1)}
    assert len({who.idempotency_key for _, _, who in flow.model.asked}) == 4


def test_members_are_asked_at_a_temperature_at_which_they_differ() -> None:
    """One that the worker sets is kept; a task without members leaves it to the wire format."""
    heard: list[object] = []

    def note(number: int, call: ModelCall, who: Attribution) -> Said:
        heard.append(call.options.get("temperature"))
        return surer(number, call, who)

    several(note, 2).run()
    several(note, 2, Worker("keen", "Works.", temperature=0.2)).run()
    several(note, 1).run()
    assert heard == [0.7, 0.7, 0.2, 0.2, None]


def test_what_was_chosen_and_what_was_not_is_on_the_record() -> None:
    """One decision by key, with a line about each member."""
    flow = several(surer)
    flow.run()
    value = chosen(flow)["a/1/best"]
    assert value["chosen"] == 2
    assert [line["member"] for line in value["members"]] == ["b1", "b2", "b3"]
    assert [(line["status"], line["confidence"]) for line in value["members"]] == [
        ("done", 40),
        ("done", 65),
        ("done", 50),
    ]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            {"verdict": "unclear", "reason": "Both say it."},
            "b2 is selected from b1, b2: The judge prefers none (unclear)",
        ),
        ("no JSON", "b2 is selected from b1, b2: The judge could not choose (The judge gave no usable answer"),
        (None, "b1 is selected from b1, b2: Level. It is level with b2 at 70; the judge prefers it."),
    ],
)
def test_the_decision_says_why_by_the_members_names(said: Said | None, reason: str) -> None:
    """What the judge says, or that its answer could not be used."""

    def talk(call: ModelCall, who: Attribution) -> Said:
        if call.role != "judge":
            return surer(member(call, who), call, who)
        first = re.search(r"Result (\d)[^R]*?RESULT-1", call.messages[-1].text, re.DOTALL)
        scores = [{"candidate": n, "score": 70} for n in (1, 2)]
        level: Said = {"scores": scores, "best": int(first[1]) if first else 0, "reason": "Level."}
        return level if said is None else said

    flow = Flow(talk, tasks(task("a", best_of=2)))
    flow.run()
    [event] = [e for e in flow.events if e.kind == "decision" and e.data["decision"] == "best_of"]
    assert event.data["reason"].startswith(reason)


def test_one_member_is_an_attempt_as_any_other() -> None:
    """best_of 1 has no members, no choice and the usual keys."""
    flow = several(lambda *_: result("x"), number=1)
    flow.run()
    assert [event.data["key"] for event in flow.events if event.kind == "model_called"] == ["a/1/model/1"]
    assert chosen(flow) == {}


class Coded:
    """A worker whose members do what a function of their place says."""

    tier: Tier = "large"
    check: str | None = None
    output_schema: dict[str, Any] | None = None
    waits_for_person: bool = False
    repeatable = True

    def __init__(self, does: Callable[[str], Outcome], seconds: Callable[[str], float] = lambda _: 1.0) -> None:
        self.does = does
        self.seconds = seconds

    def model_for(self, tier: Tier | None) -> str | None:
        return None

    async def work(self, assignment: Assignment, engine: Engine) -> Outcome:
        assignment.used.append(Usage(input_tokens=1, calls=1))
        await engine.clock.sleep(self.seconds(assignment.within or ""))
        return self.does(assignment.within or "").model_copy(update={"usage": Usage.total(assignment.used)})


def good(where: str, confidence: int | None = None) -> Outcome:
    return done("a", "clerk", summary=f"By {where}.", output=where, confidence=confidence)


def bad(where: str) -> Outcome:
    return failed("a", "clerk", "contract", f"{where} failed.", output=None if where == "b1" else f"half of {where}")


def selected(worker: Coded, store: MemoryStore | None = None, *, by: bool = True, **fields: Any) -> Any:
    """The outcome of a task with a selector that takes the second, and what the selector was shown."""
    shown: list[list[Any]] = []

    async def select(task: Task, outcomes: Sequence[Outcome], attempt: int, used: list[Usage]) -> tuple[int, str]:
        shown.append([outcome.output for outcome in outcomes])
        used.append(Usage(input_tokens=100, calls=1))
        return 1, "The second."

    store = store or MemoryStore()

    async def main() -> Outcome:
        async with engine(FunctionModel(after(0)), MemoryJournal(store), replay=replay(stored(store))) as local:
            of = task("a", **{"best_of": 3, **fields})
            policy, help = Policy(attempts=1), SupervisorHelp(select=select if by else None)
            return (await run_plan(tasks(of), {"clerk": worker}, local, help=help, policy=policy))["a"]

    outcome, _ = run_virtual(main())
    return outcome, shown


@pytest.mark.parametrize(
    ("confidences", "best"),
    [((50, 90, 70), "b2"), ((None, 0, None), "b2"), ((None, None, None), "b1"), ((10, 80, 80), "b2")],
)
def test_without_a_selector_the_surest_counts(confidences: tuple[int | None, ...], best: str) -> None:
    """Unknown is below every figure, and equals go by number."""
    outcome, _ = selected(Coded(lambda where: good(where, confidences[int(where[1]) - 1])), by=False)
    assert outcome.output == best
    assert outcome.usage.calls == 3


def test_a_selector_is_shown_what_is_done_and_its_choice_counts() -> None:
    """Failures are not shown; the index is into what was; what selecting used is the task's too."""
    outcome, shown = selected(Coded(lambda where: bad(where) if where == "b1" else good(where, 99)))
    assert shown == [["b2", "b3"]]
    assert outcome.output == "b3"
    assert (outcome.usage.calls, outcome.usage.input_tokens) == (4, 103)


@pytest.mark.parametrize("fine", [0, 1])
def test_with_nothing_to_choose_from_nobody_is_asked(fine: int) -> None:
    """One that is done is the outcome; of none that is, one that has something."""
    outcome, shown = selected(Coded(lambda where: good(where) if fine and where == "b3" else bad(where)))
    assert shown == []
    assert (outcome.status, outcome.output) == (("done", "b3") if fine else ("failed", "half of b2"))
    assert outcome.usage.calls == 3


def test_what_was_selected_is_not_selected_again() -> None:
    """A resumed run reads the choice and goes through the chosen member only."""
    store = MemoryStore()
    selected(Coded(good), store)
    kinds = [event.kind for event in stored(store)]
    del store.events[kinds.index("decision") + 1 :]
    seen: list[str] = []

    def watched(where: str) -> Outcome:
        seen.append(where)
        return good(where)

    outcome, shown = selected(Coded(watched), store)
    assert (outcome.output, shown, seen) == ("b2", [], ["b2"])
    assert (outcome.usage.calls, outcome.usage.input_tokens) == (4, 103), "as it was before the crash"


# -- what does not do ------------------------------------------------------------------------------------------------


def test_each_member_is_held_to_the_criterion() -> None:
    """The surest of all fails its check: the next one counts."""

    def plausible(output: str) -> str:
        """What is wrong."""
        return "THE-CHECK fails" if output == "RESULT-2" else ""

    flow = several(surer, worker=Worker("counter", "Counts", check=plausible))
    (outcome,) = flow.run().outcomes
    assert outcome.output == "RESULT-3"
    checks = sorted(event.data["key"] for event in flow.events if event.kind == "tool_called")
    assert checks == ["a/1/b1/check", "a/1/b2/check", "a/1/b3/check"]
    assert [line["status"] for line in chosen(flow)["a/1/best"]["members"]] == ["done", "failed", "done"]


def test_when_none_is_done_the_ladder_goes_on() -> None:
    """Members ride inside one attempt: three of them that fail are one failed attempt."""

    def first_fails(number: int, call: ModelCall, who: Attribution) -> Said:
        return "" if who.attempt == 1 else surer(number, call, who)

    flow = several(first_fails)
    (outcome,) = flow.run().outcomes
    assert (outcome.output, outcome.attempts) == ("RESULT-2", 2)
    assert flow.rungs("a") == ["upgrade"]
    assert [value["chosen"] for value in chosen(flow).values()] == [None, 2]


def test_a_member_that_breaks_is_that_members_failure() -> None:
    """The others go on; only the record's own errors end the run."""

    def breaks(error: Exception) -> Coded:
        def does(where: str) -> Outcome:
            if where == "b1":
                raise error
            return good(where)

        return Coded(does)

    outcome, shown = selected(breaks(ValueError("a bug")))
    assert (outcome.output, shown) == ("b3", [["b2", "b3"]])
    with pytest.raises(ExceptionGroup) as caught:
        selected(breaks(StorageError("full")))
    assert caught.group_contains(StorageError)


def test_what_is_done_when_the_time_is_over_counts() -> None:
    """A straggler does not make the attempt fail; with nothing done it is a timeout, and all use is counted."""
    store = MemoryStore()
    slow = Coded(good, lambda where: 100.0 if where == "b2" else 1.0)
    outcome, shown = selected(slow, store, timeout_s=5)
    assert (outcome.output, shown) == ("b1", [])
    assert outcome.usage.calls == 3
    (value,) = [e.data["value"] for e in stored(store) if e.kind == "decision"]
    assert [line["status"] for line in value["members"]] == ["done", "stopped", "done"]
    outcome, _ = selected(Coded(good, lambda _: 100.0), timeout_s=5)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.usage.calls) == ("timeout", 3)


def test_a_worker_with_a_once_tool_works_once() -> None:
    """What must happen only once is never tried by several: best_of is ignored, with a warning."""
    log: list[str] = []

    @tool
    def send(to: str) -> str:
        """Send a letter."""
        log.append(to)
        return "sent"

    flow = several(lambda *_: result("x"), worker=Worker("mailer", "Mails", tools=[send]))
    assert flow.run().status == "complete"
    assert [event.data["key"] for event in flow.events if event.kind == "model_called"] == ["a/1/model/1"]
    (warning,) = [event.data["message"] for event in flow.events if event.kind == "warning"]
    assert "best_of 3 of a is ignored" in warning


def test_a_person_is_asked_once() -> None:
    """However many members the plan wants."""
    flow = several(surer, worker=Worker("boss", "Decides", kind="human"))
    assert flow.run().status == "waiting"
    assert sum(event.kind == "question_asked" for event in flow.events) == 1


# -- the record ------------------------------------------------------------------------------------------------------


SCENES: dict[str, Callable[[], Flow]] = {
    "all done": lambda: several(surer),
    "two attempts": lambda: several(lambda n, c, w: "" if w.attempt == 1 else surer(n, c, w)),
    "one done": lambda: several(lambda n, c, w: "" if n != 3 else surer(n, c, w)),
    "none done": lambda: several(lambda *_: "", attempts=1),
}


@pytest.mark.parametrize("scene", SCENES)
def test_a_crash_anywhere_repeats_nothing_and_chooses_the_same(scene: str) -> None:
    """The record is cut after each event: no committed call is made again, the outcome and its usage are the same."""
    whole = SCENES[scene]()
    expected = whole.run().outcomes[0]
    for kept in range(1, len(whole.store.events)):
        flow = SCENES[scene]()
        flow.store = MemoryStore(whole.store.events[:kept], dict(whole.store.blobs))
        known = replay(stored(flow.store))
        (outcome,) = flow.run(number=1).outcomes
        sent = {who.idempotency_key for _, _, who in flow.model.asked}
        committed = {idempotency_key("run", key, effect.fingerprint) for key, effect in known.committed.items()}
        assert committed.isdisjoint(sent), f"cut after event {kept}"
        assert known.decisions.items() <= replay(flow.events).decisions.items()
        assert (outcome.status, outcome.output, outcome.attempts, outcome.usage.calls, outcome.usage.tokens) == (
            expected.status,
            expected.output,
            expected.attempts,
            expected.usage.calls,
            expected.usage.tokens,
        ), f"cut after event {kept}"


def test_the_trace_shows_the_members_and_the_choice() -> None:
    """Each call under its key in its task's attempt, and the decision with its reason."""
    flow = several(surer)
    flow.run()
    view = fold(flow.events)
    members = [f"a/1/b{n}/model/1" for n in (1, 2, 3)]
    assert sorted(call.key for call in view.tasks["a"].calls) == [*members, "a/1/select/1"]
    assert {(call.task, call.attempt, call.ok) for call in view.tasks["a"].calls} == {("a", 1, True)}
    assert len(view.tasks["a"].attempts) == 1
    assert view.tasks["a"].usage.calls == 4
    html = to_html(flow.events, Redactor(()))
    assert "a/1/b2/model/1" in html
    assert "b2 is selected from b1, b2, b3: It says most." in html


# -- the plan --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(1, None), (5, None), (0, "fan_out"), (6, "fan_out")])
def test_more_members_than_allowed_are_a_problem_of_the_plan(number: int, code: str | None) -> None:
    """From one to five."""
    draft = tasks(task("a")).to_json()
    draft["tasks"][0]["best_of"] = number
    assert [problem.code for problem in read(draft).problems(None)] == ([] if code is None else [code])


def test_the_preview_counts_every_member() -> None:
    """Three members are three calls and take the time of one."""
    team = clerks()
    workers = roster(team, Settings(home="unused", tiers=TIERS), ask=False)  # type: ignore[arg-type]

    def told(**fields: Any) -> str:
        return preview(tasks(task("a", **fields)), team, workers, "scripted:large", Request(text="x"))

    assert "Estimated: 1 call," in told()
    assert "Estimated: 3 calls," in told(best_of=3)
    assert told().partition("some ")[2] == told(best_of=3).partition("some ")[2]


@pytest.mark.parametrize(("number", "calls"), [(1, 1), (2, 4), (6, 8), (8, 11), (10, 13), (20, 24)])
def test_the_preview_counts_the_calls_that_compare_statements(number: int, calls: int) -> None:
    """None for one task, one for up to six, two for up to ten, then one for forty statements; and the synthesis."""
    team = clerks()
    workers = roster(team, Settings(home="unused", tiers=TIERS), ask=False)  # type: ignore[arg-type]
    made = tasks(*(task(f"t{n}") for n in range(number)))
    text = preview(made, team, workers, "scripted:large", Request(text="x"), judge="scripted:large")
    assert f"Estimated: {calls} call" in text


def test_members_of_many_tasks_share_the_slots() -> None:
    """Twelve calls through eight slots: no more are in flight at once, and every task has its choice."""
    under_way, most = 0, 0

    async def talk(call: ModelCall, who: Attribution) -> Said:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(1)
        under_way -= 1
        return works(call, who) if call.role != "worker" else result(who.task, confidence=50)

    flow = Flow(talk, tasks(*(task(id, best_of=3) for id in "abcd")), seconds=0)
    report = flow.run()
    assert {id: outcome.output for id, outcome in by_task(report).items()} == {id: id for id in "abcd"}
    assert most == 8
    assert len(chosen(flow)) == 4
