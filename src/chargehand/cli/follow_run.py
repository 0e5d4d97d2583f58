"""The record of a run of any process -> the same display as for a run of this process, until it ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from chargehand.cli.watch_run import make_progress
from chargehand.trace import fold

if TYPE_CHECKING:
    from chargehand.cli.screen import Screen
    from chargehand.record.run_source import RunSource

# Seconds between two checks of the record.
LOOK_S = 0.25


async def follow_run(source: RunSource, run: str, screen: Screen) -> None:
    """Returns when the run has ended, or no process executes it any more."""
    view = fold(source.events(run))
    # `show` prints its own table below.
    async with make_progress(screen, view, stays=False) as progress:
        seen: object = None
        while True:
            # Checked before the events are read, so that the last events before a stop are still shown.
            is_owned = source.owner(run) is not None
            if (mark := source.change_mark(run)) != seen or not is_owned:
                seen = mark
                for event in source.events(run, view.seq):
                    progress.on_event(event)
            if not is_owned:
                return
            await asyncio.sleep(LOOK_S)
