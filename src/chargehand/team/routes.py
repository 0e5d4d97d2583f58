"""Who gets which request, as a team's files say it: rules tried first, and labelled requests for the router."""

from __future__ import annotations

import re
from functools import cached_property

from pydantic import Field, field_validator

from chargehand.value import Value

# What of a request a rule looks at.
MOST_CHARACTERS = 20_000


class Rule(Value):
    """`match` is a regular expression searched in the request, or words of which one is in it; case is ignored."""

    match: str | tuple[str, ...] = Field(min_length=1)
    worker: str = Field(min_length=1)
    secondary: str | None = None

    @field_validator("match")
    @classmethod
    def _readable(cls, match: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if isinstance(match, str):
            try:
                re.compile(match)
            except re.error as error:
                raise ValueError(f"{match!r} is not a regular expression: {error}") from None
        elif not all(word.strip() for word in match):
            raise ValueError("an empty word would match every request")
        return match

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        if isinstance(self.match, str):
            return re.compile(self.match, re.IGNORECASE)
        # As whole words; `\b` would not do beside a sign, as in `C++`.
        words = "|".join(re.escape(word.strip()) for word in self.match)
        return re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)

    def matches(self, request: str) -> bool:
        return self._pattern.search(request[:MOST_CHARACTERS]) is not None

    @property
    def words(self) -> str:
        """What it looks for, to be shown."""
        return self.match if isinstance(self.match, str) else ", ".join(self.match)


class RouteExample(Value):
    """A request and who should get it, shown to the router."""

    request: str = Field(min_length=1)
    primary: str
    secondary: str | None = None
    reason: str = ""
