"""kill -9 of workers, of the server and of every client while runs of fourteen shapes are under way on Temporal.

A hundred workers and ten servers in a soak, a tenth of them else: a round kills ten workers and one server.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.counts import count
from tests.crash.stage import KEY, Trigger
from tests.crash.test_crash import after, but_usage
from tests.engine.temporal.chaos import WORKERS, Answers, BlobRecord, ChaosStage, chaos
from tests.engine.temporal.chaos_world import GRANTED, JOBS
from tests.pace import Timed

ROUNDS = count(10)
KILLS = 10
# Calls take 0.1 to 0.4 s.
SLOWNESS = 12.0
DEADLINE_S = 30
# Times of files are behind by up to this much.
FILE_CLOCK_S = 0.01

pytestmark = pytest.mark.xdist_group("chaos")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChaosStage]:
    with chaos(tmp_path_factory.mktemp("chaos"), SLOWNESS) as running:
        yield running


@pytest.fixture(scope="module")
def usual(stage: ChaosStage) -> dict[str, dict[str, Any]]:
    """Shape -> the report of the local engine, which nobody disturbs."""
    homes = {shape: stage.home(f"local-{shape}") for shape in JOBS}
    begun = {shape: stage.begin(shape, *_limits(shape, 2), home=home) for shape, home in homes.items()}
    for shape, victim in begun.items():
        assert victim.wait() in ((4,) if shape == "people" else (0, 3)), victim.err
    answer = stage.start(homes["people"], "answer", "last", "b", GRANTED)
    assert answer.wait() == 0, answer.err
    begun["people"] = stage.start(homes["people"], "resume", "last", "--json")
    assert begun["people"].wait() == 0
    return {shape: json.loads(victim.out) for shape, victim in begun.items()}


def _limits(shape: str, seconds: float) -> list[str]:
    return ["--deadline", str(seconds)] if JOBS[shape].timed else []


def some_moment(stage: ChaosStage, chance: random.Random) -> Trigger:
    """By the clock, or just after the Nth request from here unless there are none."""
    asked, wanted, late = stage.asked(), chance.randint(1, 12), after(chance.uniform(0.2, 3.0))
    return late if chance.random() < 0.5 else lambda: stage.asked() >= asked + wanted or late()


def check_calls(record: BlobRecord) -> None:
    """0 committed calls repeated: nobody asks for what is committed, and each opening of a segment asks once."""
    asked: dict[str, list[float]] = {}
    for request in record.requests:
        asked.setdefault(request["key"], []).append(request["at"])
    for segment, key, committed in record.calls():
        assert all(at < committed + FILE_CLOCK_S for at in asked[key][1:]), record.describe(key)
        assert len(asked[key]) <= record.openings(segment), record.describe(key)


def doubtful_tasks(record: BlobRecord) -> set[str]:
    """Tasks with a `once` tool of which the record has the intent, and not the result."""
    called: dict[str, str] = {}
    for objects in record.segments.values():
        for each in objects:
            for event, body in each.commit.events:
                data = json.loads(body)
                if event.kind == "tool_called" and data.get("effect") == "once":
                    called[data["key"]] = event.task or ""
                elif event.kind == "tool_returned" and not data["result"].get("error"):
                    called.pop(data["key"], None)
    return {task.partition("/")[0] for task in called.values()}


def check_report(report: dict[str, Any], record: BlobRecord, usual: dict[str, Any], *, timed: bool) -> None:
    """The local run's report, except for `once` tools in doubt and for what a deadline cut off."""
    doubtful = doubtful_tasks(record)
    if not doubtful and not timed:
        assert but_usage(report) == but_usage(usual)
        assert report["usage"]["calls"] >= usual["usage"]["calls"]
        return
    outcomes = {outcome["task"]: outcome for outcome in but_usage(report)["outcomes"]}
    expected = {outcome["task"]: outcome for outcome in but_usage(usual)["outcomes"]}
    assert outcomes.keys() == expected.keys()
    for task, outcome in outcomes.items():
        if task in doubtful:
            assert (outcome["status"], outcome["error"]["kind"]) == ("failed", "in_doubt")
        elif timed and outcome["status"] == "failed":
            assert outcome["error"]["kind"] == "deadline"
        elif outcome["status"] != "skipped":
            assert outcome == expected[task]


