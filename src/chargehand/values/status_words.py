"""The status of a run, in one word. In its own module, so that runs are listed without loading the report's models."""

from __future__ import annotations

from typing import Literal, get_args

RunStatus = Literal["running", "waiting", "paused", "interrupted", "cancelled", "complete", "partial", "failed"]
STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)

# Ended for good, unless reopened.
FINISHED: tuple[RunStatus, ...] = ("complete", "partial", "failed")
# How the note begins of a run whose answer was not written because its time was up.
NO_TIME_TO_WRITE = "The deadline left no time for a synthesis"
EXIT_CODES: dict[RunStatus, int] = {
    "complete": 0,
    "failed": 1,
    "cancelled": 1,
    "partial": 3,
    "waiting": 4,
    "paused": 4,
    "interrupted": 130,
    "running": 1,
}
