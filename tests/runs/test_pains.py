"""What users of other systems suffer, one test each, named after it: end to end, on scripted models or over HTTP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker, tool
from chargehand.errors import InvalidPlan, ModelError, RunNotFound, RunOwned
from chargehand.events import Event
from chargehand.models import Attribution, ModelClient
from chargehand.models.resolve import Provider
from chargehand.record.home import Home
from chargehand.runs.session import Session
from chargehand.settings import Settings
from chargehand.testing import ScriptedModel, run_virtual
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, TokenCount
from chargehand.values.report import Report
from tests.cli.terminal import COMMAND, finished, process
from tests.faults.world import FastLoop
from tests.kernel import FunctionModel
from tests.loopback import Answer, Seen, answer_json, error, serve, serving
from tests.pace import PATIENCE_S

RESULT = {"summary": "Done.", "output": "Words.", "confidence": 80}
WORKS = {"when": {"role": "worker"}, "reply": {"json": RESULT}}


def says(answer: str) -> dict[str, Any]:
    return {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": answer, "confidence": 70}}}


SAYS = says("All [t1].")


def task(id: str, *depends_on: str, worker: str = "writer", **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "worker": worker,
        "instruction": f"Write the text called {id} in one sentence.",
        "success_criterion": f"The sentence {id} is there.",
        "depends_on": list(depends_on),
        **more,
    }


def plan(*tasks: dict[str, Any]) -> dict[str, Any]:
    return {"goal": "Say something", "tasks": list(tasks)}


def fan(size: int, **more: Any) -> dict[str, Any]:
    return plan(*(task(f"t{n}", **more) for n in range(1, size + 1)))


def when(task: str, delay: float = 0.0, **reply: Any) -> dict[str, Any]:
    return {"when": {"role": "worker", "task": task}, "delay_ms": delay * 1000, "reply": reply or {"json": RESULT}}


WRITER = Worker("writer", "Writes")


def run(
    home: Path, model: ModelClient, given: dict[str, Any] | None = None, workers: Any = (WRITER,), **options: Any
) -> tuple[Report, list[Event]]:
    """A run on virtual time, and its events."""
    events: list[Event] = []
    supervisor = Supervisor(Team(list(workers)), model=model, home=home)
    report, _ = run_virtual(supervisor.run("Say it", plan=given, on_event=events.append, **options))
    return report, events


def at(events: list[Event], kind: str, task: str) -> float:
    """Seconds from the start of the run to the first such event of a task."""
    return next(e.at for e in events if e.kind == kind and e.task == task) - events[0].at


# --- what their users ask for most ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", [{"text": ""}, {"text": "I will not.", "stop": "refused"}, {"json": RESULT}])
def test_pain_1_failures_are_not_counted_as_success(reply: dict[str, Any], tmp_path: Path) -> None:
    """An empty answer, a refusal, and a result that its check finds wrong: none is done, the run is partial."""

    def has_a_number(output: Any) -> str | None:
        """Tells whether there is a number."""
        return None if any(c.isdigit() for c in str(output)) else "there is no number in it"

    good = {"when": {"task": "t1"}, "reply": {"json": {**RESULT, "output": "42"}}}
    rewrite = {"when": {"role": "refiner"}, "reply": {"json": {"instruction": "Write one sentence with a number."}}}
    model = ScriptedModel([good, {"when": {"role": "worker"}, "reply": reply}, rewrite, SAYS])
    report, _ = run(tmp_path, model, fan(2), [Worker("writer", "Writes", check=has_a_number)])
    assert [outcome.status for outcome in report.outcomes] == ["done", "failed"]
    assert (report.status, [gap.task for gap in report.gaps]) == ("partial", ["t2"])


def test_pain_2_a_burst_of_429_does_not_wipe_the_run(tmp_path: Path) -> None:
    """Ten seconds in which everything is refused, in the middle of twenty tasks: all are done, at the first attempt."""
    refused: list[float] = []

    async def answer(call: ModelCall, who: Attribution) -> Reply:
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(1)
        if 1 < now < 11:
            refused.append(now)
            raise ModelError("rate_limited", "slow down", retry_after=3)
        said = {"answer": "All [t1-t20]."} if call.role == "synthesizer" else RESULT
        return Reply(text=json.dumps(said), usage=TokenCount(input_tokens=10, output_tokens=5))

    report, _ = run(tmp_path, FunctionModel(answer), fan(20))
    assert report.status == "complete"
    assert {outcome.attempts for outcome in report.outcomes} == {1}
    assert 1 <= len(refused) < 20
    assert report.timing.waiting_s > 3


def test_pain_3_a_breaker_stops_identical_failures(tmp_path: Path) -> None:
    """A provider that is gone gets a few dozen calls for a hundred tasks, not fifteen for each of them."""
    gone = {"when": {"role": "worker"}, "reply": {"error": {"status": 500}}}
    model = ScriptedModel([gone, SAYS])
    report, events = run(tmp_path, model, fan(100))
    assert report.status == "failed"
    assert len(report.gaps) == 100
    assert len(model.calls) < 100
    assert any(event.kind == "breaker_changed" and event.data["state"] == "open" for event in events)


def test_pain_4_the_cost_is_known_before_anything_is_spent(tmp_path: Path) -> None:
    """With --approve the plan and its price are shown after one planner call, and a no ends it there."""
    model = ScriptedModel([{"when": {"role": "planner"}, "reply": {"json": fan(6)}}, WORKS, SAYS])
    shown: list[str] = []

    async def person(question: Any, wrong: str | None) -> str:
        shown.append(question.prompt)
        return "reject too dear"

    report, _ = run(tmp_path, model, approve=True, person=person)
    assert [call.role for call, _ in model.calls] == ["planner"]
    assert (report.status, report.outcomes) == ("failed", ())
    assert "8 calls" in shown[0]
    assert "tokens" in shown[0]


def test_pain_5_a_budget_holds_under_concurrency(tmp_path: Path) -> None:
    """Twenty workers at once on half of what they need: spent at most the budget, 40 % done, and an answer."""

    def usage(input: int, output: int) -> dict[str, Any]:
        return {"usage": {"input_tokens": input, "output_tokens": output}}

    # All of it would take 20 x 1,600 tokens to write and 20 x 900 to read for an answer of 2,000.
    model = ScriptedModel([{**WORKS, **usage(700, 900), "delay_ms": 500}, {**SAYS, **usage(8_000, 300)}])
    report, _ = run(tmp_path, model, fan(20), tokens=26_000, max_concurrent=20)
    assert report.usage.tokens <= 26_000
    assert sum(outcome.ok for outcome in report.outcomes) >= 8
    assert report.answer == "All [t1]."
    assert {o.error.kind for o in report.outcomes if o.error} == {"budget"}
    assert report.status == "partial"


def test_pain_6_what_is_done_is_kept_at_a_limit(tmp_path: Path) -> None:
    """At the deadline the answer is made of what is there, and what is not is named."""
    model = ScriptedModel([when("t3", delay=1_000), WORKS, SAYS])
    report, _ = run(tmp_path, model, fan(3), deadline=20)
    assert [outcome.status for outcome in report.outcomes] == ["done", "done", "failed"]
    assert report.outcomes[0].output == "Words."
    assert (report.answer, report.gaps[0].task) == ("All [t1].", "t3")


def test_pain_7_resuming_repeats_no_finished_work(tmp_path: Path) -> None:
    """Stopped with one task done and one under way: only the one under way is asked again."""
    slow = {**when("t2", delay=60), "times": 1}
    model = ScriptedModel([slow, WORKS, says("All [t1, t2].")])
    supervisor = Supervisor(Team([WRITER]), model=model, home=tmp_path)

    async def main() -> tuple[Report, Report]:
        loop = asyncio.get_running_loop()

        def stop_later(session: Session) -> None:
            loop.call_later(10, session.interrupt)

        first = await supervisor.run("Say it", plan=fan(2), on_session=stop_later)
        return first, await supervisor.resume(first.run)

    (first, second), _ = run_virtual(main())
    assert (first.status, second.status) == ("interrupted", "complete")
    asked = [who.task for call, who in model.calls if call.role == "worker"]
    assert (asked.count("t1"), asked.count("t2")) == (1, 2)


def test_pain_8_one_failure_does_not_kill_its_siblings(tmp_path: Path) -> None:
    """The worker whose tool keeps exploding loses its own task; those under way beside it go on to their end."""

    @tool(effect="read")
    def explode() -> str:
        """Explodes."""
        raise SystemError("boom")

    bad = when("t1", tool_calls=[{"name": "explode", "arguments": {}}])
    model = ScriptedModel([bad, when("t2", delay=30), when("t3", delay=60), SAYS])
    workers = [Worker("writer", "Writes", tools=[explode], max_steps=2)]
    report, _ = run(tmp_path, model, fan(3), workers)
    assert [outcome.status for outcome in report.outcomes] == ["failed", "done", "done"]
    assert report.status == "partial"


def test_pain_9_no_waves_and_joins_that_take_what_there_is(tmp_path: Path) -> None:
    """A task starts the moment its own inputs are there; a join that may proceed does so without the failed one."""
    model = ScriptedModel(
        [
            when("quick", delay=1),
            when("slow", delay=100),
            when("broken", error={"status": 400}),
            {"when": {"role": "refiner"}, "reply": {"json": {"instruction": "Write it differently."}}},
            WORKS,
            {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "All [join]."}}},
        ]
    )
    given = plan(
        task("slow"),
        task("quick"),
        task("after", "quick"),
        task("broken"),
        task("join", "after", "broken", on_dependency_failure="proceed"),
        task("strict", "broken"),
    )
    report, events = run(tmp_path, model, given)
    assert at(events, "attempt_started", "after") == pytest.approx(1, abs=0.1)
    assert at(events, "task_ended", "join") < 10 < at(events, "task_ended", "slow")
    statuses = {outcome.task: outcome.status for outcome in report.outcomes}
    assert (statuses["broken"], statuses["join"], statuses["strict"]) == ("failed", "done", "skipped")
    (asked,) = [call for call, who in model.calls if who.task == "join"]
    assert "failed" in asked.messages[-1].text


def test_pain_10_inventions_and_contradictions_are_not_merged_silently(tmp_path: Path) -> None:
    """A source that is not a task keeps the run from being complete; a contradiction stands in the report."""
    clash = {"subject": "price", "claims": ["10", "12"]}
    invented = {"answer": "It costs 10 [t1] or 12 [t9].", "contradictions": [clash], "confidence": 60}
    model = ScriptedModel([WORKS, {"when": {"role": "synthesizer"}, "reply": {"json": invented}}])
    report, _ = run(tmp_path, model, fan(2))
    assert report.status == "partial"
    assert "[t9]" in report.provenance.problems[0]
    assert [found.subject for found in report.contradictions] == ["price"]
    assert not report.contradictions[0].resolved


def test_pain_11_an_approval_deep_in_a_run_survives_the_process(tmp_path: Path) -> None:
    """A tool call that needs a yes parks the run; another supervisor answers and resumes, and it happens once."""
    paid: list[int] = []

    @tool(approve=True)
    def pay(amount: int) -> str:
        """Pays an amount."""
        paid.append(amount)
        return "paid"

    asks = {**when("t2", tool_calls=[{"name": "pay", "arguments": {"amount": 7}}]), "times": 1}

    def supervisor() -> Supervisor:
        rules = [WORKS, says("All [t2].")]
        model = ScriptedModel(rules if paid or parked else [asks, *rules])
        return Supervisor(Team([Worker("writer", "Writes", tools=[pay])]), model=model, home=tmp_path)

    parked: list[str] = []
    first, _ = run_virtual(supervisor().run("Say it", plan=plan(task("t1"), task("t2", "t1")), ask=True))
    parked.append(first.run)
    assert (first.status, first.exit_code, paid) == ("waiting", 4, [])
    (question,) = supervisor().questions(first.run)
    assert (question.kind, "7" in question.prompt) == ("tool", True)

    async def go_on() -> Report:
        assert await supervisor().answer(first.run, question.id, "approve") == ()
        return await supervisor().resume(first.run)

    report, _ = run_virtual(go_on())
    assert (report.status, paid) == ("complete", [7])


@pytest.mark.slow
def test_pain_12_requests_a_minute_are_kept(tmp_path: Path) -> None:
    """Forty calls to a provider that allows thirty a minute are spread out, over real HTTP; none is refused."""
    times: list[float] = []

    def handler(seen: Seen) -> Answer:
        times.append(asyncio.get_running_loop().time())
        return answer_json({"answer": "All [t1-t40]."} if seen.role == "synthesizer" else RESULT)

    async def main() -> Report:
        async with serve(handler) as server:
            provider = Provider(name="mine", base_url=f"{server.url}/v1", wire="openai", rpm=30)
            settings = Settings(home=str(tmp_path), model="mine:m", providers={"mine": provider})
            return await Supervisor(Team([WRITER]), settings=settings).run("Say it", plan=fan(40), max_concurrent=40)

    with asyncio.Runner(loop_factory=FastLoop) as runner:
        report = runner.run(main())
    assert (report.status, len(times)) == ("complete", 41)
    assert times[-1] - times[0] > 15
    assert report.timing.waiting_s > 15


def test_pain_13_a_timeout_fires_while_a_tool_hangs(tmp_path: Path) -> None:
    """A tool that never returns is left at the task's second, not at its own convenience."""

    @tool(effect="read")
    async def hang() -> str:
        """Hangs."""
        await asyncio.sleep(3_600)
        return "at last"

    model = ScriptedModel([when("t1", tool_calls=[{"name": "hang", "arguments": {}}]), WORKS, SAYS])
    report, events = run(
        tmp_path,
        model,
        plan(task("t1", timeout_s=1.0, budget={"seconds": 1.0}), task("t2")),
        [Worker("writer", "Writes", tools=[hang])],
    )
    assert report.outcomes[0].error is not None
    assert report.outcomes[0].error.kind == "timeout"
    assert at(events, "attempt_ended", "t1") == pytest.approx(1.0, abs=0.25)


