"""A home that is nobody's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is kept from run to run is kept there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHARGEHAND_HOME", str(tmp_path_factory.mktemp("home")))
        yield
