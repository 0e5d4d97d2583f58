"""Who gets a request: rules, the router, the default; plans without a planner; tasks without a worker; reassigning."""

from __future__ import annotations

from typing import Any

import pytest

from chargehand.models import Attribution
from chargehand.planner.route import by_rule
from chargehand.record.memory_journal import MemoryStore
from chargehand.record.replay import replay
from chargehand.team import RouteExample, RouteRule, Team, Worker
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply
from chargehand.values.request import Material
from tests.flows import Flow, Said, by_task, escalate, task, tasks, texts, works
from tests.kernel import result, stored
from tests.simulation.world import idempotency_key


def desk(**fields: Any) -> Team:
    workers = [Worker("fixer", "Fixes things"), Worker("writer", "Writes things up"), Worker("caller", "Calls people")]
    return Team(workers, mode="route", **fields)


def answering(answer: Any) -> Any:
    """A model whose router says this."""

    def talk(call: ModelCall, who: Attribution) -> Said:
        return answer if call.role == "router" else works(call, who)

    return talk


@pytest.mark.parametrize(
    ("match", "request_text", "found"),
    [
        ("refund|invoice", "About my INVOICE no. 7", True),
        ("^refund", "No refund", False),
        (("crash", "blue screen"), "It shows a Blue Screen.", True),
        (("crash",), "It crashed", False),
        (("c++",), "My C++ code", True),
        (("c++",), "My C+++ code", True),
    ],
)
def test_a_rule_is_a_pattern_or_words(match: Any, request_text: str, found: bool) -> None:
    """Patterns are searched, words have to stand on their own, case is ignored."""
    assert RouteRule(match=match, worker="fixer").matches(request_text) is found


def test_the_first_rule_that_matches_decides_without_a_call() -> None:
    """No router call, no planner call; what was decided is on the record."""
    rules = [RouteRule(match="printer", worker="fixer", secondary="writer"), RouteRule(match=".", worker="caller")]
    run = Flow(works, None, team=desk(routes=rules))
    report = run.run()
    assert [t.worker for t in report.plan.tasks if report.plan] == ["caller"]  # type: ignore[union-attr]
    assert {call.role for call, _, _ in run.model.asked} == {"worker"}
    assert run.decisions("route")["@route"]["source"] == "rule"
    chosen = by_rule("The printer is broken", desk(routes=rules))
    assert chosen is not None
    assert (chosen.primary, chosen.secondary) == ("fixer", "writer")


def test_the_router_makes_a_plan_of_one_task() -> None:
    """One small call; the worker gets the whole request, and its result is the answer."""
    run = Flow(answering({"primary": "fixer", "reason": "It is broken."}), None, team=desk())
    report = run.run()
    assert report.status == "complete"
    assert [(t.id, t.worker, t.instruction) for t in report.plan.tasks] == [("t1", "fixer", "The request.")]  # type: ignore[union-attr]
    assert [(call.role, call.model) for call, _, _ in run.model.asked] == [
        ("router", "scripted:small"),
        ("worker", "scripted:medium"),
    ]
    assert run.decisions("route")["@route"] == {
        "primary": "fixer", "secondary": None, "reason": "It is broken.", "source": "router",
    }  # fmt: skip
    keys = [event.data["key"] for event in run.events if event.kind == "model_replied"]
    assert keys == ["@route/1", "t1/1/model/1"]
    drafted = [event.data["source"] for event in run.events if event.kind == "plan_drafted"]
    assert drafted == ["router"]
    approved = [event.data["notes"] for event in run.events if event.kind == "plan_approved"]
    assert approved == [[]]
    assert not {*report.plan.advice()} & {*report.notes}  # type: ignore[union-attr]


def test_a_secondary_works_beside_the_primary() -> None:
    """Two tasks, no edge between them; both see the request, and their results are put together."""
    run = Flow(answering({"primary": "fixer", "secondary": "writer", "reason": "Both."}), None, team=desk())
    report = run.run()
    assert report.strategy == "parallel"
    assert [outcome.worker for outcome in report.outcomes] == ["fixer", "writer"]
    assert all("The request." in texts(run.calls(task=id)) for id in ("t1", "t2"))
    assert [call.role for call, _, _ in run.model.asked].count("synthesizer") >= 1


