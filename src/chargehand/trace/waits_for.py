"""A run with status `waiting` -> what it waits for: the one rule for the list of runs and the page of a run."""

from __future__ import annotations

from typing import Literal

WaitsFor = Literal["person", "provider", "resume"]


def waits_for(status: str, *, asks: bool, provider: bool) -> WaitsFor | None:
    """None unless the run waits. `resume`: all its questions are answered, and no process continues it.

    `asks`: a question is open. `provider`: a call waits until a provider takes it.
    """
    if status != "waiting":
        return None
    return "person" if asks else "provider" if provider else "resume"
