"""Teams within a team: one record, keys below the task, limits handed down, results and gaps handed up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from chargehand import tool
from chargehand.errors import InvalidTeam
from chargehand.models import Attribution
from chargehand.record.memory_journal import MemoryStore
from chargehand.record.replay import replay
from chargehand.runs.resumed_job import Added, _models_of, reopened_tasks  # pyright: ignore[reportPrivateUsage]
from chargehand.settings import Limits, ModelSettings, RoleModel
from chargehand.team import Team, Worker
from chargehand.trace import fold
from chargehand.trace.page_state import page_state
from chargehand.trace.run_parts import TaskState, arrange_tasks
from chargehand.values.budget import Budget
from chargehand.values.effect import ModelCall
from chargehand.values.key import Key, TaskPath, within
from chargehand.values.message import Reply, ToolRequest
from chargehand.values.order import Restart
from chargehand.values.recovery_policy import Policy
from chargehand.values.report import Report
from chargehand.workers.delegate import drop_own_citations
from tests.flows import Flow, Said, by_task, escalate, task, tasks, works
from tests.kernel import result, stored
from tests.simulation.world import idempotency_key


def inner(**fields: Any) -> Team:
    return Team([Worker("digger", "Digs"), Worker("sifter", "Sifts")], name="diggers", **fields)


def outer(nested: Team | None = None, recovery: Policy | None = None, **fields: Any) -> Team:
    lead = Worker("research", "Finds out", kind="delegate", team=nested or inner(), **fields)
    return Team([Worker("clerk", "Does clerical work"), lead], name="office", recovery=recovery or Policy())


def draft(*parts: tuple[str, str, list[str]]) -> dict[str, Any]:
    """A planner's plan: (id, worker, depends on)."""
    told = {"instruction": "Work out a part of it.", "success_criterion": "There is a result."}
    return {"goal": "g", "tasks": [{"id": id, "worker": who, "depends_on": needs, **told} for id, who, needs in parts]}


PARTS = draft(("t1", "digger", []), ("t2", "sifter", ["t1"]))


def talk(call: ModelCall, who: Attribution) -> Said:
    match call.role:
        case "planner":
            return PARTS
        case "synthesizer" if who.task is None:
            return {"answer": "Everything. [a] [b]", "confidence": 80}
        case "synthesizer":
            return {"answer": "Gold [t1] and sand [t2].", "confidence": 60}
        case "judge":
            return {"contradictions": []}
        case _:
            claim = {"statement": f"Fact of {who.task}", "confidence": 90, "sources": ["https://example.org/x"]}
            return result(f"RESULT-{who.task}", claims=[claim], confidence=70)


def flow(**fields: Any) -> Flow:
    plan = tasks(task("a"), task("b", worker="research", **fields.pop("task", {})))
    return Flow(fields.pop("talk", talk), plan, team=fields.pop("team", outer()), **fields)


def test_paths_say_where_a_nested_task_is() -> None:
    """A key of a nested team belongs to the nested task, its supervisor's to the task around it."""
    assert Key.parse("t3/2/model/4")[1:] == ("t3", 2)
    assert Key.parse("t3/1/t1/2/model/4")[1:] == ("t3/1/t1", 2)
    assert Key.parse("t3/1/t1/once/send/abc")[1:] == ("t3/1/t1", None)
    assert Key.parse("t3/1/@plan/1")[1:] == ("t3", 1)
    assert Key.parse("t3/1/t2/1/@synthesis/1")[1:] == ("t3/1/t2", 1)
    assert Key.parse("t3/1/b2/model/1")[1:] == ("t3", 1)
    assert Key.parse("t3/1/x1.n1/1/recovery/2")[1:] == ("t3/1/x1.n1", 1)
    assert TaskPath.parse("t3/1/t2/2/t5").around == (
        ("t3/1/t2", 2),
        ("t3", 1),
    )
    assert TaskPath.parse("t3").lineage == ("t3",)


