"""kill -9 of a server at random moments: every run that was promised ends, nothing committed is done again."""

from __future__ import annotations

import json
import random
import threading
import time
from http.client import HTTPException
from pathlib import Path

from chargehand.record.home import Home
from tests.counts import count
from tests.pace import PATIENCE_S
from tests.server.server_process import ServerProcess, server_process

KILLS = count(50)
RUNS_A_KILL = 5
WORKERS = 3
PLAN = {
    "goal": "Parts",
    "tasks": [
        {"id": f"t{n}", "worker": "analyst", "instruction": f"Work out part {n}.", "success_criterion": "There is one."}
        for n in range(WORKERS)
    ],
}
SCRIPT = {
    "replies": [
        {"when": {"role": "worker"}, "delay_ms": 60, "reply": {"json": {"summary": "s", "output": "It is 42."}}},
        {
            "when": {"role": "synthesizer"},
            "delay_ms": 60,
            "reply": {"json": {"answer": "42 [t0] [t1] [t2].", "confidence": 80}},
        },
    ]
}


class Watcher(threading.Thread):
    """Watches one run over all deaths of the server, as a browser does, until the run is complete."""

    def __init__(self, server: ServerProcess, run: str) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._run = run
        self.seen: list[int] = []
        self.status = ""
        self._news = threading.Condition()

    def wait_for(self, events: int) -> None:
        """Until so many events were seen, so that a kill comes while the run is under way."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.seen) >= events, PATIENCE_S)

    def run(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while self.status != "complete" and time.monotonic() < until:
            try:
                headers = {"last_event_id": str(self.seen[-1])} if self.seen else {}
                with self._server.client.stream(f"/api/v1/runs/{self._run}/stream", **headers) as events:
                    for event in events:
                        with self._news:
                            self.seen.append(int(event["id"]))
                            self._news.notify_all()
                        found = json.loads(event["data"])
                        if found["kind"] == "run_ended":
                            self.status = found["status"]
                        if self.status == "complete":
                            return
            except (OSError, HTTPException, ValueError):
                continue  # it was killed: ask again


def test_promised_runs_survive_every_kill(tmp_path: Path) -> None:
    """Watchers that come back miss nothing and get nothing twice."""
    chance = random.Random(17)
    sessions = 0
    with server_process(tmp_path, SCRIPT) as server:
        for _ in range(KILLS):
            runs = [_start(server, f"Work out the parts, {n}") for n in range(RUNS_A_KILL)]
            watchers = [Watcher(server, run) for run in runs]
            for watcher in watchers:
                watcher.start()
            watchers[0].wait_for(chance.randrange(1, 20))
            server.kill()
            server.start()
            for watcher in watchers:
                watcher.join(PATIENCE_S)
            for run, watcher in zip(runs, watchers, strict=True):
                assert watcher.status == "complete", (run, watcher.status, watcher.seen)
                assert watcher.seen == list(range(1, len(watcher.seen) + 1))
                sessions += _check_nothing_repeated(Home(server.home), run)
    # Else no kill came while a run was under way.
    assert sessions > KILLS * RUNS_A_KILL


def _start(server: ServerProcess, request: str) -> str:
    answer = server.client.post("/api/v1/runs", {"request": request, "plan": PLAN})
    assert answer.status == 202, answer.body
    return answer.json["run"]


def _check_nothing_repeated(home: Home, run: str) -> int:
    """No call is made after its result was committed; the number of sessions it took."""
    committed: set[str] = set()
    sessions = 0
    for event in home.events(run):
        sessions += event.kind == "run_started"
        if event.kind == "model_replied":
            assert event.data["key"] not in committed
            committed.add(event.data["key"])
        elif event.kind == "model_called":
            assert event.data["key"] not in committed
    assert len(committed) > WORKERS
    return sessions
