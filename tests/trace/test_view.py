"""The fold: events -> the state of a run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chargehand.events import Event, read_body
from chargehand.events.body import BODIES, fields_of
from chargehand.events.kinds import KINDS
from chargehand.trace import RunState, fold
from chargehand.trace.event_words import phase_words
from chargehand.trace.page_state import page_state
from tests.events import make_event
from tests.flows import Flow, task, tasks, works
from tests.trace.sample import BEGAN, MODEL, Recorder, many, plan, sample

EVENTS = sample()
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def test_the_time_of_a_task_is_what_its_calls_took() -> None:
    """Not the time it waited for a slot: the same as in its outcome, which `show` prints."""
    flow = Flow(works, tasks(task("a"), task("b")), request={"max_concurrent": 1})
    report = flow.run()
    view = fold(flow.events)
    assert (view.tasks["b"].ended or 0) - (view.tasks["b"].ready or 0) > 1.5
    for outcome in report.outcomes:
        assert view.tasks[outcome.task].worked_seconds() == outcome.usage.seconds == 1.0


def test_the_time_of_a_task_goes_on_while_a_call_is_in_flight() -> None:
    """What ended counts as recorded, what runs up to now."""
    events = [event for event in EVENTS if event.seq <= next(e.seq for e in EVENTS if e.kind == "tool_called")]
    running = next(each for each in fold(events).tasks.values() if any(call.ok is None for call in each.calls))
    since = next(call.started for call in running.calls if call.ok is None)
    assert running.worked_seconds(since + 3) == running.worked_seconds() + 3


def test_the_sample_folds_to_what_happened() -> None:
    """Statuses, attempts, outcomes, money and time come out as they were recorded."""
    view = fold(EVENTS)
    statuses = {id: task.status for id, task in view.tasks.items()}
    assert statuses == dict.fromkeys(("t1", "t2", "t4", "t5", "t7"), "done") | {
        "t3": "failed",
        "t6": "skipped",
        "t8": "escalated",
    }
    assert list(view.tasks) == [task.id for task in plan().tasks]
    assert (view.status, view.team, view.strategy, view.plan) == ("partial", "general", "hybrid", plan())
    assert view.request.startswith("Compare Oslo")
    assert [(a.number, a.status) for a in view.tasks["t4"].attempts] == [(1, "failed"), (2, "done")]
    assert view.tasks["t4"].attempts[0].error == (
        "contract: The answer is not the JSON object the schema asks for: `ratio` is missing."
    )
    assert [call.role for call in view.calls] == ["planner", "synthesizer"]
    assert (view.usage.calls, view.usage.tokens, view.elapsed_seconds()) == (13, 18_620, 15.25)
    assert view.usage.usd is not None
    assert round(view.usage.usd, 4) == 0.1053
    assert view.tasks["t6"].outcome is not None
    assert view.tasks["t6"].outcome["because"] == ["t3"]
    assert view.report is not None
    assert view.report["confidence"] == 78


@settings(deadline=None)
@given(st.integers(0, len(EVENTS)), st.integers(0, len(EVENTS)))
def test_a_live_view_and_a_replayed_one_are_equal(first: int, second: int) -> None:
    """fold(replay) == fold(live), wherever the stream is cut: the record read, then the rest applied as it happens."""
    cut, end = sorted((first, second))
    live = fold(EVENTS[:cut])
    for event in EVENTS[cut:end]:
        live.apply(event)
    assert live == fold(EVENTS[:end])


FIELDS = sorted({name for body in BODIES.values() for name in fields_of(body)})


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS),
            st.sampled_from([None, "t1", "t4", "unheard-of"]),
            st.sampled_from([None, 1, 2]),
            st.dictionaries(st.sampled_from(FIELDS), ANY_JSON),
        ),
        max_size=8,
    ),
    st.integers(0, len(EVENTS)),
)
@example([("extension", None, None, {"tasks": [None, {"id": 7}]})], 0)
def test_any_payload_is_tolerated(extra: list[tuple[str, str | None, int | None, dict[str, Any]]], at: int) -> None:
    """Missing, unknown and misshapen fields change what is known, never stop the fold."""
    strange = [Event("r", 99, BEGAN, task, attempt, read_body(kind, data)) for kind, task, attempt, data in extra]
    view = fold([*EVENTS[:at], *strange, *EVENTS[at:]])
    # A session that begins after the end is the one thing that makes it run again.
    again = at == len(EVENTS) and any(event.kind in ("run_started", "run_ended") for event in strange)
    assert again or view.status == "partial"


def test_unknown_kinds_and_fields_change_nothing() -> None:
    """A newer chargehand may add kinds and fields within a version: an older reader sees what it knows."""
    stream = [event._replace(body=read_body(event.kind, event.data | {"moon": "full"})) for event in EVENTS]
    newer = stream[0]._replace(body=read_body("moon_rose", stream[0].data))
    view = fold([stream[0], newer, *stream[1:]])
    assert (newer.kind, newer.data) == ("moon_rose", stream[0].data)
    assert view == fold(EVENTS)


def test_a_plan_with_new_fields_is_still_a_plan() -> None:
    """Fields a plan gains later do not hide the plan from this reader."""
    record = Recorder()
    newer = plan().to_json() | {"mood": "good"}
    newer["tasks"] = [task | {"colour": "red"} for task in newer["tasks"]]
    record.note(0, "plan_approved", plan=newer, strategy="hybrid")
    assert fold(record.events()).plan == plan()


def test_a_call_sent_again_after_a_crash_is_one_call_sent_twice() -> None:
    """The second session's send joins the first's call; time between the sessions is not running time."""
    record = Recorder()
    record.start(0, "Ask")
    record.note(1, "attempt_started", "t1", 1, worker="researcher", model=MODEL)
    record.note(2, "model_called", "t1", 1, key="t1/1/model/1", role="worker", model=MODEL, send=1)
    record.start(1000, "Ask", epoch=2)
    record.note(1000, "budget_settled", "t1", 1, key="t1/1/model/1", tokens=500, usd=0.01, estimated=True)
    record.note(1001, "attempt_started", "t1", 1, worker="researcher", model=MODEL)
    record.note(1001, "model_called", "t1", 1, key="t1/1/model/1", role="worker", model=MODEL, send=2)
    reply = {"reply": {"usage": {"input_tokens": 10, "output_tokens": 5}}, "usd": 0.02}
    record.note(1003, "model_replied", "t1", 1, key="t1/1/model/1", result=reply)
    view = fold(record.events())
    (call,) = view.tasks["t1"].calls
    assert (call.sends, call.ok, call.estimated) == (2, True, True)
    assert len(view.tasks["t1"].attempts) == 1
    assert (
        view.sessions[-1].epoch,
        len(view.sessions),
        view.elapsed_seconds(),
        view.elapsed_seconds(BEGAN + 1010),
    ) == (
        2,
        2,
        5.0,
        12.0,
    )
    assert (view.usage.tokens, view.usage.usd) == (515, 0.03)


def test_a_call_that_a_budget_denied_does_not_count() -> None:
    """Not in the run, and not again when a resumed run comes to the same call and has no tokens for it."""
    record = Recorder()
    record.start(0, "Ask")
    record.model(1, 2, "@synthesis/1", role="synthesizer")
    record.start(10, "Ask", epoch=2)
    denied = {"error": {"kind": "budget", "message": "It needs about 900."}, "sent": False}
    for key in ("@synthesis/1", "@judge/1"):
        record.note(11, "model_replied", key=key, result=denied)
    view = fold(record.events())
    assert (view.usage.calls, view.calls[0].ok) == (1, True)


def test_an_unknown_price_makes_the_sum_unknown() -> None:
    """Money is never understated: one reply without a price makes the total None; a failed call does not."""
    record = Recorder()
    record.model(0, 1, "t1/1/model/1", "t1", 1, error=("overloaded", "busy"))
    record.model(2, 3, "t1/1/model/2", "t1", 1, usd=0.5)
    assert fold(record.events()).usage.usd == 0.5
    record.model(4, 5, "t1/1/model/3", "t1", 1, usd=None)
    view = fold(record.events())
    assert view.usage.usd is None
    assert view.tasks["t1"].usd is None


def test_a_reopened_task_waits_again() -> None:
    """`resume --retry-failed` takes the outcome back; the next attempt counts on."""
    record = Recorder()
    record.noted = [(e.at - BEGAN, e.kind, e.task, e.attempt, e.data) for e in EVENTS]
    record.start(100, "Compare", epoch=2)
    record.note(101, "decision", key="@reopen/2", decision="reopen", value={"tasks": ["t3", "t6"]}, reason="asked")
    view = fold(record.events())
    assert {view.tasks["t3"].status, view.tasks["t6"].status} == {"waiting"}
    assert (view.status, view.report, view.tasks["t3"].outcome) == ("running", None, None)
    record.note(102, "attempt_started", "t3", 2, worker="researcher", model=MODEL)
    task = fold(record.events()).tasks["t3"]
    assert (task.status, [a.number for a in task.attempts]) == ("running", [1, 2])
    # As in the outcome that it will get: attempts before count, their calls do not.
    assert (task.tries, task.tokens, task.worked_seconds()) == (2, 0, 0)


def test_a_call_in_flight_when_a_session_ended_takes_no_time_until_it_is_sent_again() -> None:
    """Neither in the time of its task nor on the line of the run; and the worker that took over is named."""
    record = Recorder()
    record.start(0, "Ask")
    record.note(1, "attempt_started", "t1", 1, worker="researcher", model=MODEL)
    record.note(1, "model_called", "t1", 1, key="t1/1/model/1", role="worker", model=MODEL, send=1)
    record.note(3, "warning", message="Something.")
    record.start(1000, "Ask", epoch=2)
    task = fold(record.events()).tasks["t1"]
    assert task.worked_seconds(BEGAN + 1001) == 2
    record.note(1001, "attempt_started", "t1", 1, worker="writer", model=MODEL)
    record.note(1001, "model_called", "t1", 1, key="t1/1/model/1", role="worker", model=MODEL, send=2)
    view = fold(record.events())
    task = view.tasks["t1"]
    # The time of the first call stays: it was work too.
    assert (task.worker, task.worked_seconds(BEGAN + 1005)) == ("writer", 6)
    assert view.seconds_until(BEGAN + 1005, BEGAN + 1005) == 8
    assert view.seconds_until(BEGAN + 500, BEGAN + 1005) == 3


def test_reused_results_cost_nothing() -> None:
    """What a rerun takes from an earlier record is shown as reused and not paid twice."""
    record = Recorder()
    result = {"reply": {"model": MODEL, "usage": {"input_tokens": 10, "output_tokens": 5}}, "usd": 0.02}
    record.note(0, "reused", "t1", 1, key="t1/1/model/1", result=result, source="earlier")
    view = fold(record.events())
    assert view.tasks["t1"].reused
    assert (view.usage.tokens, view.usage.usd, view.tasks["t1"].calls[0].name) == (0, 0.0, MODEL)
    record.model(1, 2, "t1/1/model/2", "t1", 1)
    assert not fold(record.events()).tasks["t1"].reused


def test_only_tools_that_the_run_itself_called_are_counted() -> None:
    """Not those that a fork took over, nor those whose result is reused."""
    record = Recorder()
    forked_from = {"run": "earlier", "at": "t2"}
    record.note(0, "run_started", request={"text": "Ask"}, team={}, forked_from=forked_from, copied=2)
    record.tool(1, 2, "t1/1/tool/1", "t1", 1, "search")
    assert fold(record.events()).tool_calls == 0
    record.note(3, "reused", "t2", 1, key="t2/1/tool/1", result={"text": "7"}, source="earlier")
    assert fold(record.events()).tool_calls == 0
    record.tool(4, 5, "t2/1/tool/2", "t2", 1, "search")
    view = fold(record.events())
    assert (view.tool_calls, len(view.tasks["t1"].calls)) == (1, 1)


def test_orders_about_a_task_are_counted_whatever_their_verdict() -> None:
    """They change the task for the page; one to restart it is kept until the task is opened again."""
    record = Recorder()
    record.start(0, "Ask")
    record.attempt(1, 2, plan().tasks[0])
    order = {"by": "command", "sent_at": 3.0}
    record.note(3, "control", "t1", key="@control/1", order="tell", verdict="too_late", **order)
    view = fold(record.events())
    assert (view.tasks["t1"].orders, view.tasks["t1"].seq, view.restarts) == (1, view.seq, ())
    record.note(4, "control", "t1", key="@control/2", order="restart", verdict="accepted", value={}, **order)
    view = fold(record.events())
    assert (view.tasks["t1"].orders, view.restarts) == (2, ("t1",))
    record.note(5, "decision", key="@reopen/1", decision="reopen", value={"tasks": ["t1"]}, reason="")
    assert fold(record.events()).restarts == ()


def test_gaps_of_an_earlier_session_are_not_counted_twice() -> None:
    """A resumed run synthesizes again: only what its last session found stands."""
    record = Recorder()
    gap = {"task": "t3", "reason": "failed", "impact": ""}
    record.start(0, "Ask")
    record.note(1, "gap_found", "t3", gap=gap)
    record.start(10, "Ask", epoch=2)
    record.note(11, "gap_found", "t3", gap=gap)
    assert fold(record.events()).gaps == [gap]


def test_questions_stay_open_until_answered() -> None:
    """A person's question is in the view from asking to answering."""
    record = Recorder()
    record.note(0, "question_asked", key="@approve", question={"id": "q1", "kind": "plan", "prompt": "Run this?"})
    assert fold(record.events()).questions["@approve"]["prompt"] == "Run this?"
    record.note(1, "question_answered", key="@approve", answer="approve")
    assert fold(record.events()).questions == {}


