"""Changes made to escape their review, and odd ones that only look like it: what they wrote is found all the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from chargehand.apps.review.author_lines import changed_lines
from chargehand.apps.review.change import read_tree
from chargehand.apps.review.file_kinds import why_not_by_content
from chargehand.apps.review.from_git import read_diff, read_staged
from chargehand.apps.review.from_patch import read_patch
from chargehand.apps.review.model_readers import excerpt
from chargehand.apps.review.patch import parse
from chargehand.apps.review.review_plan import make_review_plan, unable, unreviewed_gaps
from chargehand.errors import UsageError
from tests.apps.review.world import commit, git, repository, write

BASE = "one = 1\ntwo = 2\nthree = 3\n"


def patch_of(path: str, old: str, new: str) -> str:
    """One file, with one line replaced."""
    return f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+{new}\n"


# -- git ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attribute", ["*.py -diff", "*.py binary"])
def test_attributes_of_the_change_do_not_hide_it(tmp_path: Path, attribute: str) -> None:
    """What a repository calls binary and is text is compared line by line."""
    root = repository(tmp_path / "r", {"a.py": BASE, "pic.png": b"\x89PNG\0one"})
    write(root, {".gitattributes": f"{attribute}\n", "a.py": BASE + "four = 4\n", "pic.png": b"\x89PNG\0two"})
    change = read_diff(root, "HEAD")
    assert change.changed is not None
    assert change.changed["a.py"] == ((4, 4),)
    assert change.skipped == {"pic.png": "binary"}


def test_a_patch_that_hides_the_lines_of_a_text_says_so(tmp_path: Path) -> None:
    """Its lines are not there to be reviewed: that is told, with what to do."""
    write(tmp_path, {"a.py": BASE, "b.py": "one\n"})
    text = "diff --git a/a.py b/a.py\nindex 1..2 100644\nBinary files a/a.py and b/a.py differ\n"
    change = read_patch(tmp_path, text + patch_of("b.py", "one", "two"), "p", tmp_path / "keep")
    assert list(change.files) == ["b.py"]
    assert any("1 file of text that the patch calls binary" in gap for gap in change.gaps)


def test_a_work_tree_elsewhere_is_no_repository(tmp_path: Path) -> None:
    """`core.worktree` cannot lead a review out of the folder it was asked for."""
    write(tmp_path / "elsewhere", {"private.py": "x = 1\n"})
    root = repository(tmp_path / "r", {"a.py": BASE})
    for place in (tmp_path / "elsewhere", tmp_path):
        git(root, "config", "core.worktree", str(place))
        change = read_tree(root)
        assert (change.root, list(change.files)) == (root, ["a.py"])
        with pytest.raises(UsageError, match="not in a git repository"):
            read_diff(root, "HEAD")


def test_what_is_staged_is_reviewed_and_nothing_else(tmp_path: Path) -> None:
    """Without a commit too; files not added and edits not staged are no part of the next commit."""
    root = tmp_path / "r"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    write(root, {"a.py": BASE})
    git(root, "add", "a.py")
    write(root, {"new.py": "x = 1\n"})
    change = read_staged(root, tmp_path / "keep")
    assert (change.root, list(change.files), change.changed) == (root, ["a.py"], {"a.py": ((1, 3),)})
    git(root, "commit", "-q", "-m", "begin", "--author", "Ada <ada@example.org>")
    write(root, {"a.py": BASE + "four = 4\n"})
    git(root, "add", "a.py")
    write(root, {"a.py": "zero = 0\n" + BASE + "four = 4\n"})
    change = read_staged(root, tmp_path / "keep")
    assert change.changed == {"a.py": ((4, 4),)}
    assert (change.root / "a.py").read_text() == BASE + "four = 4\n"
    assert not change.in_place


def test_a_hook_of_commit_all_sees_what_that_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git gives the hook an index of its own; one outside of the repository is not looked at."""
    root = repository(tmp_path / "r", {"a.py": BASE})
    write(root, {"a.py": BASE + "four = 4\n"})
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ncp "$GIT_INDEX_FILE" .git/seen-index\nexit 1\n')
    hook.chmod(0o755)
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "commit", "-a", "-m", "more")
    assert read_staged(root, tmp_path / "keep").changed == {}
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/seen-index")
    assert read_staged(root, tmp_path / "keep").changed == {"a.py": ((4, 4),)}
    (root / ".git" / "seen-index").rename(tmp_path / "index")
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert read_staged(root, tmp_path / "keep").changed == {}


def test_links_and_submodules_and_deleted_files_are_named_as_such(tmp_path: Path) -> None:
    """None of them is called unreadable."""
    inner = repository(tmp_path / "inner", {"x.py": BASE})
    root = repository(tmp_path / "r", {"a.py": BASE, "gone.py": BASE})
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "lib")
    commit(root, "add a module")
    (root / "gone.py").unlink()
    (root / "link.py").symlink_to("a.py")
    assert read_tree(root).skipped == {"gone.py": "deleted", "lib": "submodule", "link.py": "link"}


