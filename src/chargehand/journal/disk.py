"""What the disk does to us, as one sentence with a remedy; and files that only their owner may read."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from chargehand.errors import StorageError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def storage(path: Path) -> Generator[None]:
    """Turns failures of SQLite and the system at `path` into StorageError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise storage_error(path, error) from error


def storage_error(path: Path, error: sqlite3.Error | OSError) -> StorageError:
    if isinstance(error, OSError):
        return StorageError(_system(path, error))
    return StorageError(_sqlite(path, error, getattr(error, "sqlite_errorname", "")))


def private_file(path: Path) -> int:
    """A new file that only its owner may read, as a file descriptor; FileExistsError where there is one."""
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)


def private_folder(path: Path) -> None:
    """Makes the folder, for its owner only, unless it is there."""
    with storage(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)


def _full(path: Path) -> str:
    return f"The disk is full at {path}: nothing more was recorded. Free space (`chargehand runs prune`), then resume."


def _read_only(path: Path) -> str:
    return f"Cannot write to {path}: it is read-only. Make it writable or set CHARGEHAND_HOME to a folder that is."


def _system(path: Path, error: OSError) -> str:
    if error.errno in _FULL:
        return _full(path)
    if error.errno == errno.EROFS:
        return _read_only(path)
    reason = (error.strerror or str(error)).lower()
    return f"Cannot use {path}: {reason}. Check the path or set CHARGEHAND_HOME to a folder you can write to."


def _sqlite(path: Path, error: sqlite3.Error, name: str) -> str:
    match name.split("_")[1:2]:
        case ["FULL"]:
            return _full(path)
        case ["READONLY" | "PERM"]:
            return _read_only(path)
        case ["CANTOPEN"]:
            return f"Cannot open {path}. Check that it can be read and its folder written to, or set CHARGEHAND_HOME."
        case ["CORRUPT" | "NOTADB"]:
            return f"The record {path} is damaged ({error}). Restore it from a copy, or start the run again."
        case ["BUSY" | "LOCKED"]:
            return f"The record {path} is held by another program. Close that program and try again."
        case ["IOERR"]:
            return f"The disk failed at {path} ({error}): nothing more was recorded. Check the disk, then resume."
        case _:
            return f"The record {path} cannot be used ({error}). Restore it from a copy, or start the run again."
