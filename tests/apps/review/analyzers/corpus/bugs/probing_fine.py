"""Names that are there only sometimes, and files that are closed by other means than `with` around `open`."""

import os


def in_notebook() -> bool:
    try:
        get_ipython
    except NameError:
        return False
    return type(get_ipython()).__name__ == "ZMQInteractiveShell"


def head(name: str) -> str | None:
    try:
        file = open(name, encoding="utf-8")
    except OSError:
        return None
    with file:
        return file.readline()


def copied(name: str, target: int) -> int:
    source = open(name, "rb")
    try:
        return os.write(target, source.read())
    finally:
        source.close()


class Log:
    def __init__(self, name: str) -> None:
        self.file = open(name, "a", encoding="utf-8")

    def close(self) -> None:
        self.file.close()


def opened(name: str) -> Log:
    file = open(name, encoding="utf-8")
    return wrapped(file)


def wrapped(file: object) -> Log:
    return Log(str(file))


class Broken:
    def __repr__(self) -> str:
        1 / 0
        return "never"
