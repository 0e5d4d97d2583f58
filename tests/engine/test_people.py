"""People in a run: what is asked, what counts as an answer, a person as a worker, and approval of tool calls."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker, tool
from chargehand.engine.engine_session import Parked, Prior
from chargehand.engine.local.engine import LocalEngine
from chargehand.engine.people import Later, as_text, describe_question, edited_plan, question_about, read_words, verdict
from chargehand.errors import InvalidAnswer, InvalidTeam, NoOpenQuestion, RunOwned
from chargehand.planner.preview import preview
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.record.replay import replay
from chargehand.runs.roster import roster
from chargehand.settings import Settings
from chargehand.testing import ScriptedModel, run_virtual
from chargehand.text.plan_json import parse
from chargehand.trace import fold
from chargehand.values.effect import Question
from chargehand.values.outcome import escalated, failed
from chargehand.values.plan import Task
from chargehand.values.request import Request
from chargehand.workers import Assignment
from chargehand.workers.human import Human
from tests.events import make_body, make_event
from tests.kernel import FunctionModel, after, engine, question, stored

SCHEMA = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}


def asks(kind: Any = "task", id: str = "t1", prompt: str = "Which?", **more: Any) -> Question:
    return Question(id=id, kind=kind, prompt=prompt, **more)


def task(id: str, *depends_on: str, worker: str = "writer", **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "worker": worker,
        "instruction": f"Write the text called {id} in one sentence.",
        "success_criterion": "One sentence.",
        "depends_on": list(depends_on),
        **more,
    }


def plan(*tasks: dict[str, Any]) -> dict[str, Any]:
    return {"goal": "Say something", "tasks": list(tasks)}


PLAN = plan(task("t1"), task("t2", "t1"))
REQUEST = Request(text="Say it", max_tasks=3)


# -- what counts as an answer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "words", "answer"),
    [
        ("plan", "approve", "approve"),
        ("plan", " Yes ", "approve"),
        ("plan", "reject", "reject"),
        ("plan", "Reject: too dear", "reject too dear"),
        ("plan", "no, too slow", "reject too slow"),
        ("plan", json.dumps(PLAN), PLAN),
        ("tool", "approve", "approve"),
        ("tool", "reject not today", "reject not today"),
        ("escalation", "Take the left one", "Take the left one"),
        ("task", "It is 42", "It is 42"),
        ("task", '{"a": 1}', {"a": 1}),
        ("task", "[1, 2", "[1, 2"),
        ("task", "escalate: not mine", "escalate: not mine"),
    ],
)
def test_words_become_answers(kind: Any, words: str, answer: Any) -> None:
    """Approvals are yes or no with a reason, results are text or JSON."""
    assert read_words(asks(kind), words, REQUEST, ["writer"]) == answer


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        ("plan", "", "empty"),
        ("task", "   ", "empty"),
        ("plan", "approve but drop t2", "not an answer to a plan"),
        ("plan", "maybe", "say `approve`"),
        ("plan", '{"tasks": [', "not JSON"),
        ("plan", '{"tasks": 3}', "tasks"),
        ("plan", json.dumps(plan(task("a", "b"), task("b", "a"))), "a -> b -> a"),
        ("plan", json.dumps(plan(task("a", worker="nobody"))), "nobody"),
        ("plan", json.dumps(plan(*(task(f"t{n}") for n in range(4)))), "4 tasks"),
        ("plan", json.dumps(plan()), "no tasks"),
        ("tool", "perhaps", "`approve` or `reject [reason]`"),
    ],
)
def test_words_that_are_no_answer_are_refused_with_the_remedy(kind: Any, words: str, said: str) -> None:
    """An edited plan is validated like any plan."""
    with pytest.raises(InvalidAnswer, match=re.escape(said)):
        read_words(asks(kind), words, REQUEST, ["writer"])


def test_an_answer_fits_the_schema_of_its_question() -> None:
    """Data is checked, text is taken where the schema has a place for it, and handing back is always possible."""
    wants = asks(answer_schema=SCHEMA)
    assert describe_question(asks()) == "Which?"
    assert '"price"' in describe_question(wants)
    assert read_words(wants, '{"price": 3}', REQUEST, []) == {"price": 3}
    with pytest.raises(InvalidAnswer, match="price"):
        read_words(wants, '{"prize": 3}', REQUEST, [])
    with pytest.raises(InvalidAnswer, match="shape"):
        read_words(wants, "three", REQUEST, [])
    assert read_words(asks(answer_schema={"type": "string"}), "123", REQUEST, []) == "123"
    assert read_words(wants, "escalate: no price list", REQUEST, []) == "escalate: no price list"


def test_a_verdict_is_read_from_the_record() -> None:
    """What is neither yes nor no is no verdict."""
    assert verdict("approve").approved  # type: ignore[union-attr]
    assert verdict("reject too dear").reason == "too dear"  # type: ignore[union-attr]
    assert verdict("noteworthy") is None
    assert verdict(PLAN) is None


def test_what_an_edited_plan_leaves_out_is_as_it_was() -> None:
    """Goal, synthesis and team stay; what is given counts."""
    original = parse({**PLAN, "team": "general", "synthesis": {"mode": "select", "instruction": "The best."}})
    edited = edited_plan({"tasks": [task("t9")]}, original)
    assert [t.id for t in edited.tasks] == ["t9"]
    assert (edited.goal, edited.team, edited.synthesis) == (original.goal, "general", original.synthesis)
    assert edited_plan({**PLAN, "synthesis": {"mode": "merge"}}, original).synthesis.mode == "merge"


def test_an_escalation_is_asked_about_with_all_there_is_to_know() -> None:
    """Who could not, why, the task, and what there is so far."""
    about = Task(id="t3", worker="clerk", instruction="File the form.", context={"form": 7}, success_criterion="Filed.")
    asked = question_about(about, escalated("t3", "clerk", "ambiguous_input", "Which form?", {"found": ["a", "b"]}))
    assert (asked.id, asked.kind) == ("t3", "escalation")
    for words in ("clerk", "ambiguous_input", "Which form?", "File the form.", '"form": 7', "Filed.", '"b"'):
        assert words in asked.prompt
    assert "out of paper" in question_about(about, failed("t3", "clerk", "tool", "out of paper")).prompt
    assert as_text("the left one") == "the left one"
    assert as_text({"form": 7}) == '{"form": 7}'


# -- asking while the run goes on ------------------------------------------------------------------------------------


def inline(
    people: Callable[[Question], Awaitable[Any]], store: MemoryStore, seconds: float = 1.0, **options: Any
) -> LocalEngine:
    return engine(FunctionModel(after(seconds)), MemoryJournal(store), people=people, **options)


def test_questions_are_asked_one_after_the_other_while_the_rest_goes_on() -> None:
    """The second waits for the first; a call beside them is not held up, even with a single slot."""
    store = MemoryStore()
    spoken: list[tuple[str, float]] = []

    async def main() -> tuple[list[Any], float]:
        async def person(asked: Question) -> Any:
            spoken.append((asked.id, asyncio.get_running_loop().time()))
            await asyncio.sleep(10)
            return f"answer {asked.id}"

        async with inline(person, store, max_concurrent=1) as local:

            async def calls() -> float:
                await local.perform("t3/1/model/1", question())
                return asyncio.get_running_loop().time()

            async def work() -> tuple[list[Any], float]:
                a, b, ended = await asyncio.gather(
                    local.ask("t1/1/ask", asks()), local.ask("t2/1/ask", asks(id="t2")), calls()
                )
                return [a, b], ended

            return await local.until_parked(work())

    (answers, ended), _ = run_virtual(main())
    assert answers == ["answer t1", "answer t2"]
    assert spoken == [("t1", 0.0), ("t2", pytest.approx(10))]
    assert ended == pytest.approx(1)
    record = [event for event in stored(store) if event.kind.startswith("question")]
    assert [event.kind for event in record] == ["question_asked"] * 2 + ["question_answered"] * 2
    assert replay(stored(store)).answers == {"t1/1/ask": "answer t1", "t2/1/ask": "answer t2"}


def test_an_answer_is_on_disk_before_it_is_acted_on() -> None:
    """What returned is committed: a crash right after loses nothing."""
    store = MemoryStore()

    async def main() -> None:
        async def person(asked: Question) -> Any:
            return "left"

        async with inline(person, store) as local:
            assert await local.ask("t1/1/ask", asks()) == "left"
            assert replay(stored(store)).answers == {"t1/1/ask": "left"}

    run_virtual(main())


def test_time_spent_only_on_a_person_is_not_the_runs() -> None:
    """The clock stands still while nothing else is under way, now and as the record is read later."""
    store = MemoryStore()
    now: list[float] = []

    async def main() -> None:
        async def person(asked: Question) -> Any:
            await asyncio.sleep(1000)
            return "left"

        async with inline(person, store, seconds=3) as local:
            local.emit(make_body("run_started"))
            await asyncio.gather(local.ask("t1/1/ask", asks()), local.perform("t2/1/model/1", question()))
            now.append(local.clock.now())
            await local.perform("t2/1/model/2", question("more"))
            now.append(local.clock.now())

    run_virtual(main())
    assert now == pytest.approx([3, 6])
    assert replay(stored(store)).owned_s == pytest.approx(6)
    assert fold(stored(store)).elapsed_seconds() == pytest.approx(6)


def test_a_question_left_for_later_stays_open_and_the_run_parks() -> None:
    """The others are still asked."""
    store = MemoryStore()

    async def main() -> None:
        async def person(asked: Question) -> Any:
            if asked.id == "t1":
                raise Later
            return "here"

        async with inline(person, store) as local:

            async def work() -> None:
                async with asyncio.TaskGroup() as group:
                    group.create_task(local.ask("t1/1/ask", asks()))
                    group.create_task(local.ask("t2/1/ask", asks(id="t2")))

            with pytest.raises(Parked):
                await local.until_parked(work())

    run_virtual(main())
    state = replay(stored(store))
    assert state.answers == {"t2/1/ask": "here"}
    assert list(state.open_questions()) == ["t1/1/ask"]


def test_ids_are_unique_in_a_run_and_stay_over_sessions() -> None:
    """Two questions about one task differ by a number; a resumed session neither renames nor repeats them."""
    store = MemoryStore()

    async def session() -> None:
        state = replay(stored(store))
        async with engine(FunctionModel(after(0)), MemoryJournal(store), replay=state) as local:

            async def work() -> None:
                async with asyncio.TaskGroup() as group:
                    for key in ("t1/1/ask", "t1/2/ask", "t1/once/mail/1/approve"):
                        group.create_task(local.ask(key, asks()))

            with pytest.raises(Parked):
                await local.until_parked(work())

    run_virtual(session())
    run_virtual(session())
    assert [q["id"] for q in replay(stored(store)).questions.values()] == ["t1", "t1-2", "t1-3"]
    assert len([event for event in stored(store) if event.kind == "question_asked"]) == 3


def test_a_persons_work_is_not_asked_for_twice_by_a_rerun() -> None:
    """The same task, or escalation, gets the same answer; another question, and an approval, are asked anew."""
    earlier = MemoryStore()

    async def person(asked: Question) -> Any:
        return f"said to {asked.prompt}"

    async def ask(questions: dict[str, Question], people: Any, store: MemoryStore, prior: Prior | None = None) -> Any:
        async with inline(people, store, prior=prior) as local:
            return [await local.ask(key, asked) for key, asked in questions.items()]

    both = {
        "t1/1/ask": asks(prompt="A"),
        "t2/ask": asks("escalation", prompt="E"),
        "@plan/approve": asks("plan", prompt="P"),
    }
    run_virtual(ask(both, person, earlier))
    prior = Prior("before", replay(stored(earlier)))

    async def other(asked: Question) -> Any:
        return "anew"

    again = MemoryStore()
    assert run_virtual(ask(both, other, again, prior))[0] == ["said to A", "said to E", "anew"]
    answered = [event.data["by"] for event in stored(again) if event.kind == "question_answered"]
    assert answered == ["before", "before", "person"]
    assert run_virtual(ask({"t1/1/ask": asks(prompt="B")}, other, MemoryStore(), prior))[0] == ["anew"]


def test_answers_given_between_sessions_cost_the_run_no_time() -> None:
    """An answer and a cancellation days later count no running time, even after a session that was killed."""
    day = 86_400.0
    events = [
        make_event("run_started", seq=1, at=1000.0),
        make_event("question_asked", seq=2, at=1004.0, key="k", question=asks().to_json()),
        make_event("question_answered", seq=3, at=1000 + day, key="k", answer="a", by="command"),
        make_event("run_ended", seq=4, at=1000 + 2 * day, status="cancelled", by="command"),
        make_event("run_started", seq=5, at=1000 + 3 * day, resumed=True),
        make_event("warning", seq=6, at=1001 + 3 * day),
    ]
    assert replay(events).owned_s == pytest.approx(5)
    assert fold(events).elapsed_seconds() == pytest.approx(5)


# -- a person as a worker --------------------------------------------------------------------------------------------


def worked(human: Human, answer: Any, **inputs: Any) -> tuple[Any, Question]:
    seen: list[Question] = []

    async def main() -> Any:
        async def person(asked: Question) -> Any:
            seen.append(asked)
            return answer

        given = Task(id="t2", worker="boss", instruction="Sign it.", success_criterion="Signed.", depends_on=(*inputs,))
        async with inline(person, MemoryStore()) as local:
            return await human.work(Assignment(given, 1, inputs), local)

    return run_virtual(main())[0], seen[0]


def test_a_persons_answer_is_the_outcome() -> None:
    """Done, with no confidence claimed and no tokens used; the question shows the task and what it builds on."""
    before = failed("t1", "clerk", "tool", "out of ink")
    outcome, asked = worked(Human("boss", prompt="You sign."), "Signed and sent", t1=before)
    assert (outcome.status, outcome.output, outcome.summary) == ("done", "Signed and sent", "Signed and sent")
    assert (outcome.confidence, outcome.usage.tokens, outcome.usage.calls) == (None, 0, 0)
    assert (asked.id, asked.kind) == ("t2", "task")
    for words in ("You sign.", "Sign it.", "Signed.", "out of ink"):
        assert words in asked.prompt


def test_a_person_can_hand_a_task_back() -> None:
    """`escalate:` names a reason or is out of scope; nothing at all is a failure."""
    outcome, _ = worked(Human("boss"), "escalate: ask legal")
    assert (outcome.status, outcome.escalation.reason) == ("escalated", "out_of_scope")
    assert outcome.escalation.message == "ask legal"
    outcome, _ = worked(Human("boss"), "escalate: ambiguous_input: which one?")
    assert (outcome.escalation.reason, outcome.escalation.message) == ("ambiguous_input", "which one?")
    outcome, _ = worked(Human("boss"), "")
    assert (outcome.status, outcome.error.kind) == ("failed", "contract")


def test_a_person_has_no_tools_and_no_model() -> None:
    """A team that says otherwise is refused, everything at once."""
    with pytest.raises(InvalidTeam) as refused:
        Team([Worker("boss", "Signs", kind="human", tools=["read_file"], model="openai:x", tier="small")])
    assert len(refused.value.problems) == 3
    stored_team = Team([Worker("boss", "Signs", kind="human")], ask=True).to_json()
    again = Team.from_json(stored_team, {})
    assert (again.workers[0].kind, again.ask) == ("human", True)


def test_people_need_no_model_and_cost_nothing_in_the_preview() -> None:
    """No worker's model is looked up for a team of people."""
    team = Team([Worker("boss", "Signs", kind="human")])
    workers = roster(team, Settings(home="x"))
    assert workers["boss"].model_for("large") is None
    made = parse(plan(task("t1", worker="boss")))
    text = preview(made, team, workers, "scripted:x", REQUEST)
    assert "0 calls" in text
    assert "and the time people take" in text
    assert "about $0.00" in text


