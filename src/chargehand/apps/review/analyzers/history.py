"""What the history of the changed lines says, as hits: fixes undone, fixed lines changed again, hot spots, old remarks.

Each message names the commit, so that a reader can look it up.
"""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from chargehand.apps.review.analyzers import git, pr_comments
from chargehand.apps.review.analyzers.hit import Hit, Hits
from chargehand.apps.review.analyzers.source_files import SourceReader, decode_source, is_test
from chargehand.engine.analyzer_port import Ranges, Scope
from chargehand.errors import AnalyzerFailed

if TYPE_CHECKING:
    from chargehand.apps.review.analyzers.lens import Lens

COMMITS = 200
# A file that changed this often in this time probably has more defects than others.
HOT_CHANGES = 15
HOT_MONTHS = 6
FILES_AT_ONCE = 4
# At least this many adjacent lines must come back.
LEAST_BACK = 2
# Prose and data, by their endings.
DATA = (
    *(".cfg", ".csv", ".ini", ".json", ".lock", ".md", ".po"),
    *(".rst", ".svg", ".toml", ".txt", ".xml", ".yaml", ".yml"),
)
# A larger change is a move or a reformatting; reading its history takes minutes and finds little.
MOST_FILES = 200
FIX = re.compile(r"(?i)\b(?:fix(?:e[sd])?|bug ?fix|hot-?fix|revert(?:s|ed)?|regression|rollback|cve-\d+)\b")
NO_FIX = re.compile(
    r"(?i)\bfix(?:e[sd])? (?:typos?|format\w*|lint\w*|docs?|whitespace|imports?|spelling|style|comments?|ci)\b"
)
PULL = re.compile(r"\(#(\d+)\)|Merge pull request #(\d+)")
INSTRUCTION = re.compile(r"(?im)^.*\b(?:must not|do not|don't|never|always|be careful|important:|note:)\b.*$")
# The confidence if only some of the lines that a fix removed are back.
IN_PART = 70
TRIVIAL = re.compile(
    r"[\W_]*|(?:else|try|finally|pass|return|break|continue|end|then|fi|done)\W*|(?:from|import)\b.*"
    # Names of an import over several lines, and trivial first values: they come and go by chance.
    r"|[\w.]+(?: as \w+)?(?:,\s*[\w.]+(?: as \w+)?)*,?\s*[\\)]?"
    r"|[\w.]+(?:\s*:[^=]+)?\s*=\s*(?:[01]|None|True|False|\[\]|\{\}|\(\)|''|\"\"|(?:set|dict|list)\(\))(?:\s*\#.*)?"
    # Numbers in settings go up and down.
    r"|[\"']\w+[\"']\s*:\s*-?[\d._]+,?(?:\s*\#.*)?"
)


@dataclass(frozen=True, slots=True)
class PastCommit:
    """A commit that touched a file, and the lines that it removed there."""

    id: str
    message: str
    removed: tuple[str, ...] = ()
    added: frozenset[str] = frozenset()

    @property
    def subject(self) -> str:
        return self.message.partition("\n")[0].strip()

    @property
    def name(self) -> str:
        """How a message refers to it."""
        pull = PULL.search(self.message)
        via = f", pull request #{pull[1] or pull[2]}" if pull and f"#{pull[1] or pull[2]}" not in self.subject else ""
        return f"{self.id[:8]} ({self.subject[:80]}{via})"

    @property
    def is_fix(self) -> bool:
        return bool(FIX.search(self.subject)) and not NO_FIX.search(self.subject)


# The option that says that the files are a copy, made for the review: its tree has no history.
COPIED = "copied"


