"""Orders to a run as files in a folder -> orders in the order they were sent. Any process writes, the owner removes.

An order is written to a file of another name, then renamed: a file named `ULID.json` is complete. It is removed after
the verdict on it is on the record, so a crash in between leaves a file whose id the record knows.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from chargehand.record.private_files import private_file, private_folder
from chargehand.record.storage_errors import storage
from chargehand.values.lazy_regex import lazy_regex

if TYPE_CHECKING:
    from chargehand.values.order import Order

_NAME = lazy_regex(r"([0-9A-HJKMNP-TV-Z]{26})\.json")
_MOST_BYTES = 8_000_000


class UnreadableOrder(NamedTuple):
    """A file in the mailbox that is not an order of this version, and why."""

    id: str
    problem: str


class Mailbox(Protocol):
    """The orders to one run. Reading changes nothing."""

    def send(self, order: Order) -> None:
        """Put an order there, durably."""
        ...

    def pending(self) -> list[Order | UnreadableOrder]:
        """The orders that wait for a verdict, oldest first."""
        ...

    def remove(self, id: str) -> None:
        """Remove an order whose verdict is on the record. Removing again does nothing."""
        ...


class FolderMailbox:
    """Orders as files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def send(self, order: Order) -> None:
        private_folder(self._folder)
        path, half = self._folder / f"{order.id}.json", self._folder / f"{order.id}.tmp"
        with storage(path):
            file = private_file(half)
            try:
                os.write(file, order.model_dump_json(exclude_none=True).encode())
                os.fsync(file)
            finally:
                os.close(file)
            half.rename(path)
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def pending(self) -> list[Order | UnreadableOrder]:
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []  # nothing was sent yet; the sender gets the error of a folder that cannot be used
        found = sorted(match[1] for name in names if (match := _NAME.fullmatch(name)))
        read = (self._read(id) for id in found)
        return [order for order in read if order is not None]

    def remove(self, id: str) -> None:
        with suppress(FileNotFoundError):
            (self._folder / f"{id}.json").unlink()

    def _read(self, id: str) -> Order | UnreadableOrder | None:
        path = self._folder / f"{id}.json"
        try:
            if path.stat().st_size > _MOST_BYTES:
                return UnreadableOrder(id, f"it is longer than {_MOST_BYTES:,} bytes")
            return read_order(id, path.read_bytes())
        except FileNotFoundError:
            return None  # another process has removed it
        except OSError as error:
            return UnreadableOrder(id, f"it cannot be read: {(error.strerror or str(error)).lower()}")


def read_order(id: str, text: bytes) -> Order | UnreadableOrder:
    """An order from the bytes of its file."""
    from chargehand.values.order import VERSION, Order  # `show` looks for orders, and most often there are none

    try:
        data: Any = json.loads(text)
    except ValueError:
        return UnreadableOrder(id, "it is not JSON: send it again with `chargehand steer`")
    version = cast("dict[str, Any]", data).get("version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > VERSION:
        return UnreadableOrder(id, f"it is of version {version}: upgrade chargehand where the run is, which knows 1")
    try:
        order = Order.model_validate(data)
    except ValueError as error:
        said = " ".join(str(error).split())[:300]
        return UnreadableOrder(id, f"it is not an order ({said}): send it with `chargehand steer`")
    return order if order.id == id else UnreadableOrder(id, f"it names itself {order.id}")