def test_a_key_is_written_as_it_was_read() -> None:
    """It also says of which team its task is: the run's own, or the one that does an attempt."""
    for text, scope in (
        ("@plan/1", ""),
        ("t3/2/model/4", ""),
        ("t3/1/t1/2/model/4", "t3/1"),
        ("a/1/b/2/c/3/ask", "a/1/b/2"),
    ):
        key = Key.parse(text)
        assert (str(key), key.within) == (text, scope)
        assert key.path is None or (str(key.path), key.path.within) == (key.task, scope)


@pytest.mark.parametrize("id", ["model", "b1", "route", "split", "ask", "t1"])
def test_a_nested_task_of_any_name_is_found_by_its_key(id: str) -> None:
    """Ids that mean something else in a key are marked."""
    path = within("t3/1", id)
    assert Key.parse(f"{path}/2/model/1")[1:] == (path, 2)
    assert Key.parse(f"{path}/ask")[1:] == (path, None)
    assert TaskPath.parse(path).around == (("t3", 1),)


def test_a_team_does_a_task_of_another_team() -> None:
    """Its plan, calls and tasks are on the same record below the task; its answer is the outcome, sources and all."""
    run = flow()
    report = run.run()
    assert report.status == "complete"
    outcome = by_task(report)["b"]
    assert outcome.output == "Gold and sand."
    assert outcome.confidence == 60
    assert [claim.sources for claim in outcome.claims] == [("b", "https://example.org/x (unconfirmed)")] * 2
    keys = [event.data["key"] for event in run.events if event.kind == "model_replied"]
    nested = ["b/1/@plan/1", "b/1/t1/1/model/1", "b/1/t2/1/model/1", "b/1/@judge/1/1", "b/1/@synthesis/1"]
    assert [key for key in keys if key.startswith("b/")] == nested
    assert "Fact of b/1/t1" in [claim.statement for claim in outcome.claims]
    planner = next(call for call, _, who in run.model.asked if call.role == "planner")
    assert "Work out the part b." in planner.messages[-1].text
    assert outcome.usage.calls == 5
    assert report.usage.calls == len(run.model.asked) == 8


def test_a_chain_of_teams_is_not_called_a_chain_if_tasks_ran_in_parallel_inside() -> None:
    """The remark looks at what ran: a team of two at once is faster than one after the other."""
    chain = tasks(task("a", worker="research"), task("b", "a", worker="research"))
    wide = draft(("t1", "digger", []), ("t2", "sifter", []))
    report = Flow(lambda call, who: wide if call.role == "planner" else talk(call, who), chain, team=outer()).run()
    assert (report.strategy, [note for note in report.notes if "pure chain" in note]) == ("sequential", [])
    deep = Flow(talk, chain, team=outer()).run()
    assert [note for note in deep.notes if "pure chain" in note]


@pytest.mark.parametrize("schema", [None, {"type": "object"}])
def test_disclaimers_of_teams_that_took_part_are_handed_up_from_any_depth(schema: dict[str, Any] | None) -> None:
    """Each once, the run's own last, also when a resumed run takes the outcome from the record; of no idle team."""
    deepest = Team([Worker("digger", "Digs"), Worker("sifter", "Sifts")], name="doctors", disclaimer='Not "advice".')
    idle = Worker("idle", "Idles", kind="delegate", team=inner(disclaimer="Not used."))
    doctors = Worker("digger", "Digs", kind="delegate", team=deepest, output_schema=schema)
    middle = Team([doctors, Worker("sifter", "Sifts"), idle], name="middle", disclaimer="Not final.")
    lead = Worker("research", "Finds out", kind="delegate", team=middle, output_schema=schema)
    office = Team([Worker("clerk", "Does clerical work"), lead, idle], name="office", disclaimer="Not final.")

    def say(call: ModelCall, who: Attribution) -> Said:
        said = talk(call, who)
        return {**said, "data": {"n": 1}} if call.role == "synthesizer" and isinstance(said, dict) else said

    run = flow(talk=say, team=office)
    whole = run.run()
    assert whole.answer == 'Everything. [a] [b]\n\n*Not "advice".*\n\n*Not final.*'
    ended = next(n for n, event in enumerate(run.events, 1) if event.kind == "task_ended" and event.task == "b")
    cut = flow(talk=say, team=office)
    cut.store = MemoryStore(run.store.events[:ended], dict(run.store.blobs))
    assert cut.run(number=1).answer == whole.answer
    alone = Flow(say, tasks(task("b", worker="research")), team=office).run()
    assert alone.answer.endswith('\n\n*Not "advice".*\n\n*Not final.*')
    assert schema is not None or alone.answer.count("Not final.") == alone.answer.count("advice") == 1