def test_pain_14_a_record_grows_with_its_steps_and_can_be_pruned(tmp_path: Path) -> None:
    """Twice the steps make at most about twice the record, though each call holds all before it; prune removes it."""

    @tool(effect="read")
    def look(number: int) -> str:
        """Looks."""
        return f"{number}: " + "".join(chr(97 + (number * i) % 26) for i in range(2_000))

    def size(steps: int) -> int:
        home = tmp_path / str(steps)
        looks = [
            {**when("t1", tool_calls=[{"name": "look", "arguments": {"number": n}}]), "times": 1} for n in range(steps)
        ]
        workers = [Worker("writer", "Writes", tools=[look], max_steps=steps + 2)]
        report, _ = run(home, ScriptedModel([*looks, WORKS]), fan(1), workers)
        assert report.status == "complete"
        with closing(Home(home).read(report.run)) as journal:
            events = list(journal.events())
        assert sum(event.kind == "tool_returned" for event in events) == steps
        return sum(path.stat().st_size for path in home.rglob("*") if path.is_file())

    small, large = size(20), size(40)
    assert large < 2.6 * small
    home = Home(tmp_path / "40")
    (kept,) = home.runs()
    command = [*COMMAND, "runs", "prune", "--keep", "0", "--yes"]
    environment = {"CHARGEHAND_HOME": str(tmp_path / "40"), "PATH": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert home.runs() == []
    with pytest.raises(RunNotFound):
        home.read(kept.run)
    assert sum(path.stat().st_size for path in (tmp_path / "40").rglob(f"{kept.run}*") if path.is_file()) == 0


@pytest.mark.slow
def test_pain_15_a_run_needs_few_distributions(tmp_path: Path) -> None:
    """A whole run over the command line loads modules of at most twenty distributions."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"replies": [WORKS, says("All [t1, t2].")]}))
    given = tmp_path / "plan.json"
    given.write_text(json.dumps(fan(2, worker="writer")))
    program = """
import sys
from importlib.metadata import packages_distributions
from chargehand.cli import main
try:
    main(sys.argv[1:])
except SystemExit as left:
    assert left.code == 0, left.code
import aiohttp
known = packages_distributions()
names = {n for m in sys.modules for n in known.get(m.partition(".")[0], ())}
print("\\n" + " ".join(sorted(names)))
"""
    command = [sys.executable, "-c", program, "run", "--plan", str(given), "--model", f"scripted:{script}"]
    environment = {"CHARGEHAND_HOME": str(tmp_path / "home"), "PATH": ""}
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.splitlines()[-1].split()
    assert {"aiohttp", "click", "pydantic_core"} <= set(loaded)
    assert len({*loaded, "chargehand"}) <= 20, loaded


# --- measured behaviour of peers ------------------------------------------------------------------------------------


def test_dataflow_takes_no_longer_than_its_longest_chain(tmp_path: Path) -> None:
    """Two chains of 0.2 s + 1 s and 1 s + 0.2 s take 1.2 s; a barrier between the steps would make it 2 s."""
    delays = {"a1": 0.2, "a2": 1.0, "b1": 1.0, "b2": 0.2}
    model = ScriptedModel([*(when(id, delay=seconds) for id, seconds in delays.items()), SAYS])
    given = plan(task("a1"), task("b1"), task("a2", "a1"), task("b2", "b1"))
    report, events = run(tmp_path, model, given)
    last = max(at(events, "task_ended", id) for id in delays)
    assert last == pytest.approx(1.2, abs=0.02)
    assert report.timing.critical_path_s == pytest.approx(1.2, abs=0.02)


def test_a_second_resumer_duplicates_nothing(tmp_path: Path) -> None:
    """Whoever resumes a run that somebody has is told so, and no call is made twice."""
    model = ScriptedModel([when("t1", delay=5), WORKS, says("Both [t1, t2].")])
    one, two = (Supervisor(Team([WRITER]), model=model, home=tmp_path) for _ in range(2))

    async def main() -> Report:
        running = asyncio.ensure_future(one.run("Say it", plan=fan(2)))
        await asyncio.sleep(1)
        with pytest.raises(RunOwned):
            await two.resume("last")
        return await running

    report, _ = run_virtual(main())
    assert (report.status, len(model.calls)) == ("complete", 3)


@pytest.mark.parametrize(("status", "calls"), [(429, 3), (401, 1)])
def test_what_is_worth_sending_again_is_and_what_is_not_is_not(status: int, calls: int, tmp_path: Path) -> None:
    """A 429 is sent again, a 401 never: over HTTP, from the command line."""

    def handler(seen: Seen) -> Answer:
        refused = seen.number <= 2
        return error(status, Retry_After="0.01") if refused else answer_json(RESULT)

    with serving(handler) as server:
        env = {"OPENAI_API_KEY": "sk-one-two-three", "OPENAI_BASE_URL": f"{server.url}/v1"}
        file = tmp_path / "plan.json"
        file.write_text(json.dumps(fan(1)))
        done = finished(process("run", "--plan", file, "--model", "openai:m", home=tmp_path / "home", env=env))
        assert server.count == calls
    assert done.code == (0 if status == 429 else 2)


def test_all_workers_asked_for_run_and_each_answers_its_own_task(tmp_path: Path) -> None:
    """Three tasks for one worker at once: three calls, each with its own instruction and its own answer."""
    replies = [when(f"t{n}", delay=1, json={**RESULT, "output": f"answer {n}"}) for n in (1, 2, 3)]
    model = ScriptedModel([*replies, SAYS])
    report, events = run(tmp_path, model, fan(3))
    assert [outcome.output for outcome in report.outcomes] == ["answer 1", "answer 2", "answer 3"]
    assert [at(events, "attempt_started", f"t{n}") for n in (1, 2, 3)] == pytest.approx([0, 0, 0], abs=0.1)
    for call, who in model.calls[:3]:
        assert f"called {who.task} " in call.messages[-1].text


def test_an_unknown_worker_is_found_before_anything_is_spent(tmp_path: Path) -> None:
    """In a given plan it is an error that names it; a model's plan goes back once and the corrected one runs."""
    model = ScriptedModel([WORKS, SAYS])
    with pytest.raises(InvalidPlan, match="coworker"):
        run(tmp_path, model, plan(task("t1", worker="coworker")))
    assert model.calls == []
    drafts = [
        {"when": {"role": "planner"}, "reply": {"json": draft}, "times": 1}
        for draft in (plan(task("t1", worker="coworker"), task("t2")), fan(2))
    ]
    model = ScriptedModel([*drafts, WORKS, says("Both [t1, t2].")])
    report, _ = run(tmp_path, model)
    assert report.status == "complete"
    assert [call.role for call, _ in model.calls] == ["planner", "planner", "worker", "worker", "synthesizer"]
    assert "coworker" in model.calls[1][0].messages[-1].text


def test_the_end_of_a_diamond_runs_once(tmp_path: Path) -> None:
    """With a -> b -> d and a -> d, d is asked once, when both of its inputs are there."""
    model = ScriptedModel([WORKS, {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "All [d]."}}}])
    report, _ = run(tmp_path, model, plan(task("a"), task("b", "a"), task("d", "b", "a")))
    asked = [who.task for call, who in model.calls if call.role == "worker"]
    assert asked == ["a", "b", "d"]
    assert report.status == "complete"


