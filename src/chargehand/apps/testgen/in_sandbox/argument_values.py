"""A type becomes a few values of it, as Python source: the plain ones first, then the edges."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import sys
import types
import typing
from collections import abc
from typing import Any

PLAIN: dict[Any, tuple[str, ...]] = {
    int: ("1", "0", "-1", "7", "100"),
    float: ("1.5", "0.0", "-2.25", "100.0"),
    complex: ("1j", "0j"),
    bool: ("True", "False"),
    str: ("'abc'", "''", "'Hello, World'", "' a  b '", "'ÄÖ-1'", "'12'"),
    bytes: ("b'abc'", "b''"),
    type(None): ("None",),
    object: ("1",),
}
SEQUENCES = {list: "[{}]", tuple: "({},)", set: "{{{}}}", frozenset: "frozenset({{{}}})"}
STANDS_FOR: dict[Any, Any] = {
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Iterable: list,
    abc.Collection: list,
    abc.Set: set,
    abc.MutableSet: set,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
}
EMPTY = {list: "[]", tuple: "()", set: "set()", frozenset: "frozenset()", dict: "{}"}
DEEPEST = 3


# What the module under test is called in every source text: nothing of it is used by its bare name, which may be that
# of something built in, of a test tool, or of a parameter.
SUBJECT = "_subject_"


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
    kind = STANDS_FOR.get(origin or wanted, origin or wanted)
    if kind in PLAIN:
        return list(PLAIN[kind])
    if kind is dict:
        return mapping(args, module, depth)
    if kind in SEQUENCES:
        return sequence(kind, args, module, depth)
    if inspect.isclass(kind) and kind.__module__ == module and kind.__qualname__ == kind.__name__:
        return own(kind, module, depth)
    raise NoValues(getattr(wanted, "__name__", str(wanted)))


def union(args: tuple[Any, ...], module: str, depth: int) -> list[str]:
    found: list[list[str]] = []
    for arg in args:
        try:
            found.append(values(arg, module, depth + 1)[:3])
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
        return [f"{SUBJECT}.{kind.__name__}.{member.name}" for member in list(kind)[:4]]
    if inspect.isabstract(kind) or getattr(kind, "_is_protocol", False) or issubclass(kind, BaseException):
        raise NoValues(kind.__name__)
    return [f"{SUBJECT}.{kind.__name__}({made})" for made in arguments(kind, module, depth + 1, most=3)]


def arguments(function: Any, module: str, depth: int = 0, most: int = 8, bound: bool = False) -> list[str]:
    """Argument lists as source: first the plain value of each parameter, then one parameter at a time at its edges."""
    try:
        signature = inspect.signature(function)
        target = function.__init__ if inspect.isclass(function) and not dataclasses.is_dataclass(function) else function
        known = getattr(target, "__globals__", None) or vars(sys.modules[module])
        # Names that are imported for type checkers only are mostly these.
        hints = typing.get_type_hints(target, {**vars(abc), **vars(typing), **known})
    except Exception as error:  # noqa: BLE001 -- annotations are code: they may raise anything
        raise NoValues(f"its signature cannot be read: {type(error).__name__}: {error}") from None
    names: list[str] = []
    choices: list[list[str]] = []
    for number, parameter in enumerate(signature.parameters.values()):
        if (bound and number == 0) or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        names.append(label(parameter))
        choices.append(of_parameter(parameter, hints.get(parameter.name), module, depth))
    rows = [[options[0] for options in choices]]
    longest = max(map(len, choices), default=1)
    rows += [[options[n % len(options)] for options in choices] for n in range(1, longest)]
    for at, options in enumerate(choices):
        rows += [[*rows[0][:at], option, *rows[0][at + 1 :]] for option in options[1:]]
    texts = [", ".join(f"{name}{value}" for name, value in zip(names, row, strict=True)) for row in rows]
    return list(dict.fromkeys(texts))[:most]


def label(parameter: inspect.Parameter) -> str:
    """How it is written before the value: by name where that is the only way or there is a default."""
    by_name = parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty
    return f"{parameter.name}=" if by_name and parameter.kind is not parameter.POSITIONAL_ONLY else ""


def of_parameter(parameter: inspect.Parameter, hint: Any, module: str, depth: int) -> list[str]:
    default = parameter.default
    known = repr(default) if isinstance(default, int | float | str | bytes | bool | None) else None
    try:
        found = values(type(default) if hint is None and known and default is not None else hint, module, depth)
    except (NoValues, KeyError):
        if known is None:
            raise NoValues(f"no type to make {parameter.name!r} from") from None
        return [known]
    return list(dict.fromkeys([*([known] if known else []), *found]))
