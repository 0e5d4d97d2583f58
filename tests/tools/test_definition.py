"""A typed function becomes a tool with a JSON schema."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import FrozenInstanceError
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, Field

from chargehand.errors import ToolError, UsageError
from chargehand.tools import BUILTIN, Tool, ToolContext, call, tool
from chargehand.tools.parameter_model import make_model, make_schema
from chargehand.values.base import Field as OurField


class Place(BaseModel):
    """A town."""

    title: str
    inhabitants: int = 0


@tool(effect="read")
def population(city: str) -> int: "Inhabitants of a city."; return {"Oslo": 717_710}[city]  # fmt: skip # noqa: E702


@tool
def rich(
    city: str,
    unit: Literal["km", "miles"] = "km",
    limit: int | None = None,
    tags: list[str] = [],  # noqa: B006
    place: Place | None = None,
    depth: Annotated[int, Field(ge=1, le=9, description="how deep")] = 3,
    schema: str = "",
    context: ToolContext = ToolContext(),  # noqa: B008
) -> str:
    """Many kinds of parameters.

    Args:
        city: where to look
            and where not to
        unit (str): of distance
        depth: not this

    Returns:
        Something.
    """
    return f"{city} {unit} {limit} {tags} {place} {depth} {schema}"


def test_the_contracts_one_line_style_is_a_tool() -> None:
    """Name, description and schema come from the function; calling it still works."""
    assert population.name == "population"
    assert population.description == "Inhabitants of a city."
    assert population.effect == "read"
    assert population("Oslo") == 717_710
    assert population.spec.parameters == {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }


def test_the_default_effect_is_once() -> None:
    """A tool that says nothing must not be repeated."""
    assert rich.effect == "once"
    assert not rich.isolated


def test_the_schema_says_types_defaults_and_descriptions() -> None:
    """Literals, optionals, lists, nested models, bounds and both kinds of descriptions reach the model."""
    schema = rich.parameters
    properties = schema["properties"]
    assert schema["required"] == ["city"]
    assert "context" not in properties
    assert properties["city"] == {"type": "string", "description": "where to look and where not to"}
    assert properties["unit"]["enum"] == ["km", "miles"]
    assert properties["unit"]["description"] == "of distance"
    assert properties["depth"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "default": 3,
        "description": "how deep",
    }
    assert properties["tags"]["items"] == {"type": "string"}
    assert set(schema["$defs"]["Place"]["properties"]) == {"title", "inhabitants"}
    assert "schema" in properties
    assert rich.description == "Many kinds of parameters.\n\nReturns:\n    Something."


@pytest.mark.parametrize("each", [population, rich, *BUILTIN.values()], ids=lambda each: each.name)
def test_every_schema_is_valid_json_schema(each: Tool) -> None:
    """What is sent to providers is JSON Schema."""
    jsonschema.Draft202012Validator.check_schema(each.parameters)
    assert each.spec.packed


@pytest.mark.parametrize(
    "arguments",
    [
        {"city": "Oslo"},
        {
            "city": "Oslo",
            "unit": "miles",
            "limit": None,
            "tags": ["a"],
            "place": {"title": "x"},
            "depth": 9,
            "schema": "s",
        },
        {"city": 3},
        {"unit": "km"},
        {"city": "x", "unit": "mm"},
        {"city": "x", "depth": 0},
        {"city": "x", "tags": "a"},
        {"city": "x", "place": {}},
        {"city": "x", "other": 1},
    ],
)
def test_schema_and_check_agree(arguments: dict[str, Any]) -> None:
    """What the schema allows the check takes, and the other way round."""
    allowed = jsonschema.Draft202012Validator(rich.parameters).is_valid(arguments)
    try:
        rich.arguments.check(arguments)
        taken = True
    except ToolError:
        taken = False
    assert taken == allowed


def test_a_tool_is_frozen() -> None:
    """Nothing of a tool can be set afterwards."""
    with pytest.raises(FrozenInstanceError):
        population.name = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_a_tool_has_the_names_of_its_function() -> None:
    """So documentation tools and messages speak of the function."""
    assert (population.__name__, population.__module__) == ("population", __name__)
    assert population.__doc__ == population.fn.__doc__


class Box:
    def __init__(self, inhabitants: dict[str, int]) -> None:
        self.inhabitants = inhabitants

    def look_up(self, city: str, factor: int = 1) -> int:
        """Inhabitants of a city."""
        return self.inhabitants[city] * factor


def test_the_method_of_an_object_is_a_tool() -> None:
    """The model sees its name, its docstring and its parameters without the object."""
    made = tool(effect="read")(Box({"Oslo": 7}).look_up)
    assert (made.name, made.description, [*made.parameters["properties"]]) == (
        "look_up",
        "Inhabitants of a city.",
        ["city", "factor"],
    )
    assert asyncio.run(call(made, {"city": "Oslo", "factor": 2}, ToolContext())).text == "14"
    assert made.code == population.code, "the hash of this file"
    with pytest.raises(UsageError, match="isolated"):
        tool(isolated=True)(Box({}).look_up)
    with pytest.raises(UsageError, match=r"tools=\[box\.look_up\]"):
        tool(Box.look_up)


def test_a_name_can_be_given() -> None:
    """`name=` is what the model sees."""
    assert tool(name="look-up")(lambda: 1).name == "look-up"


def untyped(city) -> str:  # pyright: ignore
    return city


def starred(*cities: str) -> str:
    return str(cities)


def keyworded(**cities: str) -> str:
    return str(cities)


def positional(city: str, /) -> str:
    return city


def generator(city: str) -> Any:
    yield city


@pytest.mark.parametrize(
    ("function", "named"),
    [(untyped, "city"), (starred, "cities"), (keyworded, "cities"), (positional, "city"), (generator, "generator")],
)
def test_a_bad_definition_is_a_usage_error_that_names_it(function: Any, named: str) -> None:
    """The message names the function and the parameter."""
    with pytest.raises(UsageError, match=rf"{function.__name__}.*{named}|{named}.*yields"):
        tool(function)


def unresolved(city: Nowhere) -> str:  # noqa: F821 # pyright: ignore
    return str(city)


def test_an_annotation_that_leads_nowhere_is_a_usage_error() -> None:
    """It is found when the schema is first needed, since types may be defined later."""
    made = tool(unresolved)
    with pytest.raises(UsageError, match=r"unresolved.*Nowhere"):
        _ = made.spec


def unschemable(city: pytest.MonkeyPatch) -> str:
    return str(city)


def test_a_type_without_a_schema_is_a_usage_error() -> None:
    """A type pydantic cannot check is refused with the function's name."""
    with pytest.raises(UsageError, match="unschemable"):
        _ = tool(unschemable).spec


