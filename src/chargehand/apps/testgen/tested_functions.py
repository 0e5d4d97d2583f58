"""Coverage data or the test files themselves become one answer: is this function tested?"""

from __future__ import annotations

import ast
import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, cast
from xml.etree import ElementTree as Xml

from chargehand.apps.testgen.names import Exports, dotted_name, imports
from chargehand.apps.testgen.project import Project, Skip, parse
from chargehand.trace.number_text import several

# Path relative to the root -> lines that tests have run.
Lines: TypeAlias = Mapping[str, frozenset[int]]
_LARGEST = 64 << 20
# The most bytes with one bit per line, over all files: eight million lines.
_MOST_BITS = 1 << 20


@dataclass(frozen=True, slots=True)
class KnownTests:
    """`source` names the evidence. Files that changed after the coverage was measured are judged by calls."""

    source: str
    lines: Lines
    used: frozenset[str]
    attributes: Mapping[str, frozenset[str]]

    def function_is_tested(self, path: str, name: str, body: tuple[int, int]) -> bool:
        if path in self.lines:
            return any(body[0] <= line <= body[1] for line in self.lines[path])
        return name in self.used

    def method_is_tested(self, path: str, owner: str, name: str, body: tuple[int, int]) -> bool:
        """Whether a test file uses the class, and anywhere in it an attribute of that name."""
        if path in self.lines:
            return any(body[0] <= line <= body[1] for line in self.lines[path])
        return name in self.attributes.get(owner, frozenset())


def gather(project: Project) -> KnownTests:
    """Evidence for tested functions: coverage data if there is some, else imports and calls in the tests."""
    lines, source, passed_over = _covered_lines(project)
    used: set[str] = set()
    attributes: dict[str, set[str]] = {}
    exports = Exports(project.modules)
    for path in project.tests:
        parsed = parse(project.root / path)
        if isinstance(parsed, Skip):
            continue
        names, touched = _uses(parsed[1])
        names = {exports.origin(name) for name in names}
        used |= names
        for name in names:
            attributes.setdefault(name, set()).update(touched)
    files = sum(Path(path).name != "conftest.py" for path in project.tests)
    calls = f"imports and calls in {several(files, 'test file')}"
    by_class = {name: frozenset(touched) for name, touched in attributes.items()}
    return KnownTests("; ".join((source or calls, *passed_over)), lines, frozenset(used), by_class)


def _uses(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Dotted names a test file uses after importing them, and every attribute it touches."""
    known = imports([tree])
    star = known.get("*")
    names: set[str] = set()
    touched: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            touched.add(node.attr)
        if isinstance(node, ast.Attribute | ast.Name) and (name := dotted_name(node, known)) is not None:
            names.add(name)
            if star and isinstance(node, ast.Name) and node.id not in known:
                names.add(f"{star}.{node.id}")
    return names, touched


def _covered_lines(project: Project) -> tuple[Lines, str | None, list[str]]:
    """Lines run, from the first kind of coverage data that can be read; none for files changed since.

    Also their source, and the files that could not be read, with the reason.
    """
    passed_over: list[str] = []
    readers: dict[str, Callable[[Path], dict[str, set[int]]]] = {
        ".coverage": _from_data_file,
        "coverage.json": _from_json,
        "coverage.xml": _from_xml,
    }
    for name, read in readers.items():
        file = project.root / name
        try:
            if not file.is_file():
                continue
            if file.stat().st_size > _LARGEST:
                raise ValueError(f"it has more than {_LARGEST >> 20} MiB")
            measured, found = file.stat().st_mtime, read(file)
        except (OSError, ValueError, LookupError, TypeError, RecursionError, sqlite3.Error, Xml.ParseError) as error:
            why = " ".join(str(error).split())[:200]
            passed_over.append(f"{name} was not read ({type(error).__name__}: {why})")
            continue
        lines: dict[str, frozenset[int]] = {}
        for module in project.modules:
            same = [path for path in found if path == module.path or path.endswith(f"/{module.path}")]
            if same and (project.root / module.path).stat().st_mtime <= measured:
                lines[module.path] = frozenset(found[min(same, key=len)])
        if lines:
            return lines, f"coverage data in {name}", passed_over
    return {}, None, passed_over


def _from_data_file(file: Path) -> dict[str, set[int]]:
    """coverage.py's own data file, read by coverage.py from a copy: it writes to a file that is not its own."""
    try:
        import coverage
    except ImportError:
        raise ValueError("it needs coverage.py: pip install 'chargehand[testgen]'") from None
    with TemporaryDirectory() as folder:
        copy = Path(folder) / file.name
        copy.write_bytes(file.read_bytes())
        _check_plain_tables(copy)
        data = coverage.CoverageData(str(copy))
        try:
            data.read()
            return {path.replace("\\", "/"): set(data.lines(path) or ()) for path in data.measured_files()}
        except coverage.CoverageException as error:
            raise ValueError(str(error).replace(f"{folder}/", "")) from None
        finally:
            data.close(force=True)


def _check_plain_tables(file: Path) -> None:
    """Raises ValueError if reading the tables would run SQL from the file or fill the memory."""
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro&immutable=1", uri=True)) as data:
        tables = data.execute("select type, name, sql from sqlite_schema where type <> 'index'").fetchall()
        for kind, name, sql in tables:
            hidden = data.execute("select count(*) from pragma_table_xinfo(?) where hidden", (name,)).fetchone()
            if kind != "table" or not str(sql).upper().startswith("CREATE TABLE ") or hidden != (0,):
                raise ValueError(f"coverage.py makes no {kind} like {name}")
        if not {"coverage_schema", "line_bits"} <= {name for _, name, _ in tables}:
            raise ValueError("it is not a data file of coverage.py")
        longest = "select max(length(numbits)) as size from line_bits group by file_id"
        (size,) = data.execute(f"select coalesce(sum(size), 0) from ({longest})").fetchone()  # noqa: S608 -- ours
        if size > _MOST_BITS:
            raise ValueError(f"it claims {8 * size:,} lines")


def _from_json(file: Path) -> dict[str, set[int]]:
    files = cast("dict[str, dict[str, Any]]", json.loads(file.read_bytes())["files"])
    return {path.replace("\\", "/"): set(map(int, data["executed_lines"])) for path, data in files.items()}


def _from_xml(file: Path) -> dict[str, set[int]]:
    """Names here are relative to one of the `source` folders, so a file may occur under several of them."""
    tree = Xml.parse(file).getroot()  # noqa: S314 -- expat bounds entities; nothing outside is fetched
    sources = [source.text or "" for source in tree.iter("source")] or [""]
    found: dict[str, set[int]] = {}
    for each in tree.iter("class"):
        lines = {int(line.get("number", 0)) for line in each.iter("line") if line.get("hits", "0") != "0"}
        for source in sources:
            found.setdefault(f"{source}/{each.get('filename', '')}".replace("\\", "/"), set()).update(lines)
    return found
