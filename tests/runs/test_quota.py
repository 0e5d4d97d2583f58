"""A provider whose quota is used up for hours: the run waits, holds nothing, and asks once when the time has come."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.errors import ModelError
from chargehand.events import BudgetReserved, BudgetSettled, Decided, ModelCalled
from chargehand.models import Attribution
from chargehand.models.provider_settings import Provider
from chargehand.record.home import Home
from chargehand.record.replay import replay
from chargehand.settings import Settings
from chargehand.testing import run_virtual
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, TokenCount
from chargehand.values.report import Report
from tests.cli.terminal import Shell
from tests.cli.terminal import plan as plan_json
from tests.cli.terminal import task as task_json
from tests.loopback import error, serve
from tests.pace import PATIENCE_S
from tests.runs.test_orders import plan

HOURS = 3_600.0
TEAM = Team([Worker("clerk", "Writes")])
WIDE = plan(*((f"t{number}",) for number in range(1, 7)))


class Quota:
    """A model of a provider that answers so many calls, and no other before a moment."""

    def __init__(self, answered: int, out_until: float, *, delay: float = 1.0) -> None:
        self.left = answered
        self.out_until = out_until
        self.delay = delay
        # When each call came, its task, and whether it was answered.
        self.seen: list[tuple[float, str | None, bool]] = []

    async def complete(self, call: ModelCall, max_output: int, attribution: Attribution, on_text: Any = None) -> Reply:
        now = asyncio.get_running_loop().time()
        is_open = self.left > 0 or now >= self.out_until
        self.seen.append((now, attribution.task, is_open))
        if not is_open:
            raise ModelError("rate_limited", "the quota is used up", retry_after=self.out_until - now, status=429)
        self.left -= 1
        await asyncio.sleep(self.delay)
        answer = "All [t1, t2, t3, t4, t5, t6]." if call.role == "synthesizer" else "Words."
        text = f'{{"summary": "s", "output": "{answer}", "answer": "{answer}", "confidence": 90}}'
        return Reply(text=text, usage=TokenCount(input_tokens=100, output_tokens=20), model=call.model)

    async def close(self) -> None:
        pass

    @property
    def answered(self) -> list[str | None]:
        return [task for _, task, was_answered in self.seen if was_answered]


def start(home: Path, model: Any, team: Team = TEAM, **options: Any) -> tuple[Report, float]:
    options = {"plan": WIDE, **options}
    return run_virtual(Supervisor(team, model=model, home=home).run("Write", **options))


def waits(home: Path, run: str) -> list[Decided]:
    return [e.body for e in Home(home).events(run) if isinstance(e.body, Decided) and e.body.decision == "wait"]


def test_a_run_that_stays_continues_by_itself_with_one_probing_call(tmp_path: Path) -> None:
    """A quota of hours: nothing is lost, nothing is repeated, and one call is sent when the time has come."""
    model = Quota(2, 5 * HOURS)
    report, took = start(tmp_path, model, stay=True)
    assert {outcome.status for outcome in report.outcomes} == {"done"}
    assert 5 * HOURS < took < 5 * HOURS + 60
    assert len(model.answered) == len(set(model.answered)), "no call that was answered is made again"
    after = [when for when, _, _ in model.seen if when >= 5 * HOURS]
    assert sum(when < after[0] + model.delay for when in after) == 1, "the others wait for the answer to the first"
    assert sum(when < after[0] + 2 * model.delay for when in after) > 3, "after it they go as before"
    assert all(when < 10 for when, _, was_answered in model.seen if not was_answered)
    assert [outcome.attempts for outcome in report.outcomes] == [1] * 6


def test_what_was_set_aside_is_given_back_while_it_waits(tmp_path: Path) -> None:
    """No reservation is open, and the run says until when it waits."""
    model = Quota(0, 5 * HOURS)
    report, took = start(tmp_path, model)
    assert (report.status, report.exit_code) == ("waiting", 4)
    assert took < 60
    state = Home(tmp_path).state(report.run)
    assert state.spending.reserved == {}
    assert state.spending.tokens == 0
    assert state.waits.for_provider is not None
    assert f"Waiting for {state.waits.for_provider[1]} until" in report.answer
    bodies = [event.body for event in Home(tmp_path).events(report.run)]
    assert sum(isinstance(b, BudgetReserved) for b in bodies) == sum(isinstance(b, BudgetSettled) for b in bodies)


def resume(home: Path, model: Any, run: str, **options: Any) -> Report:
    return run_virtual(Supervisor(TEAM, model=model, home=home).resume(run, **options))[0]


def test_a_resume_before_the_time_sends_nothing(tmp_path: Path) -> None:
    """It waits again until the same moment; where it stays it continues then."""
    before, _ = start(tmp_path, Quota(2, 5 * HOURS))
    done = {outcome.task for outcome in before.outcomes}
    early = Quota(0, 5 * HOURS)
    again = resume(tmp_path, early, before.run)
    assert (again.status, early.seen) == ("waiting", [])
    state = Home(tmp_path).state(before.run)
    first, second = state.waits.for_provider, replay(Home(tmp_path).events(before.run)).waits.for_provider
    assert first == second
    later = Quota(100, 0.0)
    last = resume(tmp_path, later, before.run, stay=True)
    assert {outcome.status for outcome in last.outcomes} == {"done"}
    assert done.isdisjoint(later.answered)
    assert min(when for when, _, _ in later.seen) > 4 * HOURS


def two_providers(home: Path, made: Any) -> Report:
    """A run in which the clerk's provider is out for two hours, and the aide's model is of another one."""
    says = {"summary": "s", "output": "Words.", "answer": "All [t1, t2]."}
    other = home / "other.json"
    other.write_text(json.dumps({"replies": [{"reply": {"json": says}, "delay_ms": 300}]}))
    team = Team([Worker("clerk", "Writes", fallback="aide"), Worker("aide", "Helps", model=f"scripted:{other}")])
    team = team if made["fallback"] else Team([Worker("clerk", "Writes"), team.workers[1]])

    async def main() -> Report:
        async with serve(lambda _: error(429, Retry_After="7200")) as server:
            provider = Provider(name="mine", base_url=f"{server.url}/v1", wire="openai")
            tiers = dict.fromkeys(("small", "medium", "large"), "mine:model")
            settings = Settings(home=str(home), tiers=tiers, providers={"mine": provider})
            return await Supervisor(team, settings=settings).run("Write", plan=made["plan"])

    return asyncio.run(main())


def test_a_fallback_on_another_provider_is_asked_first(tmp_path: Path) -> None:
    """The task is done by the other worker, and the run does not wait for it."""
    report = two_providers(tmp_path, {"fallback": True, "plan": plan(("t1",))})
    assert (report.outcomes[0].status, report.outcomes[0].worker) == ("done", "aide")


def test_a_fallback_of_the_same_provider_is_not_asked(tmp_path: Path) -> None:
    """It would be refused as well: the task waits where it is."""
    team = Team([Worker("clerk", "Writes", fallback="aide"), Worker("aide", "Helps")])
    model = Quota(0, 5 * HOURS)
    report, _ = start(tmp_path, model, team, plan=plan(("t1",)), stay=True)
    assert (report.outcomes[0].status, report.outcomes[0].worker) == ("done", "clerk")
    assert report.outcomes[0].attempts == 1


@pytest.mark.parametrize(
    ("options", "why"),
    [({"wait": 0.0}, "--wait is 0"), ({"wait": HOURS}, "--wait allows"), ({"deadline": HOURS}, "deadline")],
)
def test_a_wait_that_is_too_long_is_a_failure_that_says_why(tmp_path: Path, options: dict[str, Any], why: str) -> None:
    """`wait` bounds it, and so does what is left until a deadline."""
    report, took = start(tmp_path, Quota(0, 5 * HOURS), plan=plan(("t1",)), **options)
    assert report.status == "failed"
    assert took < 200
    assert report.outcomes[0].error is not None
    assert report.outcomes[0].error.kind == "rate_limited"
    assert why in report.outcomes[0].error.message


def test_other_work_continues_while_a_call_waits(tmp_path: Path) -> None:
    """The run as a whole waits only when nothing else can run."""
    tasks = [task.to_json() for task in plan(("t1",), ("t2",), ("t3", "t2")).tasks]
    tasks[1]["worker"] = tasks[2]["worker"] = "aide"
    report = two_providers(tmp_path, {"fallback": False, "plan": {"goal": "g", "tasks": tasks}})
    assert report.status == "waiting"
    assert [outcome.task for outcome in report.outcomes] == ["t2", "t3"]


def test_time_limits_of_a_task_stand_still_while_it_waits(tmp_path: Path) -> None:
    """Also after a resume; the wait is in its usage."""
    made = plan(("t1",), timeout_s=30)
    report, _ = start(tmp_path, Quota(0, 2 * HOURS), plan=made, stay=True)
    assert report.outcomes[0].status == "done"
    assert report.outcomes[0].usage.waiting_s > HOURS
    state = Home(tmp_path).state(report.run)
    assert state.waits.by_task(state.owned_s)["t1"] > HOURS


def test_the_call_is_sent_again_with_the_same_bytes(tmp_path: Path) -> None:
    """One key and fingerprint; the record counts how often it was sent."""
    report, _ = start(tmp_path, Quota(0, 2 * HOURS), plan=plan(("t1",)), stay=True)
    called = [e.body for e in Home(tmp_path).events(report.run) if isinstance(e.body, ModelCalled)]
    assert [(body.key, body.send) for body in called] == [("t1/1/model/1", 1), ("t1/1/model/1", 2)]
    assert len({(body.fingerprint, body.max_output) for body in called}) == 1


def test_a_planner_waits_as_well(tmp_path: Path) -> None:
    """Any call of the run does."""
    report, _ = start(tmp_path, Quota(0, 2 * HOURS), plan=None)
    assert (report.status, report.plan) == ("waiting", None)


def test_a_run_in_this_process_is_shown_as_waiting(tmp_path: Path) -> None:
    """While it stays, and after it has died there."""

    async def main() -> tuple[Report, str]:
        door = Supervisor(TEAM, model=Quota(0, 2 * HOURS), home=tmp_path)
        work = asyncio.ensure_future(door.run("Write", plan=WIDE, stay=True))
        await asyncio.sleep(HOURS)
        shown = Supervisor(TEAM, home=tmp_path).report("last")
        return await work, shown.status

    (report, shown), _ = run_virtual(main())
    assert (shown, {outcome.status for outcome in report.outcomes}) == ("waiting", {"done"})
    events = list(Home(tmp_path).events(report.run))
    at = next(n for n, e in enumerate(events) if e.kind == "decision" and e.data["key"] == "@wait/1")
    assert replay(events[: at + 1]).waits.run_waits
    assert not replay(events).waits.run_waits


KILLED_WHILE_WAITING = """
import asyncio, json, os, signal, sys
from chargehand import Supervisor

