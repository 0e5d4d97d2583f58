"""The base of all classes of events, whose fields are JSON, and the table of classes by kind."""

from __future__ import annotations

from functools import cache
from types import NoneType
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast, dataclass_transform

# As in `values.base`, which is not imported because it is slow and every start reads this module.
JSON: TypeAlias = Any
Data: TypeAlias = dict[str, Any]

# Kind -> class. Each class enters itself; this is the only list of kinds.
BODIES: dict[str, type[Body]] = {}


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
class Body:
    """What one event says. Frozen; its fields are its JSON, those that only a newer version knows included."""

    kind: ClassVar[str]

    def __init_subclass__(cls, kind: str = "") -> None:
        if kind:
            cls.kind = kind
            BODIES[kind] = cls

    def __init__(self, /, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Body) and self.kind == other.kind and vars(self) == vars(other)

    __hash__ = None  # pyright: ignore[reportAssignmentType] -- its fields are JSON, which has no hash

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class EventField(NamedTuple):
    """What a class says of one field: its type as it is written there, and the same for `isinstance`."""

    type: str
    types: tuple[type, ...]
    required: bool


@cache
def fields_of(body: type[Body]) -> dict[str, EventField]:
    """The fields of a kind of event, its own first."""
    found: dict[str, EventField] = {}
    for each in body.__mro__:
        for name, said in cast("dict[str, str]", vars(each).get("__annotations__", {})).items():
            if not said.startswith("ClassVar"):
                types = tuple(type for part in said.split(" | ") for type in _TYPES[part.partition("[")[0]])
                found[name] = EventField(said, types, required=not hasattr(body, name))
    return found


_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "list": (list,),
    "dict": (dict,),
    "Data": (dict,),
    "JSON": (object,),
    "None": (NoneType,),
}


def shape_problem(body: type[Body], data: Data) -> str:
    """Which field of the JSON is not as the class says, "" if all are."""
    for name, (type, types, required) in fields_of(body).items():
        if name in data:
            if not isinstance(data[name], types):
                return f"the field {name} is not of the type {type.replace('Data', 'object')}"
        elif required:
            return f"the field {name} is missing"
    return ""
