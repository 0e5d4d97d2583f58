"""Where in a run an effect happens."""

from __future__ import annotations

from typing import NamedTuple


class Site(NamedTuple):
    """The key of an effect, and the task and attempt in it."""

    key: str
    task: str | None
    attempt: int | None