def test_time_in_which_a_run_only_waited_for_a_provider_is_idle() -> None:
    """From the decision to wait to its end: the page folds it, as it folds the time of a person."""
    record = Recorder()
    record.start(0, "Ask")
    record.note(5, "decision", key="@wait/1", decision="wait", value={"provider": "p", "until": 7205.0}, reason="")
    record.note(7205, "decision", key="@wait/1/over", decision="wait_over", value=None, reason="")
    assert fold(record.events()).idle == [(BEGAN + 5, BEGAN + 7205)]


def test_refused_tools_are_calls_that_failed() -> None:
    """A tool a worker may not use is on its list of calls, with the reason."""
    record = Recorder()
    record.note(0, "tool_refused", "t1", 1, worker="writer", tool="shell", reason="not one of its tools")
    (call,) = fold(record.events()).tasks["t1"].calls
    assert (call.name, call.ok, call.error) == ("shell", False, "refused: not one of its tools")


def test_a_view_of_nothing_is_empty() -> None:
    """Before the first event there is nothing, and asking for it is no error."""
    assert fold([]) == RunState()
    assert (RunState().elapsed_seconds(5.0), RunState().counts()) == (0, {})


def test_counts_follow_the_tasks() -> None:
    """The live display's figures: how many of each status, while it happens."""
    events = many(10)
    assert fold(events).counts() == {"done": 10}
    assert fold(events[:12]).counts() == {"ready": 10}


