"""Twenty kinds of provider fault times twenty-five seeds over real HTTP: every run ends, complete or with its gaps.

That many seeds in a soak, a tenth of them else.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.testing import ScriptedModel
from chargehand.values.report import Report
from tests.counts import SOAK, count
from tests.faults.world import KINDS, FastLoop, Played, World
from tests.pace import PATIENCE_S

BASE = os.environ.get("CHARGEHAND_SEED", "1")
SEEDS = count(25)


@pytest.fixture(scope="session")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A server nobody has a reason to trust."""
    folder: Path = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


@pytest.fixture
def no_name_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that never exist are known not to without asking the network, which would take its time to say so."""
    known = socket.getaddrinfo

    def look_up(host: Any, *args: Any, **options: Any) -> Any:
        if str(host).endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@pytest.mark.usefixtures("no_name_server")
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_gets_over_a_fault_or_says_what_is_missing(kind: str, self_signed: ssl.SSLContext) -> None:
    """No hang, no call beyond the retries, nothing complete that is not, no secret told; resuming changes nothing."""
    worlds = [World(kind, f"{BASE}-{number}") for number in range(SEEDS)]

    async def main() -> list[Played]:
        return await asyncio.gather(*(world.play(self_signed if kind == "tls" else None) for world in worlds))

    with asyncio.Runner(loop_factory=FastLoop) as runner:
        runs = runner.run(main())
    for played in runs:
        try:
            played.check()
        except AssertionError as error:
            error.add_note(f"World({played.world.kind!r}, {played.world.seed!r})")
            raise
    assert any(world.faults or world.out_of_reach for world in worlds), "there was no fault"
    if SOAK:  # of few runs all may end the same way
        statuses = {played.report.status for played in runs}
        assert "partial" in statuses or "failed" in statuses or kind == "wrong_id", "no fault was felt"
        assert "complete" in statuses or "partial" in statuses, "no run got anywhere"


def test_a_program_that_ends_with_a_run_under_way_does_not_hang(tmp_path: Path) -> None:
    """A loop that shuts down cancels the run and what writes its record at the same moment: nobody waits for ever."""
    model = ScriptedModel([{"delay_ms": 60_000, "reply": {"text": "late"}}])
    supervisor = Supervisor(Team([Worker("ann", "Writes")]), model=model, home=tmp_path)
    under_way: list[asyncio.Task[Report]] = []

    async def main() -> None:
        under_way.append(asyncio.create_task(supervisor.run("Write it")))
        async with asyncio.timeout(PATIENCE_S):
            while not model.calls:  # noqa: ASYNC110 -- the model is asked in its own time
                await asyncio.sleep(0.01)

    asyncio.run(main())
    assert supervisor.report("last").status == "interrupted"
