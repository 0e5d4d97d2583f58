"""One server over a home with one finished run, for tests that only read."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.server.serving import Client, make_supervisor, serving


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def run(home: Path) -> str:
    """The id of a run that is complete."""
    # In a thread: a browser that is open has an event loop in this one.
    with ThreadPoolExecutor(1) as thread:
        report = thread.submit(make_supervisor(home).run_sync, "Do both parts").result()
    assert report.status == "complete", report.answer
    return report.run


@pytest.fixture(scope="module")
def client(home: Path, run: str) -> Iterator[Client]:
    with serving(make_supervisor(home), allow_hosts=("runs.example.com",)) as client:
        yield client