def test_a_cycle_is_named_and_never_waited_for(tmp_path: Path) -> None:
    """A plan that would wait for itself is refused at once, by the path of the cycle."""
    model = ScriptedModel([WORKS])
    with pytest.raises(InvalidPlan, match=r"a -> b -> a|b -> a -> b"):
        run(tmp_path, model, plan(task("a", "b"), task("b", "a")))
    assert model.calls == []


def test_a_limit_of_450_tokens_holds_for_twenty_runs_at_once(tmp_path: Path) -> None:
    """Twenty runs in one process with 450 tokens each: none of them spends more, whatever the others do."""
    usage = {"usage": {"input_tokens": 100, "output_tokens": 50}}
    model = ScriptedModel([{**WORKS, **usage, "delay_ms": 200}, {**SAYS, **usage}])
    supervisor = Supervisor(Team([WRITER]), model=model, home=tmp_path)

    async def main() -> list[Report]:
        return await asyncio.gather(*(supervisor.run("Say it", plan=fan(4), tokens=450) for _ in range(20)))

    reports, _ = run_virtual(main())
    assert all(report.usage.tokens <= 450 for report in reports)
    assert 150 * len(model.calls) == sum(report.usage.tokens for report in reports)
    assert all(report.gaps for report in reports)


def test_running_out_of_steps_keeps_the_findings(tmp_path: Path) -> None:
    """A worker that never stops calling tools ends as a gap; what the others found is in the report."""

    @tool(effect="read")
    def look() -> str:
        """Looks."""
        return "seen"

    found = {**RESULT, "findings": [{"severity": "warning", "message": "a crack"}]}
    endless = when("t2", tool_calls=[{"name": "look", "arguments": {}}])
    model = ScriptedModel([when("t1", json=found), endless, SAYS])
    report, _ = run(tmp_path, model, fan(2), [Worker("writer", "Writes", tools=[look], max_steps=3)])
    assert [(f.message, f.sources[0]) for f in report.findings] == [("a crack", "t1")]
    assert (report.status, report.gaps[0].task) == ("partial", "t2")