# -- whole runs ------------------------------------------------------------------------------------------------------


ANSWERS = [
    {"when": {"role": "worker"}, "reply": {"json": {"summary": "Done.", "output": "Words.", "confidence": 80}}},
    {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "All is well [t1] [t2].", "confidence": 70}}},
]
WRITERS = Team([Worker("writer", "Writes")])
CHAIN = Team([Worker("writer", "Writes"), Worker("boss", "Signs", kind="human", output_schema=SCHEMA)])


def test_somebody_to_ask_can_be_given_in_python(tmp_path: Path) -> None:
    """The person is told what was wrong with an answer and asked again; the edited plan is what runs."""
    heard: list[str | None] = []
    says = iter(["nonsense", json.dumps(plan(task("t7", worker="nobody"))), json.dumps(plan(task("t7")))])

    async def person(asked: Question, wrong: str | None) -> str:
        heard.append(wrong)
        return next(says)

    door = Supervisor(WRITERS, model=ScriptedModel(ANSWERS), home=tmp_path)
    report = door.run_sync("Say it", plan=PLAN, approve=True, person=person)
    assert report.status == "complete"
    assert report.plan is not None
    assert [t.id for t in report.plan.tasks] == ["t7"]
    assert heard[0] is None
    assert "not an answer to a plan" in (heard[1] or "")
    assert "nobody" in (heard[2] or "")