def test_the_trace_shows_nested_tasks_with_their_parent() -> None:
    """One view of all tasks; the plan is the run's own."""
    run = flow()
    run.run()
    view = fold(run.events)
    assert [t.id for t in view.tasks.values()] == ["a", "b", "b/1/t1", "b/1/t2"]
    assert view.tasks["b/1/t2"].depends_on == ("b/1/t1",)
    assert view.tasks["b/1/t1"].status == "done"
    assert view.plan is not None
    assert [t.id for t in view.plan.tasks] == ["a", "b"]
    assert view.gaps == []
    state = page_state(view)
    assert state["order"] == ["a", "b", "b/1/t1", "b/1/t2"]
    assert [(task["label"], task["depth"]) for task in state["tasks"]] == [("a", 0), ("b", 0), ("t1", 1), ("t2", 1)]


def test_tasks_of_a_team_stand_after_the_task_it_does() -> None:
    """In trace and timeline, at every depth; what is no path of ours stays where it is."""
    ids = ["a", "b", "odd/one", "b/1/x", "a/1/y", "a/2/.model", "a/1/y/1/z", "c/1/lost"]
    shown = arrange_tasks([TaskState(id) for id in ids])
    assert [task.id for task in shown] == ["a", "a/1/y", "a/1/y/1/z", "a/2/.model", "b", "b/1/x", "odd/one", "c/1/lost"]
    assert [task.label for task in shown][1:4] == ["y", "z", "2/model"]


@pytest.mark.slow
def test_a_crash_anywhere_in_a_nested_team_repeats_nothing_and_changes_nothing() -> None:
    """The record is cut after every event in turn: the rest of the run makes only calls that are not committed."""
    whole = flow()
    expected = essence(whole.run())
    for kept in range(1, len(whole.events)):
        cut = flow()
        cut.store = MemoryStore(whole.store.events[:kept], dict(whole.store.blobs))
        known = replay(stored(cut.store))
        assert essence(cut.run(number=1), broken_off(cut)) == expected, f"cut after event {kept}"
        sent = [who.idempotency_key for _, _, who in cut.model.asked]
        committed = {idempotency_key("run", key, effect.fingerprint) for key, effect in known.committed.items()}
        assert committed.isdisjoint(sent)
        assert len(sent) == len(whole.model.asked) - len(known.committed)


def broken_off(flow: Flow) -> list[dict[str, Any]]:
    """What was counted for calls that were under way where the record was cut."""
    return [each.data["lost"] for each in flow.events if each.kind == "budget_settled" and each.data.get("lost")]


