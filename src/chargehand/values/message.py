"""Neutral chat messages, tool calls and tool specs: what every provider's wire format is made from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

from chargehand.values.base import JSON, Field, Value

# Whether a tool only reads, may be repeated, or must run once.
ToolEffect = Literal["read", "idempotent", "once"]


class ToolRequest(Value):
    """A tool call that a model asks for. `arguments` is None when the model did not write a JSON object: see `raw`."""

    id: str
    name: str
    arguments: dict[str, JSON] | None
    raw: str = ""
    # The provider's own fields, which go back unchanged with the call (signatures of its reasoning).
    extra: dict[str, JSON] = Field(default_factory=dict)


class Message(Value):
    """One turn. `opaque` holds a provider's own parts that must go back unchanged with the turn: its reasoning."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    tool_calls: tuple[ToolRequest, ...] = ()
    tool_call_id: str | None = None
    tool_failed: bool = False
    opaque: tuple[dict[str, Any], ...] = ()
    # How many characters at the beginning of the text are the same in other calls: a provider may cache that part.
    shared: int = 0

    @cached_property
    def packed(self) -> bytes:
        """The message as JSON bytes, made only once even if it is sent often."""
        return self.model_dump_json(exclude_defaults=True).encode()

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.packed).hexdigest()

    @cached_property
    def written(self) -> dict[Callable[[Message], bytes], bytes]:
        """What `as_written` has made."""
        return {}

    def as_written(self, write: Callable[[Message], bytes]) -> bytes:
        """The message in a wire format, made only once even if it is sent often."""
        if (known := self.written.get(write)) is None:
            known = self.written[write] = write(self)
        return known


class ToolSpec(Value):
    """A tool as it is described to a model."""

    name: str
    description: str
    parameters: dict[str, JSON] = Field(default_factory=lambda: {"type": "object", "properties": {}})

    @cached_property
    def packed(self) -> bytes:
        return self.model_dump_json().encode()


class TokenCount(Value):
    """What the provider says a call used. Cached tokens are part of the input, those of reasoning of the output."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


class Reply(Value):
    """What a model answered. `usage` is None when the provider did not report it, or reported something unreadable."""

    text: str = ""
    tool_calls: tuple[ToolRequest, ...] = ()
    stop: Literal["end", "tools", "length", "refused"] = "end"
    usage: TokenCount | None = None
    # Why the usage that the provider reported cannot be read.
    usage_problem: str = ""
    model: str = ""
    opaque: tuple[dict[str, Any], ...] = ()
    # If the call asked for it: the possible first words of the reply, each with the logarithm of its probability.
    first_words: dict[str, float] = Field(default_factory=dict)

    def as_message(self) -> Message:
        return Message(role="assistant", text=self.text, tool_calls=self.tool_calls, opaque=self.opaque)

    def as_text(self) -> Message:
        """The same for a conversation without tools: there, providers refuse messages with tool calls."""
        if not self.tool_calls:
            return self.as_message()
        names = ", ".join(call.name for call in self.tool_calls)
        return Message(role="assistant", text=self.text or f"(called {names}, which does not exist here)")


def system(text: str) -> Message:
    return Message(role="system", text=text)


def user(text: str, *, shared: int = 0) -> Message:
    return Message(role="user", text=text, shared=shared)


def tool_result(request: ToolRequest, text: str, *, failed: bool = False) -> Message:
    return Message(role="tool", text=text, tool_call_id=request.id, tool_failed=failed)
