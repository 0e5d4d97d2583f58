"""SQL put together from placeholders and from words of its own, values as parameters."""

import sqlite3

TABLE = "orders"
COLUMNS = ("id", "state")
ORDERS = {"newest": "id DESC", "oldest": "id"}


def among(db: sqlite3.Connection, ids: list[int]) -> list[tuple]:
    return db.execute("SELECT * FROM orders WHERE id IN (" + ",".join("?" * len(ids)) + ")", ids).fetchall()


def among_too(db: sqlite3.Connection, ids: list[int]) -> list[tuple]:
    return db.execute(f"SELECT * FROM orders WHERE id IN ({','.join('?' * len(ids))})", ids).fetchall()


def matching(db: sqlite3.Connection, patterns: list[str]) -> list[tuple]:
    clause = " or ".join(["name REGEXP ?"] * len(patterns))
    return db.execute("SELECT id FROM orders WHERE " + clause, patterns).fetchall()


def newest(db: sqlite3.Connection, state: str | None) -> list[tuple]:
    wanted = ["paid = 1"]
    if state is not None:
        wanted.append("state = ?")
    return db.execute(f"SELECT id FROM {TABLE} WHERE {' and '.join(wanted)}", [state] if state else []).fetchall()


def moved(TABLE: str) -> str:
    return TABLE.upper()


def count(db: sqlite3.Connection) -> list[tuple]:
    print("counting", TABLE)
    return db.execute(f"SELECT count(*) FROM {TABLE}").fetchall()


def distinct() -> list[str]:
    queries = []
    for column in COLUMNS:
        print(column)
        queries.append(f"SELECT DISTINCT {column} FROM orders")
    return queries


def changed(db: sqlite3.Connection, values: list[str]) -> None:
    db.execute(f"UPDATE orders SET {', '.join(f'{column} = ?' for column in COLUMNS)}", values)


def ordered(db: sqlite3.Connection, key: str) -> list[tuple]:
    return db.execute(f"SELECT * FROM orders ORDER BY {ORDERS[key]}").fetchall()


def ordered_too(db: sqlite3.Connection, key: str) -> list[tuple]:
    return db.execute("SELECT * FROM orders ORDER BY " + ORDERS.get(key, "id")).fetchall()
