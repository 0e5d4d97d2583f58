"""query_data answers SQL over the request's data files, and lets a query do nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from chargehand.errors import ToolError, ToolErrorCode
from chargehand.tools import BUILTIN, ToolContext, call, sql, still_valid, tables
from chargehand.values.effect import ToolResult
from chargehand.values.request import Material

SECRET = "outside-and-secret"


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """A folder with one data file of each kind, and a secret beside it."""
    (tmp_path / "secret.csv").write_text(f"word\n{SECRET}\n")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "Sales-2024.csv").write_bytes("city,amount\nTromsø,10.5\nOslo,20\nBergen,\n".encode("latin-1"))
    (folder / "wide.tsv").write_text("a\tb\n1\tx|y\n", encoding="utf-16")
    (folder / "nested.json").write_text(json.dumps([{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": None}]))
    events = [{"at": f"2024-05-0{day}T10:00:00", "n": day} for day in (1, 2)]
    (folder / "events.jsonl").write_text("\n".join(map(json.dumps, events)))
    duckdb.sql("SELECT range AS n, range * 1.5 AS price FROM range(1000)").write_parquet(str(folder / "big.parquet"))
    with sqlite3.connect(folder / "shop.db") as shop:
        shop.execute("CREATE TABLE orders (id INTEGER, total REAL, what TEXT, raw BLOB)")
        shop.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", [(1, 2.5, "a", b"\1\2"), (2, 3, None, None)])
        shop.execute("CREATE VIEW slow AS SELECT * FROM orders")
    shop.close()
    return folder


def given_data(folder: Path) -> ToolContext:
    return ToolContext(material=(Material(name="data", path=str(folder)),))


def query(folder: Path, statement: str) -> ToolResult:
    return asyncio.run(call(BUILTIN["query_data"], {"sql": statement}, given_data(folder)))


def answer(folder: Path, statement: str) -> str:
    result = query(folder, statement)
    assert result.error is None, result.error
    return result.text


def refusal(folder: Path, statement: str) -> tuple[ToolErrorCode | None, str]:
    result = query(folder, statement)
    assert result.error is not None, result.text
    return result.code, result.error.message


def test_every_kind_of_file_is_a_table(folder: Path) -> None:
    """SHOW TABLES tells each with its columns and rows; what is no data is not there."""
    (folder / "notes.md").write_text("no table")
    (folder / "broken.json").write_text("{nope")
    lines = answer(folder, "show tables").split("\n")
    assert lines[:6] == [
        "big: 1000 rows (n BIGINT, price DECIMAL(21,1))",
        "events: 2 rows (at TIMESTAMP, n BIGINT)",
        "nested: 2 rows (id BIGINT, tags VARCHAR[])",
        "sales_2024: 3 rows (city VARCHAR, amount DOUBLE)",
        "wide: 1 rows (a BIGINT, b VARCHAR)",
        "shop.orders: 2 rows (id BIGINT, total DOUBLE, what VARCHAR, raw VARCHAR)",
    ]
    assert lines[6].startswith("[data/broken.json ")
    assert str(folder) not in lines[6]
    assert len(lines) == 7


def test_a_join_over_kinds_is_a_table_of_text(folder: Path) -> None:
    """Numbers are exact, NULL is NULL, bars are escaped, Latin-1 and UTF-16 are read."""
    statement = """
        WITH total AS (SELECT sum(total) AS t FROM Shop.Orders)
        SELECT city, amount, t, b, 0.1 + 0.2 AS exact FROM sales_2024, total, wide ORDER BY amount NULLS LAST
    """
    assert answer(folder, statement).split("\n") == [
        "3 rows (city VARCHAR, amount DOUBLE, t DOUBLE, b VARCHAR, exact DECIMAL(3,1))",
        "| city | amount | t | b | exact |",
        "| --- | --- | --- | --- | --- |",
        "| Tromsø | 10.5 | 5.5 | x\\|y | 0.3 |",
        "| Oslo | 20.0 | 5.5 | x\\|y | 0.3 |",
        "| Bergen | NULL | 5.5 | x\\|y | 0.3 |",
    ]


def test_large_results_are_cut_with_a_note(folder: Path) -> None:
    """Rows, cells and the whole; the worker learns what was left out."""
    text = answer(folder, "SELECT n, repeat('x', 1000) AS long FROM big ORDER BY n DESC")
    assert text.startswith("200 ")
    assert "| 999 | " + "x" * 500 + "… |" in text
    assert text.endswith("]")
    assert len(text) < 50_000


def test_what_was_read_is_recorded(folder: Path) -> None:
    """A rerun uses the result again until a file it read, or the list of tables, has changed."""
    result = query(folder, "SELECT count(*) FROM sales_2024")
    context = given_data(folder)
    assert "data/Sales-2024.csv" in result.reads
    assert "data/big.parquet" not in result.reads
    assert still_valid(result.reads, context)
    (folder / "nested.json").write_text("[]")
    assert still_valid(result.reads, context)
    (folder / "Sales-2024.csv").write_text("city,amount\n")
    assert not still_valid(result.reads, context)


WRITES = [
    "INSERT INTO sales_2024 VALUES ('x', 1)",
    "DELETE FROM sales_2024",
    "UPDATE sales_2024 SET amount = 0",
    "DROP TABLE sales_2024",
    "TRUNCATE sales_2024",
    "ALTER TABLE sales_2024 ADD COLUMN z INTEGER",
    "MERGE INTO sales_2024 USING sales_2024 b ON true WHEN MATCHED THEN DELETE",
    "CREATE TABLE mine AS SELECT 1",
    "CREATE TEMP TABLE mine AS SELECT 1",
    "CREATE OR REPLACE VIEW sales_2024 AS SELECT 1",
    "CREATE MACRO f(x) AS x",
    "WITH x AS (INSERT INTO sales_2024 VALUES ('x', 1) RETURNING *) SELECT * FROM x",
    "WITH x AS (DELETE FROM sales_2024 RETURNING *) SELECT * FROM x",
    "EXPLAIN ANALYZE DELETE FROM sales_2024",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "BEGIN",
    "ROLLBACK",
    "VACUUM",
    "CHECKPOINT",
    "SELECT 1; DROP TABLE sales_2024",
    "SELECT 1; ROLLBACK; DROP TABLE sales_2024",
    "",
    "-- nothing",
]
ESCAPES = [
    "ATTACH '{secret}'",
    "ATTACH '{secret}' AS other (READ_ONLY)",
    "ATTACH ':memory:' AS other",
    "COPY sales_2024 TO '{out}'",
    "COPY sales_2024 FROM '{secret}'",
    "COPY (SELECT 1) TO '{out}' (FORMAT parquet)",
    "WITH x AS (COPY sales_2024 TO '{out}') SELECT 1",
    "EXPORT DATABASE '{out}'",
    "IMPORT DATABASE '{out}'",
    "INSTALL httpfs",
    "INSTALL sqlite",
    "LOAD sqlite",
    "LOAD '{out}'",
    "FORCE INSTALL httpfs FROM 'http://127.0.0.1:1/'",
    "SET enable_external_access = true",
    "SET allowed_paths = ['{secret}']",
    "RESET lock_configuration",
    "SET VARIABLE x = 1",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "CALL enable_logging()",
    "CREATE SECRET (TYPE s3)",
    "USE memory",
    "FROM '{secret}'",
    'FROM "{secret}"',
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_csv_auto(['{secret}'])",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM read_json('{secret}')",
    "SELECT * FROM read_parquet('{secret}')",
    "SELECT * FROM parquet_metadata('{secret}')",
    "SELECT * FROM sniff_csv('{secret}')",
    "SELECT * FROM glob('{secret}')",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM read_csv('http://127.0.0.1:1/x.csv')",
    "SELECT * FROM 's3://bucket/x.parquet'",
    "SELECT * FROM query('FROM read_text(''{secret}'')')",
    "SELECT * FROM query_table('{secret}')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''{secret}'')'))",
    "SELECT (SELECT content FROM read_text('{secret}'))",
    "SELECT * FROM sales_2024 WHERE city IN (FROM read_text('{secret}'))",
    "SELECT getenv('PATH')",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM sqlite_scan('{secret}', 'x')",
    "DESCRIBE FROM '{secret}'",
    "SUMMARIZE FROM '{secret}'",
    "FROM folder",
    "FROM statement",
]


def run_here(statement: str, known: tables.Catalog) -> None:
    """As the child does it, but for the limits of its process."""
    with sql._connection() as base:  # pyright: ignore[reportPrivateUsage]
        base.execute("CREATE TABLE sales_2024 AS SELECT 'x' AS city, 1 AS amount")
        sql._lock(base)  # pyright: ignore[reportPrivateUsage]
        sql._wanted_sources(statement, known)  # pyright: ignore[reportPrivateUsage]
        sql._result(base, statement)  # pyright: ignore[reportPrivateUsage]


def test_sql_that_writes_or_reaches_out_is_refused(folder: Path) -> None:
    """Where queries run nothing but the loaded tables can be read, whatever the statement."""
    files = {"secret": folder.parent / "secret.csv", "out": folder.parent / "out"}
    known = tables.catalog(given_data(folder))
    before = sorted(folder.parent.rglob("*"))
    run_here("SELECT * FROM sales_2024", known)
    for text in [*WRITES, *ESCAPES]:
        statement = text.format(**files)
        with pytest.raises((duckdb.Error, ToolError)) as refused:
            run_here(statement, known)
        assert SECRET not in str(refused.value)
    assert sorted(folder.parent.rglob("*")) == before


def test_refusals_tell_the_worker_what_to_do(folder: Path) -> None:
    """In one process each, as it is used: clear words, the tables there are, and never a real path."""
    secret = folder.parent / "secret.csv"
    assert refusal(folder, "INSERT INTO big VALUES (1, 2)")[0] == "not_allowed"
    code, told = refusal(folder, f"FROM read_csv('{secret}')")
    assert code == "not_allowed"
    assert "sales_2024 (data/" in told
    assert SECRET not in told
    code, told = refusal(folder, "SELECT * FROM sales")
    assert code == "not_found"
    assert "nested (data/nested.json), shop.* (data/shop.db)" in told
    assert refusal(folder, "WITH x AS (DELETE FROM big RETURNING *) SELECT * FROM x")[0] == "not_allowed"


def test_a_query_that_never_ends_is_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process is gone after the time limit, also where DuckDB itself would not stop, and with it our copies."""
    scratch = folder.parent / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr(sql, "SECONDS", 3)
    endless = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t"
    assert refusal(folder, endless)[0] == "too_slow"
    assert not list(scratch.iterdir())


