"""The run page for a browser: its frame at `/` and for every run, and the files that draw it."""

from __future__ import annotations

from starlette.responses import Response

from chargehand.errors import RunNotFound
from chargehand.server.http_calls import Call
from chargehand.server.read_runs import find_run
from chargehand.server.refusals import Refusal
from chargehand.trace.pack_page import asset, live_page, page_modules

_HEADERS = {"cache-control": "no-store", "referrer-policy": "no-referrer", "x-frame-options": "DENY"}
_TYPES = {"css": "text/css", "js": "text/javascript"}


async def show_runs(call: Call) -> Response:
    """The list of runs."""
    return _frame(call)


async def show_run(call: Call) -> Response:
    """The page of one run; of one that is not there the page says so, with a way back."""
    try:
        await find_run(call)
    except RunNotFound:
        return _frame(call, 404)
    return _frame(call)


async def get_page_file(call: Call) -> Response:
    """A module or the style of the page."""
    name = call.path("name")
    if name not in ("style.css", *page_modules()):
        raise Refusal(404, "The page has no such file.")
    return Response(asset(name), headers={"cache-control": "no-cache"}, media_type=_TYPES[name.rsplit(".", 1)[1]])


def _frame(call: Call, status: int = 200) -> Response:
    root = str(call.request.scope.get("root_path", "")).rstrip("/")
    return Response(live_page(root), status, headers=_HEADERS, media_type="text/html")