def test_a_resumed_run_works_before_it_writes_its_answer_again() -> None:
    """The synthesis of the session before says nothing about this one."""
    view = RunState()
    made = {"tasks": [{"id": "t1", "worker": "w", "instruction": "Say it."}]}
    started = {"request": {"text": "Say it"}, "team": {"name": "g"}}
    view.apply(make_event("run_started", seq=1, at=1.0, **started))
    view.apply(make_event("plan_approved", seq=2, at=1.0, plan=made, strategy="single", notes=[]))
    view.apply(make_event("synthesis_started", seq=3, at=2.0))
    assert phase_words(view) == "writing the answer"
    view.apply(make_event("run_started", seq=4, at=9.0, **started, resumed=True, epoch=2))
    assert phase_words(view) == "working"


def test_the_phase_is_what_the_run_does_now() -> None:
    """The call for more tasks is not called working, and the work at them is not called writing."""
    view = RunState()
    made = {"tasks": [{"id": "t1", "worker": "w", "instruction": "Say it."}]}
    call = {"role": "planner", "model": "m", "key": "@extend/1/model/1", "messages": []}
    view.apply(make_event("run_started", seq=1, at=1.0, request={"text": "Say it"}, team={"name": "g"}))
    view.apply(make_event("plan_approved", seq=2, at=1.0, plan=made, strategy="single", notes=[]))
    view.apply(make_event("attempt_started", seq=3, at=1.0, task="t1", attempt=1, worker="w"))
    assert phase_words(view) == "working"
    view.apply(make_event("task_ended", seq=4, at=2.0, task="t1", attempt=1, outcome={"status": "failed"}))
    view.apply(make_event("synthesis_started", seq=5, at=2.0))
    view.apply(make_event("model_called", seq=6, at=3.0, **call))
    assert phase_words(view) == "planning more tasks"
    view.apply(make_event("model_replied", seq=7, at=4.0, key=call["key"], result={}))
    assert phase_words(view) == "writing the answer"
    view.apply(make_event("attempt_started", seq=8, at=5.0, task="x1.t1", attempt=1, worker="w"))
    assert phase_words(view) == "working"


