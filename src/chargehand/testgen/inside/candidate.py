"""One function becomes candidates for tests: calls with what they gave, and properties by hypothesis' ghostwriter.

Usage: candidate.py examples|properties JOB RESULT [shifted]: on another day, if shifted. Each thing tried is noted in
RESULT, as a line of JSON, before it is tried, so that what hangs or dies can be named from outside.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import doctest
import enum
import importlib
import inspect
import json
import math
import os
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from chargehand.testgen.inside.clock import shift
    from chargehand.testgen.inside.values import PLAIN, SUBJECT, NoValues, arguments
else:  # chargehand itself is not there inside
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from clock import shift
    from values import PLAIN, SUBJECT, NoValues, arguments

    sys.path.pop(0)
    # The project may have modules of these names.
    for own in ("clock", "values"):
        del sys.modules[own]

MOST_TRIED = 14
LONGEST_VALUE = 400
Writer = Callable[..., str]
PROPERTY_EXAMPLES = 150
# The copy of the project; the folder around it has HOME and TMP.
HERE = Path.cwd()


class Notes:
    """What is told to the outside, line by line."""

    def __init__(self, path: str) -> None:
        self._file: TextIO = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 -- open until the program ends
        self._pid = os.getpid()

    def add(self, **note: Any) -> None:
        if os.getpid() == self._pid:  # the code may have forked itself
            self._file.write(json.dumps(note) + "\n")
            self._file.flush()


def told(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 -- its type is all there is to say
        text = ""
    return f"{type(error).__name__}: {text}"[:300].rstrip(": ")


# -- calls and what they gave ----------------------------------------------------------------------------------------


def source_of(value: Any, module: ModuleType, depth: int = 0) -> str | None:
    """The value as source that gives an equal value anywhere; None when there is none."""
    if depth > 4 or value is None or isinstance(value, bool):
        return repr(value) if depth <= 4 else None
    if isinstance(value, enum.Enum):
        named = getattr(module, type(value).__name__, None) is type(value)
        return f"{SUBJECT}.{type(value).__name__}.{value.name}" if named else None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if type(value) in (int, float, str, bytes, complex):
        return repr(value)
    if type(value) in (list, tuple, set, frozenset):
        parts = [source_of(each, module, depth + 1) for each in cast("list[Any]", value)]
        if None in parts:
            return None
        known = [part for part in parts if part is not None]
        if type(value) in (set, frozenset):
            text = f"{{{', '.join(sorted(known))}}}" if known else "set()"
            return text if type(value) is set else f"frozenset({text if known else ''})"
        return (
            f"[{', '.join(known)}]" if type(value) is list else f"({', '.join(known)}{',' if len(known) == 1 else ''})"
        )
    if type(value) is dict:
        pairs = [
            (source_of(k, module, depth + 1), source_of(v, module, depth + 1))
            for k, v in cast("dict[Any, Any]", value).items()
        ]
        return None if any(None in pair for pair in pairs) else f"{{{', '.join(f'{k}: {v}' for k, v in pairs)}}}"
    if getattr(module, type(value).__name__, None) is type(value) and type(value).__eq__ is not object.__eq__:
        return source_of_own(value, module, depth)
    return None


def source_of_own(value: Any, module: ModuleType, depth: int) -> str | None:
    """An object of a class of the module that can be compared: a dataclass by its fields, another by its own words."""
    text = qualified(repr(value), module)
    if dataclasses.is_dataclass(value):
        given = {
            each.name: source_of(getattr(value, each.name), module, depth + 1) for each in dataclasses.fields(value)
        }
        text = None if None in given.values() else ", ".join(f"{name}={part}" for name, part in given.items())
        text = None if text is None else f"{SUBJECT}.{type(value).__name__}({text})"
    try:
        return text if text and eval(text, {SUBJECT: module}) == value else None  # noqa: S307 -- inside of the sandbox
    except Exception:  # noqa: BLE001 -- it is not source, whatever it says
        return None


def qualified(text: str, module: ModuleType) -> str | None:
    """What an object says of itself, with the names of the module as SUBJECT has them; None if no source."""

    class Qualifier(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            own = hasattr(module, node.id)
            return ast.Attribute(ast.Name(SUBJECT, ast.Load()), node.id, ast.Load()) if own else node

    try:
        return ast.unparse(Qualifier().visit(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def expected(error: BaseException, raises: list[str]) -> bool:
    """Whether somebody meant it: raised by name in the code, or what Python says of a wrong value."""
    names = {name.rpartition(".")[2] for name in raises}
    return isinstance(error, ValueError) or any(kind.__name__ in names for kind in type(error).__mro__[:-3])


def importable(error: BaseException, module: ModuleType) -> str | None:
    """The name a test can catch it by."""
    name = type(error).__name__
    if getattr(builtins, name, None) is type(error):
        return name
    return f"{SUBJECT}.{name}" if getattr(module, name, None) is type(error) else None


def approximate(value: Any) -> bool:
    """Whether pytest.approx can compare it and should: a fraction, or a flat list with one in it."""
    if isinstance(value, float):
        return not value.is_integer()
    numbers = cast("list[Any]", value) if type(value) in (list, tuple) else []
    return any(type(each) is float for each in numbers) and all(type(each) in (int, float) for each in numbers)


def depends_on_place(text: str) -> bool:
    """Whether it names where this copy happens to be."""
    return str(HERE.parent) in text


def examples(job: dict[str, Any], module: ModuleType, notes: Notes) -> None:
    owner, _, name = job["name"].rpartition(".")
    function = resolve(module, job["name"])
    doctests(function, module, notes)
    shown = calls_in_docstring(function, name) if not owner else []
    try:
        calls = [*shown, *calls_of(job, module)][:MOST_TRIED]
    except NoValues as error:
        notes.add(no_inputs=str(error))
        calls = shown
    for call in dict.fromkeys(calls):
        notes.add(trying=call)
        space: dict[str, Any] = {SUBJECT: module}
        if not can_be_made(call, space):
            continue
        try:
            value = eval(call, space)  # noqa: S307 -- inside of the sandbox
        except BaseException as error:  # noqa: BLE001 -- noted; code may raise anything, SystemExit included
            if expected(error, job["raises"]) and (caught := importable(error, module)):
                notes.add(call=call, raises=caught)
            elif not expected(error, job["raises"]):
                notes.add(call=call, crash=told(error))
            continue
        text = source_of(value, module)
        if text is None or len(text) > LONGEST_VALUE:
            notes.add(call=call, unstable=type(value).__name__)
        elif depends_on_place(text):
            notes.add(call=call, unstable="a path")
        else:
            notes.add(call=call, gives=text, approximate=approximate(value))


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


def calls_in_docstring(function: Any, name: str) -> list[str]:
    """Calls with literal arguments that the docstring shows."""
    found: list[str] = []
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(function) or ""):
        try:
            node = ast.parse(example.source.strip(), mode="eval").body
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                for value in [*node.args, *(keyword.value for keyword in node.keywords)]:
                    ast.literal_eval(value)
                found.append(f"{SUBJECT}.{ast.unparse(node)}")
        except (SyntaxError, ValueError):
            continue
    return found


def doctests(function: Any, module: ModuleType, notes: Notes) -> None:
    """What the docstring promises, held to what happens."""

    class Runner(doctest.DocTestRunner):
        def report_start(self, out: Any, test: Any, example: doctest.Example) -> None:
            notes.add(trying=example.source.strip())

        def report_failure(self, out: Any, test: Any, example: doctest.Example, got: str) -> None:
            notes.add(broken_promise=example.source.strip(), want=example.want.strip(), got=got.strip()[:300])

        def report_unexpected_exception(self, out: Any, test: Any, example: doctest.Example, exc_info: Any) -> None:
            # Names that only its readers know make it no promise to hold the code to.
            if example.want and not issubclass(exc_info[0], NameError | ImportError):
                got = f"{exc_info[0].__name__}: {exc_info[1]}"[:300]
                notes.add(broken_promise=example.source.strip(), want=example.want.strip(), got=got)

    try:
        parsed = doctest.DocTestParser().get_doctest(
            inspect.getdoc(function) or "", dict(vars(module)), "docstring", None, 0
        )
    except ValueError:
        return
    if parsed.examples:
        # After the first failure the others mean little.
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.FAIL_FAST
        Runner(verbose=False, optionflags=flags).run(parsed, out=lambda _: None)


# -- properties ------------------------------------------------------------------------------------------------------


def partner(module: ModuleType, name: str) -> Any:
    """The function that undoes this one, by the ghostwriter's own list of pairs such as encode and decode."""
    from hypothesis.extra import ghostwriter

    for pattern, template in ghostwriter.ROUNDTRIP_PAIRS:
        if match := re.fullmatch(pattern, name):
            try:
                other = getattr(module, template.format(*match.groups()), None)
            except IndexError:
                continue
            if inspect.isfunction(other) and other.__name__ != name:
                return other
    return None