async def analyze(scope: Scope, lens: Lens) -> Hits:
    hits, notes = pr_comments.examine(scope)
    if scope.options.get(COPIED):
        return Hits(tuple(hits), notes)
    if not await git.is_repository(scope.root):
        return Hits(tuple(hits), (*notes, "Not a git repository: its history was not looked at."))
    hits += await _hot_spots(scope)
    reader = SourceReader(scope.root)
    base = scope.base and await git.commit(scope.root, scope.base)
    if scope.changed is not None and base:
        gate = asyncio.Semaphore(FILES_AT_ONCE)
        # Also files in which lines were only removed.
        paths = [path for path in scope.files if path in scope.changed and reader.fits(path)]
        if len(paths) > MOST_FILES:
            notes = (*notes, f"Of {len(paths):,} files the history of the first {MOST_FILES} was looked at.")
        before = await git.read_files(scope.root, base, paths[:MOST_FILES])
        try:
            async with asyncio.TaskGroup() as group:
                looks = [_of_file(scope, base, path, old, reader, gate) for path, old in before.items()]
                tasks = [group.create_task(look) for look in looks]
        except* AnalyzerFailed as failed:
            raise AnalyzerFailed(str(failed.exceptions[0])) from None
        hits += _once_for_each_fix(hit for task in tasks for hit in task.result())
    return Hits(tuple(hits), notes, reader.unchecked_files())


def around(root: Path, hash: Callable[[str], str | None]) -> Iterator[str]:
    """The newest commit, because the counts of hot spots change with it, and where the history of a clone is cut."""
    said = asyncio.run(git.ask(root, "rev-parse", "HEAD", "--git-path", "shallow")) or ""
    yield said
    with suppress(OSError):
        yield (root / said.rstrip("\n").rpartition("\n")[2]).read_text() if said else ""


async def _hot_spots(scope: Scope) -> list[Hit]:
    """Files of the scope that many commits of the last months changed, counted back from the newest commit."""
    newest = await git.ask(scope.root, "log", "-1", "--format=%ct", "HEAD")
    if newest is None or not newest.strip():
        return []
    since = int(newest) - HOT_MONTHS * 30 * 86_400
    names = ("--format=", "--name-only", "-z", "--relative")
    log = await git.ask(scope.root, "log", "--no-merges", f"--since=@{since}", *names, *git.PLAIN, "HEAD")
    counts: dict[str, int] = {}
    for path in (log or "").split("\0"):
        counts[path.strip("\n")] = counts.get(path.strip("\n"), 0) + 1
    return [
        Hit("history:hot", path, _first(scope, path), f"{count} commits changed this file in {HOT_MONTHS} months.")
        for path in scope.files
        if (count := counts.get(path, 0)) >= HOT_CHANGES
    ]


def _first(scope: Scope, path: str) -> int:
    ranges = scope.changed.get(path) if scope.changed else None
    return ranges[0][0] if ranges else 1


async def _of_file(
    scope: Scope, base: str, path: str, old: bytes, reader: SourceReader, gate: asyncio.Semaphore
) -> list[Hit]:
    async with gate:
        source = reader.read(path)
        if source is None or scope.changed is None:
            return []
        before = decode_source(old).replace("\r\n", "\n").split("\n")
        # Tests are copied from each other, and versions in data files go up and down: their lines come and go.
        fixes = [] if is_test(path) or path.lower().endswith(DATA) else await _commits(scope, base, path)
        hits = list(_find_reintroduced(path, fixes, before, source.lines, scope.changed[path]))
        again = await _find_changed_again(scope, base, path, before, source.lines)
        if again is None:
            reader.count_unchecked("git could not read the history", path)
    return [*hits, *(again or ())]


async def _commits(scope: Scope, base: str, path: str) -> list[PastCommit]:
    """The fixes among the last commits of a file, with the lines that each removed and added."""
    wanted = (f"-{COMMITS}", "--no-merges", "--format=%x01%H%n%B%x02", "-p", "-U0")
    log = await git.ask(scope.root, "log", *wanted, *git.PLAIN, base, "--", path)
    found: list[PastCommit] = []
    for part in (log or "").split("\x01")[1:]:
        head, _, diff = part.partition("\x02")
        id, _, message = head.partition("\n")
        lines = diff.split("\n")
        removed = tuple(line[1:].strip() for line in lines if line.startswith("-") and not line.startswith("---"))
        added = frozenset(line[1:].strip() for line in lines if line.startswith("+") and not line.startswith("+++"))
        commit = PastCommit(id, message, removed, added)
        if commit.is_fix:
            found.append(commit)
    return found