def essence(report: Report, lost: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """The report without seconds, and without what is counted, and noted, for calls that were broken off."""
    data = report.to_json()
    for name in ("input_tokens", "output_tokens", "calls"):
        data["usage"][name] -= sum(usage[name] for usage in lost)
    data["notes"] = [note for note in data["notes"] if "broken off" not in note]
    assert len(report.notes) - len(data["notes"]) == (1 if lost else 0)
    del data["timing"]
    for usage in (data["usage"], *(outcome["usage"] for outcome in data["outcomes"])):
        del usage["seconds"], usage["waiting_s"]
    return data


def test_gaps_of_a_team_are_handed_up() -> None:
    """Part of the nested plan fails: the task is done with what there is, and the run says what is missing."""

    def half(call: ModelCall, who: Attribution) -> Said:
        refused = call.role == "worker" and who.task == "b/1/t2"
        return Reply(text="I will not.", stop="refused") if refused else talk(call, who)

    nested = Team([Worker("digger", "Digs"), Worker("sifter", "Sifts")], name="diggers")
    run = flow(talk=half, team=outer(nested))
    report = run.run()
    outcome = by_task(report)["b"]
    assert (outcome.status, outcome.partial) == ("done", True)
    assert "Missing: " in outcome.summary
    assert "refused" in outcome.summary
    assert report.status == "partial"
    assert "b" in [gap.task for gap in report.gaps]
    assert outcome.confidence == 30  # it says 60, and one of two tasks is done


def test_a_team_that_comes_to_nothing_fails_its_task() -> None:
    """The kind of the error is the team's; the others' tasks are not touched."""

    def broken(call: ModelCall, who: Attribution) -> Said:
        inside = call.role == "worker" and (who.task or "").startswith("b/")
        return Reply(text="No.", stop="refused") if inside else talk(call, who)

    report = flow(talk=broken, team=outer(recovery=Policy(attempts=1))).run()
    outcome = by_task(report)["b"]
    assert (outcome.status, outcome.error and outcome.error.kind) == ("failed", "refused")
    assert "The team diggers came to nothing" in outcome.summary
    assert by_task(report)["a"].ok


def test_a_team_that_hands_everything_back_lets_somebody_else_try() -> None:
    """Escalations of all its tasks are the task's escalation, and the ladder goes on from there."""

    def hands_back(call: ModelCall, who: Attribution) -> Said:
        inside = call.role == "worker" and (who.task or "").startswith("b/")
        return escalate("out_of_scope") if inside else talk(call, who)

    run = flow(talk=hands_back)
    report = run.run()
    assert by_task(report)["b"].worker == "clerk"
    assert run.decisions()["b/1/recovery"]["kind"] == "reassign"


def test_a_tasks_budget_is_its_teams_budget() -> None:
    """What is left for nested calls is what the task has left, however much the run has."""
    run = flow(task={"budget": Budget(tokens=300)})
    report = run.run()
    outcome = by_task(report)["b"]
    assert not outcome.ok or outcome.partial
    denied = [event for event in run.events if event.kind == "decision" and event.data["decision"] == "budget_denial"]
    assert denied
    assert all(event.task and event.task.startswith("b") for event in denied)
    assert "task b's budget of 300 tokens" in denied[0].data["reason"]
    assert by_task(report)["a"].ok


def test_a_teams_own_budget_holds_for_tasks_without_one() -> None:
    """[budget] of the nested team."""
    run = flow(team=outer(inner(budget=Budget(tokens=300))))
    run.run()
    denied = [event for event in run.events if event.kind == "decision" and event.data["decision"] == "budget_denial"]
    assert "task b's budget of 300 tokens" in denied[0].data["reason"]


def test_the_deadline_is_handed_down() -> None:
    """The nested workers stop in time for the nested answer, and that in time for the run's own."""

    run = flow(seconds=5.0, request={"deadline_s": 20.0})
    report = run.run()
    assert report.timing.wall_s <= 20.0
    outcome = by_task(report)["b"]
    assert outcome.ok  # plan 5 s, one task 5 s; the second is stopped at 12.6 s, the answer made by code at 15.75 s
    stopped = [event for event in run.events if event.kind == "decision" and event.data["decision"] == "deadline"]
    assert [event.task for event in stopped][:1] == ["b/1/t2"]


def test_a_timeout_of_the_task_stops_the_team() -> None:
    """In mid-call, with what its calls have used counted."""
    run = flow(task={"timeout_s": 1.5})
    run.team = outer(inner())
    report = run.run()
    outcome = by_task(report)["b"]
    assert outcome.error is not None
    assert outcome.error.kind in ("timeout", "deadline")
    assert outcome.usage.calls >= 1


def test_delegates_hold_no_slot() -> None:
    """With one slot a team three deep still gets its work done."""
    deep = Team([Worker("digger", "Digs"), Worker("sifter", "Sifts")], name="deep")
    for name in ("lower", "low"):
        sub = Worker("digger", "Has it dug", kind="delegate", team=deep)
        deep = Team([sub, Worker("sifter", "Sifts")], name=name)
    run = flow(team=outer(deep), request={"max_concurrent": 1})
    report = run.run()
    assert report.status == "complete"
    tasks_seen = {event.task for event in run.events if event.kind == "task_ended"}
    assert "b/1/t1/1/t1/1/t2" in tasks_seen


def test_people_are_asked_by_nested_workers_too() -> None:
    """The question says whose it is, and its answer is found on resume."""
    nested = Team([Worker("boss", "Knows", kind="human"), Worker("sifter", "Sifts")], name="people")

    def ask(call: ModelCall, who: Attribution) -> Said:
        return draft(("t1", "boss", []), ("t2", "sifter", ["t1"])) if call.role == "planner" else talk(call, who)

    run = flow(talk=ask, team=outer(nested))
    assert run.run().status == "waiting"
    asked = [event for event in run.events if event.kind == "question_asked"]
    assert [event.data["question"]["id"] for event in asked] == ["b.t1"]
    assert asked[0].data["key"] == "b/1/t1/1/ask"
    assert asked[0].task == "b/1/t1"


def test_a_delegate_with_a_schema_gives_data() -> None:
    """The nested team is asked for it as a run is with --schema."""
    schema: dict[str, Any] = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}

    def typed(call: ModelCall, who: Attribution) -> Said:
        inside = call.role == "synthesizer" and who.task is not None
        return {"answer": "Three [t1][t2].", "confidence": 60, "data": {"n": 3}} if inside else talk(call, who)

    assert by_task(flow(talk=typed, team=outer(output_schema=schema)).run())["b"].output == {"n": 3}