# -- what was written --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["README.md", "tests/test_a.py", "a.js"])
def test_a_line_moved_from_prose_or_a_test_or_another_language_is_new(source: str) -> None:
    """Taking `eval(text)` out of a page does not make it old in the code it comes to."""
    line = "value = eval(text)"
    text = patch_of(source, line, "nothing at all") + patch_of("app.py", "value = None", line)
    assert changed_lines(parse(text))["app.py"] == ((1, 1),)
    assert changed_lines(parse(text.replace(source, "old.py")))["app.py"] == ()


def test_spaces_within_a_line_of_python_are_no_change() -> None:
    """A formatter is not blamed for what it moves about; in other languages spaces may count."""
    text = patch_of("a.py", "x=eval( text )", "x = eval(text)")
    assert changed_lines(parse(text)) == {"a.py": ()}
    assert changed_lines(parse(text.replace("a.py", "a.sh"))) == {"a.sh": ((1, 1),)}


def test_lines_are_numbered_as_compilers_do(tmp_path: Path) -> None:
    """A form feed or U+2028 ends no line; a lone CR does, also where git counts one line only."""
    root = repository(tmp_path / "r", {"feed.py": "a = 1\n", "cr.py": b"a = 1\rb = 2\rc = 3"})
    write(root, {"feed.py": "a = 1\n\x0c\nb = '\u2028'\nc = 3\n", "cr.py": b"a = 1\rb = 2\rc = 4"})
    change = read_diff(root, "HEAD")
    assert change.changed == {"feed.py": ((2, 4),), "cr.py": ((1, 3),)}
    assert excerpt(root, "feed.py", None).split("\n")[-1] == "4: c = 3"


# -- patches -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("applied", [True, False])
def test_a_series_of_patches_to_one_file_is_one_change(tmp_path: Path, applied: bool) -> None:
    """Lines are numbered as they are in the end, whether the series is applied already or not."""
    root = repository(tmp_path / "r", {"a.py": BASE})
    write(root, {"a.py": BASE + "four = 4\n"})
    commit(root, "one")
    write(root, {"a.py": "zero = 0\n" + BASE.replace("two = 2", "two = 22") + "four = 4\n"})
    commit(root, "two")
    series = git(root, "format-patch", "-2", "--stdout")
    if not applied:
        git(root, "reset", "-q", "--hard", "HEAD~2")
    change = read_patch(root, series, "p", tmp_path / "keep")
    assert change.changed == {"a.py": ((1, 1), (3, 3), (5, 5))}
    assert (change.root / "a.py").read_text() == "zero = 0\none = 1\ntwo = 22\nthree = 3\nfour = 4\n"
    assert change.in_place == applied
    write(root, {"a.py": "another = file\n"})
    with pytest.raises(UsageError, match=r"changes a\.py more than once"):
        read_patch(root, series, "p", tmp_path / "keep")


def test_two_files_that_swap_names_are_no_series() -> None:
    """In one diff all names are of the same two moments."""
    from chargehand.apps.review.patch_series import compose_series

    head = "diff --git a/{0} b/{1}\nsimilarity index 90%\nrename from {0}\nrename to {1}\n"
    files = parse(head.format("a.py", "b.py") + head.format("b.py", "a.py"))
    assert [(file.old, file.new) for file in compose_series(files, lambda _: None)] == [
        ("a.py", "b.py"),
        ("b.py", "a.py"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("diff --cc a.py\n@@@ -1,1 -1,1 +1,2 @@@\n  one\n++two\n", "line 1: this is the diff of a merge"),
        ("diff --combined a.py\n", "line 1: this is the diff of a merge"),
        ("--- a/a.py\n+++ b/a.py\n@@ -1 +99999999999999999999 @@\n-a\n+b\n", "line 3"),
        (f"--- a/a.py\n+++ b/a.py\n@@ -1 +{'9' * 5000} @@\n-a\n+b\n", "line 3"),
        ("--- a/a.py\n+++ b/a.py\n@@ -1 +9999999999 @@\n-a\n+b\n", "line 3: .* names lines that no file has"),
        ("--- a/a.py\n+++ b/a.py\n@@ -0,1 +0,1 @@\n-a\n+b\n", "line 3: .* names lines that no file has"),
        ("--- a/a.py\n+++ b/a.py\n@@ -5 +5 @@\n-a\n+b\n@@ -2 +2 @@\n-a\n+b\n", "line 6: the hunk begins before"),
    ],
)
def test_what_is_no_plain_patch_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    """A merge reviewed as empty, or a number no file has, would be worse."""
    with pytest.raises(UsageError, match=said):
        read_patch(tmp_path, text, "p", tmp_path / "keep")


