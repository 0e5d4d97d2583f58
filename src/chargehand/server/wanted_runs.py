"""Runs that a server has to carry out, and their idempotency keys, as files that survive the server.

serve/wanted/<run>.json   exists until the run ends, is cancelled or paused: the caller, and what it asked for
serve/keys/<hash>.json    an Idempotency-Key of a caller: its run, and a hash of the body it came with
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from chargehand.record.home import Home
from chargehand.record.storage_errors import storage
from chargehand.server.kept_json import keep_json, read_kept_json


class Wanted(NamedTuple):
    """A run that a caller asked for. `start` is the body of the request, None for a run that began elsewhere."""

    run: str
    caller: str
    start: dict[str, Any] | None


class KnownKey(NamedTuple):
    """The run that a key was first used for, and the hash of the body it was used with."""

    run: str
    body: str


class WantedRuns:
    """The marks in one home. Called from threads."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._marks = home.path / "serve" / "wanted"
        self._keys = home.path / "serve" / "keys"

    def mark(self, wanted: Wanted) -> None:
        keep_json(self._marks / f"{wanted.run}.json", {"caller": wanted.caller, "start": wanted.start})

    def clear(self, run: str) -> None:
        path = self._marks / f"{run}.json"
        with storage(path):
            path.unlink(missing_ok=True)

    def is_marked(self, run: str) -> bool:
        return (self._marks / f"{run}.json").exists()

    def all(self) -> list[Wanted]:
        """Every marked run, oldest first. A mark that cannot be read was not promised to a caller."""
        with storage(self._marks):
            files = sorted(self._marks.glob("*.json")) if self._marks.is_dir() else []
        found = [(file.stem, read_kept_json(file)) for file in files]
        return [Wanted(run, str(data.get("caller")), data.get("start")) for run, data in found if data is not None]

    def find_key(self, caller: str, key: str) -> KnownKey | None:
        """The use of a key, as long as its run exists or is still to begin."""
        data = read_kept_json(self._key_file(caller, key))
        if data is None:
            return None
        known = KnownKey(str(data.get("run")), str(data.get("body")))
        return known if self._home.has(known.run) or self.is_marked(known.run) else None

    def keep_key(self, caller: str, key: str, known: KnownKey) -> None:
        keep_json(self._key_file(caller, key), known._asdict())

    def _key_file(self, caller: str, key: str) -> Path:
        return self._keys / f"{hash_of([caller, key])}.json"


class UnmarkedRuns(WantedRuns):
    """For a process whose runs stop with it and are not continued automatically."""

    def mark(self, wanted: Wanted) -> None:
        """Leaves no mark."""


def hash_of(body: Any) -> str:
    """A hash that is equal for bodies that are the same JSON."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
