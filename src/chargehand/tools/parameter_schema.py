"""A function's signature becomes a JSON schema for the model and a check of the arguments that the model sends.

Plain parameters (texts, numbers, flags) are described and checked without pydantic, which takes long to import.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from pydantic_core import ErrorDetails, SchemaValidator, ValidationError

from chargehand.errors import ToolError, UsageError
from chargehand.tools import docstring
from chargehand.tools.tool_context import ToolContext
from chargehand.values.field_schema import REQUIRED, FieldInfo, Schema, schema_of
from chargehand.values.plain_class import plain_class

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
        return self._plain or self._pydantic[0]

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments in the types of the function; one ToolError lists everything wrong with them."""
        try:
            return self._check(arguments)
        except ValidationError as error:
            # Inputs and urls tell the model nothing new.
            problems = "; ".join(_problem(each) for each in error.errors(include_url=False, include_context=False))
            said = f"Wrong arguments: {problems}. {_expected_parameters(self.schema)}"
            raise ToolError(said, "wrong_arguments") from None

    @cached_property
    def _plain(self) -> dict[str, Any] | None:
        return _plain_schema(self.fn, self.hints)

    @cached_property
    def _check(self) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        return self._pydantic[1] if self._plain is None else _plain_check(self.fn, self.hints)

    @cached_property
    def _pydantic(self) -> tuple[dict[str, Any], Callable[[Mapping[str, Any]], dict[str, Any]]]:
        """Schema and check of parameters of any type."""
        from chargehand.tools.parameter_model import make_check, make_model, make_schema

        model = make_model(self.fn, self.hints)
        return make_schema(model), make_check(model)


def _hints(fn: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(fn, include_extras=True)
    except (NameError, TypeError, SyntaxError) as error:
        raise UsageError(
            f"Tool function {fn.__qualname__}: an annotation cannot be resolved ({error}); "
            "its types must be importable at the top level of the module."
        ) from error


def _plain_schema(fn: Callable[..., Any], hints: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema as pydantic would write it; None if a parameter is not plain."""
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


def _plain_check(fn: Callable[..., Any], hints: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The arguments as pydantic would accept them, with defaults for missing ones."""
    fields: dict[str, Schema] = {}
    for name, hint in hints.items():
        default = inspect.signature(fn).parameters[name].default
        is_required = default is inspect.Parameter.empty
        schema = FieldInfo(REQUIRED if is_required else default).with_default(schema_of(hint, _refuse_class))
        fields[name] = {"type": "typed-dict-field", "schema": schema, "required": is_required}
    schema = {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid"}
    return SchemaValidator(cast("Any", schema)).validate_python


def _refuse_class(cls: type) -> Schema:
    raise TypeError(f"{cls!r} is not a plain type")


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


def _expected_parameters(schema: Mapping[str, Any]) -> str:
    if not schema["properties"]:
        return "It takes no arguments."
    required = schema.get("required", ())
    names = [f"{name} ({'required' if name in required else 'optional'})" for name in schema["properties"]]
    return f"It takes {', '.join(names)}."


def _problem(error: ErrorDetails) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "arguments"
    match error["type"]:
        case "missing":
            return f"{where} is missing"
        case "extra_forbidden":
            return f"{where} is not a parameter"
        case _:
            said = error["msg"][:1].lower() + error["msg"][1:]
            return f"{where}: {said}, not {_short(error['input'])}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