def test_a_given_plan_that_waits_for_approval_is_still_the_given_one_on_resume(tmp_path: Path) -> None:
    """No planner is asked: there is no rule for one."""

    async def main() -> None:
        door = Supervisor(WRITERS, model=ScriptedModel(ANSWERS), home=tmp_path)
        report = await door.run("Say it", plan=PLAN, approve=True)
        assert (report.status, report.gaps) == ("waiting", ()), "what is still to do is not missing"
        assert report.plan is not None
        await door.answer(report.run, "plan", "approve")
        assert door.questions(report.run) == ()
        resumed = await door.resume(report.run)
        assert resumed.status == "complete"

    asyncio.run(main())


def test_one_answer_of_two_parks_again_for_the_other(tmp_path: Path) -> None:
    """Nothing done is repeated, and a human in a chain hands on what they said."""

    async def main() -> None:
        model = ScriptedModel(ANSWERS)
        made = plan(task("a", worker="boss"), task("b", worker="boss"), task("t1", "a", "b"))
        door = Supervisor(CHAIN, model=model, home=tmp_path)
        report = await door.run("Say it", plan=made)
        assert report.status == "waiting"
        assert [asked.id for asked in door.questions(report.run)] == ["a", "b"]
        with pytest.raises(InvalidAnswer, match="an object"):
            await door.answer(report.run, "a", "four")
        left = await door.answer(report.run, "a", '{"price": 4}')
        assert [asked.id for asked in left] == ["b"]
        assert (await door.resume(report.run)).status == "waiting"
        await door.answer(report.run, "b", '{"price": 5}')
        with pytest.raises(NoOpenQuestion, match="already"):
            await door.answer(report.run, "b", '{"price": 6}')
        with pytest.raises(NoOpenQuestion, match="no question 'c'"):
            await door.answer(report.run, "c", "x")
        report = await door.resume(report.run)
        outcomes = {outcome.task: outcome for outcome in report.outcomes}
        assert outcomes["a"].output == {"price": 4}
        assert outcomes["b"].output == {"price": 5}
        assert outcomes["t1"].ok
        with pytest.raises(NoOpenQuestion, match="has ended"):
            await door.answer(report.run, "b", '{"price": 6}')
        with closing(door.home.read(report.run)) as reader:
            asked = [event for event in reader.events() if event.kind == "question_asked"]
        assert len(asked) == 2

    asyncio.run(main())