def test_citations_of_nested_tasks_are_taken_out() -> None:
    """Links, code and brackets that cite nothing stay."""
    text = "One [t1], two [t1, t2]. See [docs](https://example.org) and `a[t1]`."
    assert drop_own_citations(text, {"t1", "t2"}) == "One, two. See [docs](https://example.org) and `a[t1]`."


def test_a_team_that_failed_as_a_whole_continues_with_its_plan() -> None:
    """--retry-failed gives the team another go; what the others did stands."""
    broken = [True]

    def once(call: ModelCall, who: Attribution) -> Said:
        inside = call.role == "worker" and (who.task or "").startswith("b/")
        return Reply(text="No.", stop="refused") if inside and broken[0] else talk(call, who)

    run = flow(talk=once, team=outer(recovery=Policy(attempts=1)))
    assert run.run().status == "partial"
    broken[0] = False
    asked = len(run.model.asked)
    report = run.run(reopen=("b",), number=1)
    assert report.status == "complete"
    again = [(call.role, who.task) for call, _, who in run.model.asked[asked:]]
    assert [task for role, task in again if role == "worker"] == ["b/1/t1", "b/1/t2"]
    assert "planner" not in [role for role, _ in again]


def fails_at(*paths: str) -> tuple[Any, list[str]]:
    """What refuses the tasks at these paths, until the list is emptied."""
    refused = [*paths]

    def say(call: ModelCall, who: Attribution) -> Said:
        failing = call.role == "worker" and who.task in refused
        return Reply(text="No.", stop="refused") if failing else talk(call, who)

    return say, refused


ONE_ATTEMPT = Policy(attempts=1)


def asked_since(run: Flow, number: int) -> list[tuple[str, str | None]]:
    return [(call.role, who.task) for call, _, who in run.model.asked[number:]]


def test_a_team_that_is_retried_did_all_its_tasks_again() -> None:
    """--retry-failed: only what was not done is done, and the answers are written again, however often it crashes."""
    say, refused = fails_at("b/1/t2")
    run = flow(talk=say, team=outer(inner(recovery=ONE_ATTEMPT), ONE_ATTEMPT))
    assert run.run().status == "partial"
    assert reopened_tasks(replay(run.events), Added(retry_failed=True)) == {"b"}
    first, asked = len(run.events), len(run.model.asked)
    refused.clear()
    report = run.run(reopen=("b",), number=1)
    assert report.status == "complete"
    assert by_task(report)["b"].output == "Gold and sand."
    again = asked_since(run, asked)
    assert [each for each in again if each[0] in ("planner", "worker")] == [("worker", "b/1/t2")]
    assert ("synthesizer", "b") in again
    keys = [event.data["key"] for event in run.events[first:] if event.kind == "model_replied"]
    assert "b/1/t2/2/model/1" in keys, "attempts are counted on"
    essential = essence(report)
    for kept in range(first + 2, len(run.events)):
        cut = flow(talk=say, team=run.team)
        cut.store = MemoryStore(run.store.events[:kept], dict(run.store.blobs))
        assert essence(cut.run(number=2), broken_off(cut)) == essential, f"cut after event {kept}"


