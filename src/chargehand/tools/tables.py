"""The data files of the request's material become tables of an in-memory DuckDB: CSV, JSON, Parquet, SQLite.

A file is read through its confined descriptor and copied into a private folder first: DuckDB never opens the material.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import sqlite3
import tempfile
import unicodedata
from collections.abc import Container
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from chargehand.errors import ToolError
from chargehand.tools import delimited
from chargehand.tools import material_files as material
from chargehand.tools import recorded_reads as reading
from chargehand.tools.encoding import text_of
from chargehand.tools.tool_context import ToolContext

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SQLITE = ("db", "sqlite", "sqlite3")
# SQLite keeps the last commits in a file next to the database.
LOG = "-wal"
DELIMITERS = {"csv": None, "tsv": "\t"}
PLAIN_CSV = (
    "read_csv('{file}', sample_size = -1, skip = 0, delim = ',', quote = '\"', escape = '\"', comment = '', "
    "new_line = '\\r\\n', header = {header})"
)
READERS = {
    "csv": PLAIN_CSV,
    "tsv": PLAIN_CSV,
    "json": "read_json('{file}', sample_size = -1, maximum_object_size = {size})",
    "jsonl": "read_ndjson('{file}', sample_size = -1, maximum_object_size = {size})",
    "ndjson": "read_ndjson('{file}', sample_size = -1, maximum_object_size = {size})",
    "parquet": "read_parquet('{file}')",
}
KINDS = (*READERS, *SQLITE)
ENDINGS = (*KINDS, *(kind.upper() for kind in KINDS))
# Logs too, though they are not tables: a result is out of date once a log changes.
GLOB = "*.{" + ",".join((*ENDINGS, *(f"{each}{LOG}" for each in ENDINGS if each.lower() in SQLITE))) + "}"
MORE = f"There are more data files; only the first {reading.MAX_LISTED} are tables."
MAX_LOADED = 500_000_000
MAX_SQLITE_ROWS = 2_000_000
BATCH = 10_000


@dataclass(frozen=True)
class TableSource:
    """A data file: `name` is its table, or the schema that holds the tables of a SQLite file."""

    name: str
    file: str
    kind: str


@dataclass(frozen=True)
class Catalog:
    """The sources in order; `whole` is False when there are more files than may be tables."""

    sources: tuple[TableSource, ...]
    whole: bool


@dataclass(frozen=True)
class Loaded:
    """What was loaded: how many bytes, and what was left out or not found, if anything."""

    size: int
    left_out: str


def catalog(context: ToolContext) -> Catalog:
    """The data files, each under a name of its own that needs no quotes in SQL."""
    found: dict[str, TableSource] = {}
    listing = reading.listing(GLOB, None, context)
    unusable = _unusable()
    for file in listing.names[: reading.MAX_LISTED]:
        if file.endswith(LOG):
            continue
        path = PurePosixPath(file)
        numbered = (f"{path.stem}_{number}" for number in itertools.count(2))
        stems = itertools.chain((path.stem, f"{path.parent.name}_{path.stem}"), numbered)
        name = next(name for stem in stems if (name := _name(stem, unusable)) not in found)
        found[name] = TableSource(name, file, path.suffix[1:].lower())
    return Catalog(tuple(found.values()), listing.complete and len(listing.names) <= reading.MAX_LISTED)


def list_sources(known: Catalog) -> str:
    """The sources as error messages list them."""
    each = [
        f"{source.name}{'.*' if source.kind in SQLITE else ''} ({material.one_line_name(source.file)})"
        for source in known.sources
    ]
    more = f" and {len(each) - 40} more" if len(each) > 40 else ""
    others = "" if known.whole else f" {MORE}"
    return f"Tables: {', '.join(each[:40])}{more}. SHOW TABLES lists their columns.{others}"


def load(source: TableSource, base: DuckDBPyConnection, folder: Path, context: ToolContext) -> Loaded:
    """Make the table or tables of a source. ToolError when the file is not of the kind that its name says."""
    import duckdb

    place = material.locate(source.file, context)
    data = material.read(place, material.MAX_DATA)
    context.record_read(place.name, data)
    left_out = ""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        copy = Path(own) / f"{source.name}.{source.kind}"
        try:
            if source.kind in SQLITE:
                copy.write_bytes(data)
                _load_sqlite(source, base, copy, _log(source, place, context))
            else:
                copy.write_bytes(_utf8(data, source.kind))
                left_out = _load_file(source, base, copy)
        except (duckdb.Error, sqlite3.Error, UnicodeError) as error:
            # Without our temporary path and our statement.
            said = str(error).replace(f"{own}/", "").partition("LINE 1:")[0]
            why = " ".join(said.split())[:500]
            shown = material.one_line_name(source.file)
            raise ToolError(f"{shown} cannot be read as {source.kind.upper()}: {why}", "not_readable") from None
    return Loaded(len(data), left_out)


def quote_identifier(name: str) -> str:
    """The name as an identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return value.replace("'", "''")


def _name(stem: str, unusable: Container[str]) -> str:
    name = re.sub(r"\W+", "_", unicodedata.normalize("NFC", stem.lower())).strip("_") or "data"
    if name in unusable:
        return f"{name}_"
    return f"t{name}" if name[0].isdigit() else name


