"""Analyses as effects: performed once, by content across runs, at most one for each core, and a failure is a value."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from chargehand.apps.review.analyzers import ANALYZERS
from chargehand.apps.review.analyzers.source_files import UNREAD
from chargehand.engine.analyzer_port import Analyzer, Scope
from chargehand.engine.analyzer_port import AnalyzerResult as Found
from chargehand.engine.engine_session import EngineInputs, Prior
from chargehand.engine.local import analysis as engine_analysis
from chargehand.engine.local.analysis import FEW
from chargehand.engine.local.engine import LocalEngine
from chargehand.errors import AnalyzerFailed
from chargehand.models.resolve import Models
from chargehand.record.cache import Cache
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.record.replay import replay
from chargehand.synthesizer.reconcile import reconcile
from chargehand.values.effect import Analysis, AnalysisResult
from chargehand.values.outcome import Finding, Outcome
from chargehand.values.plan import Task
from chargehand.workers import Assignment
from chargehand.workers.analyzer import AnalyzerWorker
from tests.kernel import kinds, stored

Run = Callable[[Scope], Awaitable[Found]]


@dataclass
class Reader:
    """An analyzer for tests: one finding for each file, what the file says."""

    root: Path
    version: str = "1"
    seen: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    now: int = 0
    most: int = 0
    notes: tuple[str, ...] = ()
    unchecked: dict[str, str] = field(default_factory=dict[str, str])

    async def run(self, scope: Scope) -> Found:
        self.seen.append(scope.files)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        found = [Finding(path=path, line=1, message=(scope.root / path).read_text()) for path in scope.files]
        unchecked = {path: why for path, why in self.unchecked.items() if path in scope.files}
        return Found(tuple(found), self.notes, unchecked=unchecked)


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Two analyzers: `each` looks at files one by one, `whole` at all of them together."""
    reader = Reader(tmp_path / "tree")
    reader.root.mkdir()
    kinds = {"each": True, "whole": False}
    made = {
        name: Analyzer(name, "bugs", None, per_file, lambda: reader.version, reader.run)
        for name, per_file in kinds.items()
    }
    made["by_change"] = replace(made["whole"], name="by_change", by_change=True)
    monkeypatch.setattr("chargehand.engine.local.analysis.find_analyzers", lambda: {**ANALYZERS, **made})
    for name in ("a.txt", "b.txt"):
        (reader.root / name).write_text(name)
    return reader


def analysis(reader: Reader, analyzer: str = "each", files: tuple[str, ...] = ("a.txt", "b.txt"), **more: object):
    return Analysis.model_validate(
        {"worker": "w", "analyzer": analyzer, "root": str(reader.root), "files": files, **more}
    )


def perform(
    effect: Analysis, cache: Cache | None, store: MemoryStore | None = None, prior: Prior | None = None
) -> AnalysisResult:
    async def main() -> AnalysisResult:
        journal = MemoryJournal(store or MemoryStore())
        earlier = replay(journal.events()) if store and list(journal.events()) else None
        inputs = EngineInputs(
            run="run", journal=journal, models=Models({}, {}, {}), analyses=cache, replay=earlier, prior=prior
        )
        async with LocalEngine(inputs) as engine:
            return await engine.perform("t1/1/analysis/1", effect)

    return asyncio.run(main())


def test_a_result_is_taken_from_an_earlier_run_with_the_same_content(reader: Reader, tmp_path: Path) -> None:
    """The second run looks at nothing, says so on the record, and has the same findings."""
    cache, store = Cache(tmp_path / "c"), MemoryStore()
    first = perform(analysis(reader), cache)
    second = perform(analysis(reader), cache, store)
    assert first.findings == second.findings
    assert (first.reused, second.reused, second.files) == (0, 2, 2)
    assert len(reader.seen) == 1
    assert kinds(store) == ["reused"]