def test_a_parked_run_says_what_it_has_used(tmp_path: Path) -> None:
    """Calls of tasks that ended and of those that wait alike; the resumed run counts them once."""

    async def main() -> None:
        used = {"input_tokens": 100, "output_tokens": 20}
        writes = {"when": {"worker": "writer"}, "reply": ANSWERS[0]["reply"]}
        rules: list[dict[str, Any]] = [{**rule, "usage": used} for rule in [writes, ANSWERS[1], *PAYS]]
        team = Team([*paid([]).workers, Worker("writer", "Writes")])
        door = Supervisor(team, model=ScriptedModel(rules), home=tmp_path)
        report = await door.run("Pay it", plan=plan(task("t1", worker="clerk"), task("t2")), ask=True)
        assert report.status == "waiting"
        assert (report.usage.calls, report.usage.tokens) == (2, 240)
        assert door.report(report.run).usage == report.usage
        await door.answer(report.run, "t1-pay", "approve")
        assert (await door.resume(report.run)).usage.calls == 4

    asyncio.run(main())


def test_an_answer_that_the_owner_does_not_take_is_not_lost(tmp_path: Path) -> None:
    """The error says who has the run; the next resume takes the answer."""

    async def main() -> None:
        door = Supervisor(WRITERS, model=ScriptedModel(ANSWERS), home=tmp_path)
        report = await door.run("Say it", plan=PLAN, approve=True)
        with closing(door.home.open(report.run)), pytest.raises(RunOwned, match="not taken the answer yet"):
            await door.answer(report.run, "plan", "approve")
        assert [asked.id for asked in door.questions(report.run)] == ["plan"]
        assert (await door.resume(report.run)).status == "complete"

    run_virtual(main())