def _unusable() -> frozenset[str]:
    """Names that would need quotes in SQL or mean something else."""
    import duckdb

    with duckdb.connect(":memory:") as base:
        found = base.execute(
            "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function') "
            "UNION SELECT schema_name FROM duckdb_schemas() UNION SELECT database_name FROM duckdb_databases()"
        )
        return frozenset(name for (name,) in found.fetchall())


def _load_file(source: TableSource, base: DuckDBPyConnection, copy: Path) -> str:
    """Make the table of a file that DuckDB reads itself; returns what was left out or not found."""
    import duckdb

    made = None
    header = False
    if source.kind in DELIMITERS:
        raw = copy.rename(copy.with_suffix(".raw"))
        made = delimited.plain(raw, copy, DELIMITERS[source.kind])
        header = made.header
    reader = READERS[source.kind].format(file=_text(str(copy)), size=copy.stat().st_size + 1024, header=header)
    base.execute(f"CREATE TABLE {quote_identifier(source.name)} AS FROM {reader}")
    if made is None:
        return ""
    counted = base.execute(f"SELECT count(*) FROM {quote_identifier(source.name)}").fetchone()  # noqa: S608 -- quoted
    if counted != (made.kept - made.header,):
        base.execute(f"DROP TABLE {quote_identifier(source.name)}")
        raise duckdb.InvalidInputException(f"not all of its {made.kept} records became rows")
    return made.note


def _log(source: TableSource, place: material.FilePlace, context: ToolContext) -> bytes:
    """The commits that are not in the SQLite file yet; ToolError when they may not be read."""
    beside = f"{os.path.join(place.root, *place.parts)}{LOG}"
    if not os.path.exists(beside) or not os.path.getsize(beside):
        return b""
    name = material.one_line_name(source.file)
    try:
        log = material.locate(f"{source.file}{LOG}", context)
    except ToolError:
        log = None
    if log is None or os.path.join(log.root, *log.parts) != beside:
        raise ToolError(
            f"{name} is not whole: the changes in its {LOG} file are not in the material; give both.", "not_readable"
        )
    data = material.read(log, material.MAX_DATA)
    context.record_hash(log.name, hashlib.sha256(data).hexdigest())
    return data


def _utf8(data: bytes, kind: str) -> bytes:
    """DuckDB reads text as UTF-8 only."""
    if kind == "parquet":
        return data
    text = text_of(data)
    if text is None:
        raise UnicodeError("it is a binary file")
    return text.encode("utf-8", "replace")


def _load_sqlite(source: TableSource, base: DuckDBPyConnection, copy: Path, log: bytes) -> None:
    base.execute(f"CREATE SCHEMA {quote_identifier(source.name)}")
    # Writable if there is a log: otherwise SQLite would not apply it.
    mode = "rw" if log else "ro&immutable=1"
    if log:
        Path(f"{copy}{LOG}").write_bytes(log)
    with closing(sqlite3.connect(f"{copy.as_uri()}?mode={mode}", uri=True)) as db:
        # Nothing in the file's schema is run: no views, no virtual tables, no functions.
        db.execute("PRAGMA trusted_schema = OFF")
        db.text_factory = _lenient
        found = db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
            "AND sql NOT LIKE 'create virtual%' ORDER BY name"
        )
        for (name,) in found.fetchall():
            _copy_table(
                db,
                str(name),
                f"{quote_identifier(source.name)}.{quote_identifier(str(name))}",
                base,
                copy.with_suffix(".rows"),
            )


def _copy_table(db: sqlite3.Connection, name: str, target: str, base: DuckDBPyConnection, rows: Path) -> None:
    cursor = db.execute(f"SELECT * FROM {quote_identifier(name)} LIMIT {MAX_SQLITE_ROWS + 1}")  # noqa: S608 -- quoted
    columns = [each[0] for each in cursor.description]
    # A column of SQLite may hold anything: its type here is the narrowest that fits all values.
    kinds: list[set[str]] = [set() for _ in columns]
    count = 0
    with rows.open("w", encoding="utf-8") as out:
        while batch := cursor.fetchmany(BATCH):
            count += len(batch)
            if count > MAX_SQLITE_ROWS:
                raise sqlite3.DataError(f"the table {name} has more than {MAX_SQLITE_ROWS:,} rows")
            for row in batch:
                for kind, value in zip(kinds, row, strict=True):
                    kind.add(type(value).__name__)
                out.write(json.dumps({f"c{at}": _plain(value) for at, value in enumerate(row)}) + "\n")
    shape = ", ".join(f"c{at}: '{_type(kind)}'" for at, kind in enumerate(kinds))
    names = ", ".join(f"c{at} AS {quote_identifier(column)}" for at, column in enumerate(columns))
    reader = f"read_ndjson('{_text(str(rows))}', columns = {{{shape}}}, maximum_object_size = 200000000)"
    base.execute(f"CREATE TABLE {target} AS SELECT {names} FROM {reader}")  # noqa: S608 -- quoted
    rows.unlink()


def _type(kinds: set[str]) -> str:
    some = kinds - {"NoneType"}
    if some == {"int"}:
        return "BIGINT"
    return "DOUBLE" if some and some <= {"int", "float"} else "VARCHAR"


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _lenient(data: bytes) -> str:
    return data.decode("utf-8", "replace")
