"""The base of every value at the JSON boundary: frozen, closed, strict about names.

A class of values is written and used like a pydantic model, and pydantic-core checks and writes it in the same way. The
work that pydantic does before that for each class, at each start, is avoided: fields have few types
(`field_schema.py`), and the schema of a class is made at its first use. docs/adr/0015-what-values-are-made-of.md gives
the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from inspect import Parameter, Signature, get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, cast, dataclass_transform, get_type_hints

from pydantic_core import SchemaSerializer, SchemaValidator

from chargehand.values.field_schema import REQUIRED, After, Field, FieldInfo, Schema, annotate_schema, schema_of

# Any JSON value. `Any` because a recursive alias costs a schema walk per value.
JSON: TypeAlias = Any

_CONFIG: dict[str, Any] = {"extra_fields_behavior": "forbid", "ser_json_inf_nan": "null"}


class _Lazy:
    """A class attribute that is computed from the class at first use."""

    def __init__(self, name: str, make: Callable[[type[Value]], Any]) -> None:
        self._name = name
        self._make = make

    def __get__(self, value: Value | None, cls: type[Value]) -> Any:
        made = self._make(cls)
        setattr(cls, self._name, made)
        return made


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
class Value:
    """A frozen value; unknown fields are errors."""

    # pydantic-core keeps the fields in `__dict__` and the names of the given fields in a set; the other two stay None.
    __slots__ = ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__")

    if TYPE_CHECKING:
        model_fields: ClassVar[Mapping[str, FieldInfo]]
        __core_schema__: ClassVar[Schema]
        __pydantic_validator__: ClassVar[SchemaValidator]
        __pydantic_serializer__: ClassVar[SchemaSerializer]

    # Read by pydantic's JSON schemas.
    model_config: ClassVar[Mapping[str, Any]] = {"extra": "forbid", "frozen": True}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, make in _MADE_AT_FIRST_USE.items():
            setattr(cls, name, _Lazy(name, make))

    def __init__(self, /, **fields: Any) -> None:
        self.__pydantic_validator__.validate_python(fields, self_instance=self)

    @classmethod
    def model_validate(cls, data: Any) -> Self:
        """The value that this data describes; ValidationError lists everything wrong with it."""
        return cls.__pydantic_validator__.validate_python(data)

    @classmethod
    def model_validate_json(cls, data: str | bytes) -> Self:
        return cls.__pydantic_validator__.validate_json(data)

    @classmethod
    def model_json_schema(cls, mode: Literal["validation", "serialization"] = "validation") -> dict[str, Any]:
        from pydantic.json_schema import GenerateJsonSchema

        return GenerateJsonSchema().generate(cast(Any, _schema_with_definitions(cls)), mode)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let a pydantic model have a value as a field."""
        return cls.__core_schema__

    def check_together(self) -> None:
        """Raise ValueError when fields that are valid one by one do not fit together."""

    @property
    def model_fields_set(self) -> Set[str]:
        """The names of the fields that were given."""
        return cast("Any", self).__pydantic_fields_set__

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """A copy with these fields replaced and not checked. Cached results of the value are kept."""
        return _restore(type(self), {**self.__dict__, **update}, {*self.model_fields_set, *update})

    def model_dump(self, mode: Literal["python", "json"] = "python", **options: Any) -> dict[str, Any]:
        """The value as a dictionary; options as in pydantic: include, exclude, exclude_none, exclude_defaults."""
        return self.__pydantic_serializer__.to_python(self, mode=mode, **options)

    def model_dump_json(self, **options: Any) -> str:
        return self.__pydantic_serializer__.to_json(self, **options).decode()

    def to_json(self) -> dict[str, Any]:
        """The value as plain JSON data."""
        return self.model_dump(mode="json")

    def __setattr__(self, name: str, value: object) -> None:
        # Refused: the value is frozen.
        self.__pydantic_validator__.validate_assignment(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be deleted.")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        # Cached results are not part of the value.
        return self.__dict__ == other.__dict__ or self._contents() == cast(Value, other)._contents()

    def __hash__(self) -> int:
        return hash((type(self), *self._contents()))

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return zip(self.model_fields, self._contents(), strict=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={_shorten_float(content)!r}' for name, content in self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.__dict__, self.model_fields_set)

    def _contents(self) -> list[Any]:
        return [self.__dict__[name] for name in self.model_fields]


def _shorten_float(content: object) -> object:
    """Seconds and dollars without the digits that only arithmetic in binary makes."""
    return round(content, 6) if isinstance(content, float) else content


def shorten(text: str, most: int = 60) -> str:
    """The beginning of a text on one line, for the representation of a value."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}..."


def _restore(cls: type[Any], fields: dict[str, Any], given: Set[str]) -> Any:
    value = object.__new__(cls)
    write = object.__setattr__
    write(value, "__dict__", fields)
    write(value, "__pydantic_fields_set__", given)
    write(value, "__pydantic_extra__", None)
    write(value, "__pydantic_private__", None)
    return value


def _own_classes(cls: type[Value]) -> list[type[Any]]:
    """The class and the classes it inherits fields from, the most distant first."""
    return [*reversed(cls.__mro__[: cls.__mro__.index(Value)])]


def _fields(cls: type[Value]) -> dict[str, FieldInfo]:
    found: dict[str, FieldInfo] = {}
    for base in _own_classes(cls):
        for name in get_annotations(base):
            default = base.__dict__.get(name, REQUIRED)
            found[name] = default if isinstance(default, FieldInfo) else FieldInfo(default)
    return found


def _schema(cls: type[Value], nested: Callable[[type], Schema] | None = None) -> Schema:
    hints: dict[str, Any] = {}
    for base in _own_classes(cls):
        hints |= get_annotations(base, eval_str=True)
    fields: dict[str, Schema] = {}
    for name, info in cls.model_fields.items():
        schema = info.with_default(annotate_schema(schema_of(hints[name], nested or _inner_schema), info))
        alias = {} if info.alias is None else {"validation_alias": info.alias, "serialization_alias": info.alias}
        fields[name] = {"type": "model-field", "schema": schema, **alias}
    schema: Schema = {
        "type": "model",
        "cls": cls,
        "frozen": True,
        "config": {**_CONFIG, "title": cls.__name__},
        "schema": {"type": "model-fields", "fields": fields, "model_name": cls.__name__},
    }
    if cls.check_together is Value.check_together:
        return schema
    return annotate_schema(schema, After(_check_together))


def _signature(cls: type[Value]) -> Signature:
    """How a value is made, for `help` and editors: limits and other notes about a field are left out."""
    hints = get_type_hints(cls)
    fields = cls.model_fields.items()
    return Signature(
        [
            Parameter(name, Parameter.KEYWORD_ONLY, default=_shown_default(info), annotation=hints[name])
            for name, info in fields
        ]
    )


def _shown_default(info: FieldInfo) -> Any:
    if info.default_factory is not None:
        return info.default_factory()
    return Parameter.empty if info.default is REQUIRED else info.default


def _inner_schema(cls: type) -> Schema:
    if not issubclass(cls, Value):
        raise TypeError(f"A value cannot have a field of the type {cls!r}; values/field_schema.py has those it can.")
    return cls.__core_schema__


def _check_together(value: Value) -> Value:
    value.check_together()
    return value


def _schema_with_definitions(cls: type[Value]) -> Schema:
    """A schema that defines each class of values once, so that the JSON schema made from it does too."""
    definitions: dict[type, Schema] = {}

    def refer_to(cls: type) -> Schema:
        ref = f"{cls.__module__}.{cls.__qualname__}:{id(cls)}"
        if cls not in definitions:
            definitions[cls] = {}
            definitions[cls] = {**_schema(cls, refer_to), "ref": ref}
        return {"type": "definition-ref", "schema_ref": ref}

    return {"type": "definitions", "schema": refer_to(cls), "definitions": [*definitions.values()]}


_MADE_AT_FIRST_USE: dict[str, Callable[[type[Value]], Any]] = {
    "model_fields": _fields,
    "__core_schema__": _schema,
    "__pydantic_validator__": lambda cls: SchemaValidator(cast(Any, cls.__core_schema__), cast(Any, _CONFIG)),
    "__pydantic_serializer__": lambda cls: SchemaSerializer(cast(Any, cls.__core_schema__), cast(Any, _CONFIG)),
    "__signature__": _signature,
}
