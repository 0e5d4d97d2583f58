"""A worker as data: what it is for, what it is told, which tools it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from chargehand.plan import Tier
from chargehand.tools import BUILTIN, Tool, tool
from chargehand.value import JSON

Kind = Literal["agent"]
DEFAULT_STEPS = 10
# A tool, a function that becomes one, or the name of a built-in.
AnyTool: TypeAlias = Tool | Callable[..., Any] | str


@dataclass(frozen=True, init=False)
class Worker:
    """One member of a team. `missing_tools` are names that no tool was found for: the team reports them."""

    name: str
    description: str
    prompt: str
    tools: tuple[Tool, ...]
    model: str | None
    tier: Tier | None
    max_steps: int
    output_schema: dict[str, JSON] | None
    fallback: str | None
    temperature: float | None
    kind: Kind
    missing_tools: tuple[str, ...]

    def __init__(
        self,
        name: str,
        description: str,
        *,
        prompt: str = "",
        tools: Iterable[AnyTool] = (),
        model: str | None = None,
        tier: Tier | None = None,
        max_steps: int = DEFAULT_STEPS,
        output_schema: dict[str, JSON] | None = None,
        fallback: str | None = None,
        temperature: float | None = None,
        kind: Kind = "agent",
    ) -> None:
        found = [BUILTIN.get(t, t) if isinstance(t, str) else t if isinstance(t, Tool) else tool(t) for t in tools]
        values: dict[str, Any] = {
            "name": name,
            "description": description,
            "prompt": prompt,
            "tools": tuple(t for t in found if isinstance(t, Tool)),
            "model": model,
            "tier": tier,
            "max_steps": max_steps,
            "output_schema": output_schema,
            "fallback": fallback,
            "temperature": temperature,
            "kind": kind,
            "missing_tools": tuple(t for t in found if isinstance(t, str)),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    @property
    def tool_names(self) -> tuple[str, ...]:
        return tuple(t.name for t in self.tools)

    def without_missing_tools(self) -> Worker:
        """The same worker with just the tools that were found."""
        return Worker.from_json({**self.to_json(), "tools": self.tool_names}, {t.name: t for t in self.tools})

    def to_json(self) -> dict[str, JSON]:
        """As stored with a run: tools by name."""
        return {
            "name": self.name,
            "description": self.description,
            "prompt": self.prompt,
            "tools": [*self.tool_names, *self.missing_tools],
            "model": self.model,
            "tier": self.tier,
            "max_steps": self.max_steps,
            "output_schema": self.output_schema,
            "fallback": self.fallback,
            "temperature": self.temperature,
            "kind": self.kind,
        }

    @staticmethod
    def from_json(data: Mapping[str, JSON], tools: Mapping[str, Tool]) -> Worker:
        """The stored worker, with its tools looked up by name."""
        fields = dict(data)
        fields["tools"] = [tools.get(name, name) for name in fields["tools"]]
        return Worker(**fields)
