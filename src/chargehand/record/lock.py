"""One owner per run: an OS file lock, released by the system when its holder dies; it names its holder."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chargehand.errors import RunOwned
from chargehand.record.storage_errors import storage

# Reading the owner's name takes the lock for some microseconds; a process that wants the run tries again first.
_TRIES = 5
_PAUSE_S = 0.01
# The HTTP address of this process, if it has one: a process that finds a run locked names this address.
_process_url: str | None = None


class OwnerLock:
    """The lock on one run, held from construction to `release`."""

    # The lock belongs to this open file. It is closed on exec, so that no tool's process can hold the lock of a dead
    # owner.
    _file: int | None

    def __init__(self, path: Path, run: str) -> None:
        with storage(path):
            self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            if not _take(self._file):
                raise RunOwned.by(_describe(self._file), run)
            # A full disk must not prevent pruning: the lock also holds without a name in it.
            with suppress(OSError):
                _sign(self._file)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def owner(path: Path) -> str | None:
    """The holder of the lock, in words; None when it is free. Creates nothing."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _describe(file)
    else:
        return None
    finally:
        os.close(file)


def set_process_url(url: str | None) -> None:
    """Name an address of this process in every lock that it takes from now on."""
    global _process_url  # noqa: PLW0603 -- a lock names its process, and so does this
    _process_url = url


def _take(file: int) -> bool:
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE_S)
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


def _sign(file: int) -> None:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
    text = json.dumps(holder | ({"url": _process_url} if _process_url else {})).encode()
    os.pwrite(file, text, 0)
    os.ftruncate(file, len(text))


def _describe(file: int) -> str:
    try:
        holder: dict[str, Any] = json.loads(os.pread(file, 4096, 0))
        at = f", the server at {holder['url']}" if "url" in holder else ""
        since = datetime.fromisoformat(holder["since"]).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"process {holder['pid']} on {holder['host']} since {since}{at}"
    except (ValueError, KeyError, TypeError):
        # The owner has taken the lock but has not written its name yet.
        return "another process"
