"""The weaker token: its own runs, within the default budget, and nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chargehand.server.begin_runs import MaterialFile, ReviewRequest, StartRun, begin_review, begin_run
from chargehand.server.client_runs import find_run_of, refuse_client
from chargehand.server.refusals import Refusal
from chargehand.server.run_server import ServeOptions, make_server
from chargehand.server.shared_state import Server
from tests.server.serving import TOKEN, make_supervisor

PATCH = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"


@asynccontextmanager
async def _server(home: Path) -> AsyncGenerator[Server]:
    server = make_server(make_supervisor(home), ServeOptions(), TOKEN, 0)
    try:
        yield server
    finally:
        await server.stop()
        server.reading.close()


def test_a_client_uses_its_own_runs_only(tmp_path: Path) -> None:
    """By their whole id, also after a restart; to the owner all are there. A review is a run as any other."""

    async def use() -> None:
        async with _server(tmp_path) as server:
            body = StartRun(request="Do both parts", material=[MaterialFile(name="client", content="x")])
            others = await begin_run(server, "owner", body)
            own = await begin_run(server, "client", StartRun(request="Do both parts"))
            review = await begin_review(
                server, "client", ReviewRequest(patch="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
            )
        async with _server(tmp_path) as server:
            for run in (own, review):
                assert await find_run_of(server, "client", run) == run
                assert await find_run_of(server, "owner", run[:-1]) == run
            for name in (others, "last", own[:-1], "", "..", f"../runs/{own}", "x\x00", "é", "a" * 81):
                with pytest.raises(Refusal) as refused:
                    await find_run_of(server, "client", name)
                assert refused.value.status == 404

    asyncio.run(use())


def test_a_client_follows_up_on_its_own_runs_only(tmp_path: Path) -> None:
    """The answer of another run would be in the prompt of the new one."""

    async def use() -> None:
        async with _server(tmp_path) as server:
            others = await begin_run(server, "owner", StartRun(request="Do both parts"))
            with pytest.raises(Refusal) as refused:
                await begin_run(server, "client", StartRun(request="Do both parts", follow_up=others))
            assert refused.value.status == 404

    asyncio.run(use())


def test_a_client_spends_at_most_the_default_budget(tmp_path: Path) -> None:
    """More is refused before anything begins and leaves nothing; less is taken. The owner may spend what he likes."""

    async def use() -> None:
        async with _server(tmp_path) as server:
            most = server.supervisor.team_settings().budget.tokens
            assert most is not None
            with pytest.raises(Refusal) as refused:
                await begin_run(server, "client", StartRun(request="Do both parts", tokens=most + 1))
            assert refused.value.status == 403
            assert not list((tmp_path / "runs").glob("*"))
            for caller, tokens in (("client", most), ("client", 20_000), ("owner", most + 1)):
                assert await begin_run(server, caller, StartRun(request="Do both parts", tokens=tokens))  # pyright: ignore[reportArgumentType]

    asyncio.run(use())


def test_only_the_owner_answers() -> None:
    """One function says so for every surface."""
    refuse_client("owner", "answer")
    with pytest.raises(Refusal) as refused:
        refuse_client("client", "answer")
    assert refused.value.status == 403
