"""What readers get beside the code: bounded, of this change only, and nothing where there is no repository."""

from __future__ import annotations

from pathlib import Path

from chargehand.apps.review.change import read_tree
from chargehand.apps.review.from_git import read_diff
from chargehand.apps.review.model_readers import READERS
from chargehand.apps.review.reader_context import (
    MOST_COMMENTS,
    MOST_REMOVED,
    MOST_RULES,
    comments_on,
    context_beside,
    nearest_rules,
    removed_lines,
)
from chargehand.apps.review.review_plan import make_review_plan
from tests.apps.review.world import commit, repository, write

BEFORE = "def total(items):\n    if not items:\n        raise ValueError(items)\n    return sum(items)\n"
AFTER = "def total(items):\n    return sum(items)\n"


def test_a_reader_sees_what_was_removed_what_was_said_and_who_calls_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.py": BEFORE, "b.py": "from a import total\n\nprint(total([]))\n"})
    write(root, {"a.py": AFTER})
    commit(root, "Take empty orders\n\nThe shop sends them on Sundays.")
    change = read_diff(root, "HEAD~1")
    assert removed_lines(change) == {"a.py": "2:     if not items:\n3:         raise ValueError(items)"}
    assert context_beside(change, ["a.py"])["messages"].startswith("Take empty orders")


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
    assert len(removed_lines(read_diff(root, "HEAD"))["a.py"]) == MOST_REMOVED


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
    assert [task.worker for task in readers] == ["intent-reader", *READERS]
    shared = [{name: part for name, part in task.context.items() if name != "rules"} for task in readers]
    assert all(each == shared[0] for each in shared)
    assert [task.worker for task in readers if "rules" in task.context] == ["guideline-reader"]


def test_a_file_of_which_lines_were_only_removed_is_read_too(tmp_path: Path) -> None:
    """Its lines around the place are shown, and the place counts as changed: a scorer and the choice go by that."""
    long = "".join(f"value_{n} = {n}\n" for n in range(200))
    root = repository(tmp_path / "r", {"a.py": BEFORE + long, "b.py": "x = 1\n"})
    write(root, {"a.py": AFTER + long})
    change = read_diff(root, "HEAD")
    assert change.changed == {"a.py": ()}
    readers = [task for task in make_review_plan(change, model=True).tasks if task.worker.endswith("-reader")]
    assert readers
    for task in readers:
        assert list(task.context["code"]) == ["a.py"]
        assert "2:     return sum(items)" in task.context["code"]["a.py"]
        assert "value_150" not in task.context["code"]["a.py"]
        assert task.context["changed"] == {"a.py": [[1, 2]]}
        assert "raise ValueError" in task.context["removed"]["a.py"]


def test_lines_beside_replaced_ones_do_not_count_as_changed(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.py": BEFORE})
    write(root, {"a.py": BEFORE.replace("raise ValueError(items)", "return 0")})
    assert read_diff(root, "HEAD").beside_removed == {}


def test_readers_get_the_comments_of_earlier_reviews_on_their_files(tmp_path: Path) -> None:
    """With the lines they were made on, bounded; those on other files are not for them."""
    said = "a.py:3: Why not zero?\nb.py:1: Other.\n" + f"a.py:4: {'long ' * 2_000}"
    found = comments_on(["a.py"], said)
    assert list(found) == ["a.py"]
    assert found["a.py"][0] == "3: Why not zero?"
    assert sum(map(len, found["a.py"])) == MOST_COMMENTS
    root = repository(tmp_path / "r", {"a.py": BEFORE})
    write(root, {"a.py": BEFORE.replace("return sum(items)", "return max(items)")})
    plan = make_review_plan(read_diff(root, "HEAD"), model=True, pr_comments="a.py:3: Why not zero?")
    (reader,) = [task for task in plan.tasks if task.worker == "bug-reader"]
    assert reader.context["review_comments"] == {"a.py": ["3: Why not zero?"]}


def test_the_intent_is_read_first_and_a_tree_has_none(tmp_path: Path) -> None:
    """Readers wait for it, and read without it where it fails."""
    root = repository(tmp_path / "r", {"a.py": BEFORE})
    assert not [task for task in make_review_plan(read_tree(root), model=True).tasks if task.worker == "intent-reader"]
    write(root, {"a.py": BEFORE.replace("return sum(items)", "return max(items)")})
    tasks = make_review_plan(read_diff(root, "HEAD"), model=True).tasks
    readers = [task for task in tasks if task.worker in READERS]
    assert all(task.depends_on == ("intent-reader",) for task in readers)
    assert {task.on_dependency_failure for task in readers} == {"proceed"}