@pytest.mark.parametrize("given", [{"effect": "twice"}, {"name": "two words"}, {"name": "x" * 65}, {"isolated": True}])
def test_a_wrong_option_is_a_usage_error(given: dict[str, Any]) -> None:
    """Effects are a closed set, names fit providers, and a local function cannot be isolated."""

    def local() -> str:
        return ""

    with pytest.raises(UsageError, match="local"):
        tool(**given)(local)


def test_only_functions_become_tools() -> None:
    """Anything else is refused at once."""
    with pytest.raises(UsageError, match="population"):
        tool("population")  # pyright: ignore


def test_the_shipped_tools_are_there_by_name() -> None:
    """BUILTIN holds what ships; all but write_document only read."""
    reading = ["read_file", "list_files", "search_files", "calculate", "search_documents", "query_data"]
    assert list(BUILTIN) == [*reading, "fetch_page", "web_search", "write_document"]
    assert [each.name for each in BUILTIN.values() if each.effect != "read"] == ["write_document"]


def _plain(text: str, size: float, flag: bool = False, near: Annotated[int, OurField(ge=1, lt=9)] | None = None) -> str:
    """Plain parameters.

    Args:
        size: how large
    """
    return f"{text}{size}{flag}{near}"


def _bare() -> str:
    """No parameters."""
    return ""


@pytest.mark.parametrize("plain", [*BUILTIN.values(), tool(_plain), tool(_bare)], ids=lambda plain: plain.name)
def test_plain_parameters_are_described_as_by_pydantic(plain: Tool) -> None:
    """To the byte: what was sent to a model is compared when a run is resumed."""
    parameters = plain.arguments
    made = make_schema(make_model(parameters.fn, parameters.hints))
    assert json.dumps(parameters.schema) == json.dumps(made)


def test_limits_of_plain_parameters_are_checked() -> None:
    """They are written with our own Field, which pydantic understands."""
    with pytest.raises(ToolError) as refused:
        tool(_plain).arguments.check({"text": "a", "size": 1, "near": 9})
    assert refused.value.code == "wrong_arguments"
    assert "near" in str(refused.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": "a", "size": 1},
        {"text": "a", "size": "1.5", "flag": "yes", "near": "3"},
        {"text": "a", "size": 2.0, "flag": 1, "near": 3.0},
        {"text": "a", "size": True, "near": None},
        {"text": b"a", "size": float("inf"), "near": 8},
        {"text": 1, "size": "x", "flag": None, "near": 9, "other": []},
        {"text": None, "near": 0},
        {"text": "a", "size": 1, "near": 2.5},
        {},
    ],
)
def test_plain_parameters_are_checked_as_by_pydantic(arguments: dict[str, Any]) -> None:
    """The same values of the same types, or the same complaints."""

    def tried(*, plain: bool) -> object:
        parameters = tool(_plain).arguments
        if not plain:
            vars(parameters)["_plain"] = None
        try:
            return [(name, type(value), value) for name, value in parameters.check(arguments).items()]
        except ToolError as error:
            return str(error)

    assert tried(plain=True) == tried(plain=False)


def test_plain_parameters_are_checked_without_pydantic() -> None:
    """A run whose tools have plain parameters does not import it."""
    code = (
        "import sys; from chargehand.tools import BUILTIN; "
        "BUILTIN['calculate'].arguments.check({'expression': '1'}); print('pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