@pytest.mark.parametrize(
    "answer",
    [
        "I would say the fixer.",
        {"primary": "nobody", "reason": "?"},
        {"secondary": "fixer"},
        Reply(text="No.", stop="refused"),
        "",
    ],
)
def test_an_answer_that_cannot_be_read_is_the_default_on_the_record(answer: Any) -> None:
    """The router is asked once more, then the team's default worker gets it."""
    run = Flow(answering(answer), None, team=desk(default="caller"))
    report = run.run()
    assert [outcome.worker for outcome in report.outcomes] == ["caller"]
    decided = run.decisions("route")["@route"]
    assert (decided["primary"], decided["source"]) == ("caller", "default")
    assert decided["reason"].startswith("the default: ")
    assert len(run.calls("router")) == 2


@pytest.mark.parametrize(
    "beside",
    [{"secondary": "none"}, {"secondary": "zz"}, {"secondary": "caller"}, {"secondary": ["writer"]}, {"reason": 5}, {}],
)
def test_a_good_primary_stands_whatever_is_beside_it(beside: dict[str, Any]) -> None:
    """What may be left out and cannot be used is left out, without another call."""
    run = Flow(answering({"primary": "caller", **beside}), None, team=desk())
    assert [outcome.worker for outcome in run.run().outcomes] == ["caller"]
    assert run.decisions("route")["@route"]["source"] == "router"
    assert len(run.calls("router")) == 1


def test_rules_are_held_against_what_was_asked_and_nothing_else() -> None:
    """Neither words of the frame around a task nor results of others choose a worker, however deep it is routed."""
    rules = [
        RouteRule(match=("refund", "success", "criterion", "context"), worker="fixer"),
        RouteRule(match=("part",), worker="caller"),
    ]
    inner = desk(routes=rules, default="writer")
    middle = Team([Worker("lead", "Hands on", kind="delegate", team=inner)], mode="route")

    def talk(call: ModelCall, who: Attribution) -> Said:
        return result("A refund is due.") if who.task == "a" else works(call, who)

    for nested in (inner, middle):
        lead = Worker("desk", "Sees to it", kind="delegate", team=nested)
        team = Team([Worker("clerk", "Files"), lead, Worker("fixer", "Fixes"), Worker("caller", "Calls")], routes=rules)
        run = Flow(talk, tasks(task("a"), task("b", "a", worker="desk"), task("c", worker="")), team=team)
        run.run()
        routed = {key: value["primary"] for key, value in run.decisions("route").items() if value["source"] == "rule"}
        assert set(routed.values()) == {"caller"}
        assert len(routed) == 2


def test_without_a_default_the_first_worker_gets_it() -> None:
    """The first in the roster."""
    report = Flow(answering("?"), None, team=desk()).run()
    assert [outcome.worker for outcome in report.outcomes] == ["fixer"]


def test_the_router_sees_labelled_requests_and_what_workers_are_for() -> None:
    """Examples are turns, those of different workers alternate, and each has its reason first."""
    first, again = (
        RouteExample(request=text, primary="fixer", reason="Broken.") for text in ("It smokes.", "It hums.")
    )
    other = RouteExample(request="A letter, please.", primary="writer", secondary="caller")
    run = Flow(answering({"primary": "fixer"}), None, team=desk(route_examples=[first, again, other]))
    run.run()
    rules, *turns, _ = run.calls("router")[0].messages
    assert "- writer: Writes things up" in rules.text
    assert [turn.role for turn in turns] == ["user", "assistant"] * 3
    assert ["It smokes" in turns[0].text, "A letter" in turns[2].text, "It hums" in turns[4].text] == [True] * 3
    assert turns[1].text == '{"reason": "Broken.", "primary": "fixer"}'
    assert turns[3].text == '{"reason": "", "primary": "writer", "secondary": "caller"}'


def test_the_request_is_data_to_the_router() -> None:
    """It cannot close the block it is quoted in."""
    run = Flow(answering({"primary": "fixer"}), None, team=desk())
    run.run()
    assert "<data>" in run.calls("router")[0].messages[-1].text


def test_a_routed_task_that_fails_is_not_planned_for_anew() -> None:
    """In route mode no planner is ever asked: no split, no extension."""

    def talk(call: ModelCall, who: Attribution) -> Said:
        if call.role == "router":
            return {"primary": "fixer"}
        return Reply(text="No.", stop="refused")

    run = Flow(talk, None, team=desk())
    assert run.run().status == "failed"
    assert run.calls("planner") == []


