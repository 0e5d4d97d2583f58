"""kill -9 at a hundred points, then `resume last`: nothing committed is lost or repeated, the answer is the same.

At that many in a soak, at a tenth of them else.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.counts import count
from tests.crash.stage import Case, Disk, Stage, Trigger, Victim, staged
from tests.crash.world import MARK, Wire

KILLS = count(9)
TRIES = 3 * KILLS + 5
LIVES = 4

WORLDS: list[tuple[str, Wire, bool]] = [
    ("fan", "openai", False),
    ("fan", "anthropic", True),
    ("clamped", "openai", True),
    ("chain", "anthropic", False),
    ("diamond", "openai", False),
    ("diamond", "anthropic", True),
    ("chains", "openai", True),
    ("tools", "openai", False),
    ("tools", "anthropic", True),
    ("once", "openai", True),
    ("once", "anthropic", False),
    ("once", "openai", False),
    ("nested", "openai", False),
    ("nested", "anthropic", True),
]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("crash")) as running:
        yield running


@dataclass(frozen=True)
class Usual:
    """How a run goes that nobody disturbs."""

    report: dict[str, Any]
    seconds: float
    disk: Disk

    @cached_property
    def outcomes(self) -> dict[str, Any]:
        return {outcome["task"]: outcome for outcome in timeless(self.report)["outcomes"]}


def undisturbed(case: Case) -> Usual:
    began = time.monotonic()
    victim = case.begin()
    assert victim.wait() == 0, victim.err
    return Usual(json.loads(victim.out), time.monotonic() - began, case.disk())


def timeless(value: Any) -> Any:
    """Without what may differ between two runs of the same: the run's name and seconds."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in ("run", "timing", "seconds", "waiting_s")}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def some_point(case: Case, usual: Usual, chance: random.Random) -> Trigger:
    """A moment in what is left of the run: by the clock, or just after the Nth request or event from here."""
    match chance.choice(("clock", "request", "event")):
        case "clock":
            left = usual.seconds * max(0.3, 1 - case.seq() / len(usual.disk.rows))
            return after(chance.uniform(0.02, left))
        case "request":
            seen = len(case.requests())
            wanted = seen + chance.randint(1, max(1, len(usual.disk.requests) - seen))
            return later(lambda: len(case.requests()) >= wanted, chance.uniform(0, 0.02))
        case _:
            known = case.seq()
            wanted = known + chance.randint(1, max(4, len(usual.disk.rows) - known))
            return later(lambda: case.seq() >= wanted, 0.0)


def after(seconds: float) -> Trigger:
    at = time.monotonic() + seconds
    return lambda: time.monotonic() >= at


def later(happened: Callable[[], bool], seconds: float) -> Trigger:
    """True some time after something happened."""
    at: list[float] = []

    def trigger() -> bool:
        if not at and happened():
            at.append(time.monotonic() + seconds)
        return bool(at) and time.monotonic() >= at[0]

    return trigger


def killed(case: Case, victim: Victim, trigger: Trigger) -> Disk | None:
    """What was on disk when the victim died; None when it ended by itself."""
    victim.lives_until(trigger)
    return case.disk() if victim.kill() == -9 else None


def tormented(case: Case, usual: Usual, chance: random.Random) -> tuple[list[Disk], Victim]:
    """Killed at some point, resumed, killed again at times; the deaths and the life that came to an end."""
    victim = case.begin()
    death = killed(case, victim, some_point(case, usual, chance))
    deaths: list[Disk] = []
    while death is not None:
        if not death.rows:
            nothing_to_resume(case)
            victim = case.begin()
        else:
            deaths.append(death)
            victim = case.resume()
        if len(deaths) == LIVES - 1 or (deaths and chance.random() < 0.55):
            break
        death = killed(case, victim, some_point(case, usual, chance))
    return deaths, victim


def nothing_to_resume(case: Case) -> None:
    """A run that died before its first event was on disk says so in a sentence."""
    victim = case.resume()
    assert victim.wait() == 2
    assert any(said in victim.err for said in ("There are no runs", "holds no request", "it is empty: the run stopped"))


def check_record(deaths: list[Disk], end: Disk) -> None:
    """0 committed results lost: every death's record is the beginning of the final one, to the byte."""
    for death in deaths:
        assert end.rows[: len(death.rows)] == death.rows
        assert death.blobs.items() <= end.blobs.items()
        named = {name for kind, data in death.events if kind == "model_called" for name in data["messages"]}
        assert named <= death.blobs.keys()


def check_calls(deaths: list[Disk], end: Disk) -> None:
    """0 committed calls repeated; in all at most one repeat for each time a call was in flight at a death.

    A tool that may run twice is recorded with its result: each death may have cut one off unseen.
    """
    for death in deaths:
        done = {end.names[key] for key in death.committed}
        assert {name: end.counts[name] for name in done} == {name: death.counts[name] for name in done}
    in_flight = Counter(end.names[key] for death in deaths for key in death.in_flight if key in end.names)
    unseen = {name: len(deaths) if name.startswith(("look", "put")) else in_flight[name] for name in end.counts}
    too_often = {name: made for name, made in end.counts.items() if made > 1 + unseen[name]}
    assert not too_often
    # Whatever the provider was asked is on the record with its answer.
    answered = {end.names[data["key"]] for kind, data in end.events if kind == "model_replied"}
    assert {request["mark"] for request in end.requests} == answered


def check_repeats(end: Disk) -> None:
    """A repeat has the idempotency key of the first, and its body to the byte; no two calls share a key."""
    sent = {(request["mark"], request["key"], request["body"]) for request in end.requests}
    marks = {mark for mark, _, _ in sent}
    assert len(sent) == len(marks) == len({key for _, key, _ in sent})
    assert all(key for _, key, _ in sent)


