"""What can be wrong around a run on Temporal: each a typed problem, or a run that says what it waits for."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.errors import StoreUnreachable, UsageError
from chargehand.models import Attribution
from chargehand.models.provider_settings import Provider
from chargehand.runs.temporal.client import WorkflowFailed, follow_run
from chargehand.runs.temporal.stored_run import team_queue
from chargehand.runs.temporal.worker_health import WorkerHealth, answer_health
from chargehand.runs.temporal_fleet_worker import _part_of_limits  # pyright: ignore[reportPrivateUsage]
from chargehand.settings.settings import Settings
from chargehand.team import Team, Worker
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, TokenCount, ToolRequest
from tests.counts import count
from tests.engine.temporal.fleet import Fleet, Server, free_port, run_on
from tests.engine.temporal.test_orders_on_temporal import Gates
from tests.flows import Flow, Said, by_task, task, tasks, works
from tests.kernel import result
from tests.pace import PATIENCE_S, Timed

pytestmark = pytest.mark.xdist_group("temporal")


class Disk(BlobStore):
    """A blob store whose disk can be away. To move its folder would not do: a writer makes a new one at any moment."""

    away = False

    @contextmanager
    def _translate_errors(self, path: str) -> Generator[None]:
        with super()._translate_errors(path):
            if self.away:
                raise NotADirectoryError(self.url)
            yield


def test_a_store_that_is_away_for_a_while_loses_nothing(server: Server, tmp_path: Path) -> None:
    """The command ends with a typed problem, steps are tried again, and the run completes when the store is back."""
    gates, disk = Gates(), Disk(tmp_path.as_uri())
    flow = Flow(gates.talk, tasks(task("a"), task("b", "a")), seconds=0.01)

    async def work() -> None:
        fleet = Fleet(await server.connect(), disk, flow)
        async with fleet.working():
            gates.close("a")
            run = await fleet.start()
            await fleet.until(run, "model_called")
            disk.away = True
            gates.open("a")
            with pytest.raises(StoreUnreachable):
                await asyncio.wait_for(follow_run(fleet.client, disk, run, on_event=lambda event: None), PATIENCE_S)
            disk.away = False
            assert (await fleet.report(run)).status == "complete"

    asyncio.run(work())


def test_a_full_store_is_reported_and_keeps_what_it_has(tmp_path: Path) -> None:
    """An object that does not fit is StoreUnreachable, leaves nothing behind, and fits once there is room."""
    program = f"""
import resource
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.errors import StoreUnreachable
store = BlobStore({tmp_path.as_uri()!r})
assert store.create("runs/r1/small", b"x")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    store.create("runs/r1/large", b"x" * 100_000)
except StoreUnreachable as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert store.list("runs/r1") == ["runs/r1/small"], store.list("runs/r1")
assert store.create("runs/r1/large", b"x" * 100_000)
assert store.get("runs/r1/large") == b"x" * 100_000
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    assert "runs/r1/large" in done.stdout


def test_a_run_waits_while_the_store_is_full(server: Server, tmp_path: Path) -> None:
    """A worker can write nothing: the command says within 30 s that a step is tried again; with room it completes."""
    asyncio.run(server.connect())
    home, blobs = tmp_path / "home", tmp_path / "blobs"
    home.mkdir()
    blobs.mkdir()
    config = f'[temporal]\naddress = "{server.address}"\nblobs = "{blobs.as_uri()}"\n'
    (home / "config.toml").write_text(config, encoding="utf-8")
    (tmp_path / "plan.json").write_text(tasks(task("a", worker="analyst")).model_dump_json(), encoding="utf-8")
    script = {"replies": [{"when": {"role": "worker"}, "reply": {"text": result("RESULT-a")}}]}
    (tmp_path / "script.json").write_text(json.dumps(script), encoding="utf-8")
    options: dict[str, Any] = {
        "env": {**os.environ, "CHARGEHAND_HOME": str(home), "CHARGEHAND_MODEL": f"scripted:{tmp_path}/script.json"},
        "stderr": subprocess.PIPE,
        "text": True,
    }
    command = [sys.executable, "-m", "chargehand"]
    with subprocess.Popen([*command, "worker", "--team", "general"], **options) as worker:
        try:
            assert worker.stderr is not None
            assert any("worker of " in line for line in iter(worker.stderr.readline, "")), "it has ended"
            resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
            run = [*command, "run", "--engine", "temporal", "--team", "general", "--plan", str(tmp_path / "plan.json")]
            with subprocess.Popen(run, stdout=subprocess.PIPE, **options) as running:
                assert running.stderr is not None
                with Timed() as timed:
                    said = next((line for line in iter(running.stderr.readline, "") if "tried again" in line), "")
                assert "StoreUnreachable" in said
                assert timed.within(30.0)
                resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                answer, said = running.communicate(timeout=PATIENCE_S)
                assert (running.returncode, "RESULT-a" in answer) == (0, True), said
        finally:
            worker.kill()


