"""A limit of time for every test, and a shell for each test of a command: its own folder and home, no keys."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.cli.terminal import STARTED, Shell
from tests.counts import SOAK, examples

# Seconds for each of setup, call and teardown. On a quiet machine no test takes more than 15, those of a soak aside.
LIMIT_S = float(os.environ.get("CHARGEHAND_TEST_LIMIT_S", "1800" if SOAK else "180"))
STDERR = pytest.StashKey[int]()
# What `make check` leaves out: these files, most of whose tests start processes or servers, and tests marked `slow`.
SLOW = (
    "tests/apps/testgen/",
    "tests/cli/test_bad_input.py",
    "tests/cli/test_escapes.py",
    "tests/cli/test_life.py",
    "tests/cli/test_live.py",
    "tests/cli/test_people.py",
    "tests/cli/test_review.py",
    "tests/cli/test_review_again.py",
    "tests/cli/test_review_gate.py",
    "tests/cli/test_review_models.py",
    "tests/cli/test_review_names.py",
    "tests/crash/",
    "tests/dispatcher/test_time_limits.py",
    "tests/engine/temporal/test_bad_input_on_temporal.py",
    "tests/engine/temporal/test_both_engines.py",
    "tests/engine/temporal/test_chaos.py",
    "tests/engine/temporal/test_histories.py",
    "tests/engine/temporal/test_orders_on_temporal.py",
    "tests/engine/temporal/test_payloads.py",
    "tests/engine/temporal/test_runs_from_runs.py",
    "tests/engine/temporal/test_runs_on_temporal.py",
    "tests/engine/temporal/test_tls.py",
    "tests/engine/temporal/test_versions.py",
    "tests/faults/",
    "tests/programs/",
    "tests/project/test_docs.py",
    "tests/project/test_limit_of_time.py",
    "tests/project/test_wheel.py",
    "tests/runs/test_after_a_crash.py",
    "tests/runs/test_quota.py",
    "tests/runs/test_send_telemetry.py",
    "tests/server/test_kill.py",
    "tests/server/test_mcp.py",
    "tests/server/test_mcp_restart.py",
    "tests/server/test_openapi.py",
    "tests/server/test_other_clients.py",
    "tests/simulation/",
    "tests/teams/test_golden.py",
    "tests/teams/test_runs.py",
    "tests/tools/test_mcp_client.py",
    "tests/tools/test_other_servers.py",
    "tests/tools/test_query_data.py",
)
# No limit of time for one example, which a busy machine would break; LIMIT_S ends what hangs.
settings.register_profile(
    "test", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(100)
)
settings.load_profile("test")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where slow tests are left out, their files need not be imported."""
    if config.option.markexpr != "not slow":
        return None
    return True if collection_path.relative_to(config.rootpath).as_posix().startswith(SLOW) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")
    if not SOAK:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("soak")])
        items[:] = [item for item in items if not item.get_closest_marker("soak")]


# The limit ends the process, from a thread that needs no lock of Python's: neither a signal that strikes inside of
# somebody's lock nor C code that never returns can make a run hang. xdist names the test and starts another worker.


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STDERR] = os.dup(2)


def _end_after(seconds: float, config: pytest.Config) -> None:
    faulthandler.dump_traceback_later(seconds, exit=True, file=config.stash[STDERR])


def _limited(item: pytest.Item) -> Generator[None, object, object]:
    _end_after(LIMIT_S, item.config)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _limited(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _limited(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _limited(item))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """From here it is reports and the end of the process, which a thread left behind would put off for ever."""
    _end_after(5 * LIMIT_S, session.config)


def pytest_enter_pdb() -> None:
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    for child in STARTED:
        if child.poll() is None:
            child.kill()
            child.wait()
    STARTED.clear()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "CHARGEHAND_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CHARGEHAND_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, monkeypatch, capsys)
