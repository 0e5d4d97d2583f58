"""The teams that a server offers, as models of OpenAI: GET /v1/models · GET /v1/models/ID."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from chargehand.server.http_calls import Call
from chargehand.server.model_request import DEFAULT, SMALL, TEAM
from chargehand.server.read_runs import json_response
from chargehand.server.refusals import Refusal
from chargehand.server.shared_state import Server


async def list_models(call: Call) -> Response:
    """The teams that are offered, and the small model."""
    names = await call.server.reading.run(_names, call.server)
    return json_response({"object": "list", "data": [_model(name) for name in names]})


async def get_model(call: Call) -> Response:
    """One of them."""
    name = call.path("name")
    await check_model(call.server, name)
    return json_response(_model(name))


async def check_model(server: Server, name: str) -> None:
    """Raises Refusal if no team is offered under this name."""
    if name not in await server.reading.run(_names, server):
        raise Refusal(
            404,
            f"There is no model {name[:100]!r}: GET /v1/models lists them.",
            type="model_not_found",
            param="model",
        )


def _names(server: Server) -> list[str]:
    return [DEFAULT, *(f"{TEAM}{name}" for name in server.offered.teams()), SMALL]


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "chargehand"}
