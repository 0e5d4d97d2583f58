"""The port to models: one neutral call in, one neutral reply out. Wire formats, prices and lookup are modules here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from chargehand.values.effect import ModelCall
    from chargehand.values.message import Reply

__all__ = ["MADE_IN_PYTHON", "Attribution", "ModelClient"]

# How a client that a caller made in Python is recorded: it cannot be made again from its name.
MADE_IN_PYTHON = "scripted:client"


class Attribution(NamedTuple):
    """What a call is made for. A provider gets it as headers, and a repeat has the same idempotency key."""

    run: str
    task: str | None
    attempt: int | None
    role: str
    idempotency_key: str
    # The W3C trace context of the call, if its run is part of a trace.
    traceparent: str | None = None


class ModelClient(Protocol):
    """Answers model calls. It never retries: the caller decides that.

    1. `complete` returns a Reply or raises errors.ModelError; it raises nothing else except cancellation.
    2. `on_text` gets, for each event of the reply as it arrives, the text that the event adds, "" if none. The pieces,
    joined, are
       the reply's text, with the tool calls that the model wrote into it.
    3. The same call, cap and attribution send the same bytes.
    """

    async def complete(
        self,
        call: ModelCall,
        max_output: int,
        attribution: Attribution,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply: ...

    async def close(self) -> None: ...
