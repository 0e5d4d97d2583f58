"""What the history of a repository says about a change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chargehand.apps.review.analyzers import history
from chargehand.engine.analyzer_port import AnalyzerResult
from tests.apps.review.analyzers.corpus_run import git
from tests.apps.review.analyzers.running import analyzed, write

OLD = "def delay(n):\n    return 2.0 ** n * 1000\n\n\ndef tries():\n    return 3\n"
FIXED = "def delay(n):\n    return min(30.0, 2.0 ** n)\n\n\ndef tries():\n    return 3\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose second commit is a fix."""
    git(tmp_path, "init", "-q", "-b", "main")
    _commit(tmp_path, "Retry", {"retry.py": OLD})
    _commit(tmp_path, "Fix delays of many minutes (#12)\n\nNever multiply the delay.", {"retry.py": FIXED})
    return tmp_path


def _commit(root: Path, message: str, files: dict[str, str]) -> None:
    write(root, files)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)


def _found(analysis: AnalyzerResult) -> list[tuple[str, int | None, int | None]]:
    return sorted((f.category, f.line, f.confidence) for f in analysis.findings)


def test_a_line_that_a_fix_took_out_and_that_is_back_is_reported(repository: Path) -> None:
    """The finding names the commit; that the fixed line was changed, and what the fix asked for, are said below 80."""
    analysis = analyzed("history", repository, {"retry.py": OLD}, changed={"retry.py": ((2, 2),)}, base="HEAD")
    assert _found(analysis) == [("commit-instruction", 2, 70), ("fixed-before", 2, 60), ("reintroduced", 2, 85)]
    messages = {finding.category: finding.message for finding in analysis.findings}
    assert "(Fix delays of many minutes (#12))" in messages["reintroduced"]
    assert messages["commit-instruction"].endswith("says of these lines: Never multiply the delay.")


def test_another_change_of_a_fixed_line_is_a_remark(repository: Path) -> None:
    """Changing what a fix wrote is not undoing it: below the default threshold."""
    new = FIXED.replace("30.0", "60.0")
    analysis = analyzed("history", repository, {"retry.py": new}, changed={"retry.py": ((2, 2),)}, base="HEAD")
    assert {category for category, _, _ in _found(analysis)} == {"commit-instruction", "fixed-before"}


def test_lines_nobody_fixed_say_nothing(repository: Path) -> None:
    """A line of an ordinary commit, and a new file, have no history worth telling."""
    new = {"retry.py": FIXED.replace("return 3", "return 5"), "other.py": "x = 2.0 ** n * 1000\n"}
    changed = {"retry.py": ((6, 6),), "other.py": ((1, 1),)}
    assert _found(analyzed("history", repository, new, changed=changed, base="HEAD")) == []


def test_a_fix_of_spelling_is_no_fix(tmp_path: Path) -> None:
    """Commits about typos, formatting and the like do not count."""
    git(tmp_path, "init", "-q", "-b", "main")
    _commit(tmp_path, "Add", {"a.py": "value = compute_teh_value()\n"})
    _commit(tmp_path, "Fix typo", {"a.py": "value = compute_the_value()\n"})
    content = {"a.py": "value = compute_teh_value()\n"}
    assert _found(analyzed("history", tmp_path, content, changed={"a.py": ((1, 1),)}, base="HEAD")) == []


def test_a_line_that_a_revert_took_out_counts_as_fixed(tmp_path: Path) -> None:
    """What was reverted once and comes again is reported."""
    git(tmp_path, "init", "-q", "-b", "main")
    _commit(tmp_path, "Add", {"a.py": "limit = 10\n"})
    _commit(tmp_path, "Raise the limit", {"a.py": "limit = 10_000_000\n"})
    _commit(tmp_path, 'Revert "Raise the limit"', {"a.py": "limit = 10\n"})
    content = {"a.py": "limit = 10_000_000\n"}
    analysis = analyzed("history", tmp_path, content, changed={"a.py": ((1, 1),)}, base="HEAD")
    assert "reintroduced" in [finding.category for finding in analysis.findings]


