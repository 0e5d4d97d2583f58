"""Turns a neutral model call into a reply by a wire format over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from pydantic_core import PydanticSerializationError, from_json

from chargehand.errors import ModelError
from chargehand.models import Attribution
from chargehand.models import provider_errors as faults
from chargehand.models.provider_errors import Endpoint
from chargehand.models.received_json import pair_pieces, read_json
from chargehand.models.streamed_reply import Listener, StreamedReply
from chargehand.models.text_tool_calls import read_calls_in_text
from chargehand.models.tool_requests import with_distinct_ids
from chargehand.models.transport import Transport
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply

T = TypeVar("T")


class Wire(Protocol):
    """A provider's wire format: pure functions between neutral values and JSON."""

    def request(self, call: ModelCall, max_output: int) -> bytes:
        """The body of a request for a streamed reply; the same call gives the same bytes."""
        ...

    def error(self, body: dict[str, Any]) -> object:
        """The error that an answer or an event holds; None when it holds none."""
        ...

    def reply(self, body: dict[str, Any]) -> Reply: ...

    def listen(self) -> Listener: ...


class HttpModel:
    """A model client for one endpoint. The pool of connections is shared; closing the client closes the pool."""

    def __init__(self, endpoint: Endpoint, wire: Wire, transport: Transport) -> None:
        self._endpoint = endpoint
        self._wire = wire
        self._transport = transport

    async def complete(
        self,
        call: ModelCall,
        max_output: int,
        attribution: Attribution,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        try:
            body = self._wire.request(call, max_output)
        except (PydanticSerializationError, UnicodeError):
            message = "the request holds text that is not valid Unicode; re-encode the material as UTF-8"
            raise ModelError("bad_request", message) from None
        hear_text = pair_pieces(on_text or _ignore)
        streamed = StreamedReply(self._wire.listen(), self._read_events, self._raise_error)

        def hear(events: list[bytes]) -> None:
            hear_text(self._hear(events, streamed))

        whole = await self._transport.send(self._endpoint, body, attribution, hear)
        reply = streamed.reply() if whole is None else self._pick(whole, self._wire.reply)
        if reply is None:
            raise faults.cut(self._endpoint)
        if whole is not None and on_text is not None:
            on_text(reply.text)
        return with_distinct_ids(read_calls_in_text(reply, call))

    async def close(self) -> None:
        await self._transport.close()

    def _hear(self, events: list[bytes], streamed: StreamedReply) -> str:
        """Process events that arrived together; returns the text they added."""
        if events[-1] == b"[DONE]":
            events = events[:-1]
        before = streamed.heard
        try:
            return streamed.hear(events)
        except (ValueError, LookupError, TypeError, AttributeError):
            raise faults.unreadable(self._endpoint, events[streamed.heard - before]) from None

    def _read_events(self, events: list[bytes]) -> list[dict[str, Any]]:
        try:
            # Parsed together: a reply has hundreds of small events.
            found: list[dict[str, Any]] = from_json(b"[%b]" % b",".join(events))
            if len(found) == len(events):
                return found
        except ValueError:
            pass
        return [self._pick(event, dict, piece=True) for event in events]

    def _raise_error(self, found: dict[str, Any]) -> None:
        if error := self._wire.error(found):
            raise faults.from_object(self._endpoint, error)

    def _pick(self, body: bytes, pick: Callable[[dict[str, Any]], T], *, piece: bool = False) -> T:
        """What `pick` finds in the JSON; anything else that the server sent becomes a ModelError."""
        try:
            data = read_json(body, piece=piece)
            if not isinstance(data, dict):
                raise faults.unreadable(self._endpoint, body)
            found = cast("dict[str, Any]", data)
            self._raise_error(found)
            return pick(found)
        except (ValueError, LookupError, TypeError, AttributeError):
            raise faults.unreadable(self._endpoint, body) from None


def _ignore(_text: str) -> None:
    """For calls without an `on_text`."""
