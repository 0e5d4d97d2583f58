"""A folder, a revision or a patch -> the files to review, the lines that changed, and what was left out and why."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from chargehand.analyzers.git import PLAIN
from chargehand.errors import UsageError
from chargehand.review import git
from chargehand.review.files import LARGEST, NOT_SOURCE, Reason, why_not
from chargehand.review.patch import FilePatch, Ranges, changed_lines, parse, ranges
from chargehand.review.snapshot import snapshot

# More than this is not one review: name a folder, or a base.
MOST_FILES = 10_000
MOST_BYTES = 50_000_000
LARGEST_DIFF = 50_000_000

_WHY: dict[Reason, str] = {
    "binary": "binary",
    "generated": "generated",
    "vendored": "vendored",
    "lock file": "lock files",
    "too large": f"over {LARGEST // 10**6} MB",
    "link": "links",
    "unreadable": "unreadable",
}


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be reviewed. Paths are relative to `root`, with forward slashes."""

    # Where the files are read, and the folder the user sees them in: they differ for a patch not applied yet.
    root: Path
    home: Path
    # Path -> bytes.
    files: Mapping[str, int]
    # Path -> lines the change wrote; None when whole files are reviewed.
    changed: Mapping[str, Ranges] | None = None
    # The commit the change is measured against.
    base: str | None = None
    # Files of which only the changed lines are known.
    fragments: frozenset[str] = frozenset()
    skipped: Mapping[str, Reason] = field(default_factory=dict[str, Reason])
    notes: tuple[str, ...] = ()

    @property
    def nothing(self) -> str | None:
        """Why there is nothing to review, in a sentence; None when there is something."""
        if self.files:
            too_many = len(self.files) > MOST_FILES or sum(self.files.values()) > MOST_BYTES
            limit = f"more than {MOST_FILES:,} files or {MOST_BYTES // 10**6} MB"
            return f"Too large for one review ({limit}): name a folder, or a base with --diff." if too_many else None
        if self.skipped:
            kinds = set(self.skipped.values())
            if kinds == {"lock file"}:
                return "Nothing to review: only lock files are there."
            return f"Nothing to review: {_counted(self.skipped)}."
        return "Nothing to review: there are no files." if self.changed is None else "Nothing to review: no change."


def read_tree(path: Path) -> Change:
    """All files under a folder, or one file, as git knows them where it does."""
    root, inside = _place(path)
    if path.is_file():
        names: Iterable[str] = [inside]
    else:
        names = _listed_by_git(root, inside) if git.top(root) is not None else ()
        names = names or _walked(root, inside)
    return _change(root, names)


