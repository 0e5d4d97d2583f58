"""Unified diffs of every kind are read, or refused with the line where they break."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargehand.apps.review.author_lines import changed_lines
from chargehand.apps.review.patch import parse
from chargehand.errors import UsageError
from tests.apps.review.world import git, repository, write

PLAIN = """--- a/one.py\t2024-01-01
+++ b/one.py\t2024-01-02
@@ -1,3 +1,4 @@
 first
-second
+other
+more
 third
"""


def test_a_plain_diff_names_its_file_and_the_lines_it_writes() -> None:
    """`diff -u` output without git's headers is enough."""
    (file,) = parse(PLAIN)
    assert (file.old, file.new) == ("one.py", "one.py")
    assert changed_lines([file]) == {"one.py": ((2, 3),)}


def test_windows_line_ends_in_a_patch_change_nothing() -> None:
    """A patch saved with CRLF says the same."""
    assert changed_lines(parse(PLAIN.replace("\n", "\r\n"))) == {"one.py": ((2, 3),)}


def test_git_renames_deletions_modes_and_binaries_are_told_apart(tmp_path: Path) -> None:
    """What git writes in headers decides what a file was and is."""
    root = repository(
        tmp_path / "r", {"old name.py": "a = 1\nb = 2\nc = 3\nd = 4\n", "gone.py": "x = 1\n", "pic.png": b"\x89PNG\0\1"}
    )
    git(root, "mv", "old name.py", "new name.py")
    git(root, "rm", "-q", "gone.py")
    write(root, {"new name.py": "a = 1\nb = 2\nc = 30\nd = 4\n", "pic.png": b"\x89PNG\0\2", "fresh.py": "y = 1\n"})
    git(root, "add", "-A")
    files = {(file.old, file.new): file for file in parse(git(root, "diff", "-M", "--cached"))}
    assert set(files) == {
        ("old name.py", "new name.py"),
        ("gone.py", None),
        ("pic.png", "pic.png"),
        (None, "fresh.py"),
    }
    assert ("old name.py", "new name.py") in files
    assert files["pic.png", "pic.png"].binary
    assert changed_lines(list(files.values())) == {"new name.py": ((3, 3),), "pic.png": (), "fresh.py": ((1, 1),)}


@pytest.mark.parametrize("setting", ["diff.mnemonicPrefix=true", "diff.noprefix=true"])
@pytest.mark.parametrize("what", [(), ("--cached",), ("HEAD",), ("-R", "HEAD")])
def test_names_are_the_same_whatever_git_writes_before_them(
    tmp_path: Path, setting: str, what: tuple[str, ...]
) -> None:
    """Letters for what is compared, or nothing; in a folder of one letter too."""
    files = {"a/x.py": "x = 1\n", "c/gone.py": "y = 1\n", "i/old name.py": "".join(f"z{n} = 1\n" for n in range(9))}
    root = repository(tmp_path / "r", files)
    (root / "w").mkdir()
    git(root, "mv", "i/old name.py", "w/new name.py")
    git(root, "rm", "-q", "c/gone.py")
    write(root, {"a/x.py": "x = 2\n", "b/new.py": "n = 1\n"})
    git(root, "add", "-A")
    write(root, {"a/x.py": "x = 3\n"})
    write(root, {"w/new name.py": files["i/old name.py"] + "more = 1\n"})
    names = [(file.old, file.new) for file in parse(git(root, "-c", setting, "diff", "-M", *what))]
    assert names == [(file.old, file.new) for file in parse(git(root, "diff", "-M", *what))]
    assert all(name is None or name.split("/")[0] in "abciw" for pair in names for name in pair)


@pytest.mark.parametrize(
    "name", ['quo"te.py', "new\nline.py", "tab\there.py", "ünï.py", "a b/c d.py", "back\\slash.py", "--x.py"]
)
def test_names_are_read_as_git_quotes_them(tmp_path: Path, name: str) -> None:
    """Quotes, newlines, tabs, other alphabets and leading dashes come through."""
    root = repository(tmp_path / "r", {"keep.py": "k = 1\n"})
    write(root, {name: "x = 1\n"})
    git(root, "add", "-A")
    for quote in ("true", "false"):
        (file,) = parse(git(root, "-c", f"core.quotePath={quote}", "diff", "--cached"))
        assert file.new == name


def test_a_line_that_was_only_moved_or_indented_was_not_written() -> None:
    """Moving code to another place or another file does not make its problems new."""
    moved = """--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@
-dangerous(call)
+if ready:
+    dangerous(call)
-other(call)
"""
    assert changed_lines(parse(moved)) == {"a.py": ((1, 1),)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello\nworld\n", "not a unified diff"),
        ("@@ -1 +1 @@\n-a\n+b\n", "a hunk without a file"),
        ("--- a/x\n+++ b/x\n@@ nonsense @@\n-a\n", "is not a hunk header"),
        ("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n", "ends early"),
        ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n*b\n", "begins with"),
        ("--- a/x\n+++ b/x\n@@ -1,1 +1,2 @@\n a\n b\n", "more lines than its header"),
    ],
)
def test_a_malformed_patch_is_refused_with_its_line(text: str, said: str) -> None:
    """One sentence: where it stops being a unified diff."""
    with pytest.raises(UsageError, match=said):
        parse(text)


def test_an_empty_patch_changes_nothing() -> None:
    """No text, no files."""
    assert parse("") == []
    assert parse("\n\n") == []
