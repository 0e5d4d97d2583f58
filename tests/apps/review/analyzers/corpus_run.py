"""The labelled corpus, analysed: findings with their analyzer, merged per place, matched against the labels."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from chargehand.apps.review.analyzers import ANALYZERS
from chargehand.apps.review.analyzers.confidence import adjusted_confidence
from chargehand.apps.review.analyzers.source_files import is_test
from chargehand.engine.analyzer_port import AnalyzerResult, Ranges, Scope
from chargehand.values.outcome import Finding
from tests.apps.review.analyzers.running import all_analyzed

CORPUS = Path(__file__).parent / "corpus"
THRESHOLD = 80
GIT_ENV = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    **{"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"},
    **{"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z"},
    **{"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"},
}


@dataclass(frozen=True)
class Label:
    """One planted defect."""

    file: str
    line: int
    category: str
    lens: str

    def is_at(self, finding: Finding) -> bool:
        assert finding.line is not None
        return finding.path == self.file and finding.line <= self.line <= (finding.end_line or finding.line)


@dataclass(frozen=True)
class Score:
    """How findings and labels agree."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True)
class CorpusRun:
    """What every analyzer found in the corpus, before any threshold."""

    root: Path
    files: tuple[str, ...]
    labels: tuple[Label, ...]
    changed: dict[str, Ranges]
    analyses: dict[str, AnalyzerResult]

    @cached_property
    def findings(self) -> tuple[tuple[str, Finding], ...]:
        """Analyzer and finding, its confidence adjusted to its place."""
        return tuple(
            (name, finding.model_copy(update={"confidence": self._confidence(finding)}))
            for name, analysis in self.analyses.items()
            for finding in analysis.findings
        )

    def _confidence(self, finding: Finding) -> int:
        assert finding.path is not None
        assert finding.line is not None
        ranges = self.changed.get(finding.path)
        changed = None if ranges is None else any(first <= finding.line <= last for first, last in ranges)
        return adjusted_confidence(finding, changed=changed, test_code=is_test(finding.path))

    @cached_property
    def reported(self) -> tuple[tuple[str, Finding], ...]:
        """Lens and finding at the default threshold, one for each place and category: the surest."""
        best: dict[tuple[str | None, int | None, str], tuple[str, Finding]] = {}
        for name, finding in self.findings:
            if (finding.confidence or 0) >= THRESHOLD:
                key = (finding.path, finding.line, finding.category)
                if key not in best or (finding.confidence or 0) > (best[key][1].confidence or 0):
                    best[key] = (ANALYZERS[name].lens, finding)
        return tuple(best.values())

    def is_right(self, finding: Finding) -> bool:
        return any(label.category == finding.category and label.is_at(finding) for label in self.labels)

    def score(self, lens: str | None = None) -> Score:
        """Precision and recall at the threshold, of one lens or of all."""
        labels = [label for label in self.labels if lens in (None, label.lens)]
        found = [finding for _, finding in self.reported]
        right = sum(any(label.category == f.category and label.is_at(f) for f in found) for label in labels)
        wrong = sum(not self.is_right(f) for own, f in self.reported if lens in (None, own))
        return Score(right, wrong, len(labels) - right)

    def score_of_others(self, places: list[tuple[str, int, int]], lenses: tuple[str, ...]) -> Score:
        """The same for (path, line, end line) of a tool alone, which is given every category for free."""
        labels = [label for label in self.labels if label.lens in lenses]
        hit = {label for label in labels for place in places if _covers(place, label)}
        wrong = {
            (path, line) for path, line, end in places if not any(_covers((path, line, end), x) for x in self.labels)
        }
        return Score(len(hit), len(wrong), len(labels) - len(hit))


def _covers(place: tuple[str, int, int], label: Label) -> bool:
    return place[0] == label.file and place[1] <= label.line <= place[2]


def run_corpus(root: Path) -> CorpusRun:
    """Copy the corpus, give it its history, run every analyzer."""
    data: Any = json.loads((CORPUS / "labels.json").read_text(encoding="utf-8"))
    _commit(root, data["history"])
    shutil.copytree(CORPUS, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("labels.json", "__pycache__"))
    found = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    files = tuple(sorted(path.as_posix() for path in found if path.parts[0] != ".git"))
    changed = {path: tuple((first, last) for first, last in ranges) for path, ranges in data["changed"].items()}
    scope = Scope(root, files, changed, base="HEAD")
    return CorpusRun(root, files, tuple(Label(**each) for each in data["labels"]), changed, all_analyzed(scope))


def _commit(root: Path, history: list[dict[str, Any]]) -> None:
    git(root, "init", "-q", "-b", "main")
    for step in history:
        for path, lines in step["files"].items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("\n".join(lines), encoding="utf-8")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", step["message"])


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True, env=GIT_ENV, capture_output=True)
