"""A type becomes a few of its values as Python source: plain values first, then edge cases."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import inspect
import io
import itertools
import os
import pathlib
import re
import sys
import types
import typing
import uuid
from collections import abc
from collections.abc import Callable
from typing import Any

from .type_hints import parameter_types

PLAIN: dict[Any, tuple[str, ...]] = {
    int: ("1", "0", "-1", "7", "100"),
    float: ("1.5", "0.0", "-2.25", "100.0"),
    complex: ("1j", "0j"),
    bool: ("True", "False"),
    str: ("'abc'", "''", "'Hello, World'", "' a  b '", "'ÄÖ-1'", "'12'"),
    bytes: ("b'abc'", "b''"),
    type(None): ("None",),
    object: ("1",),
    abc.Hashable: ("1", "'abc'"),
    typing.SupportsInt: ("1", "0", "-1"),
    typing.SupportsIndex: ("1", "0", "-1"),
    typing.SupportsFloat: ("1.5", "0.0", "-2.25"),
    typing.SupportsAbs: ("1", "-1"),
    bytearray: ("bytearray(b'abc')", "bytearray()"),
    range: ("range(3)", "range(0)"),
    slice: ("slice(1, 3)", "slice(None)"),
    datetime.datetime: (
        "datetime.datetime(2024, 2, 29, 13, 5)",
        "datetime.datetime(1999, 12, 31, 23, 59, 59)",
        "datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc)",
    ),
    datetime.date: ("datetime.date(2024, 2, 29)", "datetime.date(1999, 12, 31)"),
    datetime.time: ("datetime.time(13, 5)", "datetime.time(0, 0)"),
    datetime.timedelta: (
        "datetime.timedelta(days=1, seconds=30)",
        "datetime.timedelta(0)",
        "datetime.timedelta(seconds=-90)",
        "datetime.timedelta(days=400)",
        "datetime.timedelta(hours=3)",
        "datetime.timedelta(minutes=1)",
        "datetime.timedelta(days=45)",
    ),
    datetime.tzinfo: ("datetime.timezone.utc",),
    datetime.timezone: ("datetime.timezone.utc",),
    decimal.Decimal: ("decimal.Decimal('1.5')", "decimal.Decimal(0)", "decimal.Decimal('-2.25')"),
    fractions.Fraction: ("fractions.Fraction(1, 3)", "fractions.Fraction(0)"),
    pathlib.Path: ("pathlib.Path('a/b.txt')", "pathlib.Path('.')", "pathlib.Path('/x/y.tar.gz')"),
    pathlib.PurePath: ("pathlib.PurePath('a/b.txt')", "pathlib.PurePath('.')"),
    pathlib.PurePosixPath: ("pathlib.PurePosixPath('a/b.txt')", "pathlib.PurePosixPath('.')"),
    os.PathLike: ("pathlib.PurePosixPath('a/b.txt')",),
    re.Pattern: ("re.compile('b+')", "re.compile('')"),
    uuid.UUID: ("uuid.UUID(int=1)",),
    io.StringIO: ("io.StringIO('abc')", "io.StringIO('')"),
    typing.TextIO: ("io.StringIO('abc')", "io.StringIO('')"),
    typing.BinaryIO: ("io.BytesIO(b'abc')",),
    collections.OrderedDict: ("collections.OrderedDict(a=1)",),
    collections.deque: ("collections.deque([1, 2, 3])", "collections.deque()"),
    collections.Counter: ("collections.Counter('aab')",),
}
# Modules that occur in values; tests import them if they use them.
MODULES = {
    name: sys.modules[name]
    for name in ("collections", "datetime", "decimal", "fractions", "io", "itertools", "pathlib", "re", "uuid")
}
# Possible types of a parameter without a type, found by calling the function.
KINDS = (str, int, list[int], list[str], dict[str, int], bytes, list[list[int]], float, Callable[[int], int])
MOST_KINDS_TRIED, MOST_KINDS = 81, 3
SEQUENCES = {list: "[{}]", tuple: "({},)", set: "{{{}}}", frozenset: "frozenset({{{}}})"}
STANDS_FOR: dict[Any, Any] = {
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Iterable: list,
    abc.Collection: list,
    abc.Reversible: list,
    abc.Sized: list,
    abc.Container: list,
    abc.Set: set,
    abc.MutableSet: set,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
}
EMPTY = {list: "[]", tuple: "()", set: "set()", frozenset: "frozenset()", dict: "{}"}
DEEPEST = 3


# The name of the module under test in every source text. Its names are never used alone, because they may be names of a
# built-in, a test tool or a parameter.
SUBJECT = "_subject_"


Works = Callable[[str], bool]


class NoValues(Exception):
    """Nothing says what to pass."""


def values(wanted: Any, module: str, depth: int = 0) -> list[str]:
    """Source texts that evaluate to values of the type, in which the module is SUBJECT."""
    if depth > DEEPEST:
        raise NoValues("a type that holds itself")
    origin = typing.get_origin(wanted)
    args = typing.get_args(wanted)
    if isinstance(wanted, typing.NewType):
        return values(wanted.__supertype__, module, depth)
    if origin is typing.Annotated:
        return values(args[0], module, depth)
    if origin is typing.Literal:
        return [repr(value) for value in args]
    if origin in (typing.Union, types.UnionType):
        return union(args, module, depth)
    # With a shifted clock, a class replaces the real one.
    wanted = getattr(wanted, "stands_for", wanted) if inspect.isclass(wanted) else wanted
    kind = STANDS_FOR.get(origin or wanted, origin or wanted)
    if isinstance(wanted, typing.TypeVar):
        bound = wanted.__constraints__[0] if wanted.__constraints__ else wanted.__bound__ or int
        return values(bound, module, depth + 1)
    if kind in (abc.Iterator, abc.Generator):
        return [f"iter({text})" for text in sequence(list, args[:1], module, depth)]
    if kind in (Callable, types.FunctionType):
        return callables(args, module, depth)
    if kind in PLAIN:
        return list(PLAIN[kind])
    if kind is dict:
        return mapping(args, module, depth)
    if kind in SEQUENCES:
        return sequence(kind, args, module, depth)
    if inspect.isclass(kind) and kind.__qualname__ == kind.__name__ and named_in(kind, module):
        return own(kind, module, depth)
    raise NoValues(getattr(wanted, "__name__", str(wanted)))


def named_in(kind: Any, module: str) -> str | None:
    """A class as source: from the module under test, or from its own module if that is in the same package."""
    if getattr(sys.modules[module], kind.__name__, None) is kind:
        return f"{SUBJECT}.{kind.__name__}"
    same = kind.__module__.partition(".")[0] == module.partition(".")[0]
    if not same or getattr(sys.modules.get(kind.__module__), kind.__name__, None) is not kind:
        return None
    return f"{kind.__module__}.{kind.__name__}"


def callables(args: tuple[Any, ...], module: str, depth: int) -> list[str]:
    """Functions that return their argument, if it has the right type, and functions that always return one value."""
    takes: Any = args[0] if len(args) == 2 else ...
    gives: Any = args[1] if len(args) == 2 else object
    count = len(takes) if isinstance(takes, list) else None  # pyright: ignore[reportUnknownArgumentType]
    given = ", ".join("xyzuvw"[: count or 1]) if count is None or 0 < count <= 6 else ""
    head = f"lambda {given}" if given else "lambda *args"
    results = ["True", "False"] if gives is bool else values(gives, module, depth + 1)[:2]
    same = [f"{head}: x"] if given and (gives in (Any, object) or isinstance(gives, typing.TypeVar)) else []
    if given and isinstance(takes, list) and takes and takes[0] == gives:
        same = [f"{head}: x"]
    return [f"({text})" for text in (*same, *(f"{head}: {result}" for result in results))]


def union(args: tuple[Any, ...], module: str, depth: int) -> list[str]:
    found: list[list[str]] = []
    for arg in args:
        try:
            found.append(values(arg, module, depth + 1)[:8])
        except NoValues:
            continue
    if not found:
        raise NoValues("a union")
    return [each for group in sorted(found, key=lambda group: group == ["None"]) for each in group]


def sequence(kind: Any, args: tuple[Any, ...], module: str, depth: int) -> list[str]:
    if kind is tuple and args and args[-1] is not Ellipsis:
        parts = [values(arg, module, depth + 1) for arg in args]
        count = max(map(len, parts))
        return [f"({', '.join(part[n % len(part)] for part in parts)},)" for n in range(min(count, 4))]
    inner = values(args[0], module, depth + 1) if args else PLAIN[int]
    several = list(dict.fromkeys(inner[:4]))
    shown = [several, [inner[0]], [inner[-1], inner[0], inner[0]]]
    found = [SEQUENCES[kind].format(", ".join(items)) for items in shown]
    return [found[0], EMPTY[kind], *found[1:]]


def mapping(args: tuple[Any, ...], module: str, depth: int) -> list[str]:
    keys = values(args[0], module, depth + 1) if args else PLAIN[str]
    held = values(args[1], module, depth + 1) if args else PLAIN[int]
    pairs = [f"{key}: {held[n % len(held)]}" for n, key in enumerate(keys[:3])]
    return [f"{{{', '.join(pairs)}}}", "{}", f"{{{pairs[0]}}}"]


def own(kind: Any, module: str, depth: int) -> list[str]:
    """A class of the module itself: members of an enum, or made from values of its parameters."""
    if issubclass(kind, enum.Enum):
        return [f"{named_in(kind, module)}.{member.name}" for member in list(kind)[:4]]
    if inspect.isabstract(kind) or getattr(kind, "_is_protocol", False) or issubclass(kind, BaseException):
        raise NoValues(kind.__name__)
    return [f"{named_in(kind, module)}({made})" for made in arguments(kind, module, depth + 1, most=3)]


def arguments(
    function: Any, module: str, depth: int = 0, most: int = 24, bound: bool = False, works: Works | None = None
) -> list[str]:
    """Argument lists as source: first the plain value of each parameter, then edge cases, one parameter at a time.

    `works` says which arguments are accepted. With it, parameters without a type get values that work.
    """
    try:
        signature = inspect.signature(function)
    except Exception as error:  # noqa: BLE001 -- annotations are code: they may raise anything
        raise NoValues(f"its signature cannot be read: {type(error).__name__}: {error}") from None
    hints = parameter_types(function, module)
    names: list[str] = []
    choices: list[list[str] | None] = []
    # Arguments that equal their default need not be written.
    defaults: set[str] = set()
    for number, parameter in enumerate(signature.parameters.values()):
        if (bound and number == 0) or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        chosen = of_parameter(parameter, hints.get(parameter.name), module, depth, open_ended=works is not None)
        if chosen != []:
            names.append(label(parameter))
            choices.append(chosen)
            if names[-1]:
                defaults.add(f"{names[-1]}{parameter.default!r}")
    if None not in choices:
        return rows_of(names, [each for each in choices if each is not None], defaults)[:most]
    assert works is not None
    found = [rows_of(names, filled, defaults) for filled in fill_in(names, choices, module, works)]
    if not found:
        missing = [name for name, each in zip(signature.parameters, choices, strict=False) if each is None]
        raise NoValues(f"no type to make {missing[0] if missing else 'a parameter'!r} from, and nothing tried works")
    return [row for group in itertools.zip_longest(*found) for row in group if row is not None][:most]


def fill_in(names: list[str], choices: list[list[str] | None], module: str, works: Works) -> list[list[list[str]]]:
    """The parameters' values with kinds in the place of what has no type: the first few that can be called with."""
    unknown = [at for at, each in enumerate(choices) if each is None]
    kinds = KINDS if len(unknown) == 1 else KINDS[:5] if len(unknown) == 2 else KINDS[:3]
    found: list[list[list[str]]] = []
    for tried in itertools.islice(itertools.product(kinds, repeat=len(unknown)), MOST_KINDS_TRIED):
        filled = [each if each is not None else [] for each in choices]
        for at, kind in zip(unknown, tried, strict=True):
            filled[at] = values(kind, module)
        if works(rows_of(names, filled, set())[0]):
            found.append(filled)
        if len(found) == MOST_KINDS:
            break
    return found


