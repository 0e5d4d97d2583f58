"""Real processes for runs on Temporal, to be killed: a server, workers with homes of their own, clients, a provider."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from chargehand.engine.temporal.blob_journal import Commit
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.engine.temporal.step_order import MOST_TRIES
from chargehand.errors import UsageError
from chargehand.record.home import Home
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.runs.report_from_record import final_report
from chargehand.runs.temporal.all_runs import AllRuns
from chargehand.runs.temporal.connection import connect
from chargehand.settings.settings import TemporalSettings
from tests.crash.stage import KEY, Stage, Trigger, Victim, clean_environment
from tests.crash.world import LEDGER, SEEN, SLOWNESS
from tests.engine.temporal.chaos_world import GRANTED, JOBS, make_team
from tests.engine.temporal.fleet import Server, free_port, run_async
from tests.pace import PATIENCE_S
from tests.simulation.world import idempotency_key

WARM = (
    "chargehand.cli.temporal_worker",
    "chargehand.cli.answer",
    "chargehand.runs.temporal_fleet_worker",
    "chargehand.runs.temporal.start_or_resume",
    "chargehand.runs.temporal.all_runs",
    "obstore.store",
)
WORKERS = 2
# How often the two workers of a round are looked at.
_LOOK_S = 0.02


@dataclass
class Written:
    """One object of a segment: when it was put there, and what it holds."""

    at: float
    commit: Commit


@dataclass
class BlobRecord:
    """What the store, the provider and the ledger know of one run."""

    run: str
    segments: dict[str, list[Written]]
    requests: list[dict[str, Any]]

    @cached_property
    def counts(self) -> Counter[str]:
        """Idempotency key -> how often the provider was asked."""
        return Counter(request["key"] for request in self.requests)

    def calls(self) -> Iterator[tuple[str, str, float]]:
        """(segment, idempotency key, when its reply was committed) of each model call with a reply on the record."""
        for segment, objects in self.segments.items():
            for each in objects:
                for event, body in each.commit.events:
                    if event.kind == "model_replied":
                        data = json.loads(body)
                        yield segment, idempotency_key(self.run, data["key"], data["fingerprint"]), each.at

    def describe(self, key: str) -> str:
        """When a call was asked for, and what the segment that it belongs to has around it."""
        lines = [(request["at"], "asked") for request in self.requests if request["key"] == key]
        segment = next((segment for segment, each, _ in self.calls() if each == key), "")
        for each in self.segments.get(segment, ()):
            kinds = ", ".join(event.kind for event, _ in each.commit.events) or "opened"
            lines.append((each.at, f"{each.commit.epoch} {kinds}"))
        return "\n".join(f"{at:.3f} {said}" for at, said in sorted(lines))

    def openings(self, segment: str) -> int:
        return sum(not each.commit.events for each in self.segments[segment])

    def retries(self) -> int:
        """How often a worker took over a step that another one had begun."""
        opened = (each.commit for objects in self.segments.values() for each in objects if not each.commit.events)
        return sum(commit.epoch % MOST_TRIES > 1 for commit in opened)


class ChaosStage:
    """One server on a file, one folder of objects, one provider; workers come and go."""

    def __init__(self, folder: Path, provider: subprocess.Popen[str], parent: subprocess.Popen[str]) -> None:
        assert provider.stdout
        assert parent.stdout
        self.folder = folder
        self.url = f"http://127.0.0.1:{int(provider.stdout.readline())}"
        assert parent.stdout.readline() == "warm\n"
        self._parent = parent
        self.server = Server(folder / "server.db", free_port())
        self.blobs = folder / "blobs"
        self.blobs.mkdir()
        self.seen = folder / "seen.jsonl"
        self.workers: list[Victim] = []
        self._homes = 0
        self.ledger = folder / "ledger"
        self.client_home = self.home("client")

    # What Victim asks of the parent of all victims.
    ask = Stage.ask

    def home(self, name: str) -> Path:
        """A machine of its own: home, settings, team and working folder."""
        home = self.folder / name
        (home / "cwd").mkdir(parents=True)
        config = f'[temporal]\naddress = "{self.server.address}"\nblobs = "{self.blobs.as_uri()}"\n'
        (home / "config.toml").write_text(config)
        TrustRegistry(str(home)).trust(make_team(home / "team"))
        return home

    def start(self, home: Path, *args: str) -> Victim:
        self._homes += 1
        out, err = home / f"out-{self._homes}", home / f"err-{self._homes}"
        err.touch()
        environment = {
            "CHARGEHAND_HOME": str(home),
            LEDGER: str(self.ledger),
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{self.url}/v1",
        }
        job = {"args": args, "env": environment, "cwd": str(home / "cwd"), "out": str(out), "err": str(err)}
        return Victim(self, self.ask(job), out, err)  # type: ignore[arg-type]

    def start_worker(self) -> None:
        home = self.home(f"worker-{self._homes}")
        self.workers.append(self.start(home, "worker", "--team", str(home / "team"), "--model", "openai:crash-model"))

    def begin(self, shape: str, *options: str, home: Path | None = None) -> Victim:
        home, job = home or self.client_home, JOBS[shape]
        args = ["run", f"Do all of shape {shape}", "--team", str(home / "team"), "--json", *job.options, *options]
        if job.given:
            plan = home / f"{shape}.json"
            plan.write_text(json.dumps(job.plan))
            args += ["--plan", str(plan)]
        return self.start(home, *args, "--model", "openai:crash-model")

    def begin_on_temporal(self, shape: str, *options: str) -> str:
        """The run's id; the client that started it is dead."""
        client = self.begin(shape, "--engine", "temporal", *options)
        assert client.lives_until(lambda: " on Temporal at " in client.err), client.err
        assert client.kill() == -9
        return next(line for line in client.err.splitlines() if " on Temporal at " in line).split()[0]

    # -- what others know ------------------------------------------------------------------------------------------

    def requests(self) -> list[dict[str, Any]]:
        whole = self.seen.read_bytes()
        return [json.loads(line) for line in whole[: whole.rfind(b"\n") + 1].splitlines()]

    def asked(self) -> int:
        return self.seen.read_bytes().count(b"\n")

    def has_ended(self, run: str) -> bool:
        return (self.blobs / "runs" / run / "steps" / "@end").exists()

    def runs(self) -> AllRuns:
        return AllRuns(Home(self.client_home))

    def report(self, run: str) -> dict[str, Any]:
        return final_report(self.runs().state(run)).to_json()

    def record(self, run: str) -> BlobRecord:
        store, segments = BlobStore(self.blobs.as_uri()), dict[str, list[Written]]()
        for path in store.list(store.path(run, "segments")):
            commit = Commit.from_bytes(run, store.get(path))
            segments.setdefault(commit.segment, []).append(Written((self.blobs / path).stat().st_mtime, commit))
        return BlobRecord(run, segments, [each for each in self.requests() if each["run"] == run])

    # -- what is done to it ----------------------------------------------------------------------------------------

    def kill_worker(self, chance: random.Random) -> None:
        victim = self.workers.pop(chance.randrange(len(self.workers)))
        assert victim.kill() == -9, victim.err

    def kill_workers(self) -> None:
        while self.workers:
            self.workers.pop().kill()

    def start_server(self) -> None:
        """It answers when this returns."""
        self.server.start()
        run_async(self._connect())

    async def _connect(self) -> None:
        limit = time.monotonic() + PATIENCE_S
        while True:
            try:
                await connect(TemporalSettings(address=self.server.address))
                return
            except UsageError:
                assert time.monotonic() < limit
                await asyncio.sleep(0.1)

    def workers_are_connected(self) -> bool:
        return all("worker of " in worker.err for worker in self.workers)

    def wait_until(self, trigger: Trigger, meanwhile: Callable[[], None] = lambda: None) -> None:
        limit = time.monotonic() + PATIENCE_S
        while not trigger():
            meanwhile()
            for worker in self.workers:
                assert not worker.ended(_LOOK_S), worker.err
            assert time.monotonic() < limit, "neither ended nor got there"


