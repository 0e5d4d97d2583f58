"""Classes with fields, as `dataclass` makes them, without the code that it generates.

Defining a dataclass of eight fields takes 0.3 to 0.8 ms at import, such a class takes 0.02 ms, and a short command
defines fifty. Meant for classes that short commands load; elsewhere a dataclass is fine. Making an instance takes about
0.1 us per field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, field
from typing import Any, TypeVar, cast, dataclass_transform

T = TypeVar("T")


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def plain_class(*, eq: bool = False, kw_only: bool = False, frozen: bool = False) -> Callable[[type[T]], type[T]]:
    """Give a class an `__init__` for its annotated fields; with `eq` also an `__eq__` over them, and no hash.

    `kw_only` and `frozen` are for the type checker alone: nothing checks them at run time.
    """

    def make(cls: type[T]) -> type[T]:
        made = cast("Any", cls)
        annotated = (name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar"))
        # A field without `init` and without a default is set by `__post_init__`.
        names = tuple(name for name in annotated if not _is_set_later(cls.__dict__.get(name)))
        made.__plain_fields__ = names
        made.__init__ = _initializer(cls.__qualname__, names, _defaults(made, names), cls.__dict__.get("__post_init__"))
        if eq:
            made.__eq__ = _equals
            made.__hash__ = None
        return cls

    return make


def with_changes(value: T, **changes: Any) -> T:
    """A copy of the value with these fields replaced, like `dataclasses.replace`."""
    made = cast("Any", type(value))
    return made(**{name: getattr(value, name) for name in made.__plain_fields__} | changes)


def _is_set_later(given: object) -> bool:
    default = cast("Any", given)
    return isinstance(given, Field) and not default.init and default.default is default.default_factory is MISSING


def _defaults(cls: Any, names: tuple[str, ...]) -> dict[str, Callable[[], Any]]:
    """Field name -> the function that makes its default. Factories are removed from the class, as in a dataclass."""
    found: dict[str, Callable[[], Any]] = {}
    for name in names:
        default = cls.__dict__.get(name, MISSING)
        if isinstance(default, Field):
            delattr(cls, name)
            given = cast("Any", default)
            if given.default_factory is not MISSING:
                found[name] = given.default_factory
                continue
            default = given.default
        if default is not MISSING:
            found[name] = lambda default=default: default
    return found


def _initializer(
    cls: str, names: tuple[str, ...], defaults: Mapping[str, Callable[[], Any]], after: Callable[[Any], None] | None
) -> Callable[..., None]:
    def initialize(self: Any, /, *args: Any, **given: Any) -> None:
        for name, value in zip(names, args, strict=False):
            setattr(self, name, value)
        for name in names[len(args) :]:
            if name in given:
                setattr(self, name, given.pop(name))
            elif name in defaults:
                setattr(self, name, defaults[name]())
            else:
                raise TypeError(f"{cls} needs a value for {name}.")
        if given or len(args) > len(names):
            raise TypeError(f"{cls} was given more than its fields take: {', '.join(given) or len(args)}.")
        if after is not None:
            after(self)

    return initialize


def _equals(self: object, other: object) -> bool:
    return vars(self) == vars(other) if type(other) is type(self) else NotImplemented
