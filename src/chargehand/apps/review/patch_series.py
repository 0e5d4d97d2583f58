"""Several patches to one file, one after the other -> one patch from its first to its last version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from chargehand.apps.review.patch import FilePatch, Hunk, apply_hunks, fits
from chargehand.errors import UsageError

Lines = Callable[[str], list[str] | None]


def compose_series(files: Sequence[FilePatch], lines: Lines) -> list[FilePatch]:
    """The patches, each file once. `lines` reads a file of the tree, from before the series or after it."""
    if not _is_series(files):
        return list(files)
    chains: list[list[FilePatch]] = []
    for file in files:
        chain = None if file.copied else next((each for each in chains if each[-1].new == (file.old or file.new)), None)
        if chain is None:
            chains.append([file])
        else:
            chain.append(file)
    return [chain[0] if len(chain) == 1 else _one(chain, lines) for chain in chains]


def _is_series(files: Sequence[FilePatch]) -> bool:
    """Whether a file is changed twice. A single diff has each name once on each side, even if two files swap."""
    own = [file for file in files if not file.copied]
    names = Counter(file.new for file in own if file.new) | Counter(file.old for file in own if file.old)
    return any(count > 1 for count in names.values())


def _one(chain: list[FilePatch], lines: Lines) -> FilePatch:
    first, last = chain[0], chain[-1]
    if any(file.binary for file in chain):
        return FilePatch(first.old, last.new, binary=True, line=first.line)
    name = last.new or first.old or first.new or ""
    if (base := _base(chain, lines)) is None:
        raise UsageError(
            f"The patch changes {name} more than once and does not fit the file as it is here: "
            "make one diff of the whole (`git diff A...B`) and give that."
        )
    return FilePatch(first.old, last.new, hunks=_hunks(base, chain), line=first.line)


def _base(chain: list[FilePatch], lines: Lines) -> list[str] | None:
    """The file before the first patch: as in the tree, or with all patches reverted."""
    first, last = chain[0], chain[-1]
    before = [] if first.old is None else lines(first.old)
    if before is not None and _goes_through(before, chain):
        return before
    now = [] if last.new is None else lines(last.new)
    for file in reversed(chain):
        if now is None or not fits(now, file.hunks, " +"):
            return None
        back = [Hunk(hunk.new, hunk.old, [(_BACK[mark], text) for mark, text in hunk.lines]) for hunk in file.hunks]
        now = apply_hunks(now, back, str)
    return now


_BACK = {" ": " ", "+": "-", "-": "+"}


def _goes_through(before: list[str], chain: list[FilePatch]) -> bool:
    now = before
    for file in chain:
        if not fits(now, file.hunks, " -"):
            return False
        now = apply_hunks(now, file.hunks, str)
    return True


def _hunks(base: list[str], chain: list[FilePatch]) -> list[Hunk]:
    """The hunks from the base to the end of the chain, without context."""
    # Each line with its line number in the base; None for an added line.
    now: list[tuple[int | None, str]] = list(enumerate(base))
    for file in chain:
        now = apply_hunks(now, file.hunks, lambda text: (None, text))
    found: list[Hunk] = []
    at = 0
    hunk: Hunk | None = None
    for number, (origin, text) in enumerate([*now, (len(base), "")], 1):
        if origin is None or origin > at:
            if hunk is None:
                hunk = Hunk(at + 1, number)
                found.append(hunk)
            if origin is None:
                hunk.lines.append(("+", text))
                continue
            hunk.lines += [("-", gone) for gone in base[at:origin]]
        assert origin is not None
        at, hunk = origin + 1, None
    return found