def paid(sums: list[int]) -> Team:
    @tool(approve=True)
    def pay(amount: int) -> str:
        """Pay an amount."""
        sums.append(amount)
        return f"paid {amount}"

    return Team([Worker("clerk", "Pays", tools=[pay])])


PAYS = [
    {
        "when": {"role": "worker"},
        "reply": {"tool_calls": [{"name": "pay", "arguments": {"amount": 7}}]},
        "times": 1,
    },
    {
        "when": {"role": "worker", "contains": "rejected this call"},
        "reply": {"json": {"summary": "Not paid.", "output": "refused"}},
    },
    {
        "when": {"role": "worker", "contains": "nobody may be asked"},
        "reply": {"json": {"summary": "Not paid.", "output": "unasked"}},
    },
    {"when": {"role": "worker"}, "reply": {"json": {"summary": "Paid.", "output": "paid"}}},
]
PAYING = plan(task("t1", worker="clerk"))


@pytest.mark.parametrize(("words", "output", "sums"), [("approve", "paid", [7]), ("reject too much", "refused", [])])
def test_a_tool_call_that_needs_approval_waits_for_it(tmp_path: Path, words: str, output: str, sums: list[int]) -> None:
    """Parked before the call; approved it is made once, rejected the worker is told why."""
    made: list[int] = []

    async def main() -> None:
        door = Supervisor(paid(made), model=ScriptedModel(PAYS), home=tmp_path)
        report = await door.run("Pay it", plan=PAYING, ask=True)
        assert report.status == "waiting"
        assert made == []
        (asked,) = door.questions(report.run)
        assert (asked.kind, asked.id) == ("tool", "t1-pay")
        for part in ("clerk", "pay", '"amount": 7', "t1"):
            assert part in asked.prompt
        await door.answer(report.run, asked.id, words)
        report = await door.resume(report.run)
        assert report.outcomes[0].output == output
        assert made == sums
        with closing(door.home.read(report.run)) as reader:
            refused = [event.data for event in reader.events() if event.kind == "tool_refused"]
        assert [each["code"] for each in refused] == ([] if sums else ["not_approved"])
        assert all(each["reason"].endswith(": too much") for each in refused)

    asyncio.run(main())


