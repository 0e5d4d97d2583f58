"""Files and standard input named on the command line -> data, or a UsageError with what is wrong and what to do."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chargehand.errors import UsageError

if TYPE_CHECKING:
    from chargehand.values.plan import Plan

LARGEST = 50_000_000
STDIN = "-"


def text_of_stdin(what: str) -> str:
    """All of standard input."""
    if sys.stdin.isatty():
        print(f"chargehand: reading {what} from the terminal; end it with Ctrl-D", file=sys.stderr)
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def check_one_stdin(uses: Mapping[str, bool]) -> None:
    """Raises UsageError if standard input is used twice."""
    named = [name for name, used in uses.items() if used]
    if len(named) > 1:
        raise UsageError(f"Only one of {' and '.join(named)} can be `-`: standard input is read once.")


def read_json(path: str, what: str) -> Any:
    """The JSON data in a file, or in standard input for `-`."""
    return parse_json(read_bytes(path, what), path, what)


def read_bytes(path: str, what: str) -> bytes:
    if path == STDIN:
        return text_of_stdin(what).encode()
    file = Path(path)
    try:
        if file.is_dir():
            raise UsageError(f"{path} is a folder: name the file with {what}.")
        size = file.stat().st_size
        if size > LARGEST:
            raise UsageError(f"{path} has {size / 1e6:,.0f} MB: {what} of more than {LARGEST // 10**6} MB is not read.")
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror}. Name a readable file with {what}.") from None


def parse_json(data: bytes, path: str, what: str) -> Any:
    from pydantic_core import from_json

    if not data.strip():
        raise UsageError(f"{_name(path)} is empty: it should have {what} as JSON.")
    try:
        return from_json(data.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise UsageError(f"{_name(path)} is not JSON: {error}. It should have {what} as JSON.") from None


def words_of(given: str) -> str:
    """The given text; for `@FILE`, the content of the file."""
    if not given.startswith("@"):
        return given
    return read_bytes(given[1:], "the answer").decode("utf-8", "replace").removeprefix("\ufeff")


def read_plan(path: str) -> Plan:
    """The plan in a file; InvalidPlan names every misshapen field."""
    from chargehand.errors import InvalidPlan
    from chargehand.text.plan_json import parse

    data = read_json(path, "a plan")
    try:
        return parse(data)
    except InvalidPlan as error:
        raise InvalidPlan(f"{_name(path)}: {error}", error.problems) from None


def _name(path: str) -> str:
    return "Standard input" if path == STDIN else path
