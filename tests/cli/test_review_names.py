"""Files whose names git puts in quotes: reviewed under their real names, wherever the change is read from."""

from __future__ import annotations

import json

import pytest

from tests.apps.review.world import git, repository, write
from tests.cli.terminal import Shell

BAD = "def run(text):\n    return eval(text)\n"
# Each is one that git writes in quotes, with octal escapes or without, or that looks like something else in a header.
NAMES = (
    'a "b" c.py',
    "back\\slash.py",
    "tab\tbed.py",
    "new\nline.py",
    "carriage\rreturn.py",
    "ünï cödé.py",
    'ü" b/x.py',
    "x b/y b/x.py",
    "b/a b.py",
    "bell\x07\\303.py",
    "日本/語.py",
    "-x y.py",
    '"quoted".py',
    "trailing \\.py",
)


@pytest.mark.parametrize(("added", "quoted"), [(True, "true"), (False, "false")], ids=["added", "changed"])
def test_names_that_git_quotes_are_reviewed_under_their_real_name(shell: Shell, added: bool, quoted: str) -> None:
    """As a difference, staged, and as a patch that is applied or not; no file that was added is called deleted."""
    before = {"first.py": "x = 1\n"} if added else dict.fromkeys(NAMES, "x = 1\n")
    root = repository(shell.folder / "r", before)
    git(root, "config", "core.quotePath", quoted)
    write(root, dict.fromkeys(NAMES, BAD))
    (root / "empty .py").touch()
    git(root, "add", "-A")
    patch = git(root, "diff", "--cached").encode()
    ways: list[tuple[tuple[object, ...], bytes]] = [
        (("--diff", "HEAD"), b""),
        (("--staged",), b""),
        (("--patch", "-"), patch),
        (("--patch", "-"), patch),
    ]
    for number, (flags, given) in enumerate(ways):
        if number == 3:
            git(root, "reset", "-q", "--hard")
        report = shell("review", root, *flags, "--format", "json", stdin=given).json
        found = {f["path"] for f in report["findings"] if f["category"] == "code-injection"}
        assert found == set(NAMES), flags
        assert "deleted" not in json.dumps(report["notes"]), flags
        assert report["gaps"] == [], flags


def test_files_that_move_to_quoted_names_are_read_there(shell: Shell) -> None:
    """Rename headers are quoted too; nothing that was there before is blamed on the move."""
    old = {f"old name {number}.py": f"{BAD}\n\n{f'x = {number}' * 20}\n" for number in range(len(NAMES))}
    root = repository(shell.folder / "r", old)
    for before, name in zip(old, NAMES, strict=True):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / before).rename(root / name)
    git(root, "add", "-A")
    patch = git(root, "diff", "--cached", "-M").encode()
    assert patch.count(b"\nrename to ") == len(NAMES)
    git(root, "reset", "-q", "--hard")
    report = shell("review", root, "--patch", "-", "--format", "json", "--all", stdin=patch).json
    assert [f["category"] for f in report["findings"]] == []
    assert {f["path"] for f in report["data"]["left_out"]} == set(NAMES)
