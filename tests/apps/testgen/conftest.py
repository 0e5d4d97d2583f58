"""A home that is nobody's own, and a sandbox without the slowest plugins of our own tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from chargehand.apps.testgen.sandbox_command import environment


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is kept from run to run is kept there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHARGEHAND_HOME", str(tmp_path_factory.mktemp("home")))
        yield


# pytest loads them by itself where they are installed, which takes longer than the rest of its start. The tests that
# start testgen as a process of its own have them.
LEFT_OUT = "-p no:randomly -p no:schemathesis"


@pytest.fixture(scope="session", autouse=True)
def fewer_plugins() -> Iterator[None]:
    def without(scratch: Path, paths: Sequence[str]) -> dict[str, str]:
        return {**environment(scratch, paths), "PYTEST_ADDOPTS": LEFT_OUT}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chargehand.apps.testgen.sandbox.environment", without)
        yield
