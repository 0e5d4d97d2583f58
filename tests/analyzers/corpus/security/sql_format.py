"""Orders by customer."""

import sqlite3


def by_customer(db: sqlite3.Connection, name: str) -> list[tuple]:
    return db.execute(f"SELECT * FROM orders WHERE customer = '{name}'").fetchall()


def by_state(db: sqlite3.Connection, state: str) -> list[tuple]:
    query = "SELECT id FROM orders WHERE state = '%s'" % state
    return db.execute(query).fetchall()


def remove(db: sqlite3.Connection, number: str) -> None:
    db.execute("DELETE FROM orders WHERE id = " + number)
