"""An error -> the status and body of an `application/problem+json` answer: what happened and what to do."""

from __future__ import annotations

import errno
import html
import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from chargehand.errors import (
    ChargehandError,
    JournalTooNew,
    NoOpenQuestion,
    OwnershipLost,
    RecordDamaged,
    RecordGone,
    RunNotFound,
    RunOwned,
    StorageError,
)
from chargehand.text.escaping import dump_json
from chargehand.values.base import Value

MEDIA_TYPE = "application/problem+json"
TITLES: dict[int, str] = {
    400: "The request cannot be read.",
    401: "A token is needed.",
    403: "This token may not do that.",
    404: "There is no such thing here.",
    405: "This address does not take that method.",
    409: "The run is not in a state for that.",
    413: "The body is too large.",
    414: "The address is too long.",
    421: "The server does not answer to this host name.",
    422: "The request has problems.",
    429: "Too many runs wait already.",
    500: "An error in chargehand itself.",
    503: "The home of runs cannot be used.",
    507: "The disk is full.",
}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Refusal(Exception):
    """A request that is answered with a problem."""

    def __init__(
        self,
        status: int,
        detail: str,
        problems: Sequence[object] = (),
        *,
        type: str = "about:blank",
        headers: Mapping[str, str] | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.problems = tuple(problems)
        self.type = type
        self.headers = headers
        # The field of the body that the refusal is about, for OpenAI's shape of an error.
        self.param = param


def refusal_of(error: ChargehandError) -> Refusal:
    """The answer to an error that the caller, or the person who runs the server, can do something about."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(error).__name__).lower()
    return Refusal(_status(error), str(error), getattr(error, "problems", ()), type=f"urn:chargehand:{name}")


def error_response(refusal: Refusal, path: str, accepted: str) -> Response:
    """The refusal in the shape that callers expect: below /v1 OpenAI's, a page for a browser, else a problem.

    `accepted` is the Accept header. Only a browser that opens an address names text/html in it.
    """
    if not path.startswith("/v1/"):
        return page_response(refusal) if "text/html" in accepted else problem_response(refusal)
    body = {"error": openai_error(refusal)}
    # Clients handle 422 like 400: as a mistake in their request.
    status = 400 if refusal.status == 422 else refusal.status
    return Response(dump_json(body), status, refusal.headers, "application/json")


def openai_error(refusal: Refusal) -> dict[str, Any]:
    """A refusal as OpenAI writes errors."""
    kind = "invalid_request_error" if refusal.status < 500 else "server_error"
    code = None if ":" in refusal.type else refusal.type
    return {"message": refusal.detail, "type": kind, "param": refusal.param, "code": code}


def page_response(refusal: Refusal) -> Response:
    title, detail = html.escape(TITLES[refusal.status]), html.escape(refusal.detail)
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    headers = {**(refusal.headers or {}), "cache-control": "no-store", "content-security-policy": "default-src 'none'"}
    return Response(f"{head}<h1>{title}</h1><p>{detail}</p>\n", refusal.status, headers, "text/html")


def problem_response(refusal: Refusal) -> Response:
    body: dict[str, Any] = {
        "type": refusal.type,
        "title": TITLES[refusal.status],
        "status": refusal.status,
        "detail": refusal.detail,
    }
    if refusal.problems:
        body["problems"] = [each.to_json() if isinstance(each, Value) else _plain(each) for each in refusal.problems]
    return Response(dump_json(body), refusal.status, refusal.headers, MEDIA_TYPE)


def _plain(problem: object) -> Any:
    if isinstance(problem, dict):
        return problem  # pyright: ignore[reportUnknownVariableType]
    return {"code": "invalid_value", "severity": "error", "task": None, "message": str(problem)}


def _status(error: ChargehandError) -> int:
    match error:
        case RunNotFound():
            return 404
        case RunOwned() | NoOpenQuestion() | OwnershipLost() | JournalTooNew() | RecordDamaged() | RecordGone():
            return 409
        case StorageError():
            return 507 if _is_full(error.__cause__) else 503
        case _:
            return 422


def _is_full(cause: BaseException | None) -> bool:
    if isinstance(cause, OSError):
        return cause.errno in _FULL
    return isinstance(cause, sqlite3.Error) and getattr(cause, "sqlite_errorname", "").startswith("SQLITE_FULL")
