"""Answers sent to clients -> the runs they came from, so that a conversation continues from its run."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict

_KEPT_ANSWERS = 10_000


class Conversations:
    """Which run gave which answer: a client that sends an answer back continues from its run."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, str] = OrderedDict()
        # Tasks that soon stop a run, because nobody waits for it.
        self.stopping: set[asyncio.Task[None]] = set()

    def keep(self, answer: str, run: str) -> None:
        self._runs[_digest(answer)] = run
        while len(self._runs) > _KEPT_ANSWERS:
            self._runs.popitem(last=False)

    def run_of(self, answer: str | None) -> str | None:
        return None if answer is None else self._runs.get(_digest(answer))


def _digest(answer: str) -> str:
    """Ignores white space, because clients may trim an answer."""
    return hashlib.sha256(" ".join(answer.split()).encode("utf-8", "replace")).hexdigest()
