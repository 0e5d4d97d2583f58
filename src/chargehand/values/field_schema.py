"""The annotation of a field -> the schema by which pydantic-core checks and writes it.

Fields of values are texts, numbers, flags, JSON, tuples, dictionaries, other values, or a choice between those types.
The value of a type variable is not checked. Any other type is refused when a class is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin

# As pydantic_core.core_schema describes it.
Schema: TypeAlias = dict[str, Any]

REQUIRED: Final[Any] = object()
_PLAIN: dict[object, str] = {str: "str", int: "int", float: "float", bool: "bool", NoneType: "none", Any: "any"}


class FieldInfo(NamedTuple):
    """What `Field` states about a field, apart from its type."""

    default: Any = REQUIRED
    default_factory: Callable[[], Any] | None = None
    alias: str | None = None
    # Limits as pydantic-core names them.
    limits: tuple[tuple[str, Any], ...] = ()

    def with_default(self, schema: Schema) -> Schema:
        if self.default_factory is not None:
            return {"type": "default", "schema": schema, "default_factory": self.default_factory}
        if self.default is not REQUIRED:
            return {"type": "default", "schema": schema, "default": self.default}
        return schema

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Schema]) -> Schema:
        """Limits in `Annotated[...]`, where pydantic reads it: parameters of tools are checked by a pydantic model."""
        return annotate_schema(handler(source), self)


class Before(NamedTuple):
    """In `Annotated[...]`: changes the given data before the check."""

    change: Callable[[Any], Any]


class After(NamedTuple):
    """In `Annotated[...]`: takes the checked value and raises ValueError or returns the value to keep."""

    check: Callable[[Any], Any]


def Field(  # noqa: N802 -- as pydantic names it: it means the same
    default: Any = REQUIRED,
    *,
    default_factory: Callable[[], Any] | None = None,
    alias: str | None = None,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
    pattern: str | None = None,
) -> Any:
    """The default, the name in JSON and the limits of a field; in `Annotated[...]` only the limits."""
    limits = {
        "ge": ge,
        "gt": gt,
        "le": le,
        "lt": lt,
        "min_length": min_length,
        "max_length": max_length,
        "pattern": pattern,
    }
    given = tuple((name, limit) for name, limit in limits.items() if limit is not None)
    return FieldInfo(default, default_factory, alias, given)


def schema_of(annotation: Any, nested: Callable[[type], Schema]) -> Schema:
    """The schema of a type; `nested` gives that of a class of values."""
    if (plain := _PLAIN.get(annotation)) is not None:
        return {"type": plain}
    if isinstance(annotation, TypeVar):
        return {"type": "any"}
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        schema = schema_of(args[0], nested)
        for note in args[1:]:
            schema = annotate_schema(schema, note)
        return schema
    if origin is Literal:
        return {"type": "literal", "expected": [*args]}
    if isinstance(annotation, type) and origin is None:
        return nested(annotation)
    if origin is dict:
        keys, values = (schema_of(each, nested) for each in args)
        return {"type": "dict", "keys_schema": keys, "values_schema": values}
    if origin is tuple:
        items = [schema_of(each, nested) for each in args if each is not Ellipsis]
        return {"type": "tuple", "items_schema": items, **({"variadic_item_index": 0} if Ellipsis in args else {})}
    if origin in (Union, UnionType):
        some = [schema_of(each, nested) for each in args if each is not NoneType]
        schema = some[0] if len(some) == 1 else {"type": "union", "choices": some}
        return {"type": "nullable", "schema": schema} if NoneType in args and schema != {"type": "any"} else schema
    raise TypeError(f"A value cannot have a field of the type {annotation!r}; values/field_schema.py has those it can.")


def annotate_schema(schema: Schema, note: object) -> Schema:
    match note:
        case Before(change=function):
            return _call_function("function-before", function, schema)
        case After(check=function):
            return _call_function("function-after", function, schema)
        case FieldInfo(limits=limits):
            return _limit(schema, limits) if limits else schema
        case _:
            raise TypeError(f"{note!r} says nothing about a field: write Field, Before or After.")


def _call_function(kind: str, function: Callable[[Any], Any], schema: Schema) -> Schema:
    return {"type": kind, "function": {"type": "no-info", "function": function}, "schema": schema}


def _limit(schema: Schema, limits: Iterable[tuple[str, Any]]) -> Schema:
    if schema["type"] == "nullable":
        return {**schema, "schema": _limit(schema["schema"], limits)}
    return {**schema, **dict(limits)}
