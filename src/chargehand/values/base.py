"""The base of every value at the JSON boundary: frozen, closed, strict about names."""

from __future__ import annotations

from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict

# Any JSON value. `Any` because a recursive alias costs pydantic a schema walk per value.
JSON: TypeAlias = Any


class Value(BaseModel):
    """A frozen value; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null", defer_build=True)

    def to_json(self) -> dict[str, Any]:
        """The value as plain JSON data."""
        return self.model_dump(mode="json")