def listen(event):
    if event.kind == "decision" and event.data["key"] == "@wait/1":
        asyncio.get_running_loop().call_later(0.3, os.kill, os.getpid(), signal.SIGKILL)

plan = json.load(open("plan.json"))
asyncio.run(Supervisor(model=sys.argv[1], home=sys.argv[2]).run(plan=plan, stay=True, on_event=listen))
"""


def test_a_process_killed_while_it_waits_loses_nothing(shell: Shell) -> None:
    """Shown as waiting with its moment; resumed before that, it waits on and has sent nothing."""
    shell.write("plan.json", plan_json(task_json("t1"), task_json("t2")))
    out = {"when": {"role": "worker", "task": "t2"}, "reply": {"error": {"status": 429, "retry_after": 7_200}}}
    model = shell.script(out)
    done = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_WAITING, model, shell.home],
        cwd=shell.folder,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-500:]
    shown = shell("show", "last", "--json").json
    assert shown["status"] == "waiting"
    assert shown["waiting"]["provider"] == "scripted"
    assert shown["waiting"]["until"] > time.time() + HOURS
    shell.script()
    again = shell("resume", "last")
    assert again.code == 4
    assert "t2" not in {e["task"] for e in shell("show", "last", "--json").json["outcomes"]}
    assert shell("show", "last", "--json").json["waiting"]["until"] == pytest.approx(shown["waiting"]["until"], abs=1)


def test_off_a_terminal_the_run_ends_with_exit_code_4(shell: Shell) -> None:
    """With the moment, and the command that continues it; `--wait 0` fails instead."""
    out = {"when": {"role": "worker"}, "reply": {"error": {"status": 429, "retry_after": 7_200}}}
    got = shell("run", "Say it", "--model", shell.script(out))
    assert got.code == 4
    assert "chargehand resume" in got.err
    assert "Waiting for scripted until" in got.complaint
    assert shell("runs", "--json").json["runs"][0]["status"] == "waiting"
    assert shell("run", "Say it", "--model", shell.script(out), "--wait", "0").code == 1