def test_a_query_on_a_busy_machine_is_not_taken_for_one_that_never_ends(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its own time of a processor counts: here its process waits for longer than that first."""
    monkeypatch.setattr(sql, "SECONDS", 2)
    monkeypatch.setattr(sql, "LONGEST", 60)
    monkeypatch.setattr(sql.isolation, "START", f"import time; time.sleep(2.1); {sql.isolation.START}")
    assert "| 3 |" in answer(folder, "SELECT 1 + 2 AS total")


def test_a_query_without_bounds_runs_out_of_its_own_memory(folder: Path) -> None:
    """It gets an error and nobody else is harmed."""
    assert refusal(folder, "SELECT sum(x) FROM (SELECT unnest(range(1000000000)) AS x)")[0] == "too_large"


def test_a_link_out_of_the_material_is_no_table(folder: Path) -> None:
    """Neither listed nor read."""
    (folder / "linked.csv").symlink_to(folder.parent / "secret.csv")
    assert "linked" not in [source.name for source in tables.catalog(given_data(folder)).sources]


def test_names_of_tables_are_plain_and_unlike(tmp_path: Path) -> None:
    """Whatever the files are called; the same stem twice gets its folder, then a number."""
    for name in ("2024 q1.csv", "a/x.csv", "b/x.json", "b/X.tsv", "Select.CSV", "Æ.csv", "a-b.csv", "a_b.csv", "-.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("n\n1\n")
    found = {source.file: source.name for source in tables.catalog(given_data(tmp_path)).sources}
    assert found == {
        "data/2024 q1.csv": "t2024_q1",
        "data/-.csv": "data",
        "data/Select.CSV": "select_",
        "data/a-b.csv": "a_b",
        "data/a/x.csv": "x",
        "data/a_b.csv": "data_a_b",
        "data/b/X.tsv": "b_x",
        "data/b/x.json": "x_2",
        "data/Æ.csv": "æ",
    }


def test_names_of_tables_need_no_quotes(tmp_path: Path) -> None:
    """Whatever word of SQL a file is called by, or in whatever script: as a table, as a prefix and as a schema."""
    with sql._connection() as base:  # pyright: ignore[reportPrivateUsage]
        every = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'"
        words = [word for (word,) in base.execute(every).fetchall()]
    odd = ["main", "temp", "system", "memory", "information_schema", "pg_catalog", "U\u0308bung", "日本", "x²"]
    for word in [*words, *odd]:
        (tmp_path / f"{word}.csv").touch()
    known = [source.name for source in tables.catalog(given_data(tmp_path)).sources]
    assert len(known) == len({*words, *odd})
    with sql._connection() as base:  # pyright: ignore[reportPrivateUsage]
        for name in known:
            base.execute(f'CREATE TABLE "{name}" AS SELECT 7 AS n')
            assert base.execute(f"SELECT max({name}.n) FROM {name}").fetchone() == (7,)
            base.execute(f'DROP TABLE "{name}"; CREATE SCHEMA "{name}"; CREATE TABLE "{name}".t AS SELECT 7 AS n')
            assert base.execute(f"SELECT max(t.n) FROM {name}.t").fetchone() == (7,)


def test_a_table_in_another_script_is_queried(tmp_path: Path) -> None:
    """Through the whole tool; a SQLite file may have the name of a database of DuckDB's."""
    (tmp_path / "Übersicht.csv").write_text("n\n1\n")
    for name in ("main", "temp"):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as base, base:
            base.execute('CREATE TABLE "two words" AS SELECT 3 AS n')
    shown = answer(tmp_path, "SHOW TABLES")
    assert shown.split("\n") == [
        "übersicht: 1 rows (n BIGINT)",
        'main_."two words": 1 rows (n BIGINT)',
        'temp_."two words": 1 rows (n BIGINT)',
    ]
    joined = 'SELECT ü.n + a.n + b.n FROM übersicht ü, main_."two words" a, temp_."two words" b'
    assert "| 7 |" in answer(tmp_path, joined)


def test_more_files_than_tables_are_told(tmp_path: Path) -> None:
    """In the list of tables, and where a table is not there."""
    for number in range(501):
        (tmp_path / f"t{number:03}.db").touch()
    assert answer(tmp_path, "SHOW TABLES").endswith(f"\n[{tables.MORE}]")
    assert tables.list_sources(tables.catalog(given_data(tmp_path))).endswith(tables.MORE)


HEAD = "id,name,eur\n"
ROWS = "".join(f"{number},n{number},{number}.5\n" for number in range(1, 13))


@pytest.mark.parametrize(
    ("content", "rows", "note"),
    [
        (HEAD + ROWS, 12, ""),
        (HEAD + ROWS + "13,Acme, Inc.,1\n", 12, "1 of 14 records left out: line 14 has 4 fields, not 3"),
        (HEAD + ROWS + "13,x\n", 12, "1 of 14 records left out: line 14 has 2 fields, not 3"),
        (HEAD + "0,Acme, Inc.,1\n" + ROWS, 12, "1 of 14 records left out: line 2 has 4 fields, not 3"),
        (HEAD + ROWS + "0,a,b,1\n" + ROWS, 24, "1 of 26 records left out: line 14 has 4 fields, not 3"),
        (HEAD + ROWS + "1\n2\n3\n4\n", 12, "line 16 has 1 fields, not 3; and 1 more"),
        ((HEAD + ROWS).replace("\n", "\r\n") + '13,"a\r\nb, c",1\r\n14,x\r\n', 13, "line 16 has 2 fields, not 3"),
        ((HEAD + ROWS).replace("\n", "\r") + '13,"a\rb",1\r14,x\r', 13, "line 16 has 2 fields, not 3"),
        (HEAD + ROWS + '13,"a\rb",1\n14,"\n\r\n",2\n', 14, ""),
        ((HEAD + ROWS).replace(",", ";") + "13;x;1;\n", 12, "line 14 has 4 fields, not 3"),
        ((HEAD + ROWS).replace(",", ";").replace(".", ","), 12, ""),
        ((HEAD + ROWS).replace(",", "\t") + "13\tx\n", 12, "line 14 has 2 fields, not 3"),
        ((HEAD + ROWS).replace(",", " | "), 12, ""),
        (HEAD + ROWS + '13,"x,1\n14,y,2\n', 13, "1 of 15 records left out: line 14: a quotation mark is not closed"),
        (HEAD + ROWS + '13,"x" y,1\n', 12, "line 14: "),
        ("Report of 2024\n\n" + HEAD + ROWS, 12, "1 of 14 records left out: line 1 has 1 fields, not 3"),
        (HEAD + "\n" + ROWS + "\n  \n", 12, ""),
        (ROWS, 12, "no header found: columns are column0…"),
        (ROWS + "13\n", 12, "line 13 has 1 fields, not 3; no header found"),
        (
            HEAD + '0,"a,1\n' + ROWS * 5000,
            60_000,
            "1 of 60002 records left out: line 2: a quotation mark is not closed",
        ),
        (HEAD + '0,"a,1\n' + ROWS + '13,"b\nc",2\n', 13, "line 2: a quotation mark is not closed"),
        (HEAD + r'1,"say \"hi, there\"",5' + "\n" + r'2,"5\"",6' + "\n" + ROWS, 14, ""),
        ("Account,123\nOwner,Lee\n" + HEAD + ROWS, 12, "2 of 15 records left out: line 1 has 2 fields, not 3; line 2"),
        ("Bank, Oslo\n" + (HEAD + ROWS).replace(",", ";").replace(".", ","), 12, "line 1 has 1 fields, not 3"),
        ("sep=;\r\n" + (HEAD + ROWS).replace(",", ";") + "13;x\n", 12, "line 15 has 2 fields, not 3"),
        ('"SEP=^"\n' + (HEAD + ROWS).replace(",", "^"), 12, ""),
        ("note\n" + "".join(f"Lee, Ann {number}\n" for number in range(9)), 9, ""),
        ("note\n1,5\n2,5\n", 2, ""),
        ('note\n"1" "2"\n"3" "4\n5\n', 3, ""),
        ('\n  \nnote\nx\n""\ny\n', 3, ""),
        (HEAD + "1,x,2\n  \n" * 9, 9, ""),
        (HEAD + '4,x","abc\n' * 3000, 0, "3000 of 3001 records left out: line 2: a quotation mark is not closed"),
        ("note\n#1\n#2\nx\n#3\n", 4, ""),
        (HEAD, 0, ""),
        ("note\nhello, world\nbye\nso, and, on\n", 3, ""),
        ("note\n" + "x" * 1_000_000 + "\n", 1, ""),
        (HEAD.replace(",", ", ") + ROWS.replace(",", ", ") + '13, "Acme, Inc.", 1\n', 13, ""),
    ],
)
def test_no_row_of_a_csv_is_lost_without_a_word(tmp_path: Path, content: str, rows: int, note: str) -> None:
    """Records that do not fit are told by their lines; all others are rows, whatever the dialect."""
    (tmp_path / "x.csv").write_bytes(content.encode("utf-16"))
    context = given_data(tmp_path)
    with sql._connection() as base:  # pyright: ignore[reportPrivateUsage]
        loaded = tables.load(tables.catalog(context).sources[0], base, tmp_path, context)
        found = base.execute("FROM x").fetchall()
        names = [column[0] for column in base.description or []]
    assert len(found) == rows
    assert note in loaded.left_out
    assert bool(loaded.left_out) == bool(note)
    assert names in (["id", "name", "eur"], ["note"], ["column0", "column1", "column2"])


@pytest.mark.parametrize(
    ("content", "names", "rows"),
    [
        ("region,2023,2024\nnorth,2,3\nsouth,4,5\n", ["region", "2023", "2024"], 2),
        ("2022,2023,2024\n1,2,3\n4,5,6\n", ["2022", "2023", "2024"], 2),
        ("region,2024-01-01,2024-01-02\nnorth,2,3\n", ["region", "2024-01-01", "2024-01-02"], 1),
        ("day,8,9,10\nMon,2,3,4\nTue,2,3,4\n", ["day", "8", "9", "10"], 2),
        ("id,5\n7,2\n8,3\n", ["id", "5"], 2),
        ('"amount\r\nin EUR",city\r\n5,"Oslo\r\nS"\r\n', ["amount\r\nin EUR", "city"], 1),
        ("city,mayor\nOslo,Lee\n", ["city", "mayor"], 1),
        ("city,amount\nOslo,n/a\nBergen,$5\n", ["city", "amount"], 2),
        ("2023,north\n2024,south\n", None, 2),
        ("1,2\n3,4\n", None, 2),
        ("Oslo,1.5\nBergen,n/a\nHamar,2\n", None, 3),
        ("Oslo,2024-05-01\nBergen,2024-05-02\n", None, 2),
        ("1,2\n", None, 1),
        ("\n \n", None, 0),
    ],
)
def test_the_first_record_is_the_header_unless_it_is_data(
    tmp_path: Path, content: str, names: list[str] | None, rows: int
) -> None:
    """Numbers as names cost no row and add none; where no header is found the note says so."""
    (tmp_path / "x.csv").write_text(content, newline="")
    context = given_data(tmp_path)
    with sql._connection() as base:  # pyright: ignore[reportPrivateUsage]
        loaded = tables.load(tables.catalog(context).sources[0], base, tmp_path, context)
        found = base.execute("FROM x").fetchall()
        columns = [column[0] for column in base.description or []]
    assert columns == (names or [f"column{at}" for at in range(len(columns))])
    assert len(found) == rows
    assert loaded.left_out == ("no header found: columns are column0…" if rows and not names else "")


def test_a_row_too_many_in_a_csv_is_told_with_the_result(tmp_path: Path) -> None:
    """The worker sees it in the list of tables and in every query of that table."""
    (tmp_path / "x.csv").write_text(HEAD + ROWS + "13,Acme, Inc.,1\n")
    note = "[data/x.csv: 1 of 14 records left out: line 14 has 4 fields, not 3]"
    assert answer(tmp_path, "SHOW TABLES") == f"x: 12 rows (id BIGINT, name VARCHAR, eur DOUBLE)\n{note}"
    assert answer(tmp_path, "SELECT sum(id) AS s FROM x").endswith(f"| 78 |\n{note}")


def test_what_is_only_in_the_log_of_a_sqlite_file_is_read(tmp_path: Path) -> None:
    """Committed rows are there wherever SQLite keeps them; a result is out of date once the log has changed."""
    data = tmp_path / "data"
    data.mkdir()
    with closing(sqlite3.connect(data / "wal.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t AS SELECT 1 AS n")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = query(data, "SELECT count(*) AS n FROM wal.t")
        assert before.text.endswith("| 1 |")
        db.execute("INSERT INTO t VALUES (2), (3)")
        result = query(data, "SELECT count(*) AS n FROM wal.t")
        assert result.text.endswith("| 3 |")
        context = given_data(data)
        assert still_valid(result.reads, context)
        db.execute("INSERT INTO t VALUES (4)")
        assert not still_valid(result.reads, context)
        alone = ToolContext(material=(Material(name="wal.db", path=str(data / "wal.db")),))
        refused = asyncio.run(call(BUILTIN["query_data"], {"sql": "FROM wal.t"}, alone))
        assert refused.code == "not_readable"


def test_only_a_few_queries_run_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many workers that query together do not multiply the memory of one."""
    running: list[int] = [0, 0]

    async def run(*_: object) -> ToolResult:
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0)
        running[0] -= 1
        return ToolResult(text="done")

    monkeypatch.setattr(sql.isolation, "run", run)

    async def many() -> None:
        await asyncio.gather(*(call(BUILTIN["query_data"], {"sql": "x"}, given_data(folder)) for _ in range(9)))

    asyncio.run(many())
    asyncio.run(many())
    assert running == [0, sql.AT_ONCE]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.db", b"not a database at all, but long enough to be read as one" * 10, "cannot be read as DB"),
        ("x.parquet", b"PAR1", "cannot be read as PARQUET"),
        ("x.csv", b"\0\1\2\3", "is a binary file"),
        ("x.json", b"[[[[", "cannot be read as JSON"),
    ],
)
def test_a_file_that_is_not_what_it_seems_is_told(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    """With its name, and without the place of our copy."""
    data = tmp_path / "data"
    copies = tmp_path / "copies"
    data.mkdir()
    copies.mkdir()
    (data / name).write_bytes(content)
    context = given_data(data)
    with sql._connection() as base, pytest.raises(ToolError) as told:  # pyright: ignore[reportPrivateUsage]
        tables.load(tables.catalog(context).sources[0], base, copies, context)
    assert told.value.code == "not_readable"
    assert said in str(told.value)
    assert str(tmp_path) not in str(told.value)
    assert not list(copies.iterdir())


def test_too_large_files_are_left_out(folder: Path) -> None:
    """A gigabyte is not read: it is told at once."""
    with (folder / "huge.csv").open("wb") as huge:
        huge.truncate(1_000_000_000)
    context = given_data(folder)
    source = next(each for each in tables.catalog(context).sources if each.name == "huge")
    with sql._connection() as base, pytest.raises(ToolError) as told:  # pyright: ignore[reportPrivateUsage]
        tables.load(source, base, folder, context)
    assert told.value.code == "too_large"


def test_without_duckdb_the_command_to_install_it_is_told(folder: Path) -> None:
    """One line."""
    # A child finds what the parent's path leads to: here, a module that cannot be imported.
    shadow = folder.parent / "shadow"
    shadow.mkdir()
    (shadow / "duckdb.py").write_text("raise ImportError('not here')\n")
    sys.path.insert(0, str(shadow))
    try:
        assert refusal(folder, "SELECT 1") == ("unavailable", sql.INSTALL)
    finally:
        sys.path.remove(str(shadow))


def test_the_child_has_no_secrets_and_can_open_nothing(folder: Path) -> None:
    """Even if DuckDB's locks had a hole: no variables, no new files, no sockets."""
    probe = (
        "import os, socket\n"
        "from chargehand.tools import sql\n"
        "sql._give_up()\n"
        "for attempt in (lambda: open('/etc/passwd'), lambda: open('out', 'w'), socket.socket):\n"
        "    try:\n"
        "        attempt()\n"
        "    except OSError as error:\n"
        "        os.write(1, f'{error.errno} '.encode())\n"
        "os._exit(0)\n"
    )

    async def run() -> bytes:
        path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", probe, cwd=folder, stdout=-1, env=path)
        return (await child.communicate())[0]

    assert asyncio.run(run()) == b"24 24 24 "
    assert not (folder / "out").exists()


def test_no_material_and_no_data_are_told(tmp_path: Path) -> None:
    """Each in its words."""
    bare = asyncio.run(call(BUILTIN["query_data"], {"sql": "SELECT 1"}, ToolContext()))
    assert bare.code == "unavailable"
    assert query(tmp_path, "SELECT 1").code == "unavailable"
