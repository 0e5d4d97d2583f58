"""Real processes for crash tests: a provider, victims that are killed, and what was on disk each time one died."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from chargehand.record.trusted_folders import TrustRegistry
from tests.crash.world import LEDGER, MARK, SEEN, SHAPES, SLOWNESS, Shape, Wire, make_team
from tests.pace import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-crash-0123456789abcdef"
EVENTS = (
    "SELECT seq, at, kind, task, attempt, coalesce(events.body, blobs.body) FROM events "
    "LEFT JOIN blobs ON blobs.hash = events.blob ORDER BY seq"
)
Row = tuple[int, float, str, str | None, int | None, bytes]
Trigger = Callable[[], bool]


def clean_environment(**more: str) -> dict[str, str]:
    """No key, proxy or setting of whoever runs the tests."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **more}


@dataclass(frozen=True)
class Disk:
    """What was on disk and what had been done to the world at one moment."""

    rows: list[Row]
    blobs: dict[str, bytes]
    requests: list[dict[str, str]]
    ledger: list[str]

    @cached_property
    def events(self) -> list[tuple[str, dict[str, Any]]]:
        return [(kind, json.loads(body)) for _, _, kind, _, _, body in self.rows]

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each call was made, as those who were called counted: by mark, or as the ledger has it."""
        return Counter([*(request["mark"] for request in self.requests), *self.ledger])

    @cached_property
    def names(self) -> dict[str, str]:
        """key -> what `counts` calls it; for a model call that is known once it was answered."""
        names: dict[str, str] = {}
        for kind, data in self.events:
            if kind == "tool_called":
                names[data["key"]] = f"{data['tool']} {data['arguments']['what']}"
            elif kind == "model_replied":
                (names[data["key"]],) = MARK.findall(data["result"]["reply"]["text"])
        return names

    @cached_property
    def committed(self) -> set[str]:
        return {data["key"] for kind, data in self.events if kind in ("model_replied", "tool_returned")}

    @cached_property
    def in_flight(self) -> dict[str, dict[str, Any]]:
        called = {data["key"]: data for kind, data in self.events if kind in ("model_called", "tool_called")}
        return {key: data for key, data in called.items() if key not in self.committed}

    @property
    def phase(self) -> str:
        """Where the run was: with whose call in flight, or between calls."""
        keys = self.in_flight
        if not self.rows:
            return "before"
        if not keys:
            return "between"
        return "planning" if "@plan/1" in keys else "synthesis" if any(k.startswith("@") for k in keys) else "work"


class Victim:
    """A chargehand process. Its pidfd says when it has ended, and nobody else can get its pid before `wait`."""

    def __init__(self, stage: Stage, pid: int, out: Path, err: Path) -> None:
        self.pid = pid
        self._stage = stage
        self._handle = os.pidfd_open(pid)
        self._out, self._err = out, err
        self._code: int | None = None

    def ended(self, within: float) -> bool:
        return self._code is not None or bool(select.select([self._handle], [], [], within)[0])

    def lives_until(self, trigger: Trigger) -> bool:
        """True when the trigger came, False when the process ended before."""
        limit = time.monotonic() + PATIENCE_S
        while not trigger():
            if self.ended(0.001):
                return False
            assert time.monotonic() < limit, f"neither ended nor got there: {self.err}"
        return True

    def kill(self) -> int:
        signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        return self.wait()

    def wait(self) -> int:
        """The exit code; -9 when it was killed."""
        assert self.ended(PATIENCE_S), f"still running: {self.err}"
        if self._code is None:
            self._code = self._stage.ask({"wait": self.pid})
            os.close(self._handle)
        return self._code

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()


class Stage:
    """The provider and the parent of all victims, each a process of its own."""

    def __init__(self, folder: Path, provider: subprocess.Popen[str], parent: subprocess.Popen[str]) -> None:
        assert provider.stdout
        assert parent.stdout
        self.folder = folder
        self.team = make_team(folder / "team")
        self.seen = folder / "seen.jsonl"
        self.url = f"http://127.0.0.1:{int(provider.stdout.readline())}"
        self._parent = parent
        assert parent.stdout.readline() == "warm\n"
        self._cases = 0

    def ask(self, job: dict[str, Any]) -> int:
        assert self._parent.stdin
        assert self._parent.stdout
        self._parent.stdin.write(json.dumps(job) + "\n")
        self._parent.stdin.flush()
        return int(self._parent.stdout.readline())

    def case(self, shape: str, wire: Wire, *, given: bool) -> Case:
        self._cases += 1
        folder = self.folder / f"case-{self._cases}"
        folder.mkdir()
        return Case(self, folder, shape, wire, given)


@contextmanager
def staged(folder: Path, slowness: float = 1.0) -> Iterator[Stage]:
    """Both processes end with the block: the one by its closed stdin, the other by a signal."""
    (folder / "seen.jsonl").touch()
    environment = clean_environment(**{SEEN: str(folder / "seen.jsonl"), SLOWNESS: str(slowness)})
    python = (sys.executable, "-m")
    options: dict[str, Any] = {"env": environment, "cwd": folder, "text": True, "stdout": subprocess.PIPE}
    with (
        subprocess.Popen([*python, "tests.loopback", "--handler", "tests.crash.world:answer"], **options) as provider,
        subprocess.Popen([*python, "tests.crash.victims"], stdin=subprocess.PIPE, **options) as parent,
    ):
        try:
            yield Stage(folder, provider, parent)
        finally:
            provider.terminate()


@dataclass
class Case:
    """One run in a home of its own, through all its lives."""

    stage: Stage
    folder: Path
    shape: str
    wire: Wire
    given: bool
    lives: int = 0
    _requests: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    _read_to: int = 0

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        TrustRegistry(str(self.home)).trust(self.stage.team)
        self._read_to = self.stage.seen.stat().st_size

    def begin(self) -> Victim:
        shape: Shape = SHAPES[self.shape]
        args = ["run", f"Do all of shape {self.shape}", "--team", str(self.stage.team), "--json"]
        args += ["--model", f"{self.wire}:crash-model"]
        if shape.tokens is not None:
            args += ["--tokens", str(shape.tokens), "--max-concurrent", "2"]
        if self.given:
            plan = self.folder / "plan.json"
            plan.write_text(json.dumps(shape.plan()))
            args += ["--plan", str(plan)]
        return self.start(*args)

    def resume(self) -> Victim:
        return self.start("resume", "last", "--json")

    def start(self, *args: str) -> Victim:
        self.lives += 1
        out, err = self.folder / f"out-{self.lives}", self.folder / f"err-{self.lives}"
        environment = {
            "CHARGEHAND_HOME": str(self.home),
            LEDGER: str(self.folder / "ledger"),
            "OPENAI_API_KEY": KEY,
            "ANTHROPIC_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{self.stage.url}/v1",
            "ANTHROPIC_BASE_URL": self.stage.url,
        }
        job = {"args": args, "env": environment, "cwd": str(self.folder), "out": str(out), "err": str(err)}
        return Victim(self.stage, self.stage.ask(job), out, err)

    @property
    def record(self) -> Path | None:
        """The newest run's file: one that died before its first event may lie beside it."""
        return max(self.home.glob("runs/*.sqlite"), key=lambda path: path.stat().st_mtime_ns, default=None)

    def seq(self) -> int:
        """How many events can be read now; a record in the making counts as empty."""
        if (record := self.record) is None:
            return 0
        with closing(sqlite3.connect(f"{record.as_uri()}?mode=ro", uri=True)) as database:
            try:
                return database.execute("SELECT count(*) FROM events").fetchone()[0]
            except sqlite3.OperationalError:
                return 0

    def requests(self) -> list[dict[str, str]]:
        """What the provider saw of this run so far."""
        with self.stage.seen.open("rb") as log:
            log.seek(self._read_to)
            new = log.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read_to += len(whole)
        self._requests += [json.loads(line) for line in whole.splitlines()]
        run = self.record.stem if self.record else ""
        return [request for request in self._requests if request["run"] == run]

    def disk(self) -> Disk:
        """What is on disk, read from a copy: opening the record itself would repair what the dead left."""
        rows: list[Row] = []
        blobs: dict[str, bytes] = {}
        if (record := self.record) is not None:
            copy = Path(tempfile.mkdtemp(dir=self.folder))
            for file in record.parent.glob(f"{record.name}*"):
                shutil.copy(file, copy)
            with closing(sqlite3.connect(copy / record.name)) as database:
                if database.execute("PRAGMA user_version").fetchone() != (0,):
                    rows = database.execute(EVENTS).fetchall()
                    blobs = dict(database.execute("SELECT hash, body FROM blobs").fetchall())
        ledger = self.folder / "ledger"
        return Disk(rows, blobs, self.requests(), ledger.read_text().splitlines() if ledger.exists() else [])
