"""Turns what a provider or the network did wrong into a ModelError: its kind, whether to try again, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from pydantic_core import from_json

from chargehand.errors import ErrorKind, ModelError

_SHOWN = 400
# If a provider asks for a longer wait, the call is tried again after this time.
LONGEST_WAIT_S = 24 * 3_600.0
_OVERLOADED = frozenset({500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_TOO_LONG = (
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "exceed context limit",
    "too many tokens",
)
_FILTERED = ("content_filter", "content_policy_violation", "content management policy")
# Names both providers use in error objects, for errors that come without a status (in a stream, or under a 200).
_NAMED: dict[str, int] = {
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "overloaded_error": 529,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "invalid_request_error": 400,
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a provider's calls go. The key is kept here to be sent to `url` and to be removed from every text."""

    provider: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    key: str | None = field(default=None, repr=False)
    key_env: str | None = None

    def safe(self, text: str) -> str:
        """The text on one line, of bounded length, without the key."""
        if self.key:
            text = text.replace(self.key, "***")
        text = " ".join(text.split())
        return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def from_status(endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The error for an answer that is not a success."""
    said, code = _error_message(body)
    if 300 <= status < 400:
        where = endpoint.safe(headers.get("Location", "elsewhere"))
        message = f"{endpoint.provider} at {endpoint.url} redirects to {where}; set that as its base URL if it is right"
        return ModelError("bad_request", message, status=status)
    return _error(endpoint, status, said, code, retry_after(headers))


def from_object(endpoint: Endpoint, error: object) -> ModelError:
    """The error for an error object inside a stream, or inside an answer that claims success."""
    said, code = _pick_message(error)
    number = cast("dict[str, Any]", error).get("code") if isinstance(error, dict) else None
    status = number if isinstance(number, int) and 400 <= number < 600 else _NAMED.get(code, 500)
    return _error(endpoint, status, said, code, None)


def kind_of(status: int) -> ErrorKind:
    """What kind of error a status is, when the body adds nothing."""
    if status == 429:
        return "rate_limited"
    if status in _OVERLOADED:
        return "overloaded"
    if status in (401, 403):
        return "auth"
    if status == 413:
        return "context_too_long"
    if status == 408:
        return "timeout"
    return "overloaded" if status >= 500 else "bad_request"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the provider asks to wait, at most a day: `retry-after-ms`, or Retry-After (seconds or a date)."""
    try:
        asked = _retry_after(headers)
    except ValueError:
        return None
    return None if asked is None else min(max(0.0, asked), LONGEST_WAIT_S)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    if (ms := headers.get("retry-after-ms")) is not None:
        return float(ms) / 1000
    if (value := headers.get("Retry-After")) is None:
        return None
    if value.replace(".", "", 1).isdigit():
        return float(value)
    return (_moment(value) - _their_now(headers)).total_seconds()


def _their_now(headers: Mapping[str, str]) -> datetime:
    """The time on the provider's clock, which may differ much from ours: dates in its headers refer to that clock."""
    try:
        return _moment(headers["Date"])
    except (KeyError, ValueError):
        return datetime.now(UTC)


def _moment(value: str) -> datetime:
    from email.utils import parsedate_to_datetime  # few servers give a time of day

    at = parsedate_to_datetime(value)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def unreadable(endpoint: Endpoint, body: bytes) -> ModelError:
    """The error for a success whose body is not what the wire format says."""
    start = body[:200].lstrip()
    # An HTML page or an empty body comes from a proxy or gateway, and the next try often works. Any other text comes
    # from a server with another protocol, and the next try would give it again.
    passing = not start or start.startswith(b"<")
    what = "nothing" if not start else f"something that is not a chat reply: {start.decode(errors='replace')}"
    message = endpoint.safe(f"{endpoint.provider} at {endpoint.url} answered {what}")
    return ModelError("contract", f"{message}; check that this address is a model server's", transient=passing)


def too_large(endpoint: Endpoint, limit: int) -> ModelError:
    message = f"the reply of {endpoint.provider} at {endpoint.url} is over {limit // 2**20} MB and was not read"
    return ModelError("contract", f"{message}; ask for less at once, or check that this address is a model server's")


def badly_packed(endpoint: Endpoint) -> ModelError:
    message = f"the reply of {endpoint.provider} at {endpoint.url} is not compressed in the way its header says"
    return ModelError("contract", f"{message}; check the server, or the proxy before it")


def cut(endpoint: Endpoint) -> ModelError:
    message = f"{endpoint.provider} at {endpoint.url} ended its reply before it was complete"
    return ModelError("connection", f"{message}; if it always does, check the wire that is set for this provider")


def _error(endpoint: Endpoint, status: int, said: str, code: str, wait: float | None) -> ModelError:
    kind = kind_of(status)
    name = endpoint.provider
    tail = f": {endpoint.safe(said)}" if said else ""
    low = f"{code} {said}".lower()
    if kind == "auth":
        remedy = f"check {endpoint.key_env}" if endpoint.key_env else "it needs a key: set key_env for this provider"
        return ModelError("auth", f"{name} refused the key ({status}){tail}; {remedy}", status=status)
    if kind == "rate_limited":
        if "insufficient_quota" in low:
            message = f"{name} says the quota is used up{tail}; check plan and billing"
            return ModelError("rate_limited", message, status=status, transient=False)
        return ModelError(kind, f"{name} is rate limiting ({status}){tail}", retry_after=wait, status=status)
    if kind == "overloaded":
        return ModelError(kind, f"{name} is overloaded or failing ({status}){tail}", retry_after=wait, status=status)
    if kind == "timeout":
        return ModelError(kind, f"{name} gave up waiting ({status}){tail}", status=status, transient=True)
    if kind == "context_too_long" or any(mark in low for mark in _TOO_LONG):
        message = f"the request is too long for {name} ({status}){tail}; give less material or a model with more room"
        return ModelError("context_too_long", message, status=status)
    if any(mark in low for mark in _FILTERED):
        return ModelError("refused", f"{name} refused the content ({status}){tail}", status=status)
    return ModelError("bad_request", f"{name} at {endpoint.url} refused the request ({status}){tail}", status=status)


def _error_message(body: bytes) -> tuple[str, str]:
    """The provider's own words and code in an error body; a page's text is left out."""
    try:
        data: Any = from_json(body)
    except ValueError:
        text = body[:_SHOWN].decode(errors="replace").strip()
        return ("" if text.startswith("<") else text), ""
    if isinstance(data, dict):
        found = cast("dict[str, Any]", data)
        return _pick_message(found.get("error", found))
    return "", ""


def _pick_message(error: object) -> tuple[str, str]:
    if isinstance(error, str):
        return error, ""
    if not isinstance(error, dict):
        return "", ""
    found = cast("dict[str, Any]", error)
    code = found.get("code") if isinstance(found.get("code"), str) else found.get("type")
    said = found.get("message") or found.get("detail") or ""
    return (said if isinstance(said, str) else ""), (code if isinstance(code, str) else "")
