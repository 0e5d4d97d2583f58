"""Files that are closed, or that others hold."""

import csv
import json
from collections.abc import Iterator

log = None


class Store:
    def __init__(self, name: str) -> None:
        self.file = open(name, "w")

    def save(self, data: dict, name: str) -> None:
        self.dump(data, open(name, "w"))

    def dump(self, data: dict, file) -> None:
        with file:
            json.dump(data, file)


def save(data: dict, name: str) -> None:
    file = open(name, "w")
    try:
        json.dump(data, file)
    finally:
        file.close()


def rows(name: str) -> Iterator[list[str]]:
    file = open(name)
    reader = csv.reader(file)
    return reader


def table(name: str) -> list[list[str]]:
    file = open(name)
    found = list(csv.reader(file))
    file.close()
    return found


def start(name: str) -> None:
    global log
    log = open(name, "w")
    print("started", file=log)


def stop() -> None:
    log.close()
