"""`chargehand serve` as a process: TLS, a path behind a proxy, its log, a browser, a full disk, hostile clients."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor
from chargehand.server.http_calls import LARGEST_BODY
from chargehand.server.run_list import RunList, RunsQuery
from tests.counts import count
from tests.crash.stage import ROOT, clean_environment
from tests.pace import PATIENCE_S, slowness
from tests.server.server_process import server_process
from tests.server.serving import ANSWERS, PLAN, TOKEN, Client, make_supervisor, serving

# As the team that ships has its workers.
PLANS = {"when": {"role": "planner"}, "reply": {"json": json.loads(json.dumps(PLAN).replace('"w"', '"analyst"'))}}
SCRIPT: dict[str, Any] = {"replies": [PLANS, *ANSWERS[1:]]}
RUNS = "/api/v1/runs"
# What differs between two runs of the same script.
TIMES = {"run", "timing", "seconds", "waiting_s"}
# What an install without extras does not have.
EXTRAS = ("anyio", "starlette", "uvicorn", "uvloop", "duckdb", "coverage", "bandit", "hypothesis", "xllamacpp")


def test_it_answers_over_tls_with_a_certificate(tmp_path: Path) -> None:
    """The address it prints is https, the certificate is checked by the client, the cookie is secure."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 "
        f"-keyout {key} -out {cert}".split(),
        check=True,
        capture_output=True,
    )
    with server_process(tmp_path, SCRIPT, "--cert", str(cert), "--key", str(key)) as server:
        assert f"https://127.0.0.1:{server.port}/" in server.log
        trusted = ssl.create_default_context(cafile=str(cert))
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE_S, context=trusted)
        connection.request("GET", f"/?token={TOKEN}")
        answer = connection.getresponse()
        assert (answer.status, "Secure" in (answer.getheader("set-cookie") or "")) == (303, True)
        connection.close()


@pytest.mark.parametrize("sent", ["", "/team/chargehand"])
def test_behind_a_proxy_all_addresses_are_below_its_path(tmp_path: Path, sent: str) -> None:
    """Whether the proxy takes the path away or leaves it."""
    with serving(make_supervisor(tmp_path), root_path="/team/chargehand") as client:
        assert client.server.url.endswith("/team/chargehand/")
        page = client.get(f"{sent}/").body.decode()
        assert 'data-root="/team/chargehand"' in page
        assert 'src="/team/chargehand/page/main.js"' in page
        assert client.get(f"{sent}/page/main.js").status == 200
        assert client.get(f"{sent}{RUNS}").json == {"runs": [], "next": None}
        session = client.send("GET", f"{sent}/?token={TOKEN}", token=None)
        assert session.headers["location"] == "/team/chargehand/"
        assert "Path=/team/chargehand" in session.headers["set-cookie"]


@pytest.mark.slow
def test_it_opens_a_browser_and_logs_json_without_secrets(tmp_path: Path) -> None:
    """`--open` opens the address with the token once the server listens; SIGTERM ends it with exit code 0."""
    opened = tmp_path / "opened.txt"
    program = tmp_path / "bin" / "xdg-open"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    program.chmod(0o755)
    path = f"{program.parent}:{clean_environment()['PATH']}"
    with server_process(tmp_path, SCRIPT, "--open", "--log", "json", PATH=path) as server:
        run = server.client.start(request="Do both parts, my key is sk-ant-REDACTED")
        server.client.wait(run)
        assert server.process is not None
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_S) == 0
        assert opened.read_text().strip() == f"http://127.0.0.1:{server.port}/?token={TOKEN}"
        opening, address, *lines = server.log.splitlines()
    assert (address, TOKEN in opening) == (f"Programs use http://127.0.0.1:{server.port}/ with the token.", True)
    logged = [json.loads(line) for line in lines]
    assert {"at", "event"} <= logged[0].keys()
    assert {"method": "POST", "path": RUNS, "status": 202}.items() <= next(
        each for each in logged if each["event"] == "request"
    ).items()
    assert [each["status"] for each in logged if each["event"] == "run"] == ["begins", "complete"]
    assert TOKEN not in "".join(lines)
    assert "sk-ant" not in "".join(lines)