def rows_of(names: list[str], choices: list[list[str]], defaults: set[str]) -> list[str]:
    """Argument lists, without arguments that equal their default."""
    rows = [[options[0] for options in choices]]
    longest = max(map(len, choices), default=1)
    for at, options in enumerate(choices):
        rows += [[*rows[0][:at], option, *rows[0][at + 1 :]] for option in options[1:]]
    rows += [[options[n % len(options)] for options in choices] for n in range(1, longest)]
    written = [[f"{name}{value}" for name, value in zip(names, row, strict=True)] for row in rows]
    return list(dict.fromkeys(", ".join(each for each in row if each not in defaults) for row in written))


def label(parameter: inspect.Parameter) -> str:
    """The text before the value: the name, if it is keyword-only or has a default."""
    by_name = parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty
    return f"{parameter.name}=" if by_name and parameter.kind is not parameter.POSITIONAL_ONLY else ""


def of_parameter(
    parameter: inspect.Parameter, hint: Any, module: str, depth: int, *, open_ended: bool
) -> list[str] | None:
    """Source texts; None if there is no type and `open_ended` says that one can be found by trying."""
    default = parameter.default
    known = repr(default) if isinstance(default, int | float | str | bytes | bool | None) else None
    untyped = hint is None or hint is Any
    if untyped and open_ended and parameter.default is parameter.empty:
        return None
    try:
        found = values(type(default) if untyped and known and default is not None else hint, module, depth)
    except (NoValues, KeyError):
        if known is None:
            if parameter.default is not parameter.empty:
                return []  # its default cannot be written as source, so it is not passed
            raise NoValues(f"no type to make {parameter.name!r} from") from None
        return [known]
    return list(dict.fromkeys([*([known] if known else []), *found]))
