"""What a caller sends -> a checked value; a Refusal lists everything wrong with it."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from chargehand.server.refusals import Refusal


class Input(BaseModel):
    """What a caller sends: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


I = TypeVar("I", bound=Input)  # noqa: E741


def check_input(shape: type[I], given: dict[str, Any], where: str, *, strict: bool) -> I:
    """`where` names the checked part in messages. A query is text, so it is not checked strictly."""
    try:
        return shape.model_validate(given, strict=strict)
    except ValidationError as error:
        found = [
            f"{'.'.join(map(str, each['loc'])) or where}: {_in_words(each['msg'], each.get('ctx', {}))}"
            for each in error.errors(include_url=False, include_input=False)
        ]
        raise Refusal(422, f"The {where} cannot be used: {'; '.join(found[:20])}.", found) from None


def _in_words(said: str, context: dict[str, Any]) -> str:
    """Where pydantic names the class that a part should be of, its fields: a caller knows no class."""
    shape = next((each for each in Input.__subclasses__() if each.__name__ == context.get("class_name")), None)
    if shape is None:
        return said
    return f"Input should be an object with {', '.join(shape.model_fields)}"
