"""A patch and the tree it is for -> the files as the patch leaves them, without touching the tree."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chargehand.apps.review.file_kinds import LARGEST
from chargehand.apps.review.patch import FilePatch, Hunk, apply_hunks, fits
from chargehand.record.private_files import private_folder
from chargehand.record.storage_errors import storage

# Limits of file systems in bytes, without the folder of the copy.
_LONGEST_PART = 255
_LONGEST_NAME = 2_000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The folder of the files, the files known only by the lines in the patch, and those that cannot be written."""

    root: Path
    fragments: frozenset[str]
    impossible: frozenset[str] = frozenset()


def snapshot(root: Path, files: Sequence[FilePatch], keep: Path) -> Snapshot:
    """The tree itself if it already has all patched files, else a copy of only these files under `keep`.

    Hunks are renumbered to where they apply. The copy is named by its content, so that a resumed run finds it again.
    """
    contents: dict[str, bytes] = {}
    fragments: set[str] = set()
    impossible: set[str] = set()
    there = True
    for file in files:
        assert file.new is not None
        now = lines_of(root, file.new)
        if now is not None and fits(now, file.hunks, " +"):
            contents[file.new] = _join_lines(now)
            continue
        there = False
        before = [] if file.old is None else lines_of(root, file.old)
        if before is not None and fits(before, file.hunks, " -"):
            contents[file.new] = _join_lines(apply_hunks(before, file.hunks, str))
            _renumber(file.hunks)
        elif max((hunk.new for hunk in file.hunks), default=0) > LARGEST:
            impossible.add(file.new)
        else:
            contents[file.new] = _join_lines(_visible_lines(file.hunks))
            fragments.add(file.new)
    if there:
        return Snapshot(root, frozenset())
    impossible |= write_snapshot(contents, keep)
    return Snapshot(folder_of(contents, keep).resolve(), frozenset(fragments), frozenset(impossible))


def write_snapshot(contents: Mapping[str, bytes], keep: Path) -> set[str]:
    """Write the files into their folder under `keep`. Returns the names that are not possible there."""
    folder = folder_of(contents, keep)
    impossible = {name for name in contents if _is_no_name(name, contents)}
    private_folder(folder)
    for name, data in contents.items():
        if name not in impossible:
            path = folder / name
            private_folder(path.parent)
            with storage(path):
                path.write_bytes(data)
    return impossible


def folder_of(contents: Mapping[str, bytes], keep: Path) -> Path:
    whole = hashlib.sha256()
    for name, data in sorted(contents.items()):
        whole.update(name.encode("utf-8", "surrogateescape") + b"\0" + hashlib.sha256(data).digest())
    return keep / whole.hexdigest()[:32]


def _is_no_name(name: str, names: Mapping[str, bytes]) -> bool:
    """Whether the name is too long for a file system, or another name needs a folder in its place."""
    parts = name.split("/")
    above = ("/".join(parts[:count]) for count in range(1, len(parts)))
    return (
        any(not part or part == "." or len(os.fsencode(part)) > _LONGEST_PART for part in parts)
        or len(os.fsencode(name)) > _LONGEST_NAME
        or any(folder in names for folder in above)
    )


def lines_of(root: Path, name: str) -> list[str] | None:
    """The lines of a file inside the tree as git counts them, without their ends; None when there is none."""
    try:
        path = os.path.realpath(root / name)
        if os.path.commonpath([os.path.realpath(root), path]) != os.path.realpath(root) or not os.path.isfile(path):
            return None
        text = Path(path).read_bytes().decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return None
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


def _renumber(hunks: Sequence[Hunk]) -> None:
    """Set the new line number of each hunk from its place, not from the patch."""
    shift = 0
    for hunk in hunks:
        hunk.new = hunk.old + shift
        shift += len(hunk.side(" +")) - len(hunk.side(" -"))


def _visible_lines(hunks: Sequence[Hunk]) -> list[str]:
    """The lines in the patch, each at its number, with empty lines between them."""
    result: list[str] = []
    for hunk in hunks:
        result += [""] * (hunk.new - 1 - len(result))
        hunk.new = len(result) + 1
        result += hunk.side(" +")
    return result


def _join_lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
