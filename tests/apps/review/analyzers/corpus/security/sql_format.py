"""Orders by customer."""

import sqlite3


def by_customer(db: sqlite3.Connection, name: str) -> list[tuple]:
    return db.execute(f"SELECT * FROM orders WHERE customer = '{name}'").fetchall()


def by_state(db: sqlite3.Connection, state: str) -> list[tuple]:
    query = "SELECT id FROM orders WHERE state = '%s'" % state
    return db.execute(query).fetchall()


def remove(db: sqlite3.Connection, number: str) -> None:
    db.execute("DELETE FROM orders WHERE id = " + number)


def among(db: sqlite3.Connection, names: list[str]) -> list[tuple]:
    wanted = []
    for name in names:
        wanted.append(f"'{name}'")
    return db.execute("SELECT * FROM orders WHERE customer IN (" + ",".join(wanted) + ")").fetchall()


def repeated(db: sqlite3.Connection, pad: str) -> list[tuple]:
    return db.execute("SELECT * FROM orders WHERE note = " + pad * 3).fetchall()


TABLE = "orders"
COLUMNS = ["id", "state"]
ORDERS = {"newest": "id DESC"}


def use(name: str) -> None:
    global TABLE
    TABLE = name
    COLUMNS.append(name)


def size(db: sqlite3.Connection) -> list[tuple]:
    return db.execute(f"SELECT count(*) FROM {TABLE}").fetchall()


def distinct() -> list[str]:
    return [f"SELECT DISTINCT {column} FROM orders" for column in COLUMNS]


def learn(key: str, order: str) -> None:
    ORDERS[key] = order


def ordered(db: sqlite3.Connection, key: str) -> list[tuple]:
    return db.execute(f"SELECT * FROM orders ORDER BY {ORDERS[key]}").fetchall()