@pytest.mark.slow
def test_an_idle_server_is_small(tmp_path: Path) -> None:
    """After a run and a look at the list it has less than 80 MB of memory."""
    with server_process(tmp_path, SCRIPT) as server:
        server.client.wait(server.client.start())
        assert server.client.get(RUNS).status == 200
        assert server.process is not None
        status = Path(f"/proc/{server.process.pid}/status").read_text()
    (used,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    assert used < 80 * 1024, f"{used} kB"


def test_what_the_first_run_needs_is_loaded_before_the_first_answer(tmp_path: Path) -> None:
    """Each name is there, or the first caller would wait; the client of providers, which is large, is not loaded."""
    code = (
        "import sys; from chargehand.server.run_server import FIRST_NEEDED, load_for_first_run; load_for_first_run(); "
        "print({*FIRST_NEEDED} <= {*sys.modules}, 'aiohttp' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ended.stdout.split() == ["True", "False"]


@pytest.mark.slow
def test_the_list_of_many_runs_is_quick_after_a_run_ended(tmp_path: Path) -> None:
    """The list of 10,000 runs takes the processor less than 50 ms, also right after it has changed."""
    supervisor = make_supervisor(tmp_path)
    first = supervisor.run_sync("Do both parts").run
    records = tmp_path / "runs"
    for number in range(count(10_000) - 1):
        # Another name of the same file: the id of a run is the name of its record.
        os.link(records / f"{first}.sqlite", records / f"20260101-{number:06}-aaaa.sqlite")
    runs = RunList(supervisor.home)
    assert len(runs.load()) == count(10_000)
    took: list[float] = []
    for _ in range(5):
        run = supervisor.run_sync("Do both parts").run
        began = time.process_time()
        (newest, *_), more = runs.find(RunsQuery())
        took.append((time.process_time() - began) / slowness(time.process_time))
        assert (newest.run, more) == (run, True)
    assert min(took) < 0.05


@pytest.mark.slow
def test_the_report_is_the_same_from_the_command_line_over_http_and_from_python(tmp_path: Path) -> None:
    """All of it, but for the run's id, times, and what only a reader of a stored run is given."""
    with server_process(tmp_path, SCRIPT) as server:
        run = server.client.start()
        server.client.wait(run)
        over_http = server.client.get(f"{RUNS}/{run}").json
        command = [sys.executable, "-m", "chargehand", "run", "Do both parts", "--json"]
        ended = subprocess.run(command, env=server.environment, cwd=tmp_path, capture_output=True, check=True)
    model = f"scripted:{tmp_path / 'script.json'}"
    from_python = Supervisor(model=model, home=tmp_path / "other").run_sync("Do both parts").to_json()
    reports = [
        _without_times(each) for each in (over_http, json.loads(ended.stdout), json.loads(json.dumps(from_python)))
    ]
    assert reports[0].pop("questions") == []
    assert reports[0] == reports[1] == reports[2]
    assert (reports[0]["status"], reports[0]["answer"]) == ("complete", "All is done [a] [b].")


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_times(each) for name, each in value.items() if name not in TIMES}
    return [_without_times(each) for each in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_a_full_disk_is_a_problem_not_an_error(tmp_path: Path) -> None:
    """507 for what has to be written; what is only read is still answered."""
    with server_process(tmp_path, SCRIPT, most_bytes=200_000) as server:
        material = [{"name": "large.txt", "content": "x" * 400_000}]
        answer = server.client.post(RUNS, {"request": "Do both parts", "material": material})
        assert (answer.status, answer.headers["content-type"]) == (507, "application/problem+json")
        assert "large.txt" in answer.json["detail"]
        assert server.client.get(RUNS).json["runs"] == []
        assert "error" not in {line.split()[1] for line in server.log.splitlines() if line.startswith("20")}


@pytest.mark.slow
def test_a_watcher_that_never_reads_keeps_nobody_waiting(tmp_path: Path) -> None:
    """It asks for a stream over a socket and does not read: others get every event, and it is forgotten once gone."""
    output = {"json": {"summary": "s", "output": "x" * 200_000, "claims": []}}
    large = [PLANS, {"when": {"role": "worker"}, "reply": output}, ANSWERS[2]]
    with server_process(tmp_path, {"replies": large}) as server:
        run = server.client.start()
        server.client.wait(run)
        stuck = socket.socket()
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.connect(("127.0.0.1", server.port))
        head = f"GET {RUNS}/{run}/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        stuck.sendall(head.encode())
        last = server.client.wait(run)["seq"]
        assert [event["seq"] for event in _lines(server.client, run)] == list(range(1, last + 1))
        assert "chargehand_watchers 1" in _metrics(server.client)
        stuck.close()
        assert any("chargehand_watchers 0" in _metrics(server.client) for _ in range(1_000))


def test_no_connection_is_left_open_when_the_server_stops(tmp_path: Path) -> None:
    """A browser keeps connections for its next request, and a stream of events has no end of its own."""
    with serving(make_supervisor(tmp_path)) as client:
        kept = [http.client.HTTPConnection("127.0.0.1", client.port, timeout=PATIENCE_S) for _ in range(3)]
        for connection in kept:
            connection.request("GET", RUNS, headers={"authorization": f"Bearer {TOKEN}"})
            assert connection.getresponse().read()
        run = client.start(approve=True)
        kept[0].request("GET", f"{RUNS}/{run}/stream", headers={"authorization": f"Bearer {TOKEN}"})
        assert kept[0].getresponse().status == 200
    assert all(_is_ended(connection.sock) for connection in kept)
    for connection in kept:
        connection.close()


def _is_ended(sock: socket.socket) -> bool:
    try:
        while sock.recv(1 << 16):
            pass
    except ConnectionResetError:
        return True
    return True


def test_a_body_in_chunks_is_refused_when_it_grows_too_large(tmp_path: Path) -> None:
    """Its length is not known before: it is not read to its end."""

    def chunks() -> Iterator[bytes]:
        yield b'{"request": "'
        for _ in range(LARGEST_BODY // 2**20 + 1):
            yield b"x" * 2**20

    with serving(make_supervisor(tmp_path)) as client:
        connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=PATIENCE_S)
        connection.request("POST", RUNS, chunks(), {"authorization": f"Bearer {TOKEN}"}, encode_chunked=True)
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["status"]) == (413, 413)
        connection.close()


def test_an_index_of_a_newer_version_does_not_hide_the_runs(tmp_path: Path) -> None:
    """It is a copy of what the records say, and is made again."""
    import sqlite3

    run = make_supervisor(tmp_path).run_sync("Do both parts").run
    (index,) = tmp_path.glob("*.sqlite")
    with sqlite3.connect(index) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.execute("DROP TABLE runs")
    with serving(make_supervisor(tmp_path)) as client:
        assert [each["run"] for each in client.get(RUNS).json["runs"]] == [run]


def test_without_the_extra_it_says_how_to_install_it(tmp_path: Path) -> None:
    """Exit code 2 and one line."""
    ended = _without_extras(tmp_path, ["serve"])
    assert ended.returncode == 2
    assert "pip install 'chargehand[serve]'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_page_is_exported_without_any_extra(tmp_path: Path) -> None:
    """`trace last --format html` gives the page that the server shows."""
    make_supervisor(tmp_path / "home").run_sync("Do both parts")
    ended = _without_extras(tmp_path, ["trace", "last", "--format", "html", "--output", "-"])
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("<!doctype html>")
    assert "All is done" in ended.stdout


def _without_extras(folder: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    blocked = "".join(f"sys.modules[{name!r}] = None; " for name in EXTRAS)
    command = f"import sys; {blocked}from chargehand.cli import main; main({arguments!r})"
    environment = clean_environment(CHARGEHAND_HOME=str(folder / "home"), HOME=str(folder))
    return subprocess.run(
        [sys.executable, "-c", command], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )


def _lines(client: Client, run: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in client.get(f"{RUNS}/{run}/events").body.splitlines()]


def _metrics(client: Client) -> str:
    return client.get("/metrics").body.decode()
