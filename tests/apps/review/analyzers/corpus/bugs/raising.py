"""Errors."""


def must(value: int) -> None:
    if value < 0:
        raise "negative"
    if value > 10:
        ValueError("too large")


def read(name: str) -> str:
    try:
        return open(name).read()
    except (OSError or ValueError):
        return ""


def size(name: str) -> int:
    file = open(name)
    return len(file.read())


def both() -> int:
    try:
        return int("x")
    finally:
        return 0


def abstract() -> None:
    raise NotImplemented


def lines(name: str) -> int:
    count = 0
    for line in open(name, encoding="utf-8"):
        count += bool(line.strip())
    return count