@pytest.mark.parametrize("how", ["altered", "missing"])
def test_an_object_that_was_altered_or_removed_ends_the_run_with_its_reason(
    how: str, server: Server, tmp_path: Path
) -> None:
    """The result of `a` is damaged before `b` and the answer read it: RecordDamaged within seconds, no retries."""
    gates = Gates()
    flow = Flow(gates.talk, tasks(task("a"), task("c"), task("b", "a", "c")), seconds=0.01)

    async def work() -> None:
        fleet = Fleet(await server.connect(), BlobStore(tmp_path.as_uri()), flow)
        async with fleet.working():
            gates.close("c")
            run = await fleet.start()
            path = tmp_path / fleet.store.path(run, "steps", "a/1")
            async with asyncio.timeout(PATIENCE_S):
                while not path.exists():  # noqa: ASYNC110 -- a worker writes it
                    await asyncio.sleep(0.05)
            whole = path.read_bytes()
            path.unlink() if how == "missing" else path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
            gates.open("c")
            with pytest.raises(WorkflowFailed, match="RecordDamaged"):
                await fleet.report(run)

    asyncio.run(work())


def test_a_team_that_no_worker_serves_is_said(server: Server, tmp_path: Path) -> None:
    """The command says within 30 seconds which queue nobody polls; a worker that comes later carries the run out."""

    async def work() -> None:
        fleet = Fleet(await server.connect(), BlobStore(tmp_path.as_uri()), Flow(works, tasks(task("a")), seconds=0.01))
        run = await fleet.start()
        said = asyncio.Event()
        texts: list[str] = []

        def say(text: str) -> None:
            texts.append(text)
            said.set()

        following = asyncio.ensure_future(follow_run(fleet.client, fleet.store, run, say=say))
        with Timed() as timed:
            await asyncio.wait_for(said.wait(), PATIENCE_S)
        assert timed.within(30.0)
        assert team_queue(fleet.flow.team) in texts[0]
        async with fleet.working():
            assert (await asyncio.wait_for(following, PATIENCE_S)).status == "complete"

    asyncio.run(work())


@pytest.mark.parametrize("wrong", ["store", "no key", "key"])
def test_a_worker_with_another_blob_store_or_key_is_named(wrong: str, server: Server, tmp_path: Path) -> None:
    """The command says within 30 s which worker it is, and what to set there; a right one beside it ends the run."""
    (tmp_path / "own").mkdir()
    (tmp_path / "other").mkdir()
    key = None if wrong == "store" else b"key of the run"
    place = tmp_path / ("other" if wrong == "store" else "own")
    other = BlobStore(place.as_uri(), b"another key" if wrong == "key" else None)
    own = BlobStore((tmp_path / "own").as_uri(), key)

    async def work() -> None:
        flow = Flow(works, tasks(task("a")), seconds=0.01)
        fleet = Fleet(await server.connect(), own, flow)
        lost = Fleet(await server.connect(), other, flow)
        said: asyncio.Queue[str] = asyncio.Queue()
        async with lost.working():
            run = await fleet.start()
            following = asyncio.ensure_future(follow_run(fleet.client, own, run, say=said.put_nowait))
            with Timed() as timed:
                text = await asyncio.wait_for(said.get(), PATIENCE_S)
            assert timed.within(30.0)
            for part in ("OtherBlobStore", f"{os.getpid()}@", place.as_uri() if wrong == "store" else run, "key_env"):
                assert part in text
            async with fleet.working():
                assert (await asyncio.wait_for(following, PATIENCE_S)).status == "complete"
        assert not any("OtherBlobStore" in said.get_nowait() for _ in range(said.qsize())), "each reason is said once"

    asyncio.run(work())
    assert not (tmp_path / "other" / "runs").exists(), "nothing is written where nobody reads it"


