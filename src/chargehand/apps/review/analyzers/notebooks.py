"""Jupyter notebooks through ruff's rules for bugs and security, as hits at the lines of the notebook's file.

ruff counts lines by cell; a reader, a diff and a gate count lines of the file.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from chargehand.apps.review.analyzers import ruff, suppression
from chargehand.apps.review.analyzers.hit import Hit, Hits
from chargehand.apps.review.analyzers.match_confidence import weight
from chargehand.apps.review.analyzers.source_files import SourceFile, SourceReader, text_key

if TYPE_CHECKING:
    from chargehand.apps.review.analyzers.lens import Lens
    from chargehand.engine.analyzer_port import Scope

# Usual in a notebook: a value alone on a line is shown, and imports and names are for later cells.
USUAL = ("ruff:B018", "ruff:B015", "ruff:F401", "ruff:F811", "ruff:E402", "ruff:F704", "ruff:PLE1142", "ruff:F821")
LENSES: tuple[Lens, ...] = ("bugs", "security")


async def analyze(scope: Scope, lens: Lens) -> Hits:
    reader = SourceReader(scope.root)
    sources = {
        path: source
        for path in scope.files
        if path.lower().endswith(".ipynb") and reader.fits(path) and (source := reader.read(path))
    }
    places = {path: code_lines(source.text) for path, source in sources.items()}
    for path, known in places.items():
        if known is None:
            reader.count_unchecked("Is not a notebook that can be read", path)
    files = {str(scope.root / path): path for path, known in places.items() if known}
    hits: list[Hit] = []
    for each in LENSES if files else ():
        rows, unread = await ruff.run_ruff(list(files), each)
        for file in unread:
            reader.count_unchecked("Made ruff fail", files[file])
        by_key = {text_key(file): path for file, path in files.items()}
        for row in rows:
            path = by_key[row["filename"]]
            if hit := _hit(row, path, places[path] or {}):
                hits += suppression.drop_silenced([_weigh(hit, sources[path])], sources[path].lines)
    return Hits(tuple(hits), unchecked=reader.unchecked_files())


def _hit(row: dict[str, Any], path: str, known: dict[tuple[int, int], int]) -> Hit | None:
    rule = f"ruff:{row.get('code') or 'invalid-syntax'}"
    line = known.get((row.get("cell") or 0, row["location"]["row"]))
    if line is None or rule in USUAL:
        return None
    fix: dict[str, Any] = row.get("fix") or {}
    return Hit(rule, path, line, row["message"], suggestion=fix.get("message"))


def _weigh(hit: Hit, source: SourceFile) -> Hit:
    text = source.lines[hit.line - 1]
    return replace(hit, confidence=weight(hit.rule.partition(":")[2], hit.message, text, hit.path))


def code_lines(text: str) -> dict[tuple[int, int], int] | None:
    """Cell and line in it, both from 1 -> the line of the file; None if it is not a notebook."""
    try:
        cells = json.loads(text)["cells"]
        found: dict[tuple[int, int], int] = {}
        at = 0
        for number, cell in enumerate(cast("list[dict[str, Any]]", cells), 1):
            source: str | list[str] = cell.get("source", [])
            lines = source.splitlines(keepends=True) if isinstance(source, str) else source
            for row, line in enumerate(lines, 1):
                if isinstance(source, list):
                    at = _find(text, line, at)
                if cell.get("cell_type") == "code":
                    found[number, row] = text.count("\n", 0, at) + 1
                if isinstance(source, list):
                    at += 1
        return found
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _find(text: str, line: str, start: int) -> int:
    """The place of a line of a cell in the file, with other alphabets escaped or not."""
    places = [text.find(json.dumps(line, ensure_ascii=ascii), start) for ascii in (False, True)]
    known = [place for place in places if place >= 0]
    return min(known) if known else start
