"""A function's signature -> a pydantic model of its arguments: checks them, and gives the JSON schema of any type.

pydantic is imported with this module: load it only where arguments have types that are not plain.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from chargehand.errors import UsageError
from chargehand.tools import docstring


def make_model(fn: Callable[..., Any], hints: Mapping[str, Any]) -> type[BaseModel]:
    """The model of the parameters that `hints` names."""
    described = docstring.parameters(fn.__doc__ or "")
    fields: dict[str, Any] = {}
    for at, (name, parameter) in enumerate(inspect.signature(fn).parameters.items()):
        if name in hints:
            # Fields are numbered and carry the name as alias: a parameter may be called `schema` or `_x`.
            annotation = Annotated[hints[name], Field(alias=name)]
            fields[f"p{at}"] = (annotation, _default(parameter, hints[name], described.get(name)))
    try:
        return create_model(fn.__name__, __config__=ConfigDict(extra="forbid"), **fields)
    except (PydanticUserError, TypeError) as error:
        raise _wrong_type(fn.__qualname__, hints) or UsageError(f"Tool function {fn.__qualname__}: {error}") from None


def _wrong_type(function: str, hints: Mapping[str, Any]) -> UsageError | None:
    """The parameters whose types have no JSON form, in a sentence; None if each of them alone has one."""
    wrong: list[str] = []
    for name, hint in hints.items():
        try:
            TypeAdapter(hint).json_schema(schema_generator=_Schema)
        except (PydanticUserError, TypeError):
            wrong.append(f"{name!r} ({getattr(hint, '__name__', None) or hint})")
    if not wrong:
        return None
    types = "str, int, float, bool, lists and dicts of these, dataclasses and pydantic models"
    return UsageError(f"Tool function {function}: no JSON form for the type of {', '.join(wrong)}; use {types}.")


def make_schema(model: type[BaseModel]) -> dict[str, Any]:
    try:
        schema = model.model_json_schema(by_alias=True, schema_generator=_Schema)
    except PydanticUserError as error:
        said = UsageError(f"Tool function {model.__name__} has no JSON schema: {error}")
        hints = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
        raise _wrong_type(model.__name__, hints) or said from None
    cleaned = _drop_titles(schema)
    cleaned.setdefault("properties", {})
    return cleaned


def make_check(model: type[BaseModel]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The arguments in the types of the function; ValidationError if something is wrong with them."""

    def check(arguments: Mapping[str, Any]) -> dict[str, Any]:
        checked = model.model_validate(arguments)
        return {field.alias or name: getattr(checked, name) for name, field in model.model_fields.items()}

    return check


class _Schema(GenerateJsonSchema):
    """A default without a JSON form is left out of the schema, without a warning."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012


def _default(parameter: inspect.Parameter, hint: object, description: str | None) -> Any:
    if isinstance(parameter.default, FieldInfo):
        return parameter.default
    default: Any = ... if parameter.default is parameter.empty else parameter.default
    # A description in the annotation wins over the docstring's.
    if description is None or _is_described(hint):
        return default
    return Field(default, description=description)


def _is_described(hint: object) -> bool:
    metadata: tuple[object, ...] = getattr(hint, "__metadata__", ())
    return any(isinstance(each, FieldInfo) and each.description for each in metadata)


def _drop_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the titles pydantic makes from names: they cost tokens and say nothing."""
    cleaned: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in ("properties", "$defs"):
            cleaned[key] = {name: _drop_titles(each) for name, each in value.items()}
        elif key in ("default", "const", "enum", "examples"):
            cleaned[key] = value
        elif isinstance(value, dict):
            cleaned[key] = _drop_titles(cast(dict[str, Any], value))
        elif isinstance(value, list):
            items = cast(list[Any], value)
            cleaned[key] = [_drop_titles(cast(dict[str, Any], v)) if isinstance(v, dict) else v for v in items]
        else:
            cleaned[key] = value
    return cleaned
