"""The same flows on both engines: same outcomes, same answer, same events of each task in order."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from chargehand.events import Event
from chargehand.values.outcome import Outcome
from chargehand.values.plan import Plan
from tests.engine.temporal.fleet import Server, run_on
from tests.engine.temporal.temporal_flows import FLOWS

pytestmark = pytest.mark.xdist_group("temporal")


# What differs between any two runs: times, and the random part of a pause.
TIMES = ("after_s", "at", "seconds", "waiting_s")


def by_task(events: Iterable[Event]) -> dict[str, list[Any]]:
    """Task -> its events in order, without what differs between any two runs; replies to calls side by side by key."""
    found: dict[str, list[Any]] = {}
    for event in events:
        if event.task is not None and event.kind not in ("budget_reserved", "budget_settled"):
            said = event.data.get("value") if event.kind == "decision" else event.data.get("status")
            found.setdefault(event.task, []).append((event.kind, event.attempt, event.data.get("key"), steady(said)))
    for each in found.values():
        at = 0
        for kind, same in groupby(list(each), key=lambda event: event[0]):
            together = list(same)
            if kind == "model_replied":
                each[at : at + len(together)] = sorted(together, key=lambda event: event[2])
            at += len(together)
    return found


def steady(value: Any) -> Any:
    match value:
        case dict():
            return {name: steady(each) for name, each in value.items() if name not in TIMES}
        case list():
            return [steady(each) for each in value]
        case _:
            return value


def essence(outcome: Outcome) -> tuple[Any, ...]:
    return (
        outcome.task,
        outcome.status,
        outcome.worker,
        outcome.summary,
        outcome.output,
        None if outcome.error is None else (outcome.error.kind, outcome.error.message),
        outcome.attempts,
    )


@pytest.mark.parametrize("name", FLOWS)
def test_a_flow_comes_to_the_same_on_both_engines(name: str, server: Server, tmp_path: Path) -> None:
    """Status, answer, gaps, outcomes, tokens and the events of each task are equal."""
    local, remote = FLOWS[name](), FLOWS[name]()
    local.seconds = remote.seconds = 0.01
    expected = local.run()
    report, events = run_on(server, tmp_path, remote)
    assert (report.status, report.answer) == (expected.status, expected.answer)
    assert [essence(each) for each in report.outcomes] == [essence(each) for each in expected.outcomes]
    assert [steady(gap.to_json()) for gap in report.gaps] == [steady(gap.to_json()) for gap in expected.gaps]
    assert report.usage.tokens == expected.usage.tokens
    assert by_task(events) == by_task(local.events)
    assert isinstance(report.plan, Plan)