def test_a_hunk_far_beyond_any_file_costs_nothing(tmp_path: Path) -> None:
    """It is left out, with a note; the other files are reviewed."""
    text = patch_of("a.py", "one", "two") + "--- a/b.py\n+++ b/b.py\n@@ -900000000 +900000000 @@\n-a\n+b\n"
    change = read_patch(tmp_path, text, "p", tmp_path / "keep")
    assert list(change.files) == ["a.py"]
    assert any("1 file of the patch cannot be" in gap for gap in change.gaps)


@pytest.mark.parametrize("names", [("x", "x/y.py"), ("ok.py", "n" * 300 + ".py")])
def test_names_that_cannot_be_files_are_left_out(tmp_path: Path, names: tuple[str, str]) -> None:
    """The home is not to blame, and the other file is reviewed."""
    text = "".join(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x = 1\n" for name in names)
    change = read_patch(tmp_path, text, "p", tmp_path / "keep")
    assert list(change.files) == [names[0]]
    assert any("cannot be" in gap for gap in change.gaps)


def test_a_patch_made_in_a_folder_is_found_from_the_top(tmp_path: Path) -> None:
    """git writes names from the top of the work tree, wherever it is asked."""
    root = repository(tmp_path / "r", {"sub/a.py": BASE})
    write(root, {"sub/a.py": BASE + "four = 4\n"})
    text = git(root / "sub", "diff")
    git(root, "checkout", "-q", ".")
    change = read_patch(root / "sub", text, "p", tmp_path / "keep")
    assert (change.home, change.fragments, change.changed) == (root, frozenset(), {"sub/a.py": ((4, 4),)})


def test_a_hunk_goes_where_its_lines_are_whatever_number_it_has(tmp_path: Path) -> None:
    """A patch cannot name another line as changed than the one it writes."""
    write(tmp_path, {"a.py": BASE})
    text = "--- a/a.py\n+++ b/a.py\n@@ -2 +7 @@\n-two = 2\n+two = eval(x)\n"
    change = read_patch(tmp_path, text, "p", tmp_path / "keep")
    assert change.changed == {"a.py": ((2, 2),)}


# -- who looks ---------------------------------------------------------------------------------------------------------


def test_of_a_fragment_secrets_are_looked_for_and_what_cannot_look_is_said(tmp_path: Path) -> None:
    """A patch that does not apply gets every lens that needs no whole file."""
    write(tmp_path, {"a.py": "something = else_\n"})
    change = read_patch(tmp_path, patch_of("a.py", "one", "two"), "p", tmp_path / "keep")
    assert change.fragments == {"a.py"}
    tasks = {task.worker: task.context for task in make_review_plan(change, model=False).tasks}
    security = tasks["security"]
    assert isinstance(security, dict)
    assert (security["analyzers"], security["files"]) == (["secrets"], ["a.py"])
    assert "style" not in tasks
    (gap,) = unreviewed_gaps(change)
    assert gap.reason == "The patch was not made for a.py as here."
    assert "bandit" in gap.impact


def test_beside_a_patch_nobody_looks_for_what_the_tree_does_not_mention(tmp_path: Path) -> None:
    """Its files alone are no tree: every name would be dead, and every function untested."""
    write(tmp_path, {"a.py": "one\n", "b.py": "import a\n"})
    change = read_patch(tmp_path, patch_of("a.py", "one", "two"), "p", tmp_path / "keep")
    tasks = {task.worker: task.context for task in make_review_plan(change, model=False).tasks}
    style = tasks["style"]
    assert isinstance(style, dict)
    assert style["analyzers"] == ["ruff-style", "unreachable"]
    assert "tests" not in tasks
    assert any("dead-code, untested and history did not look" in note for note in unable(change))


@pytest.mark.parametrize("name", ["win.pyw", "LOUD.PY", "bin/tool"])
def test_python_is_known_by_any_ending_and_by_its_first_line(tmp_path: Path, name: str) -> None:
    """Every lens of Python gets it."""
    write(tmp_path, {name: "#!/usr/bin/env python3\nimport os\n"})
    workers = {task.worker for task in make_review_plan(read_tree(tmp_path), model=False).tasks}
    assert {"bugs", "style", "performance"} <= workers


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b'"""Makes autogenerated ids by counting."""\nimport os\n', None),
        (b"# Tools for ids.\nimport os\n# This file was generated. Do not edit.\n", None),
        (b"#!/usr/bin/env python\n# Autogenerated by a tool.\nimport os\n", "generated"),
        (b"/* @generated */\nint x;\n", "generated"),
    ],
)
def test_only_a_comment_at_the_head_makes_a_file_generated(head: bytes, reason: str | None) -> None:
    """A docstring or a later comment is about something else."""
    assert why_not_by_content(head) == reason
