"""Runs -> pages for a browser: the list of runs, and the page of one run as `trace --format html` writes it."""

from __future__ import annotations

from html import escape

from starlette.responses import Response

from chargehand.apps.shown_report import export_run
from chargehand.record.index import RunInfo
from chargehand.server.calls import Call
from chargehand.server.read_runs import find_run
from chargehand.server.run_list import RunsQuery
from chargehand.text.escaping import show_controls
from chargehand.trace.number_text import moment, short

_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
td:last-child { overflow-wrap: anywhere; }
.waiting { font-weight: 600; }
"""


async def show_runs(call: Call) -> Response:
    """The list of runs, those that wait for a person first."""
    query = call.query(RunsQuery).model_copy(update={"needs_you": "true"})
    page, more = await call.server.reading.run(call.server.run_list.find, query)
    root = str(call.request.scope.get("root_path", "")).rstrip("/")
    rows = "".join(_row(info, root) for info in page)
    table = f"<table><tr><th>Run<th>Status<th>Started<th>Team<th>Request</tr>{rows}</table>"
    older = f'<p><a href="?before={escape(page[-1].run)}">Older runs</a></p>' if more else ""
    body = table + older if page else "<p>There are no runs here yet.</p>"
    html = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Runs · chargehand</title><style>{_STYLE}</style><h1>Runs</h1>{body}</html>"
    )
    return Response(show_controls(call.server.redactor.text(html)), headers=_HEADERS, media_type="text/html")


async def show_run(call: Call) -> Response:
    """The page of one run."""
    server, run = call.server, await find_run(call)
    html = await server.reading.run(lambda: "".join(export_run(server.source, run, "html", server.redactor)))
    # The page itself names the style and the script that it allows.
    headers = {"cache-control": "no-store", "referrer-policy": "no-referrer", "x-frame-options": "DENY"}
    return Response(html, headers=headers, media_type="text/html")


def _row(info: RunInfo, root: str) -> str:
    words = "waiting for you" if info.status == "waiting" else info.status
    return (
        f'<tr><td><a href="{escape(root)}/runs/{escape(info.run)}">{escape(info.run)}</a>'
        f'<td class="{escape(info.status)}">{escape(words)}<td>{escape(moment(info.started))}'
        f"<td>{escape(info.team or '')}<td>{escape(short(info.request, 160))}</tr>"
    )
