"""Messages."""

import logging

log = logging.getLogger(__name__)


def greet(name: str) -> str:
    return "Hello %s, you have %d orders" % (name,)


def bill(name: str, amount: float) -> str:
    return "{} owes {amount}".format(name)


def note(name: str) -> None:
    log.warning("order of %s and %s", name)


STATES = {"open": 1, "closed": 2, "open": 3}