def _find_reintroduced(
    path: str, commits: Iterable[PastCommit], before: Sequence[str], after: Sequence[str], ranges: Ranges
) -> Iterator[Hit]:
    """Changed lines that a fix had removed and that the base did not have, once for each fix.

    A single line may come back by chance: handlers, returns and calls look alike all over a file. So several adjacent
    lines must be back, or the replacement from the fix must be gone. If less than half of the lines that the fix
    removed from the file are back, the fix was probably moved: this is only a remark.
    """
    there, here = {line.strip() for line in before}, {line.strip() for line in after}
    written = [number for first, last in ranges for number in range(first, min(last, len(after)) + 1)]
    for commit in commits:
        gone = {line for line in commit.removed if line not in commit.added and line not in there and _is_telling(line)}
        back = [number for number in written if after[number - 1].strip() in gone]
        instead = {line for line in commit.added if line in there and line not in commit.removed and _is_telling(line)}
        least = 1 if instead and instead.isdisjoint(here) else LEAST_BACK
        if runs := [run for run in _runs(back) if len(run) >= least]:
            (first, *_), last = runs[0], runs[0][-1]
            said = "This line is" if first == last else f"Lines {first}-{last} are"
            message = f"{said} back: {commit.name} took {'it' if first == last else 'them'} out."
            is_undone = 2 * len({after[number - 1].strip() for number in back}) >= len(gone)
            end_line = None if first == last else last
            confidence = None if is_undone else IN_PART
            yield Hit("history:reintroduced", path, first, message, end_line=end_line, confidence=confidence)


def _once_for_each_fix(hits: Iterable[Hit]) -> Iterator[Hit]:
    """One hit for each fix, even if lines in many files are back."""
    told: set[str] = set()
    for hit in hits:
        if hit.rule == "history:reintroduced":
            fix = hit.message.partition(" back: ")[2].partition(") took ")[0]
            if fix in told:
                continue
            told.add(fix)
        yield hit


def _is_telling(line: str) -> bool:
    return len(line) >= 8 and not line.startswith(("#", "//")) and not TRIVIAL.fullmatch(line)


def _runs(numbers: Iterable[int]) -> Iterator[list[int]]:
    """Ascending numbers -> groups of consecutive numbers."""
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        yield [number for _, number in group]


async def _find_changed_again(
    scope: Scope, base: str, path: str, before: Sequence[str], after: Sequence[str]
) -> list[Hit] | None:
    """Fixes and instructions behind the lines that the change replaced or removed; None if git cannot read the file."""
    blocks = [
        (old, old_end, new)
        for kind, old, old_end, new, _ in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        if kind in ("replace", "delete")
    ]
    if not blocks:
        return []
    ranges = [f"-L{old + 1},{old_end}" for old, old_end, _ in blocks if old < len(before)]
    blame = await git.blame(scope.root, "--porcelain", "--no-textconv", *ranges, base, "--", path)
    if blame is None:
        return None
    authors = dict(_read_blame(blame))
    hits: list[Hit] = []
    reported: set[tuple[str, int]] = set()
    for old, old_end, new in blocks:
        for id in dict.fromkeys(authors[line] for line in range(old + 1, old_end + 1) if line in authors):
            line = min(new + 1, max(1, len(after)))
            if (id, line) not in reported:
                reported.add((id, line))
                commit = PastCommit(id, await git.ask(scope.root, "log", "-1", "--format=%B", id) or "")
                hits += _about(commit, path, line)
    return hits


def _about(commit: PastCommit, path: str, line: int) -> Iterator[Hit]:
    if commit.is_fix:
        yield Hit("history:fixed", path, line, f"These lines came with {commit.name}: check that the fix still holds.")
    body = commit.message.partition("\n")[2]
    if said := INSTRUCTION.search(body):
        yield Hit("history:instruction", path, line, f"{commit.name} says of these lines: {said[0].strip()[:200]}")


def _read_blame(porcelain: str) -> Iterator[tuple[int, str]]:
    """Line number in the base and commit, for each line."""
    for line in porcelain.split("\n"):
        if found := re.match(r"([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?$", line):
            yield int(found[2]), found[1]