def test_a_team_two_deep_keeps_what_was_done_at_each_level() -> None:
    """The task that is done beside the team within keeps its result, and so do those inside of it."""
    deep = Worker("digger", "Has it dug", kind="delegate", team=inner(recovery=ONE_ATTEMPT))
    middle = Team([deep, Worker("sifter", "Sifts")], name="middle", recovery=ONE_ATTEMPT)
    say, refused = fails_at("b/1/t1/1/t2")
    run = flow(talk=say, team=outer(middle, ONE_ATTEMPT))
    assert run.run().status == "partial"
    asked = len(run.model.asked)
    refused.clear()
    assert run.run(reopen=("b",), number=1).status == "complete"
    again = [each for each in asked_since(run, asked) if each[0] in ("planner", "worker")]
    # The second task of the middle team rests on what the team within gave.
    assert again == [("worker", "b/1/t1/1/t2"), ("worker", "b/1/t2")]


def test_what_happened_once_in_a_team_happens_once_when_it_is_retried() -> None:
    """A mail that was sent before its task failed is not sent again."""
    sent: list[str] = []

    @tool(effect="once")
    def send(to: str) -> str:
        "Send a mail."
        sent.append(to)
        return "sent"

    nested = Team([Worker("digger", "Digs"), Worker("sifter", "Sifts", tools=[send])], name="d", recovery=ONE_ATTEMPT)
    fails = [True]

    def say(call: ModelCall, who: Attribution) -> Said:
        if call.role != "worker" or who.task != "b/1/t2":
            return talk(call, who)
        if not any(message.role == "tool" for message in call.messages):
            wish = ToolRequest(id="c1", name="send", arguments={"to": "ann"}, raw="{")
            return Reply(tool_calls=(wish,), stop="tools")
        return Reply(text="No.", stop="refused") if fails[0] else talk(call, who)

    run = flow(talk=say, team=outer(nested, ONE_ATTEMPT))
    assert run.run().status == "partial"
    fails[0] = False
    assert run.run(reopen=("b",), number=1).status == "complete"
    assert sent == ["ann"]


def test_a_team_whose_task_rests_on_what_changes_begins_again() -> None:
    """What its tasks did was for another request."""
    plan = tasks(task("a"), task("b", "a", worker="research", on_dependency_failure="proceed"))
    say, refused = fails_at("a", "b/1/t2")
    run = Flow(say, plan, team=outer(inner(recovery=ONE_ATTEMPT), ONE_ATTEMPT))
    assert run.run().status == "partial"
    asked = len(run.model.asked)
    refused.clear()
    run.run(reopen=("a", "b"), number=1)
    again = [each for each in asked_since(run, asked) if each[0] in ("planner", "worker")]
    assert [*dict.fromkeys(again)] == [
        ("worker", "a"), ("planner", "b"), ("worker", "b/2/t1"), ("worker", "b/2/t2"),
    ]  # fmt: skip


def test_a_team_whose_task_a_person_restarts_begins_again() -> None:
    """Restarting asks for all of it; retrying for what failed."""
    say, _ = fails_at("b/1/t2")
    run = flow(talk=say, team=outer(inner(recovery=ONE_ATTEMPT), ONE_ATTEMPT))
    run.run()
    retried, restarted = replay(run.events), replay(run.events)
    retried.reopen(["b"])
    assert ({*retried.ended}, retried.reopened) == ({"a", "b/1/t1"}, {"b/1/t2": 1})
    restarted.restarts["@control/1"] = Restart("b", None, None)
    restarted.reopen(["b"], ["@control/1"])
    assert restarted.reopened == {"b": 1}


def test_a_stored_team_has_the_teams_in_it() -> None:
    """As JSON and back, so that a run can be resumed."""
    team = outer()
    again = Team.from_json(json.loads(json.dumps(team.to_json())), {})
    assert again == team
    assert again.worker("research").team == inner()


def test_works_without_planner_answers() -> None:
    """A nested planner that gives no plan is the task's failure."""
    report = flow(talk=works).run()
    outcome = by_task(report)["b"]
    assert (outcome.status, outcome.error and outcome.error.kind) == ("failed", "contract")