def properties(job: dict[str, Any], module: ModuleType, notes: Notes) -> None:
    from hypothesis.extra import ghostwriter

    if job["kind"] == "method":
        return
    function = resolve(module, job["name"])
    if not inspect.signature(function).parameters:
        return
    meant = tuple(filter(None, (exception(name, module) for name in job["raises"])))
    fuzz, roundtrip = cast("Writer", ghostwriter.fuzz), cast("Writer", ghostwriter.roundtrip)  # pyright: ignore[reportUnknownMemberType]
    writers = {"crash": partial(fuzz, function)}
    if job["kind"] == "function" and (other := partner(module, job["name"])) is not None:
        writers["roundtrip"] = partial(roundtrip, function, other)
    for kind, write in writers.items():
        # What Python itself says of a wrong value is let pass only where it is said.
        for caught in (meant, (*meant, ValueError)):
            try:
                code = write(except_=tuple(dict.fromkeys(caught)))
            except Exception as error:  # noqa: BLE001 -- noted
                notes.add(no_property=told(error))
                break
            # What is raised on purpose is a good end, not an input to look past.
            code = code.replace("reject()", "return").replace("given, reject, ", "given, ")
            code = by_subject(code, module.__name__)
            if "st.nothing()" in code:
                notes.add(no_property="no type hints to make inputs from")
                break
            if not isinstance(try_property(kind, code, job["name"], function, notes), ValueError):
                break


