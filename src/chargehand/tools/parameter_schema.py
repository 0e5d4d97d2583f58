"""A function's signature becomes a JSON schema for the model and a check of what the model sends.

Plain parameters (texts, numbers, flags) are described without pydantic, which a run without tool calls need not import.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

from chargehand.errors import UsageError
from chargehand.tools import docstring
from chargehand.tools.tool_context import ToolContext
from chargehand.values.field_schema import FieldInfo
from chargehand.values.plain_class import plain_class

if TYPE_CHECKING:
    from pydantic import BaseModel

_TYPES: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
_LIMITS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


@plain_class(frozen=True)
class Parameters:
    """The arguments of one function; `context` names the parameter that takes the ToolContext, if any."""

    fn: Callable[..., Any]
    hints: Mapping[str, Any]
    context: str | None

    @staticmethod
    def of(fn: Callable[..., Any]) -> Parameters:
        hints = _hints(fn)
        context = next((name for name, hint in hints.items() if hint is ToolContext), None)
        named = {name: hints[name] for name in inspect.signature(fn).parameters if hints[name] is not ToolContext}
        return Parameters(fn, named, context)

    @cached_property
    def schema(self) -> dict[str, Any]:
        plain = _plain_schema(self.fn, self.hints)
        if plain is not None:
            return plain
        from chargehand.tools.parameter_model import make_schema

        return make_schema(self._model)

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function wants them; everything wrong with them is one ToolError."""
        from chargehand.tools.parameter_model import check_arguments

        return check_arguments(self._model, arguments)

    @cached_property
    def _model(self) -> type[BaseModel]:
        from chargehand.tools.parameter_model import make_model

        return make_model(self.fn, self.hints)


def _hints(fn: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(fn, include_extras=True)
    except (NameError, TypeError, SyntaxError) as error:
        raise UsageError(
            f"Tool function {fn.__qualname__}: an annotation cannot be resolved ({error}); "
            "its types must be importable at the top level of the module."
        ) from error


def _plain_schema(fn: Callable[..., Any], hints: Mapping[str, Any]) -> dict[str, Any] | None:
    """As pydantic would write it; None where a parameter is not plain."""
    described = docstring.parameters(fn.__doc__ or "")
    defaults = {name: each.default for name, each in inspect.signature(fn).parameters.items()}
    required = [name for name in hints if defaults[name] is inspect.Parameter.empty]
    properties: dict[str, Any] = {}
    for name, hint in hints.items():
        said = _plain_type(hint)
        if said is None or not (name in required or isinstance(defaults[name], str | int | float | NoneType)):
            return None
        default = {} if name in required else {"default": defaults[name]}
        description = {"description": described[name]} if name in described else {}
        properties[name] = _sort_keys({**said, **default, **description})
    schema = {"additionalProperties": False, "properties": properties, "type": "object"}
    return _sort_keys({**schema, "required": required} if required else schema)


def _plain_type(hint: Any) -> dict[str, Any] | None:
    if isinstance(hint, type):
        return {"type": _TYPES[hint]} if hint in _TYPES else None
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        choices = [_plain_type(each) for each in args]
        return None if None in choices else {"anyOf": choices}
    if origin is Annotated and args[0] in (int, float) and all(isinstance(note, FieldInfo) for note in args[1:]):
        limits = {_LIMITS[name]: limit for note in args[1:] for name, limit in note.limits}
        return _sort_keys({"type": _TYPES[args[0]], **limits})
    return None


def _sort_keys(schema: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(schema.items()))