def test_only_files_that_changed_are_looked_at_again(reader: Reader, tmp_path: Path) -> None:
    """A new version of the tool changes them all."""
    cache = Cache(tmp_path / "c")
    perform(analysis(reader), cache)
    (reader.root / "b.txt").write_text("other")
    second = perform(analysis(reader), cache)
    assert reader.seen[-1] == ("b.txt",)
    assert [f.message for f in second.findings] == ["a.txt", "other"]
    reader.version = "2"
    perform(analysis(reader), cache)
    assert reader.seen[-1] == ("a.txt", "b.txt")


@pytest.mark.parametrize("row", [b"garbage", b"null", b"[]", b""])
def test_what_is_known_and_cannot_be_read_is_found_again(reader: Reader, tmp_path: Path, row: bytes) -> None:
    """Once: then it is known."""
    cache = Cache(tmp_path / "c")
    first = perform(analysis(reader), cache)
    with closing(sqlite3.connect(tmp_path / "c" / "analyses.sqlite")) as database:
        database.execute("update entry set value = ?", (row,))
        database.commit()
    again, third = (perform(analysis(reader), cache) for _ in range(2))
    assert first.findings == again.findings == third.findings
    assert (again.reused, third.reused) == (0, 2)


def test_what_is_found_in_all_files_together_is_known_only_as_a_whole(reader: Reader, tmp_path: Path) -> None:
    """One changed file is enough; and of a change nothing is kept, for it is judged by more than its files."""
    cache = Cache(tmp_path / "c")
    perform(analysis(reader, "whole"), cache)
    assert perform(analysis(reader, "whole"), cache).reused == 2
    (reader.root / "b.txt").write_text("other")
    perform(analysis(reader, "whole"), cache)
    assert reader.seen == [("a.txt", "b.txt")] * 2
    change = analysis(reader, "whole", changed={"a.txt": [[1, 1]]})
    assert [perform(change, cache).reused for _ in range(2)] == [0, 0]


def test_what_depends_on_the_change_alone_is_known_while_base_and_lines_are_the_same(
    reader: Reader, tmp_path: Path
) -> None:
    """Not for a base whose name may mean another commit later."""
    cache = Cache(tmp_path / "cache")

    def reused(base: str, last: int) -> int:
        change = analysis(reader, "by_change", changed={"a.txt": ((1, last),)}, base=base)
        return perform(change, cache).reused

    assert [reused("a" * 40, 1), reused("a" * 40, 1), reused("a" * 40, 2), reused("b" * 40, 1)] == [0, 2, 0, 0]
    assert [reused("main", 1), reused("main", 1)] == [0, 0]


def test_a_file_that_could_not_be_checked_is_tried_again(reader: Reader, tmp_path: Path) -> None:
    """The others are known; it is told again. A note about no file in particular keeps all from being known."""
    cache = Cache(tmp_path / "c")
    reader.unchecked = {"b.txt": "Could not be parsed"}
    perform(analysis(reader), cache)
    again = perform(analysis(reader), cache)
    assert (again.unchecked, again.reused) == (reader.unchecked, 1)
    assert reader.seen == [("a.txt", "b.txt"), ("b.txt",)]
    reader.version, reader.unchecked, reader.notes = "2", {}, ("There are no tests.",)
    assert [perform(analysis(reader), cache).reused for _ in range(2)] == [0, 0]


def test_what_could_not_be_checked_is_known_with_what_was_found_in_all_files_together(
    reader: Reader, tmp_path: Path
) -> None:
    """A second look, from what is known, has the same gaps as the first."""
    cache = Cache(tmp_path / "c")
    reader.unchecked = {"b.txt": "Could not be parsed"}
    first, again = (perform(analysis(reader, "whole"), cache) for _ in range(2))
    assert (again.unchecked, again.reused) == (first.unchecked, 2) == (reader.unchecked, 2)


