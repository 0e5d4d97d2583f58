"""A review as a Python function, and what `resume` and `show` make of its record."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor
from chargehand.apps.registry import find_app
from chargehand.apps.review import Review, run, run_review
from chargehand.apps.review.change import read_tree
from chargehand.apps.review.review_plan import make_review_plan
from chargehand.errors import AnalyzerFailed, UsageError
from chargehand.events import Event
from chargehand.record.cache import Cache
from chargehand.runs.session import Session
from chargehand.settings import Settings
from chargehand.values.request import Request
from tests.apps.review.world import repository, write
from tests.cli.terminal import Shell

BAD = "import sqlite3\n\n\ndef find(db, name):\n    return db.execute(\"select * from t where n = '%s'\" % name)\n"


def settings(home: Path) -> Settings:
    return Settings(home=str(home))


async def interrupted(root: Path, home: Path, **options: Any) -> Review:
    """A review that was stopped when its first task had ended."""
    sessions: list[Session] = []

    def on_event(event: Event) -> None:
        if event.kind == "task_ended":
            sessions[0].interrupt()

    return await run(root, settings=settings(home), on_session=sessions.append, on_event=on_event, **options)


def test_two_reviews_run_side_by_side_in_one_loop(tmp_path: Path) -> None:
    """`run` is a coroutine like any other: git, files and tools are asked without a loop of their own."""
    write(tmp_path / "one", {"db.py": BAD})
    root = repository(tmp_path / "two", {"fine.py": "x = 1\n"})
    write(root, {"new.py": BAD})

    async def both() -> list[Review]:
        home = settings(tmp_path / "home")
        return await asyncio.gather(run(tmp_path / "one", settings=home), run(root, diff="HEAD", settings=home))

    one, two = asyncio.run(both())
    assert {finding.path for finding in one.report.findings} == {"db.py"}
    assert {finding.path for finding in two.report.findings} == {"new.py"}
    assert one.report.answer.startswith("# Review")


def test_a_resumed_review_prints_its_findings(shell: Shell) -> None:
    """The view of the review, with its choice of findings, also when the first session ended before there was one."""
    root = repository(shell.folder / "r", {"db.py": BAD})
    first = asyncio.run(interrupted(root, shell.home))
    assert (first.report.status, first.report.findings) == ("interrupted", ())
    done = shell("resume", first.report.run)
    assert done.code == 0, done.err
    assert done.out.startswith("db.py\n")
    whole = shell("resume", first.report.run, "--json").json
    assert whole["data"]["fingerprints"]
    assert shell("show", first.report.run, "--json").json["findings"] == whole["findings"]


def test_a_resumed_review_keeps_its_gate(shell: Shell) -> None:
    """The severity it fails on is on the record: `resume` and `rerun` exit with 1 as the first session would have."""
    root = repository(shell.folder / "r", {"db.py": BAD})
    first = asyncio.run(interrupted(root, shell.home, fail_on="critical"))
    assert first.failed_gate is None
    for command in ("resume", "rerun"):
        done = shell(command, first.report.run)
        assert (done.code, "of severity critical." in done.err) == (1, True), command
    assert shell("show", first.report.run).code == 0


def test_a_plan_holds_nothing_of_how_findings_are_chosen(tmp_path: Path) -> None:
    """The record names the app and its options beside the request; a task's context is what its worker looks at."""
    write(tmp_path / "r", {"db.py": BAD})
    review = asyncio.run(run(tmp_path / "r", min_confidence=70, settings=settings(tmp_path / "home")))
    assert review.report.plan is not None
    assert all("review" not in task.context for task in review.report.plan.tasks)
    home = Supervisor("review", settings=settings(tmp_path / "home")).home
    app = home.state(home.find("last")).start["request"]["app"]
    assert (app["name"], app["options"]["min_confidence"]) == ("review", 70)


def test_a_run_that_no_app_began_has_none(tmp_path: Path) -> None:
    """Also one of the review team with a plan of its own."""
    write(tmp_path / "r", {"db.py": BAD})
    door = Supervisor("review", settings=settings(tmp_path / "home"))
    asyncio.run(door.run(plan=make_review_plan(read_tree(tmp_path / "r"), model=False)))
    assert find_app(door.home.state(door.home.find("last"))) is None


def test_a_review_recorded_before_apps_were_named_is_shown_as_it_was(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its options are in the context of its plan's first task, and its request has no field for an app."""
    write(shell.folder / "r", {"db.py": BAD, "more.py": "x = 1\n"})
    change = read_tree(shell.folder / "r")
    plan = make_review_plan(change, model=False)
    kept = {"min_confidence": 80, "baseline": [], "all": False, "written": False, "home": str(change.home)}
    context = {**plan.tasks[0].context, "review": {**kept, "fragments": [], "notes": []}}
    tasks = (plan.tasks[0].model_copy(update={"context": context}), *plan.tasks[1:])

    def as_before(self: Request) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude={"app"})

    monkeypatch.setattr(Request, "to_json", as_before)
    door = Supervisor("review", settings=settings(shell.home))
    asyncio.run(door.run(plan=plan.model_copy(update={"tasks": tasks})))
    for command in ("show", "resume"):
        report = shell(command, "last", "--json").json
        assert report["answer"].startswith("# Review"), command
        assert report["data"]["fingerprints"], command


def test_a_tool_that_worked_is_tried_again_only_when_it_is_installed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that fails is tried every time."""
    tried: list[str] = []

    async def try_out(tool: str) -> None:
        tried.append(tool)
        if len(tried) == 1:
            raise AnalyzerFailed("broken")

    async def ruff_works() -> None:
        pass

    installed = {"ruff": "ruff 1", "bandit": "bandit 1"}
    monkeypatch.setattr(run_review.run_analysis, "try_out", try_out)
    monkeypatch.setattr("chargehand.apps.review.analyzers.ruff.try_out", ruff_works)
    monkeypatch.setattr(run_review, "installation", installed.get)
    check, cache = run_review._check_tools, Cache(tmp_path)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(UsageError, match="bandit"):
        asyncio.run(check(cache))
    for _ in range(2):
        asyncio.run(check(cache))
    assert len(tried) == 2
    installed["bandit"] = "bandit 2"
    asyncio.run(check(cache))
    assert len(tried) == 3