def by_subject(code: str, module: str) -> str:
    """The ghostwriter's text with the module imported as SUBJECT: a parameter may have the module's own name."""

    tree = ast.parse(code)
    ours = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == module]
    known = {name.asname or name.name: name.name for node in ours for name in node.names}
    tree.body = [node for node in tree.body if node not in ours]

    class Renamed(ast.NodeTransformer):
        def visit_Import(self, node: ast.Import) -> ast.Import:
            for name in node.names:
                if name.name == module:
                    name.asname = SUBJECT
            return node

        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.Attribute(ast.Name(SUBJECT, ast.Load()), known[node.id], node.ctx) if node.id in known else node

        def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
            if ast.unparse(node.value) == module:
                return ast.Attribute(ast.Name(SUBJECT, ast.Load()), node.attr, node.ctx)
            self.generic_visit(node)
            return node

    return ast.unparse(Renamed().visit(tree))


def exception(name: str, module: ModuleType) -> type[Exception] | None:
    found = getattr(module, name.rpartition(".")[2], None) or getattr(builtins, name.rpartition(".")[2], None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def try_property(kind: str, code: str, name: str, function: Any, notes: Notes) -> BaseException | None:
    from hypothesis import HealthCheck, settings

    notes.add(trying=f"a {kind} property of {name}")
    space: dict[str, Any] = {"__name__": "candidate"}
    exec(compile(code, "<candidate>", "exec"), space)  # noqa: S102 -- inside of the sandbox
    title = next(key for key in space if key.startswith("test_"))
    wanted = settings(
        max_examples=PROPERTY_EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=cast("list[HealthCheck]", list(HealthCheck)),
    )
    try:
        wanted(space[title])()
    except BaseException as error:  # noqa: BLE001 -- noted: the code may raise anything
        example = shown_call(name, function, "\n".join(getattr(error, "__notes__", [])))
        if example is None or isinstance(error, ValueError):
            # The input could not even be made, or was refused as Python refuses wrong values.
            notes.add(no_property=told(error))
        else:
            notes.add(property=kind, code=code, failed=told(error), example=example)
        return error
    notes.add(property=kind, code=code)
    return None


def shown_call(name: str, function: Any, said: str) -> str | None:
    """`f(x=1)` from what hypothesis says of the test, without the arguments that were for its partner."""
    if found := re.search(r"\btest_\w+(\(.*^\))", said, re.DOTALL | re.MULTILINE):
        try:
            call = ast.parse(f"f{found[1]}", mode="eval").body
        except SyntaxError:
            return f"{name}{' '.join(found[1].split())}"
        known = inspect.signature(function).parameters
        if isinstance(call, ast.Call):
            given = [f"{each.arg}={ast.unparse(each.value)}" for each in call.keywords if each.arg in known]
            return f"{name}({', '.join(given)})"
    return None


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
        notes.add(import_failed=told(error))
        return
    {"examples": examples, "properties": properties}[mode](job, module, notes)
    notes.add(ended=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