def test_at_its_end_a_run_has_taken_the_time_of_its_report() -> None:
    """The last line of progress, the page and the line below the answer have one figure."""
    view = RunState()
    view.apply(make_event("run_started", seq=1, at=0.0, request={"text": "Say it"}, team={"name": "g"}))
    assert view.elapsed_seconds(2.76) == 2.76
    view.apply(make_event("run_ended", seq=2, at=2.76, status="partial", report={"timing": {"wall_s": 2.74}}))
    assert view.elapsed_seconds(2.76) == view.elapsed_seconds() == 2.74
    view.apply(make_event("run_started", seq=3, at=10.0, resumed=True, request={"text": "Say it"}, team={"name": "g"}))
    assert view.elapsed_seconds(11.0) == pytest.approx(3.76)


def test_the_clock_of_a_task_stands_still_while_its_call_waits_to_be_sent_again() -> None:
    """It never runs backwards: the wait is not part of the time in the end either."""
    view = RunState()
    made = {"tasks": [{"id": "t1", "worker": "w", "instruction": "Say it."}]}
    view.apply(make_event("run_started", seq=1, at=0.0, request={"text": "Say it"}, team={"name": "g"}))
    view.apply(make_event("plan_approved", seq=2, at=0.0, plan=made, strategy="single", notes=[]))
    view.apply(make_event("attempt_started", "t1", 1, seq=3, at=0.0, worker="w"))
    view.apply(make_event("model_called", "t1", 1, seq=4, at=0.0, key="t1/1/model/1", role="worker", model="m"))
    retry = {"key": "t1/1/model/1/retry/1", "decision": "transport_retry", "value": {"after_s": 2.0}}
    view.apply(make_event("decision", "t1", 1, seq=5, at=1.0, **retry, reason="429"))
    seen = [round(view.tasks["t1"].worked_seconds(now), 3) for now in (1.0, 2.0, 3.0, 4.0)]
    assert seen == [1.0, 1.0, 1.0, 1.0]
    # After the pause it waited for its turn.
    sent = {"key": "t1/1/model/1/retry/1/sent", "decision": "retry_sent", "value": None}
    view.apply(make_event("decision", "t1", 1, seq=6, at=5.0, **sent, reason=""))
    assert [round(view.tasks["t1"].worked_seconds(now), 3) for now in (5.0, 6.0)] == [1.0, 2.0]
    assert view.time.calls_in_flight == 1


