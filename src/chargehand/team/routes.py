"""Which worker gets which request: rules, which are tried first, and labelled requests for the router."""

from __future__ import annotations

import re
from typing import Annotated

from chargehand.text.json_schema import matches
from chargehand.values.base import Field, Value
from chargehand.values.field_schema import After

# How much of a request a rule looks at.
MOST_CHARACTERS = 20_000


def _check_readable(sought: str | tuple[str, ...]) -> str | tuple[str, ...]:
    if not sought:
        raise ValueError("it is empty, so it would match every request")
    if isinstance(sought, tuple) and not all(word.strip() for word in sought):
        raise ValueError("an empty word would match every request")
    if _find(sought, "") is None:
        shown = repr(sought[:100])
        raise ValueError(
            f"{shown} is not a regular expression, is too large, or has look-around or back-references, "
            "which are not supported ('unless' is for what must not be in the request)"
        )
    return sought


Sought = Annotated[str | tuple[str, ...], After(_check_readable)]


class RouteRule(Value):
    """`match` is a regular expression searched in the request, or words of which one is in it; case is ignored.

    A request in which `unless` is found in the same way is not for this rule.
    """

    match: Sought
    worker: str = Field(min_length=1)
    secondary: str | None = None
    unless: Sought | None = None

    def matches(self, request: str) -> bool:
        text = request[:MOST_CHARACTERS].strip()
        return bool(_find(self.match, text)) and not (self.unless and _find(self.unless, text))

    @property
    def words(self) -> str:
        """What it looks for, for display."""
        return self.match if isinstance(self.match, str) else ", ".join(self.match)


class RouteExample(Value):
    """A request and the worker that should get it, shown to the router."""

    request: str = Field(min_length=1)
    primary: str
    secondary: str | None = None
    reason: str = ""


def _find(sought: str | tuple[str, ...], text: str) -> bool | None:
    """Whether it is in the text, found in linear time; None when it cannot be looked for."""
    if isinstance(sought, tuple):
        # As whole words; `\b` does not work next to a sign, as in `C++`.
        words = "|".join(re.escape(word.strip()) for word in sought)
        sought = rf"(?:\A|\W)(?:{words})(?:\W|\z)"
    return matches(f"(?i){sought}", text)
