"""SQL over the request's data files becomes a table of text: one SELECT, in a process that can do nothing else.

The child loads the files into memory, then gives up everything it could misuse: configuration, files, sockets,
environment, unlimited memory. DuckDB's own locks come first; the limits of the process still apply if a lock fails.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from chargehand.errors import ToolError
from chargehand.tools import isolation, tables
from chargehand.tools import material_files as material
from chargehand.tools.call_tool import MAX_TEXT
from chargehand.tools.definition import Tool, tool
from chargehand.tools.tool_context import ToolContext

if TYPE_CHECKING:
    import duckdb
    from duckdb import DuckDBPyConnection

# The processor time of a query: on a busy machine, a query may wait longer than this for its turn.
SECONDS = 30
# How many times longer than that its process may take in real time.
LONGEST = 4
MAX_SQL = 20_000
MAX_ROWS = 200
MAX_CELL = 500
MAX_COLUMNS = 200
MAX_SHOWN = 45_000
MEMORY = "1GB"
# Further queries wait, so that many parallel queries do not use up the machine's memory.
AT_ONCE = 3
# DuckDB's own limit does not count everything, such as one enormous value.
MAX_ADDRESSES = 4 * 2**30
INSTALL = "query_data needs DuckDB: pip install 'chargehand[data]'"
TOO_SLOW = "The query took more than {} s and was stopped; make it smaller."
TOO_MUCH = f"There is not enough memory for it ({MEMORY}); select, join or sort less."
READ_ONLY = "The data is read-only: write one SELECT (or WITH, DESCRIBE, SUMMARIZE, SHOW TABLES)."
NO_DATA = "There are no data files (CSV, TSV, JSON, Parquet, SQLite) in the request's material, so there is no table."
SHOW = re.compile(r"\s*show\s+(?:all\s+)?tables\s*;?\s*", re.IGNORECASE)
LOCKS = (
    "python_enable_replacements = false",
    "enable_external_access = false",
    "allow_community_extensions = false",
    "TimeZone = 'UTC'",
    # Last: after it nothing can be set, even if the check of statements has a gap.
    "lock_configuration = true",
)


def _lacks() -> str | None:
    return None if find_spec("duckdb") else "DuckDB: pip install 'chargehand[data]'"


@tool(effect="read", lacks=_lacks)
async def query_data(context: ToolContext, sql: str) -> str:
    """Query the data files of the material (CSV, TSV, JSON, Parquet, SQLite) with SQL, in DuckDB's dialect.

    Each file is a table named by its file name without the ending, in lower case with _ for anything but letters and
    digits: Sales-2024.csv is sales_2024. A table of a SQLite file shop.db is shop.TABLE. SHOW TABLES lists them with
    their columns. Notes below a result tell what was left out. The data is read-only, and at most 200 rows are shown:
    aggregate, or use LIMIT.

    Args:
        sql: one SELECT, WITH, DESCRIBE, SUMMARIZE or SHOW TABLES
    """
    try:
        # Made and removed here, so that nothing is left when the child is killed.
        async with _turn():
            with tempfile.TemporaryDirectory(prefix="chargehand-") as scratch:
                async with asyncio.timeout(LONGEST * SECONDS):
                    given = {"sql": sql, "scratch": scratch, "seconds": SECONDS}
                    result = await isolation.run(_query, given, context, MAX_TEXT)
    except TimeoutError:
        raise ToolError(TOO_SLOW.format(SECONDS), "too_slow") from None
    except isolation.NoResult as ended:
        if ended.status == -signal.SIGXCPU:
            raise ToolError(TOO_SLOW.format(SECONDS), "too_slow") from None
        raise ToolError(f"The query ended its process. {TOO_MUCH}", "too_large") from None
    for name, digest in result.reads.items():
        context.record_hash(name, digest)
    for name, count in result.lines.items():
        context.record_lines(name, count)
    if result.error is not None:
        raise ToolError(result.error.message, result.code or "failed")
    return result.text


def _in_child(context: ToolContext, sql: str, scratch: str, seconds: int) -> str:
    """Run the query in this process, which can open nothing afterwards: only for a child process."""
    # DuckDB needs no variables, and a query must not find any.
    os.environ.clear()
    try:
        import duckdb
    except ImportError:
        raise ToolError(INSTALL, "unavailable") from None
    _limit("RLIMIT_AS", MAX_ADDRESSES)
    # The higher limit kills; the lower one ends the process with a signal that says why.
    _limit("RLIMIT_CPU", seconds, seconds + 1)
    if len(sql) > MAX_SQL:
        raise ToolError(f"The query has {len(sql)} characters; at most {MAX_SQL} are run.", "wrong_arguments")
    known = tables.catalog(context)
    if not known.sources:
        raise ToolError(NO_DATA, "unavailable")
    try:
        wanted = _wanted_sources(sql, known)
        base = _connection()
        notes = _load_sources(wanted, base, Path(scratch), context, every=wanted == known.sources)
        _lock(base)
        _give_up()
        if not SHOW.fullmatch(sql):
            return "\n".join([_result(base, sql), *notes])
        return "\n".join([_listing(base), *notes, *([] if known.whole else [f"[{tables.MORE}]"])])
    except duckdb.Error as error:
        raise _tool_error(error, known) from None
    except MemoryError:
        raise ToolError(TOO_MUCH, "too_large") from None


@asynccontextmanager
async def _turn() -> AsyncGenerator[None, None]:
    """Wait until few enough queries run. A semaphore belongs to a loop, and a process may have several."""
    turns = _TURNS.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))
    async with turns:
        yield


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
_query = Tool("query_data", "", _in_child, "read", isolated=True)


def _tool_error(error: duckdb.Error, known: tables.Catalog) -> ToolError:
    import duckdb

    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("Did you mean")]
    said = "\n".join(lines)[:1500]
    match error:
        case duckdb.OutOfMemoryException():
            return ToolError(TOO_MUCH, "too_large")
        case duckdb.PermissionException():
            there = tables.list_sources(known)
            own = "A query reads the tables of the request's files and nothing else."
            return ToolError(f"{said}. {own} {there}", "not_allowed")
        case duckdb.TransactionException():
            return ToolError(f"{said}. {READ_ONLY}", "not_allowed")
        case duckdb.CatalogException() if "Table with name" in said:
            return ToolError(f"{said} {tables.list_sources(known)}", "not_found")
        case _:
            return ToolError(said, "wrong_arguments")


def _connection() -> DuckDBPyConnection:
    import duckdb

    return duckdb.connect(
        ":memory:",
        config={
            "threads": 1,
            "memory_limit": MEMORY,
            "temp_directory": "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        },
    )


def _lock(base: DuckDBPyConnection) -> None:
    for setting in LOCKS:
        base.execute(f"SET {setting}")


def _wanted_sources(sql: str, known: tables.Catalog) -> tuple[tables.TableSource, ...]:
    """The sources a query names, or all if they are not known; ToolError when it is not one query."""
    import duckdb

    # The statement is parsed on a connection without data, where it can do nothing.
    with _connection() as base:
        _lock(base)
        statements = base.extract_statements(sql)
        if len(statements) != 1:
            raise ToolError(
                f"There are {len(statements)} statements in the query; write exactly one. {READ_ONLY}",
                "wrong_arguments",
            )
        if statements[0].type != duckdb.StatementType.SELECT:
            raise ToolError(f"{statements[0].type.name} is not allowed. {READ_ONLY}", "not_allowed")
        try:
            named = base.get_table_names(sql, qualified=True)
        except duckdb.PermissionException:
            raise
        except duckdb.Error:
            # The names may be known only once the tables exist.
            return known.sources
    first = {name.split(".")[0].strip('"').lower() for name in named}
    chosen = tuple(source for source in known.sources if source.name in first)
    return chosen if first and len(chosen) == len(first) else known.sources


def _load_sources(
    wanted: tuple[tables.TableSource, ...], base: DuckDBPyConnection, folder: Path, context: ToolContext, *, every: bool
) -> list[str]:
    """Load the wanted sources; if all are wanted, those that cannot be loaded are only noted."""
    notes: list[str] = []
    total = 0
    for at, source in enumerate(wanted):
        if total > tables.MAX_LOADED:
            left = f"{len(wanted) - at} files from {material.one_line_name(source.file)} on are left out"
            notes.append(f"[stopped after {tables.MAX_LOADED // 10**6} MB of data: {left}; name fewer tables]")
            break
        try:
            loaded = tables.load(source, base, folder, context)
        except ToolError as error:
            if not every or len(wanted) == 1:
                raise
            notes.append(f"[{error}]")
            continue
        total += loaded.size
        if loaded.left_out:
            notes.append(f"[{material.one_line_name(source.file)}: {loaded.left_out}]")
    return notes


def _give_up() -> None:
    """From here on this process opens no file and no socket, and writes to no file."""
    _limit("RLIMIT_FSIZE", 0)
    _limit("RLIMIT_NOFILE", 0)


def _limit(kind: str, most: int, hard: int | None = None) -> None:
    import resource

    # A system may have only some of these limits.
    with suppress(AttributeError, ValueError, OSError):
        resource.setrlimit(getattr(resource, kind), (most, most if hard is None else hard))


def _result(base: DuckDBPyConnection, sql: str) -> str:
    base.execute("BEGIN TRANSACTION READ ONLY")
    query = base.sql(sql)
    names, types = list(query.columns)[:MAX_COLUMNS], list(query.types)
    # As text from DuckDB itself: exact, and the same everywhere.
    texts = ", ".join(f"left(#{at}::VARCHAR, {MAX_CELL + 1})" for at in range(1, len(names) + 1))
    rows = query.limit(MAX_ROWS + 1).project(texts).fetchall()
    shape = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=False))
    count = f"{MAX_ROWS} or more" if len(rows) > MAX_ROWS else str(len(rows))
    lines = [f"{count} rows ({shape})", _line(names), _line(["---"] * len(names))]
    room = MAX_SHOWN - sum(map(len, lines))
    notes = [f"[only the first {MAX_COLUMNS} of {len(types)} columns are shown]"] if len(types) > MAX_COLUMNS else []
    shown = 0
    for row in rows[:MAX_ROWS]:
        line = _line(row)
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
        shown += 1
    if shown < len(rows):
        notes.append(f"[only the first {shown} rows are shown; aggregate, or select less]")
    return "\n".join([*lines, *notes])


def _listing(base: DuckDBPyConnection) -> str:
    """Every table with its columns and how many rows it has."""
    found = base.execute(
        "SELECT schema_name, table_name, string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index) "
        "FROM duckdb_columns() WHERE NOT internal GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    lines: list[str] = []
    for schema, table, columns in found:
        path = (
            tables.quote_identifier(table)
            if schema == "main"
            else f"{tables.quote_identifier(schema)}.{tables.quote_identifier(table)}"
        )
        counted = base.execute(f"SELECT count(*) FROM {path}").fetchone()  # noqa: S608 -- quoted
        shown = table if table.isidentifier() else tables.quote_identifier(table)
        name = shown if schema == "main" else f"{schema}.{shown}"
        lines.append(f"{name}: {counted[0] if counted else 0} rows ({str(columns)[:2000]})")
    text = "\n".join(lines) or NO_DATA
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…\n[the rest of {len(lines)} tables is left out]"


def _line(cells: list[str] | list[str | None] | tuple[str | None, ...]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(value: str | None) -> str:
    if value is None:
        return "NULL"
    text = value if len(value) <= MAX_CELL else value[:MAX_CELL] + "…"
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\r", "").replace("\n", "\\n")
