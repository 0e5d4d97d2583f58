"""Files and standard input named on the command line -> data, or a UsageError with what is wrong and what to do."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from chargehand.errors import InvalidPlan, UsageError

if TYPE_CHECKING:
    from chargehand.values.plan import Plan, Problem

LARGEST = 50_000_000
STDIN = "-"
MOST_NAMED = 50
_ID = rb'"id"\s*:\s*"((?:[^"\\]|\\.)*)"'


def text_of_stdin(what: str) -> str:
    """All of standard input."""
    if sys.stdin.isatty():
        print(f"chargehand: reading {what} from the terminal; end it with Ctrl-D", file=sys.stderr)
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def read_request(given: str | None) -> str:
    """The request: the given words, or standard input for `-`. The name of a file alone is a UsageError."""
    if given == STDIN:
        return text_of_stdin("the request")
    if given and len(given) < 256 and Path(given).is_file():
        raise UsageError(
            f"The request is only the name of a file, {given}. `chargehand run --plan {given}` runs a plan. "
            f"--with {given} and a request in words give it as material."
        )
    return given or ""


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


def parse_plan(data: bytes, path: str) -> Any:
    """The JSON data of a plan file, which may be misshapen; another document of chargehand is a UsageError."""
    given = parse_json(data, path, "a plan")
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    if "replies" in fields:
        raise UsageError(f"{path} is a script, not a plan: a run takes its replies with --model scripted:{path}")
    if {"run", "outcomes", "plan"} <= fields.keys():
        how = f"chargehand show {fields['run']} --plan --json > plan.json"
        raise UsageError(f"{_name(path)} is the report of a run, not a plan. Write its plan with: {how}")
    return cast("Any", given)


def words_of(given: str) -> str:
    """The given text; for `@FILE`, the content of the file."""
    if not given.startswith("@"):
        return given
    return read_bytes(given[1:], "the answer").decode("utf-8", "replace").removeprefix("\ufeff")


def read_plan(path: str) -> Plan:
    """The plan in a file; InvalidPlan names every misshapen field and its line."""
    from chargehand.text.plan_json import parse

    data = read_bytes(path, "a plan")
    given = parse_plan(data, path)
    try:
        return parse(given)
    except InvalidPlan as error:
        raise _with_lines(error, data, path) from None


@contextmanager
def name_lines(path: str | None) -> Generator[None]:
    """Problems of the plan in a file are named with their lines, as `check` names them."""
    try:
        yield
    except InvalidPlan as error:
        if path is None or path == STDIN:
            raise
        raise _with_lines(error, read_bytes(path, "a plan"), path) from None


def _with_lines(error: InvalidPlan, data: bytes, path: str) -> InvalidPlan:
    from chargehand.values.plan import Problem, errors_in

    problems = [problem for problem in error.problems if isinstance(problem, Problem)]
    if not problems:
        return error
    placed = [problem.message for problem in place_problems(errors_in(problems), data, path)]
    more = [f"and {len(placed) - MOST_NAMED:,} more: chargehand check {path}"] if len(placed) > MOST_NAMED else []
    lines = "".join(f"\n  {line}" for line in (*placed[:MOST_NAMED], *more))
    return InvalidPlan(f"{str(error).partition(':')[0]}:{lines}", problems)


def place_problems(problems: Sequence[Problem], data: bytes, path: str) -> list[Problem]:
    """The problems by line, with `file:line: ` before each message.

    The line is the one with the id of the task, else line 1.
    """
    from pydantic_core import from_json

    lines: dict[str, list[int]] = {}
    line, at = 1, 0
    for match in re.finditer(_ID, data):
        line, at = line + data.count(b"\n", at, match.start()), match.start()
        try:
            lines.setdefault(str(from_json(b'"' + match[1] + b'"')), []).append(line)
        except ValueError:
            continue  # not a string, but part of another text
    found: list[tuple[int, Problem]] = []
    for problem in problems:
        known = lines.get(problem.task or "", [1])
        # Of two tasks with the same id, the second is the problem.
        where = known[-1] if problem.code == "duplicate_id" else known[0]
        found.append((where, problem.model_copy(update={"message": f"{path}:{where}: {problem.message}"})))
    return [problem for _, problem in sorted(found, key=lambda each: each[0])]


def _name(path: str) -> str:
    return "Standard input" if path == STDIN else path
