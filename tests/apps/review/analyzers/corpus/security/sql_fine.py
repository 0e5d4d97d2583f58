"""Orders by customer, with parameters."""

import sqlite3

COLUMNS = ("id", "state")


def by_customer(db: sqlite3.Connection, name: str) -> list[tuple]:
    return db.execute("SELECT * FROM orders WHERE customer = ?", (name,)).fetchall()


def hint(name: str) -> str:
    return f"Please select {name} from the menu"


def moved(count: int) -> str:
    return f"Update of {count} orders is set for tonight"