def test_a_command_that_is_interrupted_leaves_the_run_to_temporal(server: Server, tmp_path: Path) -> None:
    """Ctrl-C while no worker is there: exit 130, and one sentence that the run continues, and how to stop it."""
    asyncio.run(server.connect())
    home = tmp_path / "home"
    home.mkdir()
    config = f'[temporal]\naddress = "{server.address}"\nqueue = "nobody"\nblobs = "{tmp_path.as_uri()}"\n'
    (home / "config.toml").write_text(config, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "chargehand", "run", "--engine", "temporal", "Compare Oslo and Bergen"],
        env={**os.environ, "CHARGEHAND_HOME": str(home), "CHARGEHAND_MODEL": "scripted"},
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        run = running.stderr.readline().split()[0]
        running.send_signal(signal.SIGINT)
        rest = running.stderr.read()
    assert running.returncode == 130
    assert f"{run} continues on Temporal" in rest
    assert f"chargehand cancel {run}" in rest
    assert "before the run began" not in rest


@pytest.mark.slow
def test_a_run_whose_worker_died_says_so(server: Server, tmp_path: Path) -> None:
    """kill -9 of the only worker: within 30 s, twice the time of a lost heartbeat, the command names it."""
    asyncio.run(server.connect())
    home = tmp_path / "home"
    home.mkdir()
    config = f'[temporal]\naddress = "{server.address}"\nqueue = "dies"\nblobs = "{tmp_path.as_uri()}"\n'
    (home / "config.toml").write_text(config, encoding="utf-8")
    (tmp_path / "plan.json").write_text(tasks(task("a", worker="analyst")).model_dump_json(), encoding="utf-8")
    reply = {"when": {"role": "worker"}, "delay_ms": 600_000, "reply": {"text": result("RESULT-a")}}
    (tmp_path / "script.json").write_text(json.dumps({"replies": [reply]}), encoding="utf-8")
    options: dict[str, Any] = {
        "env": {**os.environ, "CHARGEHAND_HOME": str(home), "CHARGEHAND_MODEL": f"scripted:{tmp_path}/script.json"},
        "stderr": subprocess.PIPE,
        "text": True,
    }
    command = [sys.executable, "-m", "chargehand"]
    with subprocess.Popen([*command, "worker", "--team", "general"], **options) as worker:
        assert worker.stderr is not None
        assert any("worker of " in line for line in iter(worker.stderr.readline, "")), "it has ended"
        run = [*command, "run", "--engine", "temporal", "--plan", str(tmp_path / "plan.json")]
        with subprocess.Popen(run, stdout=subprocess.PIPE, **options) as running:
            assert running.stderr is not None
            assert any("a started" in line for line in iter(running.stderr.readline, "")), "it has ended"
            worker.kill()
            with Timed() as timed:
                said = next((line for line in iter(running.stderr.readline, "") if "lost" in line), "")
            running.kill()
    assert f"{worker.pid}@" in said
    assert timed.within(30.0)


def test_workers_with_another_team_or_other_code_have_another_queue() -> None:
    """Other words of a worker, or other code of its tools, are another team: its workers get no step of this one."""
    team = Team([Worker("clerk", "Does clerical work")], name="office")
    other = Team([Worker("clerk", "Does other work")], name="office")
    assert team_queue(team) != team_queue(other)
    assert team_queue(team) == team_queue(Team([Worker("clerk", "Does clerical work")], name="office"))


def test_a_reply_of_ten_megabytes_goes_through(server: Server, tmp_path: Path) -> None:
    """Its text is in the store, not in the history; one megabyte in `make test`."""
    text = ("word " * count(2_000_000)).strip()
    flow = Flow(
        lambda call, who: result(text) if call.role == "worker" and who.task == "a" else works(call, who),
        tasks(task("a"), task("b")), seconds=0.01,
    )  # fmt: skip
    report, _ = run_on(server, tmp_path, flow, 150.0)
    assert report.status in ("complete", "partial")
    assert by_task(report)["a"].output == text


