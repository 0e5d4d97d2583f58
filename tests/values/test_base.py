"""Values are checked, written and described as pydantic does it for models with the same fields."""

from __future__ import annotations

import copy
import inspect
import pickle
from functools import cached_property
from typing import Annotated, Any, Literal, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic import Field as PydanticField
from pydantic_core import to_json

from chargehand.values.base import JSON, Field, Value
from chargehand.values.field_schema import REQUIRED, After, Before
from chargehand.values.outcome import Usage


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _refuse_no(value: str) -> str:
    if value == "no":
        raise ValueError("no is refused")
    return value


class Part(Value):
    """A part of a whole."""

    name: Annotated[str, After(_refuse_no)]
    size: Literal["small", "large"] = "small"


class Whole(Value):
    """Fields of all the types that values have."""

    id: str
    count: int = Field(default=1, ge=0, le=9)
    share: Annotated[float, Field(gt=0)] | None = None
    met: bool = False
    parts: tuple[Part, ...] = ()
    by_name: dict[str, Part] = Field(default_factory=dict)
    pair: tuple[int, str] | None = None
    words: Annotated[tuple[str, ...], Before(_as_tuple)] = ()
    either: str | tuple[str, ...] | None = None
    code: str | None = Field(default=None, pattern="^[a-z]+$")
    anything: JSON = Field(default=None, alias="json")

    @cached_property
    def length(self) -> int:
        return len(self.id)


class Checked(Value):
    low: int = 0
    high: int = 0

    def check_together(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


_NOTES = {Before: lambda note: BeforeValidator(note.change), After: lambda note: AfterValidator(note.check)}


def _annotation(hint: Any) -> Any:
    """The annotation as pydantic would have it written."""
    if hint in TWINS:
        return TWINS[hint]
    if hasattr(hint, "__metadata__"):
        notes = [
            _NOTES[type(note)](note) if type(note) in _NOTES else PydanticField(**dict(note.limits))
            for note in hint.__metadata__
        ]
        return Annotated[_annotation(hint.__origin__), *notes]
    if args := getattr(hint, "__args__", None):
        inner = tuple(_annotation(each) if each is not Ellipsis else each for each in args)
        if isinstance(hint, type(Literal["a"])) and hint.__origin__ is Literal:
            return hint
        return hint.copy_with(inner) if hasattr(hint, "copy_with") else _rebuild(hint, inner)
    return hint


def _rebuild(hint: Any, args: tuple[Any, ...]) -> Any:
    if hasattr(hint, "__origin__"):
        return hint.__origin__[args]
    union = args[0]
    for each in args[1:]:
        union = union | each
    return union


def _twin(cls: type[Value]) -> type[BaseModel]:
    """A pydantic model with the same fields."""
    hints = get_type_hints(cls, include_extras=True)
    fields: dict[str, Any] = {}
    for name, info in cls.model_fields.items():
        said: dict[str, Any] = dict(info.limits)
        if info.default_factory is not None:
            said["default_factory"] = info.default_factory
        elif info.default is not REQUIRED:
            said["default"] = info.default
        fields[name] = (_annotation(hints[name]), PydanticField(alias=info.alias, **said))
    config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")
    return create_model(cls.__name__, __config__=config, __doc__=cls.__doc__, **fields)


TWINS: dict[Any, type[BaseModel]] = {}
TWINS[Part] = _twin(Part)
TWINS[Whole] = _twin(Whole)

_leaf = st.none() | st.booleans() | st.integers(-2, 12) | st.floats() | st.sampled_from(["", "a", "A1", "no", "small"])
_part = st.fixed_dictionaries({"name": _leaf}, optional={"size": _leaf, "other": _leaf})
_thing = _leaf | _part | st.lists(_leaf | _part, max_size=3) | st.dictionaries(st.sampled_from("ab"), _leaf | _part)
_wholes = st.dictionaries(st.sampled_from([*Whole.model_fields, "json", "unknown"]), _thing, max_size=6) | _thing
_good = st.fixed_dictionaries(
    {"id": st.text(max_size=3)},
    optional={
        "count": st.integers(0, 9),
        "share": st.floats(min_value=0.1) | st.none(),
        "parts": st.lists(st.builds(lambda name: {"name": name}, st.text(max_size=2)), max_size=2),
        "words": st.text(max_size=2) | st.lists(st.text(max_size=2), max_size=2),
        "either": st.text(max_size=2) | st.lists(st.text(max_size=2), max_size=2),
        "json": _thing,
    },
)


def _result(cls: Any, data: Any) -> Any:
    """What comes of the data: its JSON, with and without defaults, or everything wrong with it."""
    try:
        made = cls.model_validate(data)
    except ValidationError as error:
        return [(each["loc"], each["type"], each["msg"]) for each in error.errors()]
    return made.model_dump_json(), made.model_dump_json(exclude_defaults=True), made.model_fields_set


@given(_wholes | _good)
def test_data_is_checked_and_written_as_by_pydantic(data: Any) -> None:
    """The same JSON comes of good data, the same list of errors of bad data."""
    assert _result(Whole, data) == _result(TWINS[Whole], data)


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_a_json_schema_is_what_pydantic_makes(mode: Any) -> None:
    """With each class of values defined once."""
    assert Whole.model_json_schema(mode) == TWINS[Whole].model_json_schema(mode=mode)


def test_a_value_is_frozen() -> None:
    """No field can be set or deleted."""
    part = Part(name="a")
    with pytest.raises(ValidationError, match="frozen"):
        part.name = "b"  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError, match="frozen"):
        del part.name
    assert part.name == "a"