def check_secrets(stage: ChaosStage) -> None:
    """The key of the provider is in no file of the server and in no object; the server has no text either."""
    for path in [*stage.folder.glob("server.db*"), *stage.blobs.rglob("*")]:
        whole = path.read_bytes() if path.is_file() else b""
        assert KEY.encode() not in whole, path
        if path.parent == stage.folder:
            for text in (b"Do all of shape", b"Write the part", b"is written", b"Survive", GRANTED.encode()):
                assert text not in whole, path


@pytest.mark.parametrize("number", range(ROUNDS))
def test_nothing_is_lost_when_workers_server_and_clients_are_killed(
    stage: ChaosStage, usual: dict[str, dict[str, Any]], number: int, record_property: Any
) -> None:
    """Each run ends with the answer of a local run; no committed call is made again, and no `once` tool twice."""
    chance = random.Random(f"chaos {number}")
    # Workers of the round before would write into its ledger.
    stage.kill_workers()
    stage.ledger = stage.folder / f"ledger-{number}"
    while len(stage.workers) < WORKERS:
        stage.start_worker()
    began = time.monotonic()
    order = chance.sample(list(JOBS), len(JOBS))
    runs = {shape: stage.begin_on_temporal(shape, *_limits(shape, DEADLINE_S)) for shape in order}
    person, server_dies_at = Answers(stage, runs["people"]), chance.randrange(KILLS)
    for kill in range(KILLS):
        stage.wait_until(some_moment(stage, chance), person.look)
        if kill == server_dies_at:
            # One that finds no server when it starts says so, and ends.
            stage.wait_until(stage.workers_are_connected)
            stage.server.kill()
        stage.kill_worker(chance)
        if kill == server_dies_at:
            stage.start_server()
        while len(stage.workers) < WORKERS:
            stage.start_worker()
    stage.wait_until(lambda: all(map(stage.has_ended, runs.values())), person.look)
    retried: Counter[str] = Counter()
    for shape, run in runs.items():
        record = stage.record(run)
        check_calls(record)
        check_report(stage.report(run), record, usual[shape], timed=JOBS[shape].timed)
        retried[shape] = record.retries()
    made = Counter(stage.ledger.read_text().splitlines())
    assert {line: times for line, times in made.items() if line.startswith("send") and times > 1} == {}
    check_secrets(stage)
    record_property("chaos", json.dumps({"seconds": round(time.monotonic() - began), "retried": retried}))
    assert retried.total() > 0, "the kills have hit nothing"


def begin_hanging(stage: ChaosStage) -> tuple[str, Callable[[], list[str]]]:
    """A run with a call that the provider never answers; and the keys of the requests for that task so far."""
    run = stage.begin_on_temporal("deadline")

    def asked() -> list[str]:
        return [each["key"] for each in stage.requests() if each["run"] == run and each["task"] == "b"]

    stage.wait_until(lambda: bool(asked()))
    return run, asked


def test_cancelling_reaches_a_call_that_hangs_within_three_seconds(stage: ChaosStage, record_property: Any) -> None:
    """From the request to the end of the run, which is cancelled; its call is not made again."""
    while len(stage.workers) < WORKERS:
        stage.start_worker()
    run, asked = begin_hanging(stage)
    with Timed() as timed:
        stage.runs().request_cancel(run)
        stage.wait_until(lambda: stage.has_ended(run))
    record_property("seconds", timed.seconds)
    assert timed.within(3.0)
    assert stage.report(run)["status"] == "cancelled"
    assert len(asked()) == 1


def test_a_worker_that_is_asked_to_end_gives_its_steps_to_another(stage: ChaosStage) -> None:
    """SIGTERM is no cancellation: the worker ends with code 0, and its call is made again elsewhere, with its key."""
    stage.kill_workers()
    stage.start_worker()
    run, asked = begin_hanging(stage)
    (ending,) = stage.workers
    stage.workers.clear()
    stage.start_worker()
    os.kill(ending.pid, signal.SIGTERM)
    assert ending.wait() == 0, ending.err
    stage.wait_until(lambda: len(asked()) == 2)
    assert len(set(asked())) == 1
    assert not stage.has_ended(run)
    cancel = stage.start(stage.client_home, "cancel", run)
    assert cancel.wait() == 0, cancel.err
    stage.wait_until(lambda: stage.has_ended(run))
    assert stage.report(run)["status"] == "cancelled"
