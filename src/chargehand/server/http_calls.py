"""A request -> its query and body as checked values; a Refusal lists everything wrong with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request

from chargehand.server.access import Caller
from chargehand.server.checked_input import Input, check_input
from chargehand.server.refusals import Refusal
from chargehand.server.shared_state import Server

LARGEST_BODY = 32 * 2**20
LONGEST_QUERY = 8_000


I = TypeVar("I", bound=Input)  # noqa: E741


@dataclass(frozen=True, slots=True)
class Call:
    """One request to one endpoint."""

    server: Server
    request: Request

    @property
    def caller(self) -> Caller:
        """The caller that the token of the request belongs to."""
        return self.request.scope["caller"]

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    def query(self, shape: type[I]) -> I:
        """The query. An unknown name or a name given twice is an error."""
        pairs = self.request.query_params.multi_items()
        if twice := sorted({name for name, _ in pairs if len([n for n, _ in pairs if n == name]) > 1}):
            raise Refusal(422, f"Given more than once: {', '.join(twice)[:200]}. Give each once.")
        return check_input(shape, dict(pairs), "query", strict=False)

    async def body(self, shape: type[I]) -> I:
        """The JSON body. A missing body counts as an empty object."""
        data = await self.read()
        if not data.strip():
            return check_input(shape, {}, "body", strict=True)
        try:
            given: Any = from_json(data, allow_inf_nan=False)
        except ValueError as error:
            raise Refusal(400, f"The body is not JSON: {error}. Send one JSON object in UTF-8.") from None
        if not isinstance(given, dict):
            raise Refusal(422, "The body is not a JSON object: send one.")
        return check_input(shape, given, "body", strict=True)  # pyright: ignore[reportUnknownArgumentType]

    async def read(self) -> bytes:
        """The body as received. Raises Refusal if it is too large."""
        said = self.request.headers.get("content-length", "")
        if said.isdigit() and int(said) > LARGEST_BODY:
            raise _too_large()
        parts: list[bytes] = []
        size = 0
        try:
            async for part in self.request.stream():
                size += len(part)
                if size > LARGEST_BODY:
                    raise _too_large()
                parts.append(part)
        except ClientDisconnect:
            raise Refusal(400, "The connection was closed before the whole body came: send it again.") from None
        return b"".join(parts)


def _too_large() -> Refusal:
    return Refusal(413, f"The body is larger than {LARGEST_BODY // 2**20} MB: send less material.")
