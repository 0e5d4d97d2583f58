"""Files that are used up and never closed."""

import csv
import json
import pickle


def save(data: dict, name: str) -> None:
    json.dump(data, open(name, "w"))


def store(data: dict, name: str) -> None:
    file = open(name, "w")
    json.dump(data, file)


def keep(data: dict, name: str) -> None:
    file = open(name, "wb")
    pickle.dump(data, file=file)


def note(text: str, name: str) -> None:
    file = open(name, "a")
    print(text, file=file)


def known(name: str) -> list[str]:
    words = list(open(name))
    words += sorted(open("more.txt"))
    return words


def table(name: str) -> list[list[str]]:
    file = open(name)
    rows = list(csv.reader(file))
    return rows


def export(rows: list[list[str]], name: str) -> None:
    file = open(name, "w")
    writer = csv.writer(file)
    writer.writerows(rows)


def numbered(name: str) -> None:
    for number, line in enumerate(open(name)):
        print(number, line)
