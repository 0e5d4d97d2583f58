"""The ASGI application: every request is checked, counted and answered by an endpoint, a page or a problem."""

from __future__ import annotations

import time
from collections import Counter

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chargehand.engine.engine_session import caller_header
from chargehand.errors import ChargehandError
from chargehand.server import chat_completions, openai_models, responses, send_page
from chargehand.server.access import Guard, path_below_root
from chargehand.server.endpoints import ENDPOINTS, PREFIX, Handler
from chargehand.server.http_calls import LONGEST_QUERY, Call
from chargehand.server.log_lines import LogLines
from chargehand.server.mcp_http import McpEndpoint
from chargehand.server.metrics import MEDIA_TYPE
from chargehand.server.openapi import describe_api
from chargehand.server.read_runs import json_response
from chargehand.server.refusals import TITLES, Refusal, error_response, refusal_of
from chargehand.server.shared_state import Server

# A root path that begins like one of the server's own addresses cannot be distinguished from it.
_OWN_PATHS = ("/api", "/runs", "/page")


def make_app(server: Server) -> ASGIApp:
    """The application of a server, as uvicorn runs it."""

    def route(path: str, method: str, handle: Handler) -> BaseRoute:
        async def answer(request: Request) -> Response:
            return await handle(Call(server, request))

        return Route(path, answer, methods=[method])

    mcp = McpEndpoint(server)
    server.closing.append(mcp.close)
    routes = [
        *(route(PREFIX + each.path, each.method, each.handle) for each in ENDPOINTS),
        route(f"{PREFIX}/openapi.json", "GET", _get_description),
        route("/healthz", "GET", _get_health),
        route("/metrics", "GET", _get_metrics),
        route("/", "GET", send_page.show_runs),
        route("/runs/{run}", "GET", send_page.show_run),
        route("/page/{name}", "GET", send_page.get_page_file),
        Route("/mcp", mcp),
        route("/v1/models", "GET", openai_models.list_models),
        route("/v1/models/{name:path}", "GET", openai_models.get_model),
        route("/v1/chat/completions", "POST", chat_completions.complete_chat),
        route("/v1/responses", "POST", responses.create_response),
        route("/v1/responses/{id}", "GET", responses.get_response),
        route("/v1/responses/{id}/cancel", "POST", responses.cancel_response),
        route("/v1/conversations", "POST", responses.create_conversation),
        route("/v1/conversations/{id}", "GET", responses.get_conversation),
    ]
    router = Router(routes, redirect_slashes=False, default=_not_found)
    return _Counted(Guard(_Refusing(router, server.log), server.access), server)


async def _get_description(call: Call) -> Response:
    return json_response(describe_api(ENDPOINTS))


async def _get_health(call: Call) -> Response:
    return PlainTextResponse("ok\n")


async def _get_metrics(call: Call) -> Response:
    server = call.server
    runs = Counter(info.status for info in await server.reading.run(server.run_list.load))
    gauges = {
        "runs_under_way": ("Runs that this server carries out.", float(server.started.under_way)),
        "runs_queued": ("Runs that wait for their turn.", float(server.started.queued)),
        "watchers": ("Streams of events that are open.", float(server.feeds.watchers)),
        "events_sent": ("Events sent to watchers.", float(server.feeds.sent)),
    }
    return PlainTextResponse(server.metrics.render(gauges, runs), media_type=MEDIA_TYPE)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    raise Refusal(404, f"There is nothing at {str(scope['path'])[:200]}: {PREFIX}/openapi.json lists what there is.")


class _Refusing:
    """Turns errors into problems. An unexpected error is logged with its traceback."""

    def __init__(self, app: ASGIApp, log: LogLines) -> None:
        self._app = app
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False
        accepted = Headers(scope=scope).get("accept", "")
        # Starlette raises an error for a wrong method only inside an application.
        scope["app"] = self

        async def note_and_send(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            if len(scope.get("query_string", b"")) > LONGEST_QUERY:
                raise Refusal(414, f"The query is longer than {LONGEST_QUERY:,} characters: ask for less at once.")
            await self._app(scope, receive, note_and_send)
        except (Refusal, ChargehandError, HTTPException) as error:
            if begun:
                self._log.write("answer broken off", path=scope["path"], error=str(error))
                raise
            await error_response(_refusal(error), path_below_root(scope), accepted)(scope, receive, send)
        except Exception as error:  # recorded: it is logged, and the caller gets a problem
            self._log_unexpected(scope, error)
            if begun:
                raise
            detail = f"{type(error).__name__}. The log of the server has the details; please report it."
            await error_response(Refusal(500, detail), path_below_root(scope), accepted)(scope, receive, send)

    def _log_unexpected(self, scope: Scope, error: Exception) -> None:
        import traceback

        self._log.write("error", path=scope["path"], traceback="".join(traceback.format_exception(error)))


def _refusal(error: Refusal | ChargehandError | HTTPException) -> Refusal:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, HTTPException):
        status = error.status_code if error.status_code in TITLES else 400
        allowed = (error.headers or {}).get("Allow")
        return Refusal(status, f"{error.detail}.{f' Allowed: {allowed}.' if allowed else ''}", headers=error.headers)
    return refusal_of(error)


def _below_one_root(scope: Scope) -> Scope:
    """The request without the root path: some proxies remove it, others keep it."""
    root = str(scope.get("root_path", "")).rstrip("/")
    if not root or root.startswith(_OWN_PATHS) or not path_below_root(scope).startswith(f"{root}/"):
        return scope
    return {**scope, "path": path_below_root(scope)}


class _Counted:
    """Counts and logs answers."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0
        scope = _below_one_root(scope)
        # A run that this request starts is part of the caller's trace.
        caller_header.set(Headers(scope=scope).get("traceparent"))

        async def note_and_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._server.metrics.count(scope["method"], status)
            await send(message)

        try:
            await self._app(scope, receive, note_and_send)
        finally:
            path = path_below_root(scope)
            if path not in ("/healthz", "/metrics"):
                ms = round(1000 * (time.monotonic() - began), 1)
                # Without the query: it may hold a token.
                self._server.log.write_request(scope["method"], path, status, ms)
