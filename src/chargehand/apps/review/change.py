"""A folder or a file -> the files to review, and why others were left out; for a change, the lines it wrote."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from chargehand.apps.review import work_tree as git
from chargehand.apps.review.analyzers.source_files import UNREAD
from chargehand.apps.review.file_kinds import LARGEST, NOT_SOURCE, Reason, why_not
from chargehand.apps.review.patch import Ranges, ranges
from chargehand.errors import UsageError
from chargehand.trace.number_text import several
from chargehand.workers.analyzer import name_files

# The most that one review takes.
MOST_FILES = 10_000
MOST_BYTES = 50_000_000

_WHY: dict[Reason, str] = {
    "binary": "binary",
    "generated": "generated",
    "vendored": "vendored",
    "lock file": "lock file",
    "too large": f"over {LARGEST // 10**6} MB",
    "link": "link",
    "submodule": "submodule",
    "special": "special file",
    "deleted": "deleted",
    "unreadable": "unreadable",
}
_COUNTED: frozenset[Reason] = frozenset({"lock file", "link", "submodule", "special"})


@dataclass(frozen=True, slots=True)
class Change:
    """The code to review. Paths are relative to `root`, with forward slashes."""

    # The folder where files are read, and the folder of the user: they differ for a patch that is not applied yet.
    root: Path
    home: Path
    # Path -> bytes.
    files: Mapping[str, int]
    # Path -> lines the change wrote; None when whole files are reviewed.
    changed: Mapping[str, Ranges] | None = None
    # The commit the change is measured against.
    base: str | None = None
    # Path -> the lines next to removed lines, where no line was written.
    beside_removed: Mapping[str, Ranges] = field(default_factory=dict[str, Ranges])
    # Files of which only the changed lines are known.
    fragments: frozenset[str] = frozenset()
    skipped: Mapping[str, Reason] = field(default_factory=dict[str, Reason])
    notes: tuple[str, ...] = ()
    # Sentences about code that could not be reviewed.
    gaps: tuple[str, ...] = ()

    @property
    def in_place(self) -> bool:
        """Whether the files are read in their tree, not from a copy."""
        return self.root == self.home

    @property
    def nothing(self) -> str | None:
        """A sentence why there is nothing to review; None if there is something."""
        if self.files:
            too_many = len(self.files) > MOST_FILES or sum(self.files.values()) > MOST_BYTES
            limit = f"more than {MOST_FILES:,} files or {MOST_BYTES // 10**6} MB"
            why = f"Too large for one review ({limit}): name a folder, or a revision to compare with."
            return why if too_many else None
        if self.skipped:
            kinds = set(self.skipped.values())
            if kinds == {"lock file"}:
                return "Nothing to review: only lock files are there."
            return f"Nothing to review: {_count_skipped(self.skipped)}."
        if self.gaps:
            return "Nothing to review."
        return "Nothing to review: there are no files." if self.changed is None else "Nothing to review: no change."


def read_tree(path: Path) -> Change:
    """All files under a folder, or one file; the files known to git if there is a repository."""
    root, inside, in_repository = place(path)
    if path.is_file():
        names: Iterable[str] = [inside]
    else:
        names = _list_by_git(root, inside) if in_repository else ()
        names = names or _walk_files(root, inside)
    return make_change(root, names)


def make_change(
    root: Path,
    names: Iterable[str],
    *,
    changed: Mapping[str, Ranges] | None = None,
    base: str | None = None,
    home: Path | None = None,
    gone: Iterable[str] = (),
    beside_removed: Mapping[str, Ranges] | None = None,
) -> Change:
    """The review of these files, without those not worth a review. Files in `gone` were deleted."""
    files: dict[str, int] = {}
    skipped: dict[str, Reason] = dict.fromkeys(gone, "deleted")
    unnameable: list[str] = []
    for name in sorted(set(names)):
        if len(files) > MOST_FILES:
            break  # already too many
        if not _is_text(name):
            unnameable.append(os.fsencode(name).decode("utf-8", "backslashreplace"))
        elif (reason := why_not(root, name)) is None:
            files[name] = os.path.getsize(root / name)
        else:
            skipped[name] = reason
    notes = [f"Not reviewed: {_count_skipped(skipped)}."] if skipped and files else []
    unreadable = [name for name, reason in skipped.items() if reason == "unreadable"]
    gaps = [f"The name is not UTF-8: {name_files(unnameable)}. Rename it."] if unnameable else []
    gaps += [f"{UNREAD}: {name_files(unreadable)}."] if unreadable else []
    if changed is not None:
        changed = {name: _recount_ranges(root, name, own) if name in files else own for name, own in changed.items()}
    beside = {name: own for name, own in (beside_removed or {}).items() if name in files}
    return Change(
        root,
        home or root,
        files,
        changed,
        base,
        beside_removed=beside,
        skipped=skipped,
        notes=tuple(notes),
        gaps=tuple(gaps),
    )


class Place(NamedTuple):
    """The folder that names are relative to (the work tree, if there is one), and the place of a path in it."""

    root: Path
    inside: str
    in_repository: bool


def place(path: Path, *, tree: bool = True) -> Place:
    """The place of a path; without `tree`, in its own folder."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise UsageError(f"There is no file or folder {path}: name a folder or a file to review.") from None
    folder = real if real.is_dir() else real.parent
    top = git.top(folder) if tree else None
    root = folder if top is None else top
    inside = real.relative_to(root).as_posix() if real.is_relative_to(root) else ""
    return Place(root, "" if inside == "." else inside, top is not None)


def all_lines(path: Path) -> Ranges:
    """Every line of a file, as git counts them."""
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST:
            return ()
        data = path.read_bytes()
    except OSError:
        return ()
    return ranges(range(1, data.count(b"\n") + 1 + bool(data and not data.endswith(b"\n"))))


def _recount_ranges(root: Path, name: str, own: Ranges) -> Ranges:
    """Lines as compilers count them; for git, a CR alone does not end a line."""
    try:
        data = (root / name).read_bytes() if own else b""
    except OSError:
        return own
    if data.count(b"\r") == data.count(b"\r\n"):
        return own
    wanted = {number for first, last in own for number in range(first, last + 1)}
    found: list[int] = []
    at = 1
    for number, line in enumerate(data.split(b"\n"), 1):
        after = at + line.removesuffix(b"\r").count(b"\r") + 1
        if number in wanted:
            found += range(at, after)
        at = after
    return ranges(found)


def _count_skipped(skipped: Mapping[str, Reason]) -> str:
    counts = Counter(skipped.values()).most_common()
    words = (several(n, _WHY[reason]) if reason in _COUNTED else f"{n:,} {_WHY[reason]}" for reason, n in counts)
    return ", ".join(words)


def _list_by_git(root: Path, inside: str) -> list[str]:
    where = ("--", inside) if inside else ()
    try:
        return names_in(git.ask(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", *where))
    except git.GitFailed:
        return []


def _walk_files(root: Path, inside: str) -> Iterator[str]:
    for folder, folders, names in os.walk(root / inside, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in NOT_SOURCE)
        below = os.path.relpath(folder, root).replace(os.sep, "/")
        yield from (name if below == "." else f"{below}/{name}" for name in sorted(names))


def names_in(data: bytes) -> list[str]:
    """Names from a text with a zero byte after each."""
    return [os.fsdecode(name) for name in data.split(b"\0") if name]


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
