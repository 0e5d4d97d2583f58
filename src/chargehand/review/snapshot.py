"""A patch and the tree it is for -> the files as the patch leaves them, without touching the tree."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chargehand.journal.disk import private_folder, storage
from chargehand.review.patch import FilePatch, Hunk


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where the files are, and those of which only the lines the patch shows are known."""

    root: Path
    fragments: frozenset[str]


def snapshot(root: Path, files: Sequence[FilePatch], keep: Path) -> Snapshot:
    """The tree itself where it has all files as the patch leaves them, else a copy of just those files under `keep`.

    The copy is named by its content, so that a run that is resumed finds it again.
    """
    contents: dict[str, bytes] = {}
    fragments: set[str] = set()
    there = True
    for file in files:
        assert file.new is not None
        now = _lines(root, file.new)
        if now is not None and _fits(now, file.hunks, " +"):
            contents[file.new] = _joined(now)
            continue
        there = False
        before = [] if file.old is None else _lines(root, file.old)
        if before is not None and _fits(before, file.hunks, " -"):
            contents[file.new] = _joined(_applied(before, file.hunks))
        else:
            contents[file.new] = _joined(_shown(file.hunks))
            fragments.add(file.new)
    if there:
        return Snapshot(root, frozenset())
    whole = hashlib.sha256()
    for name, data in sorted(contents.items()):
        whole.update(name.encode("utf-8", "surrogateescape") + b"\0" + hashlib.sha256(data).digest())
    folder = keep / whole.hexdigest()[:32]
    private_folder(keep)
    for name, data in contents.items():
        path = folder / name
        private_folder(path.parent)
        with storage(path):
            path.write_bytes(data)
    return Snapshot(folder.resolve(), frozenset(fragments))


def _lines(root: Path, name: str) -> list[str] | None:
    """The lines of a file inside of the tree, without their ends; None when there is none."""
    path = os.path.realpath(root / name)
    if os.path.commonpath([os.path.realpath(root), path]) != os.path.realpath(root) or not os.path.isfile(path):
        return None
    try:
        text = Path(path).read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return None
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


def _fits(lines: list[str], hunks: Sequence[Hunk], marks: str) -> bool:
    """Whether every hunk's lines of that side stand where it says."""
    for hunk in hunks:
        start = (hunk.new if "+" in marks else hunk.old) - 1
        side = hunk.side(marks)
        if lines[start : start + len(side)] != side:
            return False
    return True


def _applied(lines: list[str], hunks: Sequence[Hunk]) -> list[str]:
    result: list[str] = []
    at = 0
    for hunk in hunks:
        result += lines[at : hunk.old - 1]
        result += hunk.side(" +")
        at = hunk.old - 1 + len(hunk.side(" -"))
    return result + lines[at:]


def _shown(hunks: Sequence[Hunk]) -> list[str]:
    """The lines the patch shows, each at its number; what lies between is empty."""
    result: list[str] = []
    for hunk in hunks:
        result += [""] * (hunk.new - 1 - len(result))
        result += hunk.side(" +")
    return result


def _joined(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
