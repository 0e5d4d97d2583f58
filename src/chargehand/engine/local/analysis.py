"""An analyzer and some files -> its findings, taken from an earlier analysis of the same content where possible."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic_core import ValidationError, to_json

from chargehand.engine.analyzer_port import UNREAD, Scope, find_analyzers
from chargehand.errors import AnalyzerFailed
from chargehand.record.cache import Cache
from chargehand.values.base import JSON
from chargehand.values.effect import Analysis, AnalysisResult
from chargehand.values.outcome import Fault, Finding

if TYPE_CHECKING:
    from chargehand.engine.analyzer_port import Analyzer
    from chargehand.engine.analyzer_port import AnalyzerResult as Found

# Part of every key of the cache: raised when what is stored changes its form.
_FORM = "4"
# The id of a commit; any other name may mean another commit later.
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# Analyses of at most this many files do not wait for a core.
FEW = 20


@dataclass(frozen=True, slots=True)
class Look:
    """An analysis with the hashes of what it looks at, and what is known of it."""

    effect: Analysis
    analyzer: Analyzer
    version: str
    # Path -> hash, of the files there are.
    hashes: Mapping[str, str]
    # Path -> what was found in it before; for an analyzer of whole trees, everything under "".
    known: Mapping[str, AnalysisResult]
    left_out: tuple[str, ...]
    # Path -> why it cannot be analysed at all.
    unreadable: Mapping[str, str]
    # What else the result depends on, as a hash.
    around: str = ""

    @property
    def content(self) -> str:
        return _hash(self.version, *(part for pair in self.hashes.items() for part in pair), self.around)

    @property
    def lasting(self) -> bool:
        """Whether the same content gives the same result. For a change, most analyzers read more of the tree."""
        by_change = self.analyzer.by_change and _COMMIT.fullmatch(self.effect.base or "") is not None
        return self.analyzer.per_file or self.effect.changed is None or by_change

    @property
    def missing(self) -> tuple[str, ...]:
        """The files that have to be looked at."""
        if not self.analyzer.per_file:
            return () if self.known else tuple(self.hashes)
        return tuple(path for path in self.hashes if path not in self.known)

    @property
    def small(self) -> bool:
        """Whether it takes no longer than starting it does."""
        return self.analyzer.per_file and len(self.missing) <= FEW

    def result(self, fresh: AnalysisResult | None = None) -> AnalysisResult:
        """What is known and what was found now, as one."""
        # Most files have no findings.
        parts = [each for each in (*self.known.values(), fresh) if each is not None and each is not _NOTHING]
        notes = dict.fromkeys(note for part in parts for note in part.notes)
        unchecked = {path: why for part in parts for path, why in part.unchecked.items()}
        found = [finding for part in parts for finding in part.findings]
        if self.analyzer.per_file:  # the order does not depend on what was known
            found.sort(key=lambda each: (each.path or "", each.line or 0))
        return AnalysisResult(
            findings=tuple(found),
            notes=(*self.left_out, *notes),
            unchecked={**unchecked, **self.unreadable},
            output=next((part.output for part in parts if part.output is not None), None),
            error=fresh.error if fresh is not None else None,
            content=self.content,
            files=len(self.hashes),
            reused=len(self.hashes) - len(self.missing),
        )


class Hashes:
    """Hashes of the content of files. A file is read again only after it was written to. Threads may share this."""

    def __init__(self) -> None:
        # (root, path) -> what shows a write, and the hash.
        self._known: dict[tuple[str, str], tuple[tuple[int, int, int], str]] = {}
        # (root, folder) -> whether the folder, its links followed, is in the root.
        self._inside: dict[tuple[str, str], bool] = {}

    def of(self, root: str, path: str) -> str | None:
        """None when the path is not a file inside the root, or cannot be read."""
        full = f"{root}{os.sep}{path}"
        try:
            about = os.lstat(full)
            if stat.S_ISLNK(about.st_mode):
                full = os.path.realpath(full)
                about = os.stat(full)
            mark = about.st_mtime_ns, about.st_size, about.st_ino
            if (known := self._known.get((root, path))) is not None and known[0] == mark:
                return known[1]
            if not stat.S_ISREG(about.st_mode) or not self._is_inside(root, full.rpartition(os.sep)[0]):
                return None
            with open(full, "rb") as file:
                self._known[root, path] = mark, (hash := hashlib.sha256(file.read()).hexdigest())
            return hash
        except (OSError, ValueError):
            return None

    def _is_inside(self, root: str, folder: str) -> bool:
        if (known := self._inside.get((root, folder))) is None:
            within = os.path.realpath(root)
            known = self._inside[root, folder] = os.path.commonpath([within, os.path.realpath(folder)]) == within
        return known


def look(effect: Analysis, cache: Cache | None, files: Hashes) -> Look | Fault:
    """Reads the files; nothing is analysed yet. A file that was removed, or is outside the root, is left out."""
    analyzer = find_analyzers().get(effect.analyzer)
    if analyzer is None:
        return Fault(kind="analyzer", message=f"There is no analyzer {effect.analyzer!r} here.")
    hashes, unreadable, gone = dict[str, str](), dict[str, str](), 0
    for path in dict.fromkeys(effect.files):
        if analyzer.accepts is not None and not analyzer.accepts(effect.root, path):
            continue
        if (hash := files.of(effect.root, path)) is not None:
            hashes[path] = hash
        elif os.path.lexists(os.path.join(effect.root, path)):
            unreadable[path] = UNREAD
        else:
            gone += 1
    many = ("1 file was", "it") if gone == 1 else (f"{gone} files were", "them")
    left_out = (f"{many[0]} gone when {effect.analyzer} came to {many[1]}.",) if gone else ()
    try:
        version = analyzer.version()
    except Exception as error:  # noqa: BLE001 -- recorded: a tool that is not there is its task's failure
        return _fault(effect, error)
    found = Look(effect, analyzer, version, hashes, {}, left_out, unreadable)
    if analyzer.around is not None and hashes and found.lasting:
        found = replace(found, around=_hash(*analyzer.around(Path(effect.root), partial(files.of, effect.root))))
    return _recall(found, cache) if cache is not None and hashes and found.lasting else found


async def run(look: Look, cache: Cache | None, files: Hashes) -> AnalysisResult:
    """Analyse what is not known. A failure becomes the result's error; what is known is kept with it."""
    effect, missing = look.effect, look.missing
    whole = look.analyzer.per_file
    scope = Scope(
        root=Path(effect.root),
        files=missing,
        changed=None if whole else effect.changed,
        base=None if whole else effect.base,
        options=effect.options,
    )
    try:
        found = await look.analyzer.run(scope)
    except Exception as error:  # noqa: BLE001 -- recorded: an analyzer's bug is its task's failure
        return look.result(AnalysisResult(error=_fault(effect, error)))
    unchecked = {path: why for path, why in found.unchecked.items() if path in look.hashes}
    fresh = AnalysisResult(findings=found.findings, notes=found.notes, unchecked=unchecked, output=found.output)
    if cache is not None and look.lasting:
        await asyncio.to_thread(_remember, look, found, cache, files)
    return look.result(fresh)