def test_a_step_that_used_up_its_part_of_the_budget_gets_more_once(server: Server, tmp_path: Path) -> None:
    """`a` takes more than its share of the budget, all together less than all of it: complete, no call repeated."""

    def talk(call: ModelCall, who: Attribution) -> Said:
        if call.role == "worker" and who.task == "a" and sum(m.role == "tool" for m in call.messages) < 5:
            return Reply(tool_calls=(ToolRequest(id="1", name="none", arguments={}, raw="{}"),), stop="tools")
        return works(call, who)

    plan = tasks(task("a"), *(task(f"t{n}") for n in range(7)))
    usage = TokenCount(input_tokens=4_000, output_tokens=10)
    flow = Flow(talk, plan, request={"budget": {"tokens": 160_000}}, seconds=0.01, usage=usage)
    report, events = run_on(server, tmp_path, flow)
    assert report.status == "complete"
    replied = [event.data["key"] for event in events if event.kind == "model_replied"]
    assert len(replied) == len(set(replied))
    assert sum(event.kind == "attempt_started" and event.task == "a" for event in events) == 2


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A worker and a run without a server end within seconds, with the address and what to do."""
    address, home = f"127.0.0.1:{free_port()}", tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[temporal]\naddress = "{address}"\nblobs = "{tmp_path.as_uri()}"\n', encoding="utf-8"
    )
    env = {**os.environ, "CHARGEHAND_HOME": str(home), "CHARGEHAND_MODEL": "scripted"}
    for command in (["worker"], ["run", "--engine", "temporal", "Compare Oslo and Bergen"]):
        done = subprocess.run(
            [sys.executable, "-m", "chargehand", *command],
            env=env,
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert (done.returncode, address in done.stderr) == (2, True), done
    assert not list((home / "temporal").glob("*.json"))


def test_a_worker_process_says_how_it_is_and_drains(server: Server, tmp_path: Path) -> None:
    """GET /healthz is 200 with its queues while it works; SIGTERM ends it with exit 0."""
    home, port = tmp_path / "home", free_port()
    home.mkdir()
    asyncio.run(server.connect())
    (home / "config.toml").write_text(
        f'[temporal]\naddress = "{server.address}"\nblobs = "{tmp_path.as_uri()}"\n', encoding="utf-8"
    )
    worker = subprocess.Popen(
        [sys.executable, "-m", "chargehand", "worker", "--team", "support", "--health", str(port), "--share", "0.5"],
        env={**os.environ, "CHARGEHAND_HOME": str(home), "CHARGEHAND_MODEL": "scripted"},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert worker.stderr is not None
    said = ""
    for line in worker.stderr:
        said += line
        if "worker of" in line:
            break
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE_S) as answer:
        state = json.load(answer)
    assert (state["status"], state["steps"]) == ("ok", 0), said
    assert state["queues"][0].startswith("ch.support@")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_S) == 0
    worker.stderr.close()


def test_a_worker_that_drains_is_not_healthy() -> None:
    """503 before it polls and once it is asked to end; other paths are 404; a taken port is a UsageError."""

    async def work() -> None:
        health, port = WorkerHealth("draining"), free_port()
        async with answer_health(health, "127.0.0.1", port):
            for path, expected in (("/healthz", 503), ("/", 404)):
                with pytest.raises(HTTPError) as refused:
                    await asyncio.to_thread(
                        urllib.request.urlopen, f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S
                    )
                with refused.value as answer:
                    assert answer.code == expected
            with pytest.raises(UsageError, match=str(port)):
                async with answer_health(health, "127.0.0.1", port):
                    pass

    asyncio.run(work())


def test_a_share_divides_the_limits_of_providers() -> None:
    """Each of four workers makes a fourth of the calls, and at least one."""
    free = Provider(name="free", base_url="http://127.0.0.1:1", wire="openai")
    provider = free.model_copy(update={"rpm": 100, "tpm": 40_000, "max_concurrent": 2})
    settings = _part_of_limits(Settings(home="unused", providers={"p": provider, "free": free}), 0.25)
    shared = settings.providers["p"]
    assert (shared.rpm, shared.tpm, shared.max_concurrent) == (25, 10_000, 1)
    assert settings.providers["free"].rpm is None
