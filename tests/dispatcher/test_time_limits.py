"""Limits of time on a real clock over real HTTP: each fires in the middle of a call, and waiting is not working."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.models import provider_settings
from chargehand.models.resolve import Provider
from chargehand.settings import Settings
from chargehand.testing import ScriptedModel, run_virtual
from chargehand.text.plan_json import parse
from chargehand.values.recovery_policy import Policy
from chargehand.values.report import Report
from tests.loopback import Answer, Handler, Seen, answer_json, error, serve
from tests.pace import Timed, slowness

# Late by no more than this on a quiet machine; limits, pauses and answers are stretched like it on a slow one.
LATE_S = 0.25
RESULT = {"summary": "Done.", "output": "Words.", "confidence": 80}
SYNTHESIS = {"answer": "Words [t1].", "confidence": 70, "gaps": [], "contradictions": []}


def team() -> Team:
    return Team([Worker("writer", "Writes")], recovery=Policy(attempts=1))


def plan(*ids: str, **of_first: Any) -> Any:
    tasks: list[dict[str, Any]] = [
        {"id": id, "worker": "writer", "instruction": f"Write {id} down.", "success_criterion": "It is written."}
        for id in ids
    ]
    tasks[0] |= of_first
    return parse({"goal": "Words", "tasks": tasks})


def good(seen: Seen) -> Answer:
    return answer_json(SYNTHESIS if seen.role == "synthesizer" else RESULT)


def dripping(seen: Seen) -> Answer:
    """One byte a second."""
    return replace(good(seen), drip=1.0)


@pytest.fixture
def pace() -> float:
    return min(slowness(), 10.0)


def run(handler: Handler, home: Any, wire: Any = "openai", **options: Any) -> tuple[Report, Timed]:
    """The report of a run against the handler, and the time it took by the wall's clock."""

    async def main() -> tuple[Report, Timed]:
        async with serve(handler) as server:
            base = server.url if wire == "anthropic" else f"{server.url}/v1"
            provider = Provider(name="mine", base_url=base, wire=wire)
            settings = Settings(home=str(home), model="mine:model", providers={"mine": provider})
            supervisor = Supervisor(team(), settings=settings)
            with Timed() as took:
                report = await supervisor.run("Write it", **options)
            return report, took

    return asyncio.run(main())


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_a_timeout_of_one_second_fires_on_a_server_that_drips_one_byte_a_second(
    wire: str, pace: float, tmp_path: Any
) -> None:
    """By 1.25 s the attempt is over, however alive the connection looks."""
    report, took = run(dripping, tmp_path, wire, plan=plan("t1", timeout_s=pace))
    assert took.seconds >= pace
    assert took.within(LATE_S, after=pace)
    assert report.outcomes[0].error is not None
    assert (report.status, report.outcomes[0].error.kind) == ("failed", "timeout")
    assert report.gaps[0].task == "t1"


def _deadline(report: Report) -> bool:
    return report.outcomes[0].error is not None and report.outcomes[0].error.kind == "deadline"


def _timeout(report: Report) -> bool:
    return report.outcomes[0].error is not None and report.outcomes[0].error.kind == "timeout"


def _stretched(limits: dict[str, Any], pace: float) -> dict[str, Any]:
    return {k: _stretched(v, pace) if isinstance(v, dict) else v * pace for k, v in limits.items()}


@pytest.mark.parametrize("how", [Answer(silent=True), replace(answer_json(RESULT), drip=0.2)], ids=["silent", "drip"])
@pytest.mark.parametrize(
    ("limits", "options", "fires_at", "says"),
    [
        ({"timeout_s": 0.5}, {}, 0.5, _timeout),
        ({"budget": {"seconds": 0.5}}, {}, 0.5, _timeout),
        ({"timeout_s": 3.0, "budget": {"seconds": 0.5}}, {"deadline": 5.0}, 0.5, _timeout),
        # Workers stop a fifth before the deadline.
        ({}, {"deadline": 0.625}, 0.5, _deadline),
        ({"timeout_s": 3.0}, {"deadline": 0.625}, 0.5, _deadline),
    ],
    ids=["task timeout", "task seconds", "the shortest", "deadline", "deadline first"],
)
def test_each_limit_fires_in_the_middle_of_a_call(
    how: Answer,
    limits: dict[str, Any],
    options: dict[str, Any],
    fires_at: float,
    says: Callable[[Report], bool],
    pace: float,
    tmp_path: Any,
) -> None:
    """The nearest of the limits ends the attempt within 250 ms and is named in the outcome."""
    limits, options, fires_at = _stretched(limits, pace), _stretched(options, pace), fires_at * pace
    how = replace(how, drip=how.drip * pace)
    report, took = run(lambda _: how, tmp_path, plan=plan("t1", **limits), **options)
    assert took.seconds >= fires_at
    assert took.within(LATE_S, after=fires_at)
    assert says(report), report.outcomes[0].error


