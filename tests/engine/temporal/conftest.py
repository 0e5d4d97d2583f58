"""One development server for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.temporal.fleet import Server, free_port


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("temporal") / "server.db", free_port())
    server.start()
    yield server
    server.kill()
