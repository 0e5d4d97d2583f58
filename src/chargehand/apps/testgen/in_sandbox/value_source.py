"""A value becomes source that gives an equal value anywhere, if possible."""

from __future__ import annotations

import ast
import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import pathlib
from types import ModuleType
from typing import Any, cast

from .argument_values import SUBJECT

# The real classes, before the shifted clock replaces them.
_DATES = (datetime.date, datetime.time, datetime.timedelta, datetime.timezone)


def source_of(value: Any, module: ModuleType, depth: int = 0) -> str | None:
    """The value as source; None when there is none."""
    if depth > 4 or value is None or isinstance(value, bool):
        return repr(value) if depth <= 4 else None
    if isinstance(value, enum.Enum):
        named = getattr(module, type(value).__name__, None) is type(value)
        return f"{SUBJECT}.{type(value).__name__}.{value.name}" if named else None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if type(value) in (int, float, str, bytes, complex):
        return repr(value)
    if (written := source_of_standard(value)) is not None:
        return written
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


def source_of_standard(value: Any) -> str | None:
    """A date, a path, an exact number."""
    if isinstance(value, _DATES) and type(value).__module__ == "datetime":
        return f"datetime.{repr(value).removeprefix('datetime.')}"
    if type(value) is decimal.Decimal and value.is_finite():
        return f"decimal.{value!r}"
    if type(value) is fractions.Fraction:
        return f"fractions.{value!r}"
    if isinstance(value, pathlib.PurePath) and type(value).__module__.partition(".")[0] == "pathlib":
        kind = "Path" if isinstance(value, pathlib.Path) else type(value).__name__
        return f"pathlib.{kind}({str(value)!r})"
    return None


def source_of_own(value: Any, module: ModuleType, depth: int) -> str | None:
    """An object of a class of the module that can be compared: a dataclass by its fields, another by its own words."""
    text = qualify_names(repr(value), module)
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


def qualify_names(text: str, module: ModuleType) -> str | None:
    """The repr of an object, with names of the module written with SUBJECT; None if it is not source."""

    class Qualifier(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            own = hasattr(module, node.id)
            return ast.Attribute(ast.Name(SUBJECT, ast.Load()), node.id, ast.Load()) if own else node

    try:
        return ast.unparse(Qualifier().visit(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def approximate(value: Any) -> bool:
    """Whether pytest.approx can compare it and should: a fraction, or a flat list with one in it."""
    if isinstance(value, float):
        return not value.is_integer()
    numbers = cast("list[Any]", value) if type(value) in (list, tuple) else []
    return any(type(each) is float for each in numbers) and all(type(each) in (int, float) for each in numbers)
