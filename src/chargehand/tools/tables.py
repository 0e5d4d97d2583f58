"""The data files of the request's material become tables of an in-memory DuckDB: CSV, JSON, Parquet, SQLite.

A file is read through its confined descriptor and copied into a private folder first: DuckDB never opens the material.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from chargehand.errors import ToolError
from chargehand.tools import material, reading
from chargehand.tools.context import ToolContext
from chargehand.tools.encoding import text_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SQLITE = ("db", "sqlite", "sqlite3")
READERS = {
    "csv": "read_csv('{file}', sample_size = -1)",
    "tsv": "read_csv('{file}', sample_size = -1, delim = '\\t')",
    "json": "read_json('{file}', sample_size = -1, maximum_object_size = {size})",
    "jsonl": "read_ndjson('{file}', sample_size = -1, maximum_object_size = {size})",
    "ndjson": "read_ndjson('{file}', sample_size = -1, maximum_object_size = {size})",
    "parquet": "read_parquet('{file}')",
}
KINDS = (*READERS, *SQLITE)
GLOB = "*.{" + ",".join((*KINDS, *(kind.upper() for kind in KINDS))) + "}"
MAX_LOADED = 500_000_000
MAX_SQLITE_ROWS = 2_000_000
BATCH = 10_000


@dataclass(frozen=True)
class Source:
    """A data file: `name` is its table, or the schema that holds the tables of a SQLite file."""

    name: str
    file: str
    kind: str


def sources(context: ToolContext) -> tuple[Source, ...]:
    """The data files in order, each under a name of its own that needs no quotes in SQL."""
    found: dict[str, Source] = {}
    for file in reading.listing(GLOB, None, context).names[: reading.MAX_LISTED]:
        path = PurePosixPath(file)
        name = _name(path.stem)
        if name in found:
            name = _name(f"{path.parent.name}_{path.stem}")
        number = 2
        while name in found:
            name, number = f"{_name(path.stem)}_{number}", number + 1
        found[name] = Source(name, file, path.suffix[1:].lower())
    return tuple(found.values())


def listed(known: Sequence[Source]) -> str:
    """The sources as an error tells them."""
    each = [f"{source.name}{'.*' if source.kind in SQLITE else ''} ({material.shown(source.file)})" for source in known]
    more = f" and {len(each) - 40} more" if len(each) > 40 else ""
    return f"Tables: {', '.join(each[:40])}{more}. SHOW TABLES tells their columns."


def load(source: Source, base: DuckDBPyConnection, folder: Path, context: ToolContext) -> int:
    """Make the table or tables of a source; how many bytes its file has. ToolError when it is not what it seems."""
    import duckdb

    place = material.locate(source.file, context)
    data = material.read(place, reading.MAX_DATA)
    context.record_hash(place.name, hashlib.sha256(data).hexdigest())
    copy = folder / f"{source.name}.{source.kind}"
    try:
        if source.kind in SQLITE:
            copy.write_bytes(data)
            _load_sqlite(source, base, copy)
        else:
            copy.write_bytes(_utf8(data, source.kind))
            reader = READERS[source.kind].format(file=_text(str(copy)), size=len(data) + 1024)
            base.execute(f"CREATE TABLE {quoted(source.name)} AS FROM {reader}")
    except (duckdb.Error, sqlite3.Error, UnicodeError) as error:
        # Without the place and the statement, which are ours.
        said = str(error).replace(f"{folder}/", "").partition("LINE 1:")[0]
        why = " ".join(said.split())[:500]
        shown = material.shown(source.file)
        raise ToolError(f"{shown} cannot be read as {source.kind.upper()}: {why}") from None
    finally:
        copy.unlink(missing_ok=True)
    return len(data)


def quoted(name: str) -> str:
    """The name as an identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return value.replace("'", "''")


def _name(stem: str) -> str:
    name = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_").lower() or "data"
    return f"t{name}" if name[0].isdigit() else name


def _utf8(data: bytes, kind: str) -> bytes:
    """DuckDB reads text as UTF-8 only."""
    if kind == "parquet":
        return data
    text = text_of(data)
    if text is None:
        raise UnicodeError("it is a binary file")
    return text.encode("utf-8", "replace")


def _load_sqlite(source: Source, base: DuckDBPyConnection, copy: Path) -> None:
    base.execute(f"CREATE SCHEMA {quoted(source.name)}")
    with closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        # Nothing in a stranger's schema is run: no views, no virtual tables, no functions.
        db.execute("PRAGMA trusted_schema = OFF")
        db.text_factory = _lenient
        found = db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
            "AND sql NOT LIKE 'create virtual%' ORDER BY name"
        )
        for (name,) in found.fetchall():
            _copy_table(db, str(name), f"{quoted(source.name)}.{quoted(str(name))}", base, copy.with_suffix(".rows"))


def _copy_table(db: sqlite3.Connection, name: str, target: str, base: DuckDBPyConnection, rows: Path) -> None:
    cursor = db.execute(f"SELECT * FROM {quoted(name)} LIMIT {MAX_SQLITE_ROWS + 1}")  # noqa: S608 -- quoted
    columns = [each[0] for each in cursor.description]
    # A column of SQLite may hold anything: its type here is the narrowest that fits all there is.
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
    names = ", ".join(f"c{at} AS {quoted(column)}" for at, column in enumerate(columns))
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
