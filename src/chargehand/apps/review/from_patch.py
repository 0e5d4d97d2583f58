"""A patch -> the change it makes to its tree, whether it is applied there or not."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from chargehand.apps.review import work_tree as git
from chargehand.apps.review.author_lines import beside_removed, changed_lines
from chargehand.apps.review.change import Change, make_change, place
from chargehand.apps.review.file_kinds import Reason, why_not
from chargehand.apps.review.patch import FilePatch, parse
from chargehand.apps.review.patch_series import compose_series
from chargehand.apps.review.patched_files import lines_of, snapshot
from chargehand.trace.number_text import several


def read_patch(path: Path, text: str, name: str, keep: Path) -> Change:
    """The change of a patch. The patched files are written to `keep`, unless the tree already has them."""
    files, gaps = _confine(parse(text, name))
    root = _root(path, files)
    files = compose_series(files, partial(lines_of, root))
    hidden = [file.new for file in files if file.new is not None and file.binary]
    whole = [file for file in files if file.new is not None and not file.binary]
    taken = snapshot(root, whole, keep)
    # Only now, because hunks were moved to where their lines are.
    possible = [file for file in files if file.new not in taken.impossible]
    changed, beside = changed_lines(possible), beside_removed(possible)
    if taken.impossible:
        some = several(len(taken.impossible), "file")
        gaps.append(f"{some} of the patch cannot be written here, for its name or size: not reviewed.")
    if texts := [name for name in hidden if why_not(root, name) is None]:
        said = f"{several(len(texts), 'file')} of text that the patch calls binary, without lines"
        gaps.append(f"{said}: not reviewed. Make the patch with `git diff --text`.")
    names = [file.new for file in whole if file.new and file.new not in taken.impossible]
    gone = [file.old for file in files if file.new is None and file.old]
    found = make_change(taken.root, names, changed=changed, home=root, gone=gone, beside_removed=beside)
    skipped: dict[str, Reason] = {**found.skipped, **dict.fromkeys(hidden, "binary")}
    return replace(found, fragments=taken.fragments, skipped=skipped, gaps=(*gaps, *found.gaps))


def _root(path: Path, files: list[FilePatch]) -> Path:
    """The folder that names are relative to: git writes them from the top of the work tree, wherever it is started."""
    folder = place(path, tree=False).root
    top = git.top(folder)
    names = [name for file in files for name in (file.old, file.new) if name is not None]
    if top is None or top == folder or _count_known(folder, names) >= _count_known(top, names):
        return folder
    return top


def _count_known(root: Path, names: list[str]) -> tuple[int, int]:
    """How many of the files exist, and how many of their folders."""
    there = sum(os.path.lexists(root / name) for name in names)
    return there, sum("/" in name and os.path.isdir((root / name).parent) for name in names)


def _confine(files: list[FilePatch]) -> tuple[list[FilePatch], list[str]]:
    """The files inside the tree, and a sentence about the others."""
    inside = [file for file in files if all(_is_inside(name) for name in (file.old, file.new))]
    outside = len(files) - len(inside)
    refused = f"{several(outside, 'file')} of the patch outside of the tree: not reviewed."
    return inside, [refused] if outside else []


def _is_inside(name: str | None) -> bool:
    if name is None:
        return True
    parts = name.split("/")
    return bool(name) and not name.startswith("/") and ".." not in parts and ".git" not in parts and "\0" not in name
