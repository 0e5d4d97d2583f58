"""Errors of SQLite and of the system -> StorageError: one sentence that says what to do."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from chargehand.errors import InvalidPlan, RecordDamaged, StorageError

# Exceptions raised when our own data does not have the shape it was written with; pydantic's errors are ValueErrors.
MISSHAPEN = (LookupError, TypeError, ValueError, AttributeError, AssertionError, ArithmeticError, RecursionError)
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# How the home is chosen on the command line; in Python it is an argument.
_NAME_HOME = "Set CHARGEHAND_HOME to a folder."


@contextmanager
def storage(path: Path) -> Generator[None]:
    """Turns failures of SQLite and the system at `path` into StorageError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise storage_error(path, error) from error


def storage_error(path: Path, error: sqlite3.Error | OSError) -> StorageError:
    if isinstance(error, OSError):
        return _system(path, error)
    return _sqlite(path, error, getattr(error, "sqlite_errorname", ""))


def damage_error(path: Path | str, what: object) -> RecordDamaged:
    remedy = "Restore it from a copy, or start the run again."
    return RecordDamaged(f"The record {path} is damaged ({what}). {remedy}", command="`chargehand run` starts one.")


@contextmanager
def reading(record: Path | str) -> Generator[None]:
    """Turns failures to make values from the record into the error of a damaged record."""
    try:
        yield
    except (*MISSHAPEN, InvalidPlan) as error:
        raise misread_error(record, error) from error


def misread_error(record: Path | str, error: Exception) -> RecordDamaged:
    """For an error of MISSHAPEN, or InvalidPlan."""
    said = " ".join(str(error).split())[:200]
    return damage_error(record, f"{type(error).__name__}: {said}")


def _full(path: Path) -> StorageError:
    message = f"The disk is full at {path}: nothing more was recorded. Free space, then resume."
    return StorageError(message, command="`chargehand runs prune` frees space.")


def _read_only(path: Path) -> StorageError:
    message = f"Cannot write to {path}: it is read-only. Make it writable, or choose another home."
    return StorageError(message, command=_NAME_HOME)


def _system(path: Path, error: OSError) -> StorageError:
    if error.errno in _FULL:
        return _full(path)
    if error.errno == errno.EROFS:
        return _read_only(path)
    reason = (error.strerror or str(error)).lower()
    message = f"Cannot use {path}: {reason}. Check the path, or choose a home that you can write to."
    return StorageError(message, command=_NAME_HOME)


def _sqlite(path: Path, error: sqlite3.Error, name: str) -> StorageError:
    match name.split("_")[1:]:
        case ["FULL", *_]:
            return _full(path)
        case ["READONLY" | "PERM", *_]:
            return _read_only(path)
        case ["CANTOPEN", *_]:
            remedy = "Check that it can be read and its folder written to, or choose another home."
            return StorageError(f"Cannot open {path}. {remedy}", command=_NAME_HOME)
        case ["BUSY" | "LOCKED", *_]:
            return StorageError(f"The record {path} is held by another program. Close that program and try again.")
        case ["IOERR", "SHORT", *_]:
            return damage_error(path, error)  # the file ends before its last page
        case ["IOERR" | "NOMEM", *_]:
            return StorageError(
                f"The disk failed at {path} ({error}): nothing more was recorded. Check the disk, then resume."
            )
        case _:
            # Not a database, a damaged page, a missing table or column, text that is not UTF-8.
            return damage_error(path, error)