def read_diff(path: Path, base: str) -> Change:
    """What differs between the merge base of BASE and HEAD and the work tree, files not added yet included."""
    root, inside = _place(path)
    if git.top(root) is None:
        raise UsageError(f"{path} is not in a git repository: --diff needs one. Leave it out, or use --patch.")
    commit = _merge_base(root, base)
    flags = (*PLAIN, "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "-M", "-U0")
    flags = (*flags, "--inter-hunk-context=0", "--no-relative")
    where = ("--", inside) if inside else ("--",)
    try:
        text = git.ask(root, "diff", *flags, commit, *where, largest=LARGEST_DIFF).decode("utf-8", "surrogateescape")
        added = git.ask(root, "ls-files", "-z", "--others", "--exclude-standard", *where)
    except git.GitFailed as error:
        raise UsageError(f"The difference to {base} cannot be read: {error}.") from None
    patches = parse(text, "git diff")
    changed = changed_lines(patches)
    for name in _names(added):
        changed[name] = _all_lines(root / name)
    return _change(root, [name for name in changed if name], changed=changed, base=commit)


def read_patch(path: Path, text: str, name: str, keep: Path) -> Change:
    """What a patch writes. Files as they will be are kept under `keep`, unless the tree has them already."""
    root, _ = _place(path, tree=False)
    files, notes = _confined(parse(text, name))
    changed = changed_lines(files)
    gone = [file.new for file in files if file.new is not None and file.binary]
    whole = [file for file in files if file.new is not None and not file.binary]
    taken = snapshot(root, whole, keep)
    if taken.fragments:
        some = f"{len(taken.fragments)} files differ from what the patch was made for"
        notes.append(f"{some}: only its own lines of them are checked, by what needs no more.")
    found = _change(taken.root, [file.new for file in whole if file.new], changed=changed, home=root)
    skipped: dict[str, Reason] = {**found.skipped, **dict.fromkeys(gone, "binary")}
    return Change(
        found.root,
        root,
        found.files,
        changed,
        None,
        taken.fragments,
        skipped,
        (*found.notes, *notes),
    )


def _change(
    root: Path,
    names: Iterable[str],
    *,
    changed: Mapping[str, Ranges] | None = None,
    base: str | None = None,
    home: Path | None = None,
) -> Change:
    files: dict[str, int] = {}
    skipped: dict[str, Reason] = {}
    unnameable = 0
    for name in sorted(set(names)):
        if len(files) > MOST_FILES:
            break  # too many, whatever else there is
        if not _is_text(name):
            unnameable += 1
        elif (reason := why_not(root, name)) is None:
            files[name] = os.path.getsize(root / name)
        elif reason != "link":
            skipped[name] = reason
    notes = [f"Not reviewed: {_counted(skipped)}."] if skipped and files else []
    if unnameable:
        notes.append(f"{unnameable} files were left out: their names are not UTF-8.")
    return Change(root, home or root, files, changed, base, frozenset(), skipped, tuple(notes))


def _counted(skipped: Mapping[str, Reason]) -> str:
    counts = Counter(skipped.values())
    return ", ".join(f"{count:,} {_WHY[reason]}" for reason, count in counts.most_common())


def _place(path: Path, *, tree: bool = True) -> tuple[Path, str]:
    """The folder names start from (the work tree's where there is one) and where in it the path is."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise UsageError(f"There is no {path}: name a folder or a file to review.") from None
    folder = real if real.is_dir() else real.parent
    top = git.top(folder) if tree else None
    root = folder if top is None else top.resolve()
    inside = real.relative_to(root).as_posix() if real.is_relative_to(root) else ""
    return root, "" if inside == "." else inside


def _listed_by_git(root: Path, inside: str) -> list[str]:
    where = ("--", inside) if inside else ()
    try:
        return _names(git.ask(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", *where))
    except git.GitFailed:
        return []


def _walked(root: Path, inside: str) -> Iterator[str]:
    for folder, folders, names in os.walk(root / inside, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in NOT_SOURCE)
        below = os.path.relpath(folder, root).replace(os.sep, "/")
        yield from (name if below == "." else f"{below}/{name}" for name in sorted(names))


def _merge_base(root: Path, base: str) -> str:
    def commit_of(name: str) -> str:
        said = git.ask(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        return said.decode().strip()

    try:
        head = commit_of("HEAD")
    except git.GitFailed:
        raise UsageError(
            "The repository has no commit yet: there is nothing to compare with. Leave --diff out."
        ) from None
    try:
        commit = commit_of(base)
    except git.GitFailed:
        hint = "name a branch, a tag or a commit; in a fresh clone fetch it first"
        raise UsageError(f"There is no revision {base!r} in {root}: {hint}.") from None
    try:
        return git.ask(root, "merge-base", commit, head).decode().split()[0]
    except (git.GitFailed, IndexError):
        raise UsageError(
            f"{base!r} and HEAD have no commit in common; a shallow clone may lack it (`git fetch --unshallow`)."
        ) from None


def _names(data: bytes) -> list[str]:
    return [os.fsdecode(name) for name in data.split(b"\0") if name]


def _all_lines(path: Path) -> Ranges:
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST:
            return ()
        count = len(path.read_bytes().splitlines())
    except OSError:
        return ()
    return ranges(range(1, count + 1))


def _confined(files: list[FilePatch]) -> tuple[list[FilePatch], list[str]]:
    """Without files that lie outside of the tree."""
    inside = [file for file in files if all(_is_inside(name) for name in (file.old, file.new))]
    outside = len(files) - len(inside)
    return inside, [f"{outside} files of the patch lie outside of the tree and were left out."] if outside else []


def _is_inside(name: str | None) -> bool:
    if name is None:
        return True
    parts = name.split("/")
    return bool(name) and not name.startswith("/") and ".." not in parts and ".git" not in parts and "\0" not in name


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
