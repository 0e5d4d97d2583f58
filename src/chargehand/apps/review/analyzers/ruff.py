"""ruff's rules of one lens over files, as hits: `--isolated`, so no configuration of the reviewed tree is read.

`# noqa` in the code is respected, and for security rules `# nosec` too.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chargehand.apps.review.analyzers import suppression, tool_process
from chargehand.apps.review.analyzers.fix_patch import make_patch
from chargehand.apps.review.analyzers.hit import Hit, Hits
from chargehand.apps.review.analyzers.match_confidence import Shapes, weight
from chargehand.apps.review.analyzers.minor_matches import highest_severity
from chargehand.apps.review.analyzers.source_files import SourceFile, SourceReader, is_python, text_key
from chargehand.apps.review.analyzers.versions import missing
from chargehand.errors import AnalyzerFailed

if TYPE_CHECKING:
    from chargehand.apps.review.analyzers.lens import Lens
    from chargehand.engine.analyzer_port import Scope

SELECT: Mapping[Lens, str] = {
    "security": "S",
    # Swallowed errors (S110, S112) belong here. Three of RUF02 are named, because the longer code wins over IGNORE.
    "bugs": (
        "F,B,E9,PLE,RUF,RUF024,RUF026,RUF028,PLW0,PLW1,PLW2,PLR0124,PLR0133,PLR1704,E711,E712,E721,E722,BLE001,"
        "S110,S112,T10,SIM107,SIM115,SIM220,SIM221,SIM222,SIM223"
    ),
    "performance": "PERF,ASYNC2,RUF015,RUF017",
    "style": "N,SIM,C90,ERA",
}
# Rules that another lens has, and rules about typography, order or suppressions.
IGNORE: Mapping[Lens, str] = {
    "security": "S101,S110,S112,S4",
    "bugs": (
        "RUF001,RUF002,RUF003,RUF005,RUF007,RUF010,RUF013,RUF015,RUF017,RUF019,RUF02,RUF036,RUF037,RUF041,RUF046,"
        "RUF051,RUF057,RUF058,RUF064,RUF10,PLW0108,PLW0603,PLE2502"
    ),
    "performance": "",
    "style": "SIM107,SIM112,SIM115,SIM220,SIM221,SIM222,SIM223,SIM300,SIM905",
}

# The newest syntax is always allowed: what a project supports is not known here.
TARGET = "py313"
NEWER_SYNTAX = re.compile(r"on Python 3\.\d+ \(syntax was added in")
# The kernel's limit for one argument list is 2 MB with the environment; this is far below it, and still one process for
# a big tree.
MAX_ARGUMENTS = 500_000
# Enough to find a few bad files among thousands; if ruff fails more often, ruff itself is broken.
MOST_FAILURES = 60


async def analyze(scope: Scope, lens: Lens) -> Hits:
    reader = SourceReader(scope.root)
    paths = [path for path in scope.files if is_python(path, scope.root) and reader.fits(path)]
    names = {str(scope.root / path): path for path in paths}
    try:
        rows, unread = await run_ruff(list(names), lens)
    except Failed as error:
        if len(paths) > 1:
            raise
        raise Failed(f"{paths[0]}: {error}") from None
    hits = _judge_hits(_hits(rows, {text_key(file): path for file, path in names.items()}, reader), reader, lens)
    for file in unread:
        reader.count_unchecked("Made ruff fail", names[file])
        hits += _unread(names[file], reader) if lens == "bugs" else []
    return Hits(tuple(hits), unchecked=reader.unchecked_files())


async def run_ruff(files: Sequence[str], lens: Lens) -> tuple[list[dict[str, Any]], list[str]]:
    """The results of ruff for the files, and the files it fails on. If it fails on several, each half is tried."""
    rows: list[dict[str, Any]] = []
    unread: list[str] = []
    waiting = _parts(files)
    tries = MOST_FAILURES
    while waiting:
        part = waiting.pop()
        try:
            rows += await _check(part, lens)
        except Failed:
            tries -= 1
            if tries == 0 or len(files) == 1:
                raise
            if len(part) == 1:
                unread += part
            else:
                waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
    return rows, unread


def _unread(path: str, reader: SourceReader) -> list[Hit]:
    """A finding, so that a file that breaks the tool does not pass a gate."""
    source = reader.read(path)
    last = len(source.lines) if source else 1
    message = "ruff fails on this file: it is broken, or nested deeper than any parser goes."
    return [Hit("ruff:invalid-syntax", path, 1, message, end_line=last, confidence=90)]


class Failed(AnalyzerFailed):
    """ruff ended without a result."""


async def try_out() -> None:
    """Check that ruff prints its version. Raises AnalyzerFailed if it does not."""
    ended = await tool_process.run([*_command(), "--version"], tool="ruff")
    if ended.last_words.endswith("No module named ruff"):
        raise missing("ruff")
    if ended.code:
        raise Failed(f"ruff ended with code {ended.code}: {ended.last_words}")


def _command() -> list[str]:
    """The program beside Python, which `python -m ruff` would run; it starts without Python."""
    program = Path(sys.executable).with_name("ruff.exe" if os.name == "nt" else "ruff")
    is_installed = find_spec("ruff") is not None and program.is_file()
    return [str(program)] if is_installed else [sys.executable, "-I", "-m", "ruff"]


async def _check(files: Sequence[str], lens: Lens) -> list[dict[str, Any]]:
    command = [*_command(), "check", "--isolated", "--no-cache", "--quiet", "--exit-zero"]
    command += ["--output-format", "json", "--target-version", TARGET, "--no-preview"]
    # E902: without it ruff reports nothing for a file that it cannot decode.
    command += ["--select", f"{SELECT[lens]},E902"]
    if IGNORE[lens]:
        command += ["--ignore", IGNORE[lens]]
    ended = await tool_process.run([*command, "--", *files], tool="ruff")
    if ended.last_words.endswith("No module named ruff"):
        raise missing("ruff")
    try:
        return json.loads(ended.stdout)
    except ValueError:
        raise Failed(f"ruff ended with code {ended.code} and no result: {ended.last_words}") from None


def _parts(files: Sequence[str]) -> list[list[str]]:
    """The files in parts that fit on a command line."""
    parts: list[list[str]] = []
    size = MAX_ARGUMENTS
    for file in files:
        size += len(file) + 9
        if size > MAX_ARGUMENTS:
            parts.append([])
            size = len(file)
        parts[-1].append(file)
    return parts


def _hits(rows: Sequence[dict[str, Any]], paths: Mapping[str, str], reader: SourceReader) -> list[Hit]:
    found: list[Hit] = []
    read: dict[str, list[str]] = {}
    for row in rows:
        if NEWER_SYNTAX.search(row["message"]):
            continue
        fix: dict[str, Any] = row.get("fix") or {}
        path = paths[row["filename"]]
        if fix and path not in read:
            source = reader.read(path)
            read[path] = source.lines if source else []
        found.append(
            Hit(
                rule=f"ruff:{row.get('code') or 'invalid-syntax'}",
                path=path,
                line=row["location"]["row"],
                end_line=row["end_location"]["row"],
                message=row["message"],
                suggestion=fix.get("message"),
                column=row["location"]["column"],
                end_column=row["end_location"]["column"],
                patch=make_patch(path, read[path], fix["edits"]) if fix else None,
            )
        )
    return found


def _judge_hits(hits: Sequence[Hit], reader: SourceReader, lens: Lens) -> list[Hit]:
    """The hits without silenced ones, with at most one syntax error per file, and with confidence by the line."""
    by_path: dict[str, list[Hit]] = {}
    for hit in hits:
        by_path.setdefault(hit.path, []).append(hit)
    judged: list[Hit] = []
    for path, own in by_path.items():
        source = reader.read(path)
        errors = [hit for hit in own if hit.rule in ("ruff:invalid-syntax", "ruff:E902", "ruff:E999")]
        if errors:
            # Later errors mostly follow from the first. Only the bugs lens reports it.
            error = _syntax_error(errors[0], source, reader)
            judged += error if lens == "bugs" else []
            continue
        lines, shapes = source.lines if source else [], Shapes(source)
        judged += [_weigh_hit(hit, lines, shapes) for hit in suppression.drop_silenced(own, lines)]
    return judged


def _syntax_error(hit: Hit, source: SourceFile | None, reader: SourceReader) -> list[Hit]:
    """The error, at the last line with text at the latest; none for a declared encoding that ruff cannot read.

    In both cases the file counts as not checked.
    """
    lines = source.lines if source else []
    if hit.rule == "ruff:E902" and any("coding" in line for line in lines[:2]):
        reader.count_unchecked("Not in UTF-8, which ruff needs", hit.path)
        return []
    reader.note_unparsed(hit.path)
    said = max((number for number, line in enumerate(lines, 1) if line.strip()), default=1)
    return [replace(hit, line=min(hit.line, said), end_line=None, column=None, end_column=None, patch=None)]


def _weigh_hit(hit: Hit, lines: Sequence[str], shapes: Shapes) -> Hit:
    code, last = hit.rule.partition(":")[2], hit.end_line or hit.line
    text = "\n".join(lines[hit.line - 1 : last])
    known = weight(code, hit.message, text, hit.path)
    if known is None:
        known = shapes.worth(code, hit.message, hit.line, last)
    at_most = highest_severity(code, hit.path, text, shapes, hit.line, last)
    return replace(hit, confidence=known, at_most=at_most)