def test_waiting_for_a_rate_limit_is_not_working_time(pace: float, tmp_path: Any) -> None:
    """Two 429s of 0.3 s each are in waiting_s; seconds has only the 0.2 s the answer took."""
    pause = round(0.3 * pace, 3)
    tries: list[str] = []

    def handler(seen: Seen) -> Answer:
        tries.append(seen.key)
        if len(tries) <= 2:
            return error(429, Retry_After=str(pause))
        return answer_json(RESULT, delay=0.2 * pace)

    report, took = run(handler, tmp_path, plan=plan("t1"))
    assert (report.status, len(tries), len(set(tries))) == ("complete", 3, 1)
    usage = report.outcomes[0].usage
    assert 2 * pause <= usage.waiting_s <= took.seconds
    assert 0.2 * pace <= usage.seconds < 0.5 * pace
    assert usage.waiting_s + usage.seconds <= took.seconds
    assert report.timing.waiting_s >= 2 * pause


def test_a_date_to_come_back_at_is_read_by_the_clock_of_who_named_it(tmp_path: Any) -> None:
    """A provider three hours ahead that asks for a second gets a second, not three hours."""

    def handler(seen: Seen) -> Answer:
        theirs = datetime.now(UTC) + timedelta(hours=3)
        later = format_datetime(theirs + timedelta(seconds=1), usegmt=True)
        if seen.number == 1:
            return error(429, Retry_After=later, Date=format_datetime(theirs, usegmt=True))
        return answer_json(RESULT)

    report, took = run(handler, tmp_path, plan=plan("t1"))
    assert report.status == "complete"
    assert took.seconds >= 1.0
    assert took.within(1.0, after=1.0)


def test_a_pause_that_is_not_waited_for_is_a_failure_at_once(tmp_path: Any) -> None:
    """Asked to come back in an hour, a run that is not to wait ends with a gap that says so, after one call."""
    report, took = run(lambda _: error(429, Retry_After="3600"), tmp_path, plan=plan("t1"), wait=0.0)
    assert took.within(1.0)
    assert (report.status, report.usage.calls) == ("failed", 1)
    assert report.outcomes[0].error is not None
    assert report.outcomes[0].error.kind == "rate_limited"


def test_waiting_for_a_slot_is_not_working_time(pace: float, tmp_path: Any) -> None:
    """With one call at a time three tasks of 0.2 s wait 0.2 and 0.4 s between them, and work 0.6 s."""

    def slow(seen: Seen) -> Answer:
        said = answer_json(SYNTHESIS | {"answer": "Words [t1-t3]."}) if seen.role == "synthesizer" else good(seen)
        return replace(said, delay=0.2 * pace)

    report, _ = run(slow, tmp_path, plan=plan("t1", "t2", "t3"), max_concurrent=1)
    assert report.status == "complete"
    worked, waited = (sum(getattr(o.usage, name) for o in report.outcomes) for name in ("seconds", "waiting_s"))
    assert 0.6 * pace <= worked < 1.1 * pace  # with the waiting it would be 1.2
    assert waited >= 0.6 * pace


@pytest.mark.parametrize(("deadline", "stop_at"), [(10.0, 8.0), (100.0, 80.0), (1_000.0, 970.0)])
def test_workers_stop_early_enough_for_the_synthesis(
    deadline: float, stop_at: float, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fifth of the deadline, 30 s at most, is left to write the answer from what is there."""
    monkeypatch.setattr(provider_settings, "FIRST_EVENT_S", 10_000.0)  # no call ends by itself before the deadline
    model = ScriptedModel(
        [
            {"when": {"task": "t2"}, "delay_ms": 5_000_000, "reply": {"json": RESULT}},
            {"when": {"role": "worker"}, "reply": {"json": RESULT}},
            {"when": {"role": "synthesizer"}, "delay_ms": 1_000, "reply": {"json": SYNTHESIS}},
        ]
    )
    supervisor = Supervisor(team(), model=model, home=tmp_path)
    report, seconds = run_virtual(supervisor.run("Write it", plan=plan("t1", "t2"), deadline=deadline))
    assert seconds == pytest.approx(stop_at + 1.0, abs=0.6)  # `cancel` is looked for twice a second
    assert report.answer == "Words [t1]."
    assert [(o.task, o.status) for o in report.outcomes] == [("t1", "done"), ("t2", "failed")]
    assert (report.status, report.gaps[0].task) == ("partial", "t2")


def test_a_synthesis_that_does_not_fit_gives_way_to_the_results_themselves(pace: float, tmp_path: Any) -> None:
    """At the deadline the answer is made by code from what is done, and says so."""

    def handler(seen: Seen) -> Answer:
        return Answer(silent=True) if seen.role == "synthesizer" else answer_json(RESULT)

    report, took = run(handler, tmp_path, plan=plan("t1", "t2"), deadline=0.7 * pace)
    assert took.seconds >= 0.7 * pace
    assert took.within(LATE_S, after=0.7 * pace)
    assert all(outcome.ok for outcome in report.outcomes)
    assert report.answer.count("Words.") == 2
    assert any("deadline" in note for note in report.notes)