# --- what is missing or at odds goes up -------------------------------------------------------------------------------


def saying(nested: dict[str, Any], own: dict[str, Any] | None = None) -> Flow:
    """The run in which the nested synthesizer, and perhaps the run's own, says this."""

    def say(call: ModelCall, who: Attribution) -> Said:
        if call.role != "synthesizer":
            return talk(call, who)
        said = nested if who.task else own
        return talk(call, who) if said is None else {"confidence": 60, **said}

    return flow(talk=say)


GAP = {"answer": "Gold [t1] and sand [t2].", "gaps": [{"task": "t2", "reason": "No price was found."}]}


def test_a_team_that_is_not_complete_leaves_the_run_partial() -> None:
    """Also when all it lacks is support for what it says."""
    report = saying({"answer": "Gold [t1] and sand [t9]."}).run()
    assert by_task(report)["b"].partial
    assert report.status == "partial"
    (gap,) = report.gaps
    assert gap.task == "b"
    assert gap.reason.startswith("In the answer of the team diggers: unknown_citation: Paragraph 1 cites [t9]")


def test_a_nested_gap_stays_whatever_else_the_answer_says_of_its_task() -> None:
    """Another gap of the same task does not stand for it; nested tasks are named by their paths."""
    own = {"answer": "Everything. [a] [b]", "gaps": [{"task": "b", "reason": "It is dull."}]}
    report = saying(GAP, own).run()
    assert [(gap.task, gap.reason) for gap in report.gaps] == [
        ("b", "It is dull."),
        ("b", "b/1/t2: No price was found."),
    ]


def test_nested_contradictions_are_contradictions_of_the_run() -> None:
    """From any depth, by the paths of the tasks; alone they leave it complete."""
    said = [{"subject": "gold", "claims": ["t1: it is 1", "[t2] says 2"], "resolved": False}]
    run = saying({"answer": "Gold [t1] and sand [t2].", "contradictions": said})
    deep = Worker("digger", "Has it dug", kind="delegate", team=inner())
    run.team = outer(Team([deep, Worker("sifter", "Sifts")], name="middle"))
    report = run.run()
    assert report.status == "complete"
    assert [each.claims for each in report.contradictions] == [
        ("b/1/t1: it is 1", "[b/1/t2] says 2"),
        ("b/1/t1/1/t1: it is 1", "[b/1/t1/1/t2] says 2"),
    ]
    known = {task.id for task in fold(run.events).tasks.values()}
    assert {"b/1/t1", "b/1/t2", "b/1/t1/1/t1", "b/1/t1/1/t2"} <= known


def test_a_split_into_teams_with_gaps_leaves_the_task_partial() -> None:
    """What the parts lack and are at odds about is the whole's."""

    def splits(call: ModelCall, who: Attribution) -> Said:
        match call.role:
            case "planner" if who.task is None:
                return draft(("a", "clerk", []), ("c", "clerk", []))
            case "planner" if who.task == "a":
                return draft(("p1", "research", []), ("p2", "clerk", []))
            case "worker" if who.task == "a":
                return escalate("confidence_too_low")
            case "synthesizer" if who.task is not None:
                return {**GAP, "contradictions": [{"subject": "gold", "claims": ["t1: 1", "t2: 2"]}], "confidence": 60}
            case "synthesizer":
                return {"answer": "Everything. [a] [c]", "confidence": 80}
            case _:
                return talk(call, who)

    policy = Policy(ladder={"confidence_too_low": ("split",)})
    report = Flow(splits, None, team=outer(recovery=policy)).run()
    assert by_task(report)["a"].partial
    assert (report.status, [(gap.task, gap.reason) for gap in report.gaps]) == (
        "partial",
        [("a", "a.s.p1/1/t2: No price was found.")],
    )
    assert [each.claims for each in report.contradictions] == [("a.s.p1/1/t1: 1", "a.s.p1/1/t2: 2")]


