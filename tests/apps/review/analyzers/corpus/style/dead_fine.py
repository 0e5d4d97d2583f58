"""Code that is reached in ways that are easy to miss."""

from collections.abc import Iterator

_HANDLERS = {}


def _register(function):
    _HANDLERS[function.__name__] = function
    return function


@_register
def _on_start() -> None:
    print("start")


def _shared_with_sibling() -> int:
    return 1


def empty() -> Iterator[int]:
    return
    yield


def by_name(name: str) -> object:
    return globals()["_by_string"]


def _by_string() -> int:
    return 2