def test_a_call_of_the_page_has_its_waits_where_they_were() -> None:
    """Before it was sent, and between two sends: the timeline draws a bar for each send."""
    sent = {"key": "t1/1/model/1", "role": "worker", "model": "m"}
    reply = {"result": {"reply": {"text": "x"}, "seconds": 0.6, "waiting_s": 0.9}, "key": sent["key"]}
    events = [
        make_event("plan_approved", seq=1, plan={"tasks": [{"id": "t1", "worker": "w"}]}, strategy="single"),
        make_event("attempt_started", "t1", 1, seq=2, at=10.0, worker="w"),
        make_event("model_called", "t1", 1, seq=3, at=10.5, **sent),
        make_event(
            "decision", "t1", 1, seq=4, at=10.8, key=f"{sent['key']}/retry/1", decision="transport_retry", value={}
        ),
        make_event("decision", "t1", 1, seq=5, at=11.2, key=f"{sent['key']}/retry/1/sent", decision="retry_sent"),
        make_event("model_replied", "t1", 1, seq=6, at=11.5, **reply),
    ]
    [row] = page_state(fold(events))["tasks"]
    [[*_, waits]] = row["calls"]
    assert waits == [(pytest.approx(10.0), 10.5), (10.8, 11.2)]
    [row] = page_state(fold(events[:4]))["tasks"]
    assert row["calls"][0][-1] == [(10.8, None)], "it waits still"