# --- a team's own limits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "of_task", "holds"), [(300, 100_000, 300), (100_000, 300, 300), (300, None, 300), (None, 300, 300)]
)
def test_the_tighter_of_two_budgets_holds(own: int | None, of_task: int | None, holds: int) -> None:
    """What a planner gives a task cannot raise what the team allows itself."""
    run = flow(team=outer(inner(budget=Budget(tokens=own))), task={"budget": Budget(tokens=of_task)})
    run.run()
    denied = [event for event in run.events if event.kind == "decision" and event.data["decision"] == "budget_denial"]
    assert f"task b's budget of {holds} tokens" in denied[0].data["reason"]


def test_a_teams_limits_hold_within_another() -> None:
    """[limits] max_tasks for its plan, deadline from its start."""
    outcome = by_task(flow(team=outer(inner(limits=Limits(max_tasks=1)))).run())["b"]
    assert "has 2 tasks and at most 1 are allowed" in outcome.summary
    run = flow(team=outer(inner(limits=Limits(deadline_s=3.2))))
    assert by_task(run.run())["b"].partial
    assert [event.task for event in run.events if event.data.get("decision") == "deadline"][:1] == ["b/1/t2"]


def test_settings_that_hold_for_a_run_are_warned_of_in_a_nested_team() -> None:
    """At any depth."""
    middle = Team([Worker("d", "D", kind="delegate", team=inner(ask=True))], name="m", limits=Limits(max_concurrent=1))
    assert [(problem.code, problem.message) for problem in outer(middle).problems()] == [
        ("no_effect", "[people] ask of the team 'diggers' has no effect within another team."),
        ("no_effect", "[limits] max_concurrent of the team 'm' has no effect within another team."),
    ]


# --- whose tool it is -------------------------------------------------------------------------------------------------


def looking(word: str) -> Any:
    @tool(effect="read")
    def look(output: str) -> str:
        "Looks."
        return word

    return look


@pytest.mark.parametrize("inside", ["tools", "check", "factory_tools"])
@pytest.mark.parametrize("around", ["tools", "check", "factory_tools"])
def test_teams_of_one_run_may_not_name_different_functions_alike(inside: str, around: str) -> None:
    """Tools, checks and what the factory has: a call by that name could reach the other's."""

    def made(look: Any, place: str, *more: Worker) -> Team:
        given: dict[str, Any] = {place: look if place == "check" else [look]}
        plain = place == "factory_tools"
        return Team([Worker("w", "Works", **({} if plain else given)), *more], **(given if plain else {}))

    def both(one: Any, other: Any) -> Team:
        return made(one, around, Worker("d", "Hands on", kind="delegate", team=made(other, inside)))

    shared = looking("same")
    assert both(shared, shared).tools() == {"look": shared}
    assert both(looking("same"), looking("same")).tools()["look"]("") == "same"
    with pytest.raises(InvalidTeam, match="two different tools are named 'look'"):
        both(looking("one"), looking("other"))


# --- resuming ---------------------------------------------------------------------------------------------------------


def test_a_team_that_is_done_is_not_reopened_for_what_failed_on_the_way() -> None:
    """A first attempt, of which a task failed, has been made good by the second."""

    def second(call: ModelCall, who: Attribution) -> Said:
        first = call.role == "worker" and (who.task or "").startswith("b/1/")
        return escalate("ambiguous_input") if first else talk(call, who)

    run = flow(talk=second)
    assert run.run().status == "complete"
    state = replay(run.events)
    assert {state.ended[path].status for path in ("b/1/t1", "b/2/t1")} == {"escalated", "done"}
    assert reopened_tasks(state, Added(retry_failed=True)) == set()
    gaps = saying(GAP)
    gaps.run()
    state = replay(gaps.events)
    state.ended["b/1/t2"] = state.ended["b/1/t2"].model_copy(update={"status": "failed"})
    assert reopened_tasks(state, Added(retry_failed=True)) == {"b"}


def test_models_of_nested_teams_are_checked_before_a_resume() -> None:
    """Their workers' own, and what the teams name for tiers and roles."""
    models = ModelSettings(tiers={"small": "one:m"}, roles={"planner": RoleModel(model="two:m")})
    deep = Team([Worker("w", "Works", model="three:m")], name="deep", models=models)
    lead = Worker("d", "Hands on", kind="delegate", team=deep)
    assert _models_of(outer(Team([lead], name="middle"))) == ["one:m", "two:m", "three:m"]
