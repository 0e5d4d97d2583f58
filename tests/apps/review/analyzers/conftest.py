"""The corpus is read, never collected or imported; it is analysed once for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chargehand.apps.review.analyzers import reused_child
from tests.apps.review.analyzers.corpus_run import CorpusRun, run_corpus

collect_ignore = ["corpus"]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> CorpusRun:
    return run_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def anew() -> Iterator[None]:
    """No child stands by from before, and none is left behind for who comes after."""
    reused_child.end()
    yield
    reused_child.end()