@dataclass
class Answers:
    """A person who answers each question of a run once, and again where the order was not taken."""

    stage: ChaosStage
    run: str
    _under_way: Victim | None = None
    given: bool = field(default=False)
    _looks_at: float = 0.0

    def look(self) -> None:
        if self.given or time.monotonic() < self._looks_at:
            return
        self._looks_at = time.monotonic() + 0.5
        if self._under_way is not None:
            if self._under_way.ended(0):
                self.given = self._under_way.wait() == 0
                self._under_way = None
            return
        for asked in self.stage.runs().state(self.run).open_questions().values():
            self._under_way = self.stage.start(self.stage.client_home, "answer", self.run, asked["id"], GRANTED)


@contextmanager
def chaos(folder: Path, slowness: float) -> Iterator[ChaosStage]:
    """All processes end with the block."""
    (folder / "seen.jsonl").touch()
    environment = clean_environment(**{SEEN: str(folder / "seen.jsonl"), SLOWNESS: str(slowness)})
    python, handler = (sys.executable, "-m"), "tests.engine.temporal.chaos_world:answer"
    options: dict[str, Any] = {"env": environment, "cwd": folder, "text": True, "stdout": subprocess.PIPE}
    with (
        subprocess.Popen([*python, "tests.loopback", "--handler", handler], **options) as provider,
        subprocess.Popen([*python, "tests.crash.victims", *WARM], stdin=subprocess.PIPE, **options) as parent,
    ):
        stage = None
        try:
            stage = ChaosStage(folder, provider, parent)
            stage.start_server()
            yield stage
        finally:
            provider.terminate()
            if stage is not None:
                stage.kill_workers()
                stage.server.kill()
            assert parent.stdin
            parent.stdin.close()
