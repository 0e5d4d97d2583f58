"""A real server on loopback in a thread, and a client that speaks plain HTTP to it."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chargehand import Supervisor, Team, Worker
from chargehand.models import ModelClient
from chargehand.server.log_lines import LogLines
from chargehand.server.run_server import ServeOptions, listen, make_server, run_server
from chargehand.server.shared_state import Server
from chargehand.testing import ScriptedModel
from tests.pace import PATIENCE_S

TOKEN = "t0ken-of-the-owner-of-this-home"
CLIENT_TOKEN = "t0ken-of-a-weaker-client-of-it"
PLAN = {
    "goal": "Two parts",
    "tasks": [
        {"id": "a", "worker": "w", "instruction": "Do the first part", "success_criterion": "It is done."},
        {"id": "b", "worker": "w", "instruction": "Do the other part", "success_criterion": "It is done."},
    ],
}
ANSWERS: list[dict[str, Any]] = [
    {"when": {"role": "planner"}, "reply": {"json": PLAN}},
    {"when": {"role": "worker"}, "reply": {"json": {"summary": "s", "output": "the part is done", "claims": []}}},
    {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "All is done [a] [b].", "confidence": 80}}},
]


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """Speaks to one server; by the owner's token unless told otherwise."""

    port: int
    server: Server
    log: io.StringIO = field(default_factory=io.StringIO)

    def send(self, method: str, path: str, body: Any = None, token: str | None = TOKEN, **headers: str) -> Answer:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            given.setdefault("authorization", f"Bearer {token}")
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, data, given)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.send("POST", path, {} if body is None else body, **headers)

    def start(self, **body: Any) -> str:
        """The id of a run that was started."""
        answer = self.post("/api/v1/runs", {"request": "Do both parts", **body})
        assert answer.status == 202, answer.body
        return answer.json["run"]

    def wait(self, run: str, after: int = 0) -> dict[str, Any]:
        """The event that ends the run, or its session, after that number."""
        with self.stream(f"/api/v1/runs/{run}/stream?after={after}") as events:
            for event in events:
                found = json.loads(event["data"])
                if found["kind"] == "run_ended":
                    return found
        raise AssertionError(f"the stream of {run} ended before the run")

    @contextmanager
    def stream(self, path: str, **headers: str) -> Generator[Iterator[dict[str, str]]]:
        """The server-sent events of a stream, comments left out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        answer: http.client.HTTPResponse | None = None
        try:
            connection.request("GET", path, headers={"authorization": f"Bearer {TOKEN}", **given})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            yield _events(answer)
        finally:
            # Closing reads to the end of the answer, which has none.
            if answer is not None and answer.fp is not None and (sock := connection.sock) is not None:
                sock.close()
            connection.close()


def _events(answer: http.client.HTTPResponse) -> Iterator[dict[str, str]]:
    event: dict[str, str] = {}
    while line := answer.readline():
        text = line.decode().rstrip("\n")
        if text and not text.startswith(":"):
            name, _, value = text.partition(": ")
            event[name] = value
        elif not text and event:
            yield event
            event = {}


def make_supervisor(home: Path, model: ModelClient | None = None) -> Supervisor:
    return Supervisor(Team([Worker("w", "Works")]), model=model or ScriptedModel(ANSWERS), home=home)


@contextmanager
def serving(supervisor: Supervisor, **options: Any) -> Generator[Client]:
    """A server over a supervisor's home, until the end of the block."""
    chosen = ServeOptions(port=0, token=TOKEN, client_token=CLIENT_TOKEN, **options)
    listening = listen(chosen)
    port = listening.getsockname()[1]
    server = make_server(supervisor, chosen, TOKEN, port)
    client = Client(port, server)
    server.log = LogLines("text", server.redactor, client.log)
    loop = asyncio.new_event_loop()
    work = loop.create_task(run_server(server, chosen, listening))
    thread = threading.Thread(target=_run, args=(loop, work), name="server", daemon=True)
    thread.start()
    try:
        yield client
    finally:
        loop.call_soon_threadsafe(work.cancel)
        thread.join(PATIENCE_S)
        listening.close()
        assert not thread.is_alive(), "the server did not stop"


def _run(loop: asyncio.AbstractEventLoop, work: asyncio.Task[None]) -> None:
    try:
        loop.run_until_complete(asyncio.gather(work, return_exceptions=True))
        loop.run_until_complete(_cancel_others())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


async def _cancel_others() -> None:
    """Libraries leave tasks behind, which end with the loop."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
