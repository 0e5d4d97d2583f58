"""What readers get beside the code: bounded, of this change only, and nothing where there is no repository."""

from __future__ import annotations

from pathlib import Path

from chargehand.apps.review.change import read_tree
from chargehand.apps.review.from_git import read_diff
from chargehand.apps.review.reader_context import MOST_REMOVED, MOST_RULES, context_beside, nearest_rules
from chargehand.apps.review.review_plan import make_review_plan
from tests.apps.review.world import commit, repository, write

BEFORE = "def total(items):\n    if not items:\n        raise ValueError(items)\n    return sum(items)\n"
AFTER = "def total(items):\n    return sum(items)\n"


def test_a_reader_sees_what_was_removed_what_was_said_and_who_calls_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.py": BEFORE, "b.py": "from a import total\n\nprint(total([]))\n"})
    write(root, {"a.py": AFTER})
    commit(root, "Take empty orders\n\nThe shop sends them on Sundays.")
    beside = context_beside(read_diff(root, "HEAD~1"), ["a.py"])
    assert beside["removed"] == {"a.py": "2:     if not items:\n3:         raise ValueError(items)"}
    assert beside["messages"].startswith("Take empty orders")


def test_callers_are_those_of_functions_that_changed(tmp_path: Path) -> None:
    """Their own definitions are not among them."""
    root = repository(tmp_path / "r", {"a.py": BEFORE, "b.py": "from a import total\n\nprint(total([]))\n"})
    write(root, {"a.py": BEFORE.replace("return sum(items)", "return max(items)")})
    beside = context_beside(read_diff(root, "HEAD"), ["a.py"])
    assert beside["callers"] == {"total": ["b.py:1:from a import total", "b.py:3:print(total([]))"]}


def test_a_tree_has_nothing_beside_it(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": AFTER})
    assert context_beside(read_tree(tmp_path), ["a.py"]) == {}


def test_what_is_removed_is_bounded(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.py": "x = 1\n" * 20_000})
    write(root, {"a.py": "y = 2\n"})
    assert len(context_beside(read_diff(root, "HEAD"), ["a.py"])["removed"]["a.py"]) == MOST_REMOVED


def test_rules_of_nearer_folders_come_first(tmp_path: Path) -> None:
    """Those of folders beside are not part of it; all together they are bounded; links are not followed."""
    write(
        tmp_path, {"CLAUDE.md": "root " * 9_000, "api/AGENTS.md": "near", "web/AGENTS.md": "beside", "api/v1/a.py": ""}
    )
    (tmp_path / "api" / "CLAUDE.md").symlink_to(tmp_path / "CLAUDE.md")
    found = nearest_rules(tmp_path, ["api/v1/a.py"])
    assert list(found) == ["api/AGENTS.md", "CLAUDE.md"]
    assert sum(map(len, found.values())) == MOST_RULES


def test_every_reader_of_a_group_gets_the_same_beside_the_code(tmp_path: Path) -> None:
    """So that the provider's prompt cache holds for all of them; the rules are for the reader of rules."""
    root = repository(tmp_path / "r", {"a.py": BEFORE, "CONTRIBUTING.md": "Check what you are given."})
    write(root, {"a.py": AFTER.replace("sum", "max")})
    plan = make_review_plan(read_diff(root, "HEAD"), model=True)
    readers = [task for task in plan.tasks if task.worker.endswith("-reader")]
    assert len(readers) == 6
    shared = [{name: part for name, part in task.context.items() if name != "rules"} for task in readers]
    assert all(each == shared[0] for each in shared)
    assert [task.worker for task in readers if "rules" in task.context] == ["guideline-reader"]