def test_a_task_with_a_file_that_could_not_be_checked_is_partial_and_says_who_missed_it(reader: Reader) -> None:
    """It is done, with what was found; the gap names the file, and only analyzers that have looked are named."""
    reader.unchecked = {"b.txt": "Could not be parsed"}
    outcome = work(AnalyzerWorker("w", ("each", "bandit")), {"root": str(reader.root), "files": ["a.txt", "b.txt"]})
    assert (outcome.status, outcome.partial, outcome.summary) == ("done", True, "2 findings in 2 files by each.")
    (gap,) = outcome.gaps
    assert (gap.reason, gap.impact) == ("Could not be parsed: b.txt.", "Not looked at by each.")


def test_a_committed_analysis_is_never_repeated_in_its_run(reader: Reader) -> None:
    """A resumed run takes it from the record, whatever the files hold by then."""
    store = MemoryStore()
    first = perform(analysis(reader), None, store)
    (reader.root / "a.txt").write_text("other")
    again = perform(analysis(reader), None, store)
    assert first.findings == again.findings
    assert len(reader.seen) == 1
    assert kinds(store) == ["tool_called", "tool_returned"]
    called = stored(store)[0].data
    assert (called["tool"], called["arguments"]["files"]) == ("each", ["a.txt", "b.txt"])


def test_a_rerun_checks_the_content(reader: Reader) -> None:
    """The same files: reused from the earlier run. Others: looked at again."""
    store = MemoryStore()
    perform(analysis(reader), None, store)
    prior = Prior("before", replay(stored(store)))
    assert perform(analysis(reader), None, prior=prior).reused == 2
    (reader.root / "a.txt").write_text("other")
    assert perform(analysis(reader), None, prior=prior).reused == 0
    assert len(reader.seen) == 2


def test_files_outside_of_the_root_are_not_read(reader: Reader) -> None:
    """Whatever a plan names: parents, absolute paths, links that lead out. What is gone is counted, the rest named."""
    outside = reader.root.parent / "secret.txt"
    outside.write_text("secret")
    (reader.root / "link.txt").symlink_to(outside)
    (reader.root / "folder").mkdir()
    names = ("../secret.txt", str(outside), "link.txt", "folder", "gone.txt", "a.txt", "nul\0.txt")
    result = perform(analysis(reader, files=names), None)
    assert [f.message for f in result.findings] == ["a.txt"]
    assert result.notes == ("2 files were gone when each came to them.",)
    assert result.unchecked == dict.fromkeys(("../secret.txt", str(outside), "link.txt", "folder"), UNREAD)