def test_a_file_that_changes_again_and_again_is_a_hot_spot(tmp_path: Path) -> None:
    """Fifteen commits within six months; known for a whole tree too."""
    git(tmp_path, "init", "-q", "-b", "main")
    for number in range(15):
        _commit(tmp_path, f"Step {number}", {"hot.py": f"x = {number}\n", "cold.py": "y = 1\n"})
    analysis = analyzed("history", tmp_path, ("cold.py", "hot.py"))
    assert [(f.category, f.path) for f in analysis.findings] == [("hot-spot", "hot.py")]


def test_a_review_of_a_folder_of_the_repository_knows_its_history(repository: Path) -> None:
    """Paths are relative to the reviewed folder, wherever it is in the repository."""
    _commit(repository, "Move", {"lib/retry.py": OLD})
    _commit(repository, "Fix delays", {"lib/retry.py": FIXED})
    folder = repository / "lib"
    analysis = analyzed("history", folder, {"retry.py": OLD}, changed={"retry.py": ((2, 2),)}, base="HEAD")
    assert "reintroduced" in [finding.category for finding in analysis.findings]


def test_without_a_repository_there_is_a_note(tmp_path: Path) -> None:
    """No repository is no failure."""
    analysis = analyzed("history", tmp_path, {"a.py": "x = 1\n"}, changed={"a.py": ((1, 1),)}, base="HEAD")
    assert analysis == AnalyzerResult((), ("Not a git repository: its history was not looked at.",))


def test_a_copy_has_no_history_but_keeps_the_comments_of_its_review(tmp_path: Path) -> None:
    """The review says once for all lenses what a copy cannot show."""
    options = {history.COPIED: True, "pr_comments": "a.py:1: Name the unit."}
    analysis = analyzed("history", tmp_path, {"a.py": "x = 1\n"}, changed={"a.py": ((1, 1),)}, options=options)
    assert [finding.category for finding in analysis.findings] == ["review-comment"]
    assert analysis.notes == ()


@pytest.mark.parametrize("base", ["nowhere", "--output=stolen", "-p"])
def test_an_unknown_base_is_a_file_without_history(repository: Path, base: str) -> None:
    """The pipeline checks the base; here a wrong one only finds nothing, and an option is no base."""
    analysis = analyzed("history", repository, {"retry.py": OLD}, changed={"retry.py": ((2, 2),)}, base=base)
    assert analysis.findings == ()
    assert not (repository / "stolen").exists()


@pytest.mark.parametrize(
    "text",
    [
        "retry.py:2: Please keep the limit of 30 s\nother.py:1: unrelated\n",
        json.dumps(
            [
                {"path": "retry.py", "line": 2, "body": "Please keep\nthe limit of 30 s"},
                {"path": "other.py", "body": "x"},
            ]
        ),
        json.dumps([{"path": "retry.py", "line": None, "original_line": 2, "body": "Please keep the limit of 30 s"}]),
    ],
    ids=["lines", "json", "outdated"],
)
def test_an_earlier_review_comment_near_the_change_is_reported(tmp_path: Path, text: str) -> None:
    """Comments come as lines or as GitHub gives them; those on other files are left out."""
    analysis = analyzed(
        "history", tmp_path, {"retry.py": FIXED}, changed={"retry.py": ((2, 2),)}, options={"pr_comments": text}
    )
    assert [(f.category, f.line, f.confidence) for f in analysis.findings] == [("review-comment", 2, 80)]
    assert analysis.findings[0].message == "An earlier review comment says: Please keep the limit of 30 s"


