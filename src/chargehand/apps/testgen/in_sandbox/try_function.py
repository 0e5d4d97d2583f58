"""One function becomes candidates for tests: calls with what they gave, and properties by hypothesis' ghostwriter.

Arguments: examples|properties JOB RESULT [shifted]

With `shifted` the clock is on another day. Each call is noted in RESULT, as a line of JSON, before it is tried, so that
a call that hangs or ends the process can be named from outside.
"""

from __future__ import annotations

import ast
import builtins
import enum
import importlib
import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from .argument_values import PLAIN, SUBJECT, NoValues, arguments
from .docstring_calls import calls_in_docstring, promises
from .hypothesis_properties import try_properties
from .machine_access import Reached
from .notes import Notes, describe_error
from .shifted_clock import shift
from .value_source import approximate, source_of

MOST_TRIED = 14
LONGEST_VALUE = 400
# The copy of the project; the folder around it has HOME and TMP.
HERE = Path.cwd()


def is_expected(error: BaseException, raises: list[str]) -> bool:
    """Whether the error is intended: raised by name in the code, or what Python raises for a wrong value."""
    names = {name.rpartition(".")[2] for name in raises}
    return isinstance(error, ValueError) or any(kind.__name__ in names for kind in type(error).__mro__[:-3])


def importable(error: BaseException, module: ModuleType) -> str | None:
    """The name a test can catch it by."""
    name = type(error).__name__
    if getattr(builtins, name, None) is type(error):
        return name
    return f"{SUBJECT}.{name}" if getattr(module, name, None) is type(error) else None


def depends_on_place(text: str) -> bool:
    """Whether it names where this copy happens to be."""
    return str(HERE.parent) in text


def examples(job: dict[str, Any], module: ModuleType, notes: Notes, reached: Reached) -> None:
    owner, _, name = job["name"].rpartition(".")
    function = resolve(module, job["name"])
    promises(function, module, notes)
    shown = calls_in_docstring(function, name) if not owner else []
    try:
        calls = [*shown, *calls_of(job, module)][:MOST_TRIED]
    except NoValues as error:
        notes.add(no_inputs=str(error))
        calls = shown
    for call in dict.fromkeys(calls):
        notes.add(trying=call)
        with reached.listening():
            notes.add(**try_call(call, job["raises"], module))


def try_call(call: str, raises: list[str], module: ModuleType) -> dict[str, Any]:
    """What came of a call, as a note."""
    space: dict[str, Any] = {SUBJECT: module}
    if not can_be_made(call, space):
        return {"not_made": call}
    try:
        value = eval(call, space)  # noqa: S307 -- inside of the sandbox
    except BaseException as error:  # noqa: BLE001 -- noted; code may raise anything, SystemExit included
        if is_expected(error, raises):
            caught = importable(error, module)
            return {"call": call, "raises": caught} if caught else {"call": call, "unstable": type(error).__name__}
        # What is not on the disk, or may not be read there, says nothing about the code.
        return {"call": call, "missing" if isinstance(error, OSError) else "crash": describe_error(error)}
    text = source_of(value, module)
    if text is None or len(text) > LONGEST_VALUE:
        return {"call": call, "unstable": type(value).__name__}
    if depends_on_place(text):
        return {"call": call, "unstable": "a path"}
    return {"call": call, "gives": text, "approximate": approximate(value)}


def can_be_made(call: str, space: dict[str, Any]) -> bool:
    """Whether the object and the arguments exist before the call: what their making raises is not the function's."""
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    parts = [*node.args, *(keyword.value for keyword in node.keywords)]
    parts += [node.func.value] if isinstance(node.func, ast.Attribute) else []
    try:
        for part in parts:
            eval(ast.unparse(part), space)  # noqa: S307 -- inside of the sandbox
    except BaseException:  # noqa: BLE001 -- whatever it is, there is no call to try
        return False
    return True


def calls_of(job: dict[str, Any], module: ModuleType) -> list[str]:
    owner, _, name = job["name"].rpartition(".")
    if job["kind"] != "method":
        rows = arguments(resolve(module, job["name"]), module.__name__)
        return [f"{SUBJECT}.{job['name']}({given})" for given in rows]
    kind = getattr(module, owner)
    if inspect.isabstract(kind) or getattr(kind, "_is_protocol", False):
        raise NoValues(f"{owner} cannot be made: it is abstract")
    if issubclass(kind, enum.Enum):
        made = [f"{SUBJECT}.{owner}.{member.name}" for member in list(kind)[:4]]
    else:
        made = [f"{SUBJECT}.{owner}({given})" for given in arguments(kind, module.__name__, most=3)]
    given = arguments(inspect.getattr_static(kind, name), module.__name__, bound=True)
    return [f"{each}.{name}({given[n % len(given)]})" for n, each in enumerate(made * len(given))][: MOST_TRIED - 2]


def resolve(module: ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    return found


def main(mode: str, job_file: str, result: str, day: str = "") -> None:
    job = json.loads(Path(job_file).read_text(encoding="utf-8"))
    notes = Notes(result)
    if day == "shifted":
        shift()
    plain, *edges = PLAIN[str]
    PLAIN[str] = (plain, *(repr(f"a{mark}b{mark}") for mark in job["marks"]), *edges)
    notes.add(trying=f"import {job['module']}")
    try:
        module = importlib.import_module(job["module"])
        resolve(module, job["name"])
    except BaseException as error:  # noqa: BLE001 -- noted: import runs the module's code
        notes.add(import_failed=describe_error(error))
        return
    reached = Reached(HERE, lambda what: notes.add(reaches=what))
    if mode == "examples":
        examples(job, module, notes, reached)
    else:
        try_properties(job, resolve(module, job["name"]), module, notes, reached)
    notes.add(ended=True)
