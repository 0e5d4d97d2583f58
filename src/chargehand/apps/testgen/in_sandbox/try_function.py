"""One function becomes candidates for tests: calls with their results, and what detects its mutants.

Arguments: examples|mutants|reproduce JOB RESULT [shifted]

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
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from .argument_values import MODULES, PLAIN, SUBJECT, NoValues, arguments
from .docstring_calls import calls_in_docstring, promises
from .error_origin import is_accident
from .hypothesis_properties import try_properties
from .machine_access import Reached
from .mutants import (
    LONGEST_CALL_S,
    LONGEST_TRIAL_S,
    MANY,
    CallTooLong,
    Mutant,
    in_place,
    literals,
    make_mutants,
    processor_limit,
    time_limit,
)
from .notes import Notes, describe_error
from .shifted_clock import shift
from .type_hints import parameter_types
from .value_source import approximate, source_of

MOST_TRIED = 32
MOST_ITEMS = 20
MUTANTS_S = 12
# After this many calls that do not end, no more are made to find out which arguments a function takes.
MOST_ENDLESS = 3
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
    """Whether it contains the path of this copy."""
    return str(HERE.parent) in text


def examples(job: dict[str, Any], module: ModuleType, notes: Notes, reached: Reached) -> None:
    function = resolve(module, job["name"])
    kept = promises(function, module, notes)
    for call, text in calls_to_try(job, module, notes).items():
        notes.add(trying=call)
        marks = {True: {"shown": True}, False: {"disputed": True}, None: dict[str, bool]()}[kept.get(text)]
        with reached.listening(), processor_limit(LONGEST_TRIAL_S):
            notes.add(**try_call(call, job["raises"], module), **marks)


def calls_to_try(job: dict[str, Any], module: ModuleType, notes: Notes) -> dict[str, str]:
    """Calls as source, each with the text that the docstring has for it, if it has one; always the same calls."""
    name = job["name"].rpartition(".")[2]
    shown = calls_in_docstring(resolve(module, job["name"]), name, module)
    try:
        made = calls_of(job, module)
    except NoValues as error:
        notes.add(no_inputs=str(error))
        made = []
    return {call: shown.get(call, "") for call in [*dict.fromkeys([*shown, *made])][:MOST_TRIED]}


def try_mutants(job: dict[str, Any], module: ModuleType, notes: Notes, reached: Reached) -> None:
    """Which calls detect each mutant of the function, and which properties do if no call does."""
    calls = [*calls_to_try(job, module, notes)]
    known = {call: try_call(call, job["raises"], module) for call in calls}
    ended_by = time.monotonic() + MUTANTS_S
    left: list[Mutant] = []
    for mutant in make_mutants(module, job["name"], job["line"], MANY):
        if time.monotonic() > ended_by:
            break
        with in_place(module, job["name"], mutant):
            told = [call for call in calls if is_different(call, known[call], job["raises"], module)]
        notes.add(mutant=mutant.what, line=mutant.line, told_by=told)
        left += [] if told else [mutant]
    if job["kind"] != "method":
        try_properties(job, resolve(module, job["name"]), module, notes, reached, left)


def reproduce(job: dict[str, Any], module: ModuleType, notes: Notes) -> None:
    """Whether failed calls fail again with only the required arguments."""
    function = resolve(module, job["name"])
    bound = job["kind"] == "method"
    needed = needed_parameters(function)[1 if bound else 0 :]
    # Without types it is unknown whether this call is intended.
    typed = needed_types_are_known(function, module, needed)
    kind = getattr(module, job["name"].rpartition(".")[0]) if bound else None
    if kind is not None and not issubclass(kind, enum.Enum):
        typed = typed and needed_types_are_known(kind, module, needed_parameters(kind))
    for call in job["reproduce"] if typed else ():
        node = ast.parse(call, mode="eval").body
        if not isinstance(node, ast.Call):
            continue
        node.keywords = [each for each in node.keywords if each.arg is None or each.arg in needed]
        notes.add(trying=ast.unparse(node))
        with processor_limit(LONGEST_TRIAL_S):
            notes.add(of=call, **try_call(ast.unparse(node), job["raises"], module))


def needed_parameters(function: Any) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    sized = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in parameters if each.default is each.empty and each.kind not in sized]


def needed_types_are_known(function: Any, module: ModuleType, needed: list[str]) -> bool:
    return parameter_types(function, module.__name__).keys() >= {*needed}


def is_different(call: str, known: dict[str, Any], raises: list[str], module: ModuleType) -> bool:
    """Whether the active mutant gives another result."""
    if "gives" not in known and "raises" not in known:
        return False
    try:
        with time_limit(LONGEST_CALL_S):
            return try_call(call, raises, module) != known
    except CallTooLong:
        return True


def try_call(call: str, raises: list[str], module: ModuleType) -> dict[str, Any]:
    """The result of a call, as a note."""
    space: dict[str, Any] = {**MODULES, SUBJECT: module, module.__name__.partition(".")[0]: top_package(module)}
    given = given_types(call, space)
    if given is None:
        return {"not_made": call}
    try:
        value = eval(call, space)  # noqa: S307 -- inside of the sandbox
        if isinstance(value, Iterator):
            # What comes one by one is compared as a list; the first of it, where it may not end.
            call = f"list(itertools.islice({call}, {MOST_ITEMS}))"
            value = eval(call, space)  # noqa: S307 -- inside of the sandbox
    except CallTooLong:
        raise
    except BaseException as error:  # noqa: BLE001 -- noted; code may raise anything, SystemExit included
        if is_expected(error, raises):
            caught = importable(error, module)
            return {"call": call, "raises": caught} if caught else {"call": call, "unstable": type(error).__name__}
        # A file that is missing or not readable says nothing about the code.
        if isinstance(error, OSError):
            return {"call": call, "missing": describe_error(error)}
        return {"call": call, "crash": describe_error(error), "accident": is_accident(error, HERE, given)}
    text = source_of(value, module)
    if text is None or len(text) > LONGEST_VALUE:
        return {"call": call, "unstable": type(value).__name__}
    if depends_on_place(text):
        return {"call": call, "unstable": "a path"}
    return {"call": call, "gives": text, "approximate": approximate(value)}


def top_package(module: ModuleType) -> ModuleType:
    return sys.modules[module.__name__.partition(".")[0]]


def given_types(call: str, space: dict[str, Any]) -> set[type] | None:
    """The types of the arguments, and of the object a method is called on; None if these cannot be made. An error while
    making them is not an error of the function.
    """
    node = ast.parse(call, mode="eval").body
    if not isinstance(node, ast.Call):
        return None
    parts = [*node.args, *(keyword.value for keyword in node.keywords)]
    parts += [node.func.value] if isinstance(node.func, ast.Attribute) else []
    try:
        return {type(eval(ast.unparse(part), space)) for part in parts}  # noqa: S307 -- inside of the sandbox
    except BaseException:  # noqa: BLE001 -- whatever it is, there is no call to try
        return None


def calls_of(job: dict[str, Any], module: ModuleType) -> list[str]:
    owner, _, name = job["name"].rpartition(".")
    endless: list[str] = []

    def works(call: str) -> bool:
        """Whether a call goes well enough to say that its arguments are of the right kind."""
        if len(endless) >= MOST_ENDLESS:
            raise NoValues(f"{endless[0].removeprefix(f'{SUBJECT}.')} did not end within {LONGEST_CALL_S:g} s")
        try:
            with time_limit(LONGEST_CALL_S):
                note = try_call(call, job["raises"], module)
        except CallTooLong:
            endless.append(call)
            return False
        return "gives" in note or "unstable" in note

    if job["kind"] != "method":
        function = resolve(module, job["name"])
        rows = arguments(function, module.__name__, works=lambda given: works(f"{SUBJECT}.{job['name']}({given})"))
        return [f"{SUBJECT}.{job['name']}({given})" for given in rows]
    kind = getattr(module, owner)
    if inspect.isabstract(kind) or getattr(kind, "_is_protocol", False):
        raise NoValues(f"{owner} cannot be made: it is abstract")
    if issubclass(kind, enum.Enum):
        made = [f"{SUBJECT}.{owner}.{member.name}" for member in list(kind)[:4]]
    else:
        made = [f"{SUBJECT}.{owner}({given})" for given in objects(kind, module)]
    function = inspect.getattr_static(kind, name)

    def takes(given: str) -> bool:
        return any(works(f"{each}.{name}({given})") for each in made)

    given = arguments(function, module.__name__, bound=True, works=takes)
    pairs = [f"{each}.{name}({given[n % len(given)]})" for n, each in enumerate(made * len(given))]
    return pairs[: MOST_TRIED - 2]


def objects(kind: Any, module: ModuleType) -> list[str]:
    """Argument lists that an object of the class can be made from."""
    space: dict[str, Any] = {**MODULES, SUBJECT: module, module.__name__.partition(".")[0]: top_package(module)}

    def works(given: str) -> bool:
        try:
            with time_limit(LONGEST_CALL_S):
                eval(f"{SUBJECT}.{kind.__name__}({given})", space)  # noqa: S307 -- inside of the sandbox
        except BaseException:  # noqa: BLE001 -- whatever it is, there is no object
            return False
        return True

    rows = [each for each in arguments(kind, module.__name__, most=12, works=works) if works(each)]
    if not rows:
        raise NoValues(f"{kind.__name__} cannot be made from what was tried")
    return rows[:4]


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
    notes.add(trying=f"import {job['module']}")
    try:
        module = importlib.import_module(job["module"])
        resolve(module, job["name"])
    except BaseException as error:  # noqa: BLE001 -- noted: import runs the module's code
        notes.add(import_failed=describe_error(error))
        return
    texts, numbers = literals(module, job["name"], job["line"])
    plain, *edges = PLAIN[str]
    marked = [repr(f"a{mark}b{mark}") for mark in job["marks"]]
    PLAIN[str] = tuple(dict.fromkeys([plain, *marked, *edges, *map(repr, texts)]))
    near = [str(number + step) for number in numbers for step in (0, 1, -1)]
    PLAIN[int] = tuple(dict.fromkeys([*PLAIN[int], *near]))
    PLAIN[float] = tuple(dict.fromkeys([*PLAIN[float], *(f"{number}.0" for number in numbers)]))
    reached = Reached(HERE, lambda what: notes.add(reaches=what))
    if mode == "examples":
        examples(job, module, notes, reached)
    elif mode == "reproduce":
        reproduce(job, module, notes)
    else:
        try_mutants(job, module, notes, reached)
    notes.add(ended=True)
