"""The plan of a review is a valid plan whose tasks the shipped team can do."""

from __future__ import annotations

from pathlib import Path

from chargehand.apps.review.analyzers import LENSES
from chargehand.apps.review.change import read_tree
from chargehand.apps.review.from_git import read_diff
from chargehand.apps.review.model_readers import READERS, excerpt
from chargehand.apps.review.reading_plan import LARGEST_READING, MOST_READINGS, plan_readings
from chargehand.apps.review.review_plan import make_review_plan
from chargehand.team import load
from chargehand.values.plan import errors_in
from tests.apps.review.world import repository, write


def test_the_team_has_an_analyzer_for_every_lens_and_a_reader_for_each_kind() -> None:
    """A lens is a worker that holds just its analyzers; a reader holds no tool at all."""
    team = load("review")
    held = {worker.name: worker.analyzers for worker in team.workers if worker.kind == "analyzer"}
    assert held.pop("earlier-readings") == ("earlier-readings",)  # asks nobody: what readers said before
    assert held == LENSES
    readers = {worker.name: worker.tools for worker in team.workers if worker.kind == "agent"}
    assert readers == dict.fromkeys(sorted((*READERS, "intent-reader")), ())
    assert team.scrutiny.rate_findings
    assert not team.problems()


def test_a_plan_is_valid_and_every_lens_sees_every_file(tmp_path: Path) -> None:
    """With and without a model; of a tree, nothing has changed that needs a test."""
    write(tmp_path, {f"pkg/m{n}.py": f"x = {n}\n" for n in range(5)} | {"README.md": "# x\n", "AGENTS.md": "Rule.\n"})
    change, team = read_tree(tmp_path), load("review")
    for model in (False, True):
        plan = make_review_plan(change, model=model)
        assert not errors_in(plan.problems(team.names))
    plan = make_review_plan(change, model=False)
    lenses = {task.worker: set(task.context["files"]) for task in plan.tasks}
    assert set(lenses) == set(LENSES) - {"tests"}
    assert lenses["security"] == set(change.files)
    assert lenses["bugs"] == {f"pkg/m{n}.py" for n in range(5)}


def test_slow_lenses_are_split_over_the_cores(tmp_path: Path) -> None:
    """Each file is in one task of a lens."""
    write(tmp_path, {f"m{n}.py": "x = 1\n" * 2_000 for n in range(60)})
    tasks = [task for task in make_review_plan(read_tree(tmp_path), model=False).tasks if task.worker == "security"]
    assert len(tasks) >= 2
    assert sorted(path for task in tasks for path in task.context["files"]) == sorted(f"m{n}.py" for n in range(60))


def test_readers_get_no_more_than_they_can_hold(tmp_path: Path) -> None:
    """A large tree is read in part, which is counted."""
    write(tmp_path, {f"m{n}.py": "value = 1\n" * 2_000 for n in range(40)})
    change = read_tree(tmp_path)
    tasks = [task for task in make_review_plan(change, model=True).tasks if task.worker == "bug-reader"]
    assert len(tasks) == MOST_READINGS
    for task in tasks:
        assert len(task.context["code"]) == 1 or sum(map(len, task.context["code"].values())) <= LARGEST_READING
    assert plan_readings(change).unread == 40 - sum(len(task.context["code"]) for task in tasks)


def test_a_change_gives_its_tasks_only_its_own_lines(tmp_path: Path) -> None:
    """The ranges of a task are those of its files; the tests lens looks at what changed."""
    root = repository(tmp_path / "r", {"a.py": "a = 1\n", "b.py": "b = 1\n"})
    write(root, {"b.py": "b = 1\nc = 2\n"})
    plan = make_review_plan(read_diff(root, "HEAD"), model=False, pr_comments="b.py:2: careful")
    assert {task.worker for task in plan.tasks} == set(LENSES)
    for task in plan.tasks:
        assert task.context["changed"] == {"b.py": [[2, 2]]}
    (history,) = [task for task in plan.tasks if task.worker == "history"]
    assert history.context["options"] == {"pr_comments": "b.py:2: careful"}


def test_an_excerpt_shows_numbered_lines_around_a_change(tmp_path: Path) -> None:
    """Far lines are three dots."""
    write(tmp_path, {"a.py": "".join(f"line {n}\n" for n in range(1, 101))})
    lines = excerpt(tmp_path, "a.py", ((50, 50),)).splitlines()
    assert (lines[0], lines[1], lines[-2], lines[-1]) == ("...", "30: line 30", "70: line 70", "...")
    assert excerpt(tmp_path, "a.py", ()) == ""
    assert len(excerpt(tmp_path, "a.py", None).splitlines()) == 100