def test_without_anybody_to_ask_such_a_call_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """The run does not park: --ask is off."""
    made: list[int] = []
    door = Supervisor(paid(made), model=ScriptedModel(PAYS), home=tmp_path)
    report = door.run_sync("Pay it", plan=PAYING)
    assert (report.outcomes[0].output, made) == ("unasked", [])
    with closing(door.home.read(report.run)) as reader:
        (refused,) = [event for event in reader.events() if event.kind == "tool_refused"]
    assert refused.data["code"] == "not_approved"


def test_parked_time_is_not_the_deadlines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with a minute to go is answered a day later and still has its minute."""
    real = time.time

    async def main() -> None:
        door = Supervisor(WRITERS, model=ScriptedModel(ANSWERS), home=tmp_path)
        report = await door.run("Say it", plan=PLAN, approve=True, deadline=60)
        monkeypatch.setattr(time, "time", lambda: real() + 86_400)
        await door.answer(report.run, "plan", "approve")
        monkeypatch.setattr(time, "time", lambda: real() + 2 * 86_400)
        report = await door.resume(report.run)
        assert report.status == "complete"
        assert report.timing.wall_s < 60

    asyncio.run(main())


def test_a_rejected_plan_ends_the_run_with_the_reason(tmp_path: Path) -> None:
    """Failed, nothing run, the reason in the answer and the gaps; resuming says the same."""

    async def main() -> None:
        door = Supervisor(WRITERS, model=ScriptedModel(ANSWERS), home=tmp_path)
        report = await door.run("Say it", plan=PLAN, approve=True)
        await door.answer(report.run, "plan", "reject too dear")
        report = await door.resume(report.run)
        assert (report.status, report.exit_code, report.outcomes) == ("failed", 1, ())
        assert "too dear" in report.answer
        assert "too dear" in report.gaps[0].reason
        assert (await door.resume(report.run)).answer == report.answer

    asyncio.run(main())


def test_a_team_can_let_questions_reach_a_person(tmp_path: Path) -> None:
    """[people] ask = true is the same as --ask, and kind: human is a worker."""
    folder = tmp_path / "team"
    (folder / "workers").mkdir(parents=True)
    (folder / "team.toml").write_text('description = "x"\n[people]\nask = true\n')
    (folder / "workers" / "boss.md").write_text("---\nname: boss\ndescription: Signs\nkind: human\n---\nYou sign.\n")
    door = Supervisor(folder, model=ScriptedModel(ANSWERS), home=tmp_path / "home")
    report = door.run_sync("Sign it", plan=plan(task("t1", worker="boss")))
    assert report.status == "waiting"
    with closing(door.home.read(report.run)) as reader:
        assert replay(reader.events()).start["request"]["ask"] is True
    assert door.questions(report.run)[0].prompt.startswith("You sign.")