def test_values_are_compared_by_their_fields() -> None:
    """What one of them has computed makes no difference; another class does."""
    one, other = Whole(id="a", parts=(Part(name="b"),)), Whole(id="a", parts=(Part(name="b"),))
    assert one.length == 1
    assert one == other
    assert one != Whole(id="b")
    assert hash(Part(name="b")) == hash(Part(name="b"))
    assert Checked() != Part(name="b")
    assert repr(Part(name="b")) == "Part(name='b', size='small')"
    assert str(Part(name="b")) == repr(Part(name="b"))
    assert "seconds=0.3," in repr(Usage(seconds=0.1 + 0.2))


def test_the_signature_of_a_value_lists_its_fields() -> None:
    """What `help` and editors show: names, types without limits, and defaults."""
    assert str(inspect.signature(Part)) == "(*, name: str, size: Literal['small', 'large'] = 'small')"
    parameters = inspect.signature(Whole).parameters
    assert list(parameters) == list(Whole.model_fields)
    assert parameters["share"].annotation == float | None
    assert (parameters["id"].default, parameters["by_name"].default) == (inspect.Parameter.empty, {})


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_is_equal_and_knows_what_was_given(copied: Any) -> None:
    """Also one that went to another process."""
    value = Whole(id="a", parts=(Part(name="b"),))
    made = copied(value)
    assert made == value
    assert made.model_fields_set == {"id", "parts"}


def test_a_changed_copy_leaves_the_value_as_it_is() -> None:
    """The changed fields count as given."""
    value = Whole(id="a")
    changed = value.model_copy(update={"count": 5})
    assert (value.count, changed.count) == (1, 5)
    assert changed.model_fields_set == {"id", "count"}


def test_fields_that_do_not_fit_together_are_refused() -> None:
    """Also inside of another value, and for keyword arguments."""
    with pytest.raises(ValidationError, match="low is above high"):
        Checked(low=2, high=1)
    with pytest.raises(ValidationError, match="low is above high"):
        Checked.model_validate({"low": 2, "high": 1})


def test_a_field_of_another_type_is_refused() -> None:
    """At the first use of the class, with its name."""

    class Wrong(Value):
        when: set

    with pytest.raises(TypeError, match="set"):
        Wrong.model_validate({})


def test_a_field_says_nothing_that_is_not_checked() -> None:
    """A limit that is misspelt, or that values do not have, is an error where it is written."""
    for unknown in ("max_lenght", "multiple_of", "repr"):
        with pytest.raises(TypeError, match=unknown):
            Field(**{unknown: 1})


def test_a_pydantic_model_can_have_a_value_as_a_field() -> None:
    """Users put our values into models of their own."""

    class Mine(BaseModel):
        part: Part

    mine = Mine.model_validate({"part": {"name": "a"}})
    assert mine.part == Part(name="a")
    assert mine.model_dump() == {"part": {"name": "a", "size": "small"}}
    assert TypeAdapter(Part).json_schema()["required"] == ["name"]


def test_a_value_inside_of_plain_data_is_written() -> None:
    """Where a field or a record holds any JSON."""
    assert to_json({"part": Part(name="a")}) == b'{"part":{"name":"a","size":"small"}}'