def but_usage(report: dict[str, Any]) -> Any:
    """The report without what its calls used in all, and what it notes on that."""
    return {name: value for name, value in timeless(report).items() if name not in ("usage", "notes")}


def check_usage(report: dict[str, Any], end: Disk, usual: Usual | None) -> None:
    """The budget's lines add up to the report, calls in flight at a death included, as one more of each, estimated."""
    settled = [data for kind, data in end.events if kind == "budget_settled"]
    lost = [data for data in settled if data.get("lost")]
    assert all(data["estimated"] for data in lost)
    assert tokens(report) == sum(data["tokens"] for data in settled)
    assert len([note for note in report["notes"] if "broken off" in note]) == (1 if lost else 0)
    if usual is not None:
        assert tokens(report) == tokens(usual.report) + sum(data["tokens"] for data in lost)
        assert report["usage"]["calls"] == usual.report["usage"]["calls"] + len(lost)


def tokens(report: dict[str, Any]) -> int:
    return report["usage"]["input_tokens"] + report["usage"]["output_tokens"]


def check_outcomes(report: dict[str, Any], deaths: list[Disk], end: Disk, usual: Usual) -> set[str]:
    """The undisturbed run's report, except for `once` tools in doubt: those were called once and their task failed."""
    doubtful = {
        key.partition("/")[0]
        for death in deaths
        for key, call in death.in_flight.items()
        if call.get("effect") == "once"
    }
    assert all(made == 1 for name, made in end.counts.items() if name.startswith("send"))
    check_usage(report, end, None if doubtful else usual)
    if not doubtful:
        assert but_usage(report) == but_usage(usual.report)
        return doubtful
    outcomes = {outcome["task"]: outcome for outcome in timeless(report)["outcomes"]}
    assert outcomes.keys() == usual.outcomes.keys()
    for task, outcome in outcomes.items():
        if task in doubtful:
            assert (outcome["status"], outcome["error"]["kind"]) == ("failed", "in_doubt")
        elif outcome["status"] == "skipped":
            assert set(outcome["because"]) <= doubtful
        else:
            assert outcome == usual.outcomes[task]
    return doubtful


@pytest.mark.parametrize(("shape", "wire", "given"), WORLDS)
def test_a_killed_run_is_resumed_to_the_same_answer(
    stage: Stage, shape: str, wire: Wire, given: bool, record_property: Callable[[str, object], None]
) -> None:
    """Nothing committed is lost or repeated, repeats are the calls in flight, outcomes and answer are the same."""
    chance = random.Random(f"{shape} {wire} {given}")
    usual = undisturbed(stage.case(shape, wire, given=given))
    assert len(MARK.findall(usual.report["answer"])) == 1
    phases: Counter[str] = Counter()
    for _ in range(TRIES):
        case = stage.case(shape, wire, given=given)
        deaths, last = tormented(case, usual, chance)
        code = last.wait()
        end = case.disk()
        report = json.loads(last.out)
        check_record(deaths, end)
        check_calls(deaths, end)
        check_repeats(end)
        doubtful = check_outcomes(report, deaths, end, usual)
        assert code == (3 if doubtful else 0), last.err
        phases.update(death.phase for death in deaths)
        phases["in doubt"] += len(doubtful)
        if phases.total() - phases["in doubt"] >= KILLS:
            break
    record_property("deaths", json.dumps(phases))
    assert phases.total() - phases["in doubt"] >= KILLS


def test_calls_that_waited_for_a_slot_cost_nothing_when_the_run_is_killed(stage: Stage) -> None:
    """Nearly all of the budget is set aside at each of three deaths, for two calls in flight: there is enough left."""
    usual = undisturbed(stage.case("clamped", "openai", given=True))
    case = stage.case("clamped", "openai", given=True)
    victim, deaths = case.begin(), list[Disk]()
    for _ in range(3):
        seen = len(case.requests())
        death = killed(case, victim, lambda seen=seen: len(case.requests()) > seen)
        assert death is not None
        assert len(death.in_flight) <= 2
        deaths.append(death)
        victim = case.resume()
    assert victim.wait() == 0
    assert but_usage(json.loads(victim.out)) == but_usage(usual.report)
    check_usage(json.loads(victim.out), case.disk(), usual)
    check_calls(deaths, case.disk())


def test_of_two_resumes_at_once_one_is_told_who_has_the_run(tmp_path: Path) -> None:
    """The second gets exit code 2 and the first one's pid; the first ends as if alone."""
    with staged(tmp_path, slowness=10) as stage:
        usual = undisturbed(stage.case("diamond", "openai", given=False))
        case = stage.case("diamond", "openai", given=False)
        death = killed(case, case.begin(), lambda: len(case.requests()) >= 3)
        assert death is not None
        first, second = case.resume(), case.resume()
        loser = first if first.lives_until(lambda: second.ended(0)) is False else second
        winner = second if loser is first else first
        assert loser.wait() == 2
        assert f"process {winner.pid} " in loser.err
        assert "Traceback" not in loser.err
        # Once more when the owner is well under way.
        assert winner.lives_until(lambda: case.seq() > len(death.rows) + 3)
        late = case.resume()
        assert late.wait() == 2
        assert f"process {winner.pid} " in late.err
        assert winner.wait() == 0
        assert but_usage(json.loads(winner.out)) == but_usage(usual.report)
        check_usage(json.loads(winner.out), case.disk(), usual)
        check_record([death], case.disk())
        check_calls([death], case.disk())
