"""The corpus is read, never collected or imported; it is analysed once for all tests."""

from __future__ import annotations

import pytest

from tests.analyzers.corpus_run import CorpusRun, run_corpus

collect_ignore = ["corpus"]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> CorpusRun:
    return run_corpus(tmp_path_factory.mktemp("corpus"))
