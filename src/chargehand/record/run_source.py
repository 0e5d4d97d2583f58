"""Runs for readers: which runs there are, what their records contain, what was ordered. Reading changes nothing.

`Home` is the source in a folder of files. An engine that keeps its records elsewhere provides its own source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from chargehand.events import Event
    from chargehand.record.index import RunInfo
    from chargehand.record.mailbox import Mailbox
    from chargehand.record.replay import Replay


class RunSource(Protocol):
    """RunNotFound names a run that is not there, RecordDamaged a record that cannot be read."""

    def find(self, name: str) -> str:
        """The id meant by `last`, an id, or the beginning of just one."""
        ...

    def runs(self, limit: int | None = None) -> list[RunInfo]:
        """Runs, newest first."""
        ...

    def list_mark(self) -> object:
        """Equal marks mean that no run was begun, ended or removed in between; a run may have died."""
        ...

    def documents(self, run: str) -> list[Path]:
        """The documents that workers of the run wrote, as files, by name."""
        ...

    def state(self, run: str) -> Replay:
        """The record of a run, folded. It contains the report once the run has ended."""
        ...

    def events(self, run: str, after: int = 0) -> Iterator[Event]:
        """The committed events of a run in order, those with a larger `seq` than `after`."""
        ...

    def last_event(self, run: str) -> int:
        """The number of the last committed event of a run; 0 before there is one."""
        ...

    def change_mark(self, run: str) -> object:
        """Changes when events are committed; cheap, for frequent checks."""
        ...

    def messages(self, run: str, hashes: Iterable[str]) -> dict[str, bytes]:
        """The messages of a run's model calls, by the hashes under which its events name them."""
        ...

    def owner(self, run: str) -> str | None:
        """The process that executes a run now, in words; None if there is none."""
        ...

    def orders(self, run: str) -> Mailbox:
        """The orders to a run that have no verdict yet. Any process may send one."""
        ...

    def request_cancel(self, run: str) -> None:
        """Order the owner of a run, whichever process it is, to stop."""
        ...

    def cancel_requested(self, run: str) -> bool:
        """Whether the run is ordered to stop."""
        ...
