"""The record of an ended run -> its report as JSON, as it was written: nothing is folded or validated.

For `show`, which only prints it: loading the models of a report takes several times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chargehand import __version__
from chargehand.events import Event
from chargehand.values.status_words import FINISHED

if TYPE_CHECKING:
    from chargehand.record.run_source import RunSource


def read_stored_report(
    source: RunSource, run: str, take: Callable[[Event], None] | None = None
) -> dict[str, Any] | None:
    """None when the record has to be folded: the run has not ended, an app shows it, or another version wrote it.

    `take` gets each event.
    """
    first: Event | None = None
    last: Event | None = None
    for last in source.events(run):  # all events, so that damage anywhere is noticed
        first = first or last
        if take is not None:
            take(last)
    if first is None or last is None or last.kind != "run_ended" or last.data.get("status") not in FINISHED:
        return None
    request: dict[str, Any] = first.data.get("request") or {}
    if first.data.get("chargehand") != __version__ or request.get("app", "") is not None:
        return None
    return last.data.get("report")
