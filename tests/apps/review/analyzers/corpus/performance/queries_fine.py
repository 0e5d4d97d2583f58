"""Reports with one query, and loops that have to ask again."""

import requests

SCHEMA = ("CREATE TABLE a (x)", "CREATE TABLE b (y)")


def names(cursor, ids: list[int]) -> list[str]:
    cursor.executemany("INSERT INTO wanted VALUES (?)", [(number,) for number in ids])
    cursor.execute("SELECT name FROM customers JOIN wanted USING (id)")
    return [row[0] for row in cursor]


def create(cursor) -> None:
    for statement in SCHEMA:
        cursor.execute(statement)


def pages(url: str) -> list[dict]:
    found = []
    while url:
        answer = requests.get(url, timeout=3).json()
        found.append(answer)
        url = answer.get("next")
    return found


def lookup(known: dict[str, int], keys: list[str]) -> list[int]:
    return [known.get(key, 0) for key in keys]


def retry(url: str) -> str:
    for _ in range(3):
        answer = requests.get(url, timeout=3)
        if answer.ok:
            break
    return answer.text