def test_an_earlier_review_comment_elsewhere_stays_below_the_threshold(tmp_path: Path) -> None:
    """It speaks of the file, not of the change."""
    options = {"pr_comments": "retry.py:40: Rename this"}
    analysis = analyzed("history", tmp_path, {"retry.py": FIXED}, changed={"retry.py": ((2, 2),)}, options=options)
    assert [(f.line, f.confidence) for f in analysis.findings] == [(40, 55)]


def test_comments_that_cannot_be_read_are_noted(tmp_path: Path) -> None:
    """A file of another kind is said to be one."""
    analysis = analyzed("history", tmp_path, {"a.py": ""}, options={"pr_comments": "{}"})
    assert "not understood" in analysis.notes[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from tools import (\n    first_name, run_loop,\n)\n", "from tools import (\n    first_name,\n)\n"),
        ("class Queue:\n    waiting_calls = 0\n", "class Queue:\n    pass\n"),
        ("found_before: list[str] = []\n", "found_before = make()\n"),
    ],
    ids=["names of an import", "a counter", "an empty list"],
)
def test_lines_that_come_and_go_by_chance_are_not_reintroduced(tmp_path: Path, old: str, new: str) -> None:
    """A fix took them out with much else; that they are back says nothing about what it fixed."""
    git(tmp_path, "init", "-q", "-b", "main")
    _commit(tmp_path, "Add", {"a.py": old})
    _commit(tmp_path, "Fix a race", {"a.py": new})
    changed = {"a.py": ((1, old.count("\n")),)}
    found = _found(analyzed("history", tmp_path, {"a.py": old}, changed=changed, base="HEAD"))
    assert "reintroduced" not in [category for category, _, _ in found]


def test_a_fix_that_is_undone_in_part_is_a_remark(tmp_path: Path) -> None:
    """Two of many lines are back: what the fix did is probably somewhere else now. All of them back is reported."""
    wrong = [f"value_{n} = compute_wrongly({n})" for n in range(8)]
    right = [f"value_{n} = compute({n})" for n in range(8)]
    git(tmp_path, "init", "-q", "-b", "main")
    _commit(tmp_path, "Add", {"a.py": "\n".join(wrong) + "\n"})
    _commit(tmp_path, "Fix the values", {"a.py": "\n".join(right) + "\n"})
    for back, confidence in ((2, 70), (8, 85)):
        content = {"a.py": "\n".join([*wrong[:back], *right[back:]]) + "\n"}
        found = _found(analyzed("history", tmp_path, content, changed={"a.py": ((1, back),)}, base="HEAD"))
        assert [each for each in found if each[0] == "reintroduced"] == [("reintroduced", 1, confidence)]


def test_a_fix_that_is_undone_in_many_files_is_reported_once(tmp_path: Path) -> None:
    """At the first of them."""
    names = ("a.py", "b.py", "c.py")
    git(tmp_path, "init", "-q", "-b", "main")
    _commit(tmp_path, "Add", dict.fromkeys(names, "value = compute_wrongly()\n"))
    _commit(tmp_path, "Fix the value", dict.fromkeys(names, "value = compute()\n"))
    content = dict.fromkeys(names, "value = compute_wrongly()\n")
    found = analyzed("history", tmp_path, content, changed=dict.fromkeys(names, ((1, 1),)), base="HEAD").findings
    assert [each.path for each in found if each.category == "reintroduced"] == ["a.py"]


def test_what_the_history_depends_on_changes_with_commits_and_with_the_cut_of_a_clone(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A clone that gets more of the history is looked at again."""

    def state(root: Path) -> list[str]:
        return list(history.around(root, lambda _: None))

    clone = tmp_path_factory.mktemp("clone")
    git(clone, "clone", "-q", "--depth=1", f"file://{repository}", "shallow")
    cut = state(clone / "shallow")
    git(clone / "shallow", "fetch", "-q", "--unshallow")
    assert cut != state(clone / "shallow")
    before = state(repository)
    assert before == state(repository)
    _commit(repository, "Next", {})
    assert before != state(repository)
