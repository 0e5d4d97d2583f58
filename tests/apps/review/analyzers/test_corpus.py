"""The labelled corpus: what is found, what is not, and what a tool alone would do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chargehand.apps.review.analyzers import LENSES
from chargehand.apps.review.analyzers.categories import CATEGORIES
from chargehand.synthesizer.merge_duplicates import merge_findings
from chargehand.values.outcome import Finding
from tests.apps.review.analyzers.corpus_run import THRESHOLD, CorpusRun

# What is measured, less a small margin; the corpus holds defects that no rule knows and good code that rules dislike.
FLOORS = {
    "security": (0.90, 0.88),
    "bugs": (0.95, 0.85),
    "performance": (0.90, 0.80),
    "style": (0.90, 0.90),
    "history": (1.0, 1.0),
    "comments": (0.90, 0.90),
    "tests": (0.90, 0.90),
    "shape": (0.90, 0.90),
}


def test_the_corpus_is_large_enough_and_its_labels_point_somewhere(corpus: CorpusRun) -> None:
    """At least 60 files, every label on a line that exists with a known category, and defects in every lens."""
    assert len(corpus.files) >= 60
    assert {label.lens for label in corpus.labels} == set(LENSES)
    for label in corpus.labels:
        assert label.category in CATEGORIES
        assert label.line <= len((corpus.root / label.file).read_bytes().split(b"\n"))


@pytest.mark.parametrize("lens", FLOORS)
def test_a_lens_finds_what_is_planted_and_little_else(corpus: CorpusRun, lens: str) -> None:
    """Precision and recall at the default threshold stay above their floors."""
    score = corpus.score(lens)
    precision, recall = FLOORS[lens]
    assert score.precision >= precision, score
    assert score.recall >= recall, score


def test_together_they_beat_bandit_alone(corpus: CorpusRun) -> None:
    """F1 over the whole corpus, and over the security labels alone, is better than that of bandit by itself."""
    places = _bandit(corpus.root)
    assert places
    assert corpus.score().f1 > corpus.score_of_others(places, tuple(LENSES)).f1
    assert corpus.score("security").f1 > corpus.score_of_others(places, ("security",)).f1


@pytest.mark.parametrize("rules", [[], ["--select", "F,B,E9,PLE,RUF,S,PERF,N,SIM,C90"]], ids=["default", "families"])
def test_together_they_beat_ruff_alone(corpus: CorpusRun, rules: list[str]) -> None:
    """F1 is better than that of ruff with its default rules, and with all families that the lenses use."""
    places = _ruff(corpus.root, rules)
    assert places
    assert corpus.score().f1 > corpus.score_of_others(places, tuple(LENSES)).f1
    assert corpus.score("bugs").f1 > corpus.score_of_others(places, ("bugs",)).f1


def test_no_finding_is_reported_twice(corpus: CorpusRun) -> None:
    """After merging there is one finding for each place and category, though bandit, ruff and the secrets overlap."""
    found = [finding for _, finding in corpus.findings]
    merged = merge_findings(found)
    places = [(finding.path, finding.line, finding.category) for finding in merged]
    assert len(places) < len(found)
    assert sorted(places, key=repr) == sorted(set(places), key=repr)


@pytest.mark.slow
def test_confidence_follows_precision(corpus: CorpusRun) -> None:
    """What is at 90 is right at least 9 times of 10, at 80 at least 8 times, and below 80 less often than above."""
    assert _precision(corpus, 90, 100) >= 0.9
    assert _precision(corpus, 80, 89) >= 0.8
    assert _precision(corpus, 0, 79) < 0.5
    assert _precision(corpus, 0, 49) <= _precision(corpus, 50, 79)


def test_most_true_findings_are_above_the_threshold(corpus: CorpusRun) -> None:
    """Of the planted defects that any rule sees, at least nine of ten are reported by default."""
    seen = [
        label for label in corpus.labels if any(_says(label.category, f) and label.is_at(f) for _, f in corpus.findings)
    ]
    told = [label for label in seen if any(_says(label.category, f) and label.is_at(f) for _, f in corpus.reported)]
    assert len(told) >= 0.9 * len(seen)


@pytest.mark.slow
def test_near_misses_are_not_reported(corpus: CorpusRun) -> None:
    """What is fine stays below the threshold: files closed by other means than `with`, SQL of placeholders."""
    fine = {path for path in corpus.files if "_fine." in path}
    assert len(fine) > 20
    wrong = [f for _, f in corpus.reported if f.path in fine and not corpus.is_right(f)]
    assert [(f.path, f.line, f.category) for f in wrong] == []


@pytest.mark.parametrize("file", ["bugs/leaking.py", "security/sql_format.py"])
def test_shapes_that_look_like_near_misses_are_reported(corpus: CorpusRun, file: str) -> None:
    """Every file that nobody can close, and all SQL of names that only look constant: none is left to the floors."""
    told = {finding.line for _, finding in corpus.reported if finding.path == file}
    assert {label.line for label in corpus.labels if label.file == file} <= told


def test_suppressed_lines_are_not_reported(corpus: CorpusRun) -> None:
    """`noqa` and `nosec`, whichever tool they were written for, silence both; one for another rule silences nothing."""
    reported = {finding.path for _, finding in corpus.reported}
    assert not {path for path in reported if path and path.endswith("/suppressed.py")}
    assert "security/wrong_suppression.py" in reported


def test_no_message_holds_a_secret(corpus: CorpusRun) -> None:
    """The values planted as secrets are in no message and no suggestion."""
    secrets = ["hX9-kettle", "ghp_SyntH3", "s3cr3t-Moon", "9f8b7c6d5e", "swordfish", "hunter2", "gT5-window", "Cor7ect"]
    text = json.dumps([finding.to_json() for _, finding in corpus.findings])
    assert "hardcoded-secret" in text
    assert [secret for secret in secrets if secret in text] == []


def test_every_finding_is_in_the_vocabulary_and_in_the_file(corpus: CorpusRun) -> None:
    """Category, place and sources are filled, and the place exists."""
    for _, finding in corpus.findings:
        assert finding.category in CATEGORIES
        assert finding.sources
        assert finding.path in corpus.files
        assert finding.line is not None
        assert 1 <= finding.line <= len((corpus.root / finding.path).read_bytes().split(b"\n"))


def _says(category: str, finding: Finding) -> bool:
    return finding.category == category


def _precision(corpus: CorpusRun, lowest: int, highest: int) -> float:
    band = [finding for _, finding in corpus.findings if lowest <= (finding.confidence or 0) <= highest]
    assert len(band) >= 5
    return sum(map(corpus.is_right, band)) / len(band)


def _bandit(root: Path) -> list[tuple[str, int, int]]:
    command = [sys.executable, "-I", "-m", "bandit", "-q", "-r", "-f", "json", str(root)]
    data: Any = json.loads(subprocess.run(command, check=False, capture_output=True).stdout)
    return [
        (_relative(row["filename"], root), row["line_number"], max(row["line_number"], *row["line_range"]))
        for row in data["results"]
    ]


def _ruff(root: Path, rules: list[str]) -> list[tuple[str, int, int]]:
    command = [sys.executable, "-I", "-m", "ruff", "check", "--isolated", "--no-cache", *rules]
    data: Any = json.loads(
        subprocess.run([*command, "--output-format", "json", str(root)], check=False, capture_output=True).stdout
    )
    return [(_relative(row["filename"], root), row["location"]["row"], row["end_location"]["row"]) for row in data]


def _relative(path: str, root: Path) -> str:
    return Path(path).relative_to(root).as_posix()


def test_the_threshold_is_the_one_users_get() -> None:
    """The corpus is measured at the default of `--min-confidence`."""
    assert THRESHOLD == 80
