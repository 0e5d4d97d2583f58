"""Defects that take more than a pattern."""

import os
import random
import urllib.request


def preview(url: str) -> bytes:
    return urllib.request.urlopen(url).read()


def code() -> str:
    return str(random.randint(1000, 9999))


def listing(db, columns: list[str], table: str) -> list[tuple]:
    words = ["SELECT", ", ".join(columns), "FROM", table]
    return db.execute(" ".join(words)).fetchall()


def size(name: str) -> str:
    return os.popen("du -s " + name).read()


def report(db, month: str) -> list[tuple]:
    query = f"""
        SELECT customer, sum(amount)
        FROM orders
        WHERE month = '{month}'
    """
    return db.execute(query).fetchall()
