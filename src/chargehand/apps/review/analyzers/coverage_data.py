"""A file of coverage data (coverage.xml, lcov, .coverage) -> which lines of a file ran in tests and which did not.

The file comes from the project, so it may have any content: None if it cannot be read. Runs in a child process.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

# The files that tools write, the most exact first.
COVERAGE_FILES = ("coverage.xml", "lcov.info", "coverage.lcov", "coverage/lcov.info", ".coverage")
_MOST_BYTES = 100 * 2**20


class RecordedCoverage(NamedTuple):
    """For each path as the tool wrote it: line -> whether a test ran it."""

    name: str
    files: dict[str, dict[int, bool]]
    # Whether the data also lists lines that did not run.
    whole: bool

    def lines_missed(self, path: str, lines: Iterable[int]) -> list[int] | None:
        """The given lines that no test ran; None when the file is not in the data.

        Tools may name a file relative to another folder than the root.
        """
        alike = [path] if path in self.files else [each for each in self.files if _ends_alike(each, path)]
        if len(alike) != 1:
            return None
        ran = self.files[alike[0]]
        return [line for line in lines if not ran.get(line, self.whole)]


def _ends_alike(one: str, other: str) -> bool:
    return one.endswith(f"/{other}") or other.endswith(f"/{one}")


def read_coverage(path: Path, name: str) -> RecordedCoverage | None:
    """What the file says; None when it is not coverage data or too large."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        if path.name == ".coverage":
            files = _read_database(path)
        elif path.suffix == ".xml":
            files = _read_xml(path.read_bytes())
        else:
            files = _read_lcov(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, expat.ExpatError):
        return None
    return RecordedCoverage(name, files, whole=path.name != ".coverage") if files else None


def _read_xml(data: bytes) -> dict[str, dict[int, bool]]:
    """Cobertura's format, as coverage.py writes it. Entities are refused: they could expand without limit."""
    files: dict[str, dict[int, bool]] = {}
    lines: dict[int, bool] = {}
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal lines
        if tag == "class":
            lines = files.setdefault(attributes.get("filename", "").replace("\\", "/"), {})
        elif tag == "line":
            lines[int(attributes["number"])] = attributes.get("hits", "0") != "0"

    def refuse(*_: object) -> None:
        raise ValueError("coverage data has no entities")

    parser.StartElementHandler = start
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except KeyError:
        raise ValueError("a line without a number") from None
    return files


def _read_lcov(text: str) -> dict[str, dict[int, bool]]:
    files: dict[str, dict[int, bool]] = {}
    lines: dict[int, bool] = {}
    for row in text.splitlines():
        kind, _, said = row.partition(":")
        if kind == "SF":
            lines = files.setdefault(said.strip().replace("\\", "/"), {})
        elif kind == "DA":
            number, hits, *_ = said.split(",")
            lines[int(number)] = hits.strip() != "0"
    return files


def _read_database(path: Path) -> dict[str, dict[int, bool]]:
    """coverage.py's own file: it has only the lines that ran."""
    try:
        from coverage import CoverageData
        from coverage.exceptions import CoverageException
    except ImportError:
        return {}
    try:
        data = CoverageData(basename=str(path), no_disk=False)
        data.read()
        measured = {name: data.lines(name) or [] for name in data.measured_files()}
    except CoverageException:
        return {}
    return {name.replace("\\", "/"): dict.fromkeys(lines, True) for name, lines in measured.items()}
