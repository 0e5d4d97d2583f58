"""Messages that fit."""

import logging

log = logging.getLogger(__name__)


def greet(name: str, count: int) -> str:
    return "Hello %s, you have %d orders" % (name, count)


def bill(name: str, amount: float) -> str:
    return f"{name} owes {amount:.2f}"


def note(name: str) -> None:
    log.warning("order of %s", name)


STATES = {"open": 1, "closed": 2, "void": 3}