@pytest.mark.parametrize(
    ("error", "said"),
    [(AnalyzerFailed("each is not installed."), "each is not installed."), (KeyError("x"), "each failed: KeyError")],
)
def test_a_failure_is_a_result_with_what_is_known(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    """Kind `analyzer`; the files that were known stand."""
    cache = Cache(tmp_path / "c")
    perform(analysis(reader, files=("a.txt",)), cache)

    async def broken(_scope: Scope) -> Found:
        raise error

    monkeypatch.setattr(reader, "run", broken)
    made = Analyzer("each", "bugs", None, True, lambda: reader.version, broken)
    monkeypatch.setattr("chargehand.engine.local.analysis.find_analyzers", lambda: {**ANALYZERS, "each": made})
    result = perform(analysis(reader), cache)
    assert result.error is not None
    assert result.error.kind == "analyzer"
    assert said in result.error.message
    assert [f.message for f in result.findings] == ["a.txt"]


def test_an_analyzer_that_does_not_exist_is_a_failure(reader: Reader) -> None:
    """As in a plan written by hand."""
    result = perform(analysis(reader, "nothing"), None)
    assert result.error is not None
    assert "There is no analyzer 'nothing' here." in result.error.message


def test_hardly_more_analyses_run_at_once_than_there_are_cores(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more than cores, however many slots there are."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    many = tuple(f"{number}.txt" for number in range(FEW + 1))
    for name in many:
        (reader.root / name).write_text(name)

    async def main() -> None:
        engine = LocalEngine(EngineInputs(run="run", journal=MemoryJournal(), models=Models({}, {}, {})))
        async with engine, asyncio.TaskGroup() as group:
            for number in range(6):
                group.create_task(engine.perform(f"t{number}/1/analysis/1", analysis(reader, files=many)))

    asyncio.run(main())
    assert reader.most == 3


def work(worker: AnalyzerWorker, context: object):
    async def main():
        async with LocalEngine(EngineInputs(run="run", journal=MemoryJournal(), models=Models({}, {}, {}))) as engine:
            task = Task(id="t1", worker=worker.name, instruction="Look.", context=context)
            return await worker.work(Assignment(task, 1, {}), engine)

    return asyncio.run(main())


class FixedTimes:
    """An engine whose analyses take the seconds that are given for each analyzer."""

    def __init__(self, **seconds: float) -> None:
        self.seconds = seconds

    async def perform(self, key: str, effect: Analysis) -> AnalysisResult:
        return AnalysisResult(seconds=self.seconds[effect.analyzer], waiting_s=0.5)


def test_analyzers_at_work_together_took_as_long_as_the_longest(reader: Reader) -> None:
    """The time of a task is never longer than the run took."""
    task = Task(id="t1", worker="w", instruction="Look.", context={"root": str(reader.root), "files": ["a.txt"]})
    engine: Any = FixedTimes(each=3.0, whole=2.0)
    outcome = asyncio.run(AnalyzerWorker("w", ("each", "whole")).work(Assignment(task, 1, {}), engine))
    assert (outcome.usage.seconds, outcome.usage.waiting_s) == (3.0, 0.5)


def test_a_worker_runs_its_analyzers_and_stamps_its_task(reader: Reader) -> None:
    """Findings of all of them, the task first among the sources."""
    outcome = work(AnalyzerWorker("w", ("each", "whole")), {"root": str(reader.root), "files": ["a.txt"]})
    assert outcome.ok
    assert [f.sources for f in outcome.findings] == [("t1",), ("t1",)]
    assert (outcome.output["files"], outcome.output["looks"], outcome.output["reused"]) == (1, 2, 0)


def test_one_failed_analyzer_leaves_what_the_others_found(reader: Reader) -> None:
    """The task failed, which is a gap, and its findings are there."""
    outcome = work(AnalyzerWorker("w", ("each", "nothing")), {"root": str(reader.root), "files": ["a.txt"]})
    assert (outcome.status, outcome.error.kind if outcome.error else None) == ("failed", "analyzer")
    assert [f.message for f in outcome.findings] == ["a.txt"]


@pytest.mark.parametrize(
    "context", [None, "a.txt", {}, {"root": "/", "files": []}, {"root": "/", "files": ["a"], "x": 1}]
)
def test_a_context_that_names_no_files_is_the_tasks_failure(reader: Reader, context: object) -> None:
    """It says what is wrong with it."""
    outcome = work(AnalyzerWorker("w", ("each",)), context)
    assert (outcome.status, outcome.error.kind if outcome.error else None) == ("failed", "bad_request")
    assert "does not say what to look at" in outcome.summary


def test_what_analyzers_say_besides_their_findings_is_no_statement(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many files one did not check, and why another made nothing, contradict nobody."""

    async def make(scope: Scope) -> Found:
        why = (scope.root / scope.files[0]).read_text()
        return Found(notes=(f"No tests: {why}.",), output={"why": why})

    maker = Analyzer("maker", "tests", None, per_file=False, version=lambda: "1", run=make)
    known = engine_analysis.find_analyzers()
    monkeypatch.setattr(engine_analysis, "find_analyzers", lambda: {**known, "maker": maker})

    def told(name: str, *said: str) -> list[Outcome]:
        found: list[Outcome] = []
        for number, text in enumerate(said):
            (reader.root / "a.txt").write_text(text)
            reader.notes = (text,)
            outcome = work(AnalyzerWorker("w", (name,)), {"root": str(reader.root), "files": ["a.txt"]})
            found.append(outcome.model_copy(update={"task": f"t{number}"}))
        return found

    for name in ("maker", "each"):
        outcomes = told(name, "3 files were not checked.", "2 files were not checked.")
        assert reconcile({outcome.task: outcome for outcome in outcomes}, ()).statements == ()
