"""Access control: Host, token, session cookie and Origin of a request -> its caller, or a refusal.

Host       loopback, or a name that was allowed: pages of other sites cannot use a name of their own
token      `Authorization: Bearer`, or the cookie that `?token=` sets, on `/` or on the page of a run
Origin     needed for a request by cookie that changes something
client     a second token, for /v1 and /mcp only; `client_runs.py` says what it may do there
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Literal, TypeAlias
from urllib.parse import parse_qs, quote, urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from chargehand.server.refusals import Refusal, error_response

Caller: TypeAlias = Literal["owner", "client"]
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# Addresses that the client token may use, with everything below them.
_FOR_CLIENTS = ("/v1", "/mcp")
_OPEN = "/healthz"
# The page of a run, without its id.
_RUN_PAGE = "/runs/"


@dataclass(slots=True)
class Access:
    """The tokens and host names of one server, and the sessions of browsers, which end with it."""

    token: str
    client_token: str | None = None
    hosts: frozenset[str] = LOOPBACK
    cookie: str = "chargehand"
    secure: bool = False
    sessions: set[str] = field(default_factory=set[str])

    def check_host(self, headers: Headers) -> None:
        if host_name(headers.get("host", "")) not in self.hosts:
            raise Refusal(
                421,
                f"The Host header is {headers.get('host', '')[:200]!r}: open the server by a loopback name, or start "
                "it with --allow-host NAME.",
            )

    def check_caller(self, scope: Scope, headers: Headers) -> Caller:
        """The caller. Raises Refusal without a valid token, or for a cookie sent by a page of another site."""
        given = headers.get("authorization", "")
        if given:
            kind, _, token = given.partition(" ")
            caller = self._by_token(token.strip()) if kind.lower() == "bearer" else None
            if caller is None:
                raise _ask_for_token("The token in the Authorization header is not one of this server.")
        elif self._session(headers) in self.sessions:
            caller = "owner"
            if scope["method"] not in _SAFE:
                _check_origin(headers)
        else:
            raise _ask_for_token(
                "Send `Authorization: Bearer TOKEN`, or open the address that `chargehand serve` printed."
            )
        if caller == "client" and not _is_for_clients(scope["path"]):
            raise Refusal(403, "The client token may use /v1 and /mcp only: use the token of the server for this.")
        return caller

    def begin_session(self, scope: Scope) -> Response:
        """The answer to `?token=` of a page: a session cookie, and the same page without the token in its address."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if self._by_token(given) != "owner":
            raise _ask_for_token("The token in the address is not that of this server: open the address it printed.")
        session = secrets.token_urlsafe(32)
        self.sessions.add(session)
        root = str(scope.get("root_path", "")).rstrip("/")
        secure = "; Secure" if self.secure or scope.get("scheme") == "https" else ""
        cookie = f"{self.cookie}={session}; HttpOnly; SameSite=Strict; Path={quote(root)}/{secure}"
        # Only ever a page of this server: nothing of the query is in it, and the path does not begin with two slashes.
        page = quote(f"{root}{path_below_root(scope)}")
        headers = {"location": page, "set-cookie": cookie, "cache-control": "no-store"}
        return Response(status_code=303, headers={**headers, "referrer-policy": "no-referrer"})

    def _by_token(self, token: str) -> Caller | None:
        given = token.encode()
        if hmac.compare_digest(given, self.token.encode()):
            return "owner"
        if self.client_token is not None and hmac.compare_digest(given, self.client_token.encode()):
            return "client"
        return None

    def _session(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return ""
        return found.value if found else ""


class Guard:
    """ASGI middleware: only requests that `Access` accepts reach the application; `scope["caller"]` is the caller."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._access.check_host(headers)
            path = path_below_root(scope)
            if _is_page(path) and b"token=" in scope["query_string"] and scope["method"] == "GET":
                await self._access.begin_session(scope)(scope, receive, send)
                return
            if path != _OPEN:
                scope["caller"] = self._access.check_caller({**scope, "path": path}, headers)
        except Refusal as refusal:
            await error_response(refusal, path_below_root(scope), headers.get("accept", ""))(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _is_page(path: str) -> bool:
    """Whether a browser opens this address: the list of runs, or one run."""
    return path == "/" or (path.startswith(_RUN_PAGE) and "/" not in path.removeprefix(_RUN_PAGE))


def _is_for_clients(path: str) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in _FOR_CLIENTS)


def path_below_root(scope: Scope) -> str:
    return str(scope["path"]).removeprefix(str(scope.get("root_path", "")).rstrip("/")) or "/"


def host_name(host: str) -> str:
    """The name in a Host header, without its port and in lower case; "" when it has none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _check_origin(headers: Headers) -> None:
    origin = urlsplit(headers.get("origin", ""))
    if origin.scheme not in ("http", "https") or origin.netloc.lower() != headers.get("host", "").lower():
        raise Refusal(
            403,
            "The Origin header does not name this server: a request by cookie that changes something must come from "
            "its own page. Programs send the token instead.",
        )


def _ask_for_token(detail: str) -> Refusal:
    return Refusal(401, detail, headers={"www-authenticate": "Bearer"})