def test_the_synthesizer_is_told_what_went_wrong(tmp_path: Path) -> None:
    """Not a generic text: the error of the failed task, in its own words."""
    broken = when("t2", error={"status": 400, "message": "the archive is closed on Sundays"})
    rewrite = {"when": {"role": "refiner"}, "reply": {"json": {"instruction": "Write it differently."}}}
    model = ScriptedModel([when("t1"), broken, rewrite, SAYS])
    report, _ = run(tmp_path, model, fan(2))
    assert "closed on Sundays" in model.calls[-1][0].messages[-1].text
    assert "closed on Sundays" in report.gaps[0].reason


def test_tokens_are_reported_as_the_provider_counts_them(tmp_path: Path) -> None:
    """Not three times as many: the sum of what every reply says, retries and tool steps included."""
    replies: list[tuple[int, int, int]] = []

    def handler(seen: Seen) -> Answer:
        if seen.number == 2:
            return error(503, Retry_After="0.01")
        replies.append((100 + seen.number, 10, 40))
        said = {"answer": "All [t1-t5]."} if seen.role == "synthesizer" else RESULT
        return answer_json(said, usage=replies[-1])

    async def main() -> Report:
        async with serve(handler) as server:
            provider = Provider(name="mine", base_url=server.url, wire="anthropic")
            settings = Settings(home=str(tmp_path), model="mine:m", providers={"mine": provider})
            return await Supervisor(Team([WRITER]), settings=settings).run("Say it", plan=fan(5))

    report = asyncio.run(main())
    assert report.usage.calls == len(replies) == 6
    assert report.usage.input_tokens == sum(input for input, _, _ in replies)
    assert report.usage.output_tokens == 60
    assert report.usage.cached_tokens == 240


def test_a_worker_call_carries_little_besides_its_task(tmp_path: Path) -> None:
    """What frames a task of one sentence is a few hundred tokens, not thousands."""
    model = ScriptedModel([WORKS, SAYS])
    run(tmp_path, model, fan(2))
    call, _ = model.calls[0]
    words = sum(len(m.text) for m in call.messages) + sum(len(t.packed) for t in call.tools)
    assert words / 4 < 700