def _fault(effect: Analysis, error: Exception) -> Fault:
    own = isinstance(error, AnalyzerFailed)
    message = str(error) if own else f"{effect.analyzer} failed: {type(error).__name__}: {error}"
    return Fault(kind="analyzer", message=message)


def _recall(found: Look, cache: Cache) -> Look:
    keys = _keys(found, found.hashes)
    entries = cache.get(keys.values())
    known = {path: _unpack(entries[key]) for path, key in keys.items() if key in entries}
    return replace(found, known={path: result for path, result in known.items() if result is not None})


def _remember(look: Look, found: Found, cache: Cache, files: Hashes) -> None:
    """Keep what was found under the content it was found in, unless that has changed meanwhile."""
    root = look.effect.root
    same = {path: look.hashes[path] for path in look.missing if files.of(root, path) == look.hashes[path]}
    if not look.analyzer.per_file:
        if len(same) == len(look.hashes):
            unchecked = {path: why for path, why in found.unchecked.items() if path in look.hashes}
            cache.put({_keys(look, same)[""]: _pack(found.findings, found.notes, unchecked, found.output)})
        return
    by_path: dict[str, list[Finding]] = {path: [] for path in same}
    for finding in found.findings:
        if finding.path in by_path:
            by_path[finding.path].append(finding)
    if found.notes:  # not about a particular file: it is reported every time
        return
    # What could not be checked is tried again every time.
    for path in found.unchecked:
        by_path.pop(path, None)
    keys = _keys(look, same)
    cache.put({keys[path]: _pack(own) for path, own in by_path.items()})


def _keys(look: Look, hashes: Mapping[str, str]) -> dict[str, str]:
    """Path -> key; one under "" for an analyzer whose result depends on all files together."""
    effect = look.effect
    tool = (_FORM, effect.analyzer, look.version)
    options = to_json(effect.options).decode()
    if look.analyzer.per_file:
        same = _join_parts(*tool, options)
        return {path: _hash(path, hash, after=same) for path, hash in hashes.items()}
    change = to_json([effect.changed, effect.base]).decode()
    return {"": _hash(*tool, options, change, os.path.realpath(effect.root), look.content)}


def _pack(
    findings: Iterable[Finding],
    notes: Iterable[str] = (),
    unchecked: Mapping[str, str] | None = None,
    output: JSON = None,
) -> bytes:
    rows = [finding.model_dump(mode="json", exclude_defaults=True) for finding in findings]
    rest = {"unchecked": unchecked, "output": output}
    given = {name: value for name, value in rest.items() if value is not None}
    return to_json({"findings": rows, "notes": list(notes), **given})


_NOTHING = AnalysisResult()
_PACKED_NOTHING = _pack(())


def _unpack(data: bytes) -> AnalysisResult | None:
    """None for an entry that cannot be read: the analysis is made again and replaces the entry."""
    if data == _PACKED_NOTHING:
        return _NOTHING
    try:
        return AnalysisResult.model_validate_json(data)
    except ValidationError:
        return None


def _hash(*parts: str, after: bytes = b"") -> str:
    return hashlib.sha256(after + _join_parts(*parts)).hexdigest()


def _join_parts(*parts: str) -> bytes:
    """The parts, each with its end: paths, hashes, versions and JSON have no character 0."""
    return "\0".join((*parts, "")).encode("utf-8", "surrogatepass")