def test_a_crash_anywhere_in_routing_changes_nothing() -> None:
    """Cut after every event, the run goes to the same worker and repeats no call."""
    whole = Flow(answering({"primary": "writer", "secondary": "caller"}), None, team=desk())
    expected = [outcome.worker for outcome in whole.run().outcomes]
    for kept in range(1, len(whole.events)):
        cut = Flow(answering({"primary": "fixer"}), None, team=desk())
        cut.store = MemoryStore(whole.store.events[:kept], dict(whole.store.blobs))
        known = replay(stored(cut.store))
        report = cut.run(number=1)
        if "@route" in known.decisions or "@route/1" in known.committed:
            assert [outcome.worker for outcome in report.outcomes] == expected, f"cut after event {kept}"
        committed = {idempotency_key("run", key, effect.fingerprint) for key, effect in known.committed.items()}
        assert committed.isdisjoint(who.idempotency_key for _, _, who in cut.model.asked)


def test_material_is_named_to_a_routed_worker() -> None:
    """It does not see the request as the planner would."""
    run = Flow(answering({"primary": "fixer"}), None, team=desk())
    run.request = {"material": (Material(name="log.txt", path="/nowhere/log.txt"),)}
    run.run()
    assert "log.txt" in texts(run.calls(task="t1"))


# -- plan mode ---------------------------------------------------------------------------------------------------------


def crew(**fields: Any) -> Team:
    return Team([Worker("clerk", "Files"), Worker("second", "Sorts"), Worker("third", "Counts")], **fields)


def test_a_task_without_a_worker_is_routed() -> None:
    """Once, before the plan is approved, also in a plan that was given; others keep theirs."""
    plan = tasks(task("a"), task("b", worker=""), task("c", worker=""))

    def talk(call: ModelCall, who: Attribution) -> Said:
        if call.role == "router":
            return {"primary": "third" if "part c" in texts([call]) else "second"}
        return works(call, who)

    run = Flow(talk, plan, team=crew())
    report = run.run()
    assert {o.task: o.worker for o in report.outcomes} == {"a": "clerk", "b": "second", "c": "third"}
    assert run.calls("planner") == []
    approved = next(event for event in run.events if event.kind == "plan_approved")
    assert [t["worker"] for t in approved.data["plan"]["tasks"]] == ["clerk", "second", "third"]
    assert set(run.decisions("route")) == {"@route/b", "@route/c"}


def test_a_plan_whose_tasks_have_workers_asks_no_router() -> None:
    """In plan mode the router runs only for what has no worker."""
    run = Flow(works, tasks(task("a"), task("b")), team=crew())
    run.run()
    assert run.calls("router") == []


def test_the_router_chooses_who_takes_over() -> None:
    """Among those who have not failed the task; its choice is on the record."""

    def talk(call: ModelCall, who: Attribution) -> Said:
        if call.role == "router":
            return {"primary": "third", "reason": "It counts."}
        return escalate("out_of_scope") if call.worker == "clerk" else works(call, who)

    run = Flow(talk, tasks(task("a"), task("b", worker="second")), team=crew())
    report = run.run()
    assert by_task(report)["a"].worker == "third"
    assert run.decisions("route")["a/1/reroute"] == {"worker": "third"}
    offered = run.calls("router")[0].output_schema
    assert offered is not None
    assert offered["properties"]["primary"]["enum"] == ["second", "third"]


def test_a_failed_worker_is_never_chosen_again() -> None:
    """The router names the one that failed: that cannot be read, and the next in order gets it."""

    def talk(call: ModelCall, who: Attribution) -> Said:
        if call.role == "router":
            return {"primary": "clerk"}
        return escalate("out_of_scope") if call.worker in ("clerk", "second") else works(call, who)

    run = Flow(talk, tasks(task("a"), task("b", worker="third")), team=crew())
    report = run.run()
    assert by_task(report)["a"].worker == "third"
    assert run.decisions("route")["a/1/reroute"] == {"worker": "second"}


def test_a_fallback_the_team_names_is_not_the_routers_to_choose() -> None:
    """Who stands in is the team's word."""

    def talk(call: ModelCall, who: Attribution) -> Said:
        return escalate("out_of_scope") if call.worker == "clerk" else works(call, who)

    team = Team([Worker("clerk", "Files", fallback="third"), Worker("second", "Sorts"), Worker("third", "Counts")])
    run = Flow(talk, tasks(task("a"), task("b", worker="second")), team=team)
    assert by_task(run.run())["a"].worker == "third"
    assert run.calls("router") == []
