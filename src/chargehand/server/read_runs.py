"""Endpoints that read: runs, reports, states, events, exports, files, teams and models, all without secrets."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from pydantic import Field
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import FileResponse, Response, StreamingResponse

from chargehand.apps.shown_report import TraceForm, export_run, questions_json, read_report, waiting_json
from chargehand.record.index import RunInfo
from chargehand.server.checked_input import Input
from chargehand.server.client_runs import find_run_of
from chargehand.server.event_stream import EventStream
from chargehand.server.http_calls import Call
from chargehand.server.refusals import Refusal
from chargehand.server.run_list import RunList, RunsQuery
from chargehand.server.shared_state import Server
from chargehand.settings.model_table import describe_models
from chargehand.text.escaping import dump_json
from chargehand.trace import to_jsonl

_LARGEST_SEQ = 2**53


class EventsQuery(Input):
    after: int = Field(default=0, ge=0, le=_LARGEST_SEQ)


class StateQuery(Input):
    """`since` leaves out tasks that no later event touched; `task` asks for all about one task instead."""

    since: int = Field(default=0, ge=0, le=_LARGEST_SEQ)
    task: str | None = Field(default=None, max_length=1_000)


class DiffQuery(Input):
    """Two runs: ids, beginnings of them, or `last`."""

    a: str = Field(min_length=1, max_length=80)
    b: str = Field(min_length=1, max_length=80)


class TraceQuery(Input):
    format: TraceForm = "json"


async def list_runs(call: Call) -> Response:
    """Runs, newest first. `figures` of a run is null until they are counted: ask again."""
    query = call.query(RunsQuery)
    page, more = await call.server.reading.run(call.server.run_list.find, query)
    figures = await call.server.reading.run(call.server.figures.read, page)
    waits = await call.server.reading.run(_waits_of, call.server.run_list, page)
    listed = [info.to_json() | waits[info.run] | {"figures": figures.get(info.run)} for info in page]
    runs = [call.server.redactor.json(each) for each in listed]
    return json_response({"runs": runs, "next": page[-1].run if more else None})


async def diff_runs(call: Call) -> Response:
    """What differs between the runs `a` and `b`: plans, tasks, cost, time and answers."""
    query = call.query(DiffQuery)
    found = await call.server.reading.run(call.server.supervisor.diff, query.a, query.b)
    whole = call.server.redactor.json(found.to_json())
    for side in ("a", "b"):
        whole["answer"][side] = call.server.redactor.redact_delivered(getattr(found.answer, side))
    return json_response(whole)


async def get_run(call: Call) -> Response:
    """The report of a run as it is now, with the questions that are open."""
    return json_response(await read_run(call.server, await find_run(call)))


async def read_run(server: Server, run: str) -> dict[str, Any]:
    """The report of a run as it is now, without secrets, with the questions that are open."""
    report, questions = await server.reading.run(read_report, server.source, run)
    waiting = await server.reading.run(waiting_json, server.source, run, report["status"])
    whole = server.redactor.json(report | {"questions": questions_json(questions)} | waiting)
    # The caller asked for the answer and its data: only what is certainly a secret is removed from them.
    for name in ("answer", "data"):
        if report.get(name) is not None:
            whole[name] = server.redactor.redact_delivered(report[name])
    return whole


async def get_state(call: Call) -> Response:
    """The state of a run as of event `seq`, as its page draws it; or, with `task`, all about one task."""
    query = call.query(StateQuery)
    run = await find_run(call)
    server = call.server
    if query.task is None:
        text = await server.reading.run(server.states.read, run, query.since)
        # The page counts from the server's time, whatever the clock of its reader says.
        return json_text(f'{{"now": {time.time():.3f}, {text[1:]}')
    detail = await server.reading.run(server.states.read_task, run, query.task)
    if detail is None:
        raise Refusal(404, f"Run {run} has no task {query.task[:80]}: GET .../state lists those it has.")
    return json_text(detail)


async def get_events(call: Call) -> Response:
    """The events of a run after `after`, one JSON document a line."""
    after = call.query(EventsQuery).after
    server, run = call.server, await find_run(call)
    lines = to_jsonl(server.source.events(run, after), server.redactor)
    first = await server.reading.run(_take, lines)
    return StreamingResponse(iterate_in_threadpool(_batches(lines, first)), media_type="application/jsonl")


async def stream_events(call: Call) -> Response:
    """Server-sent events: those after Last-Event-ID, or `after`, then each new one as it is committed."""
    after = call.query(EventsQuery).after
    run = await find_run(call)
    given = call.request.headers.get("last-event-id", "")
    if given:
        if not given.isdecimal() or not given.isascii() or int(given[:20]) > _LARGEST_SEQ:
            raise Refusal(422, f"Last-Event-ID is {given[:60]!r}: it is the number of the last event you have.")
        after = int(given)
    newest = await call.server.feeds.last_event(run)
    if after > newest:
        raise Refusal(
            422,
            f"Event {after} of run {run} is not there yet: the last one is {newest}. Leave Last-Event-ID out to begin "
            "with the first.",
        )
    return EventStream(call.server.feeds, run, after, newest)


async def get_trace(call: Call) -> Response:
    """The record of a run as one JSON document, JSON lines, a page, or spans of OpenTelemetry."""
    form = call.query(TraceQuery).format
    server, run = call.server, await find_run(call)
    parts = export_run(server.source, run, form, server.redactor)
    first = await server.reading.run(_take, parts)
    media = {"jsonl": "application/jsonl", "html": "text/html"}.get(form, "application/json")
    ending = "otlp.json" if form == "otlp" else form
    headers = {"content-disposition": f'attachment; filename="chargehand-{run}.{ending}"'}
    return StreamingResponse(iterate_in_threadpool(_batches(parts, first)), headers=headers, media_type=media)


async def list_files(call: Call) -> Response:
    """The documents that workers of a run wrote."""
    run = await find_run(call)
    documents = await call.server.reading.run(call.server.source.documents, run)
    return json_response({"files": [{"name": path.name, "bytes": path.stat().st_size} for path in documents]})


async def get_file(call: Call) -> Response:
    """A document that a worker of a run wrote."""
    run, name = await find_run(call), call.path("name")
    documents = await call.server.reading.run(call.server.source.documents, run)
    # Looked up among existing documents, so that no name can lead elsewhere.
    found = next((path for path in documents if path.name == name), None)
    if found is None:
        raise Refusal(404, f"Run {run} has no file of that name: GET .../files lists those it has.")
    return FileResponse(
        found, media_type="application/octet-stream", filename=name, headers={"content-security-policy": "sandbox"}
    )


async def list_teams(call: Call) -> Response:
    """The teams that runs can be started with."""
    teams = await call.server.reading.run(call.server.offered.describe_teams)
    return json_response({"teams": call.server.redactor.json(teams)})


async def list_models(call: Call) -> Response:
    """The model of each role, its price and whether its key is set; `offered` are the names that runs can be given."""
    server = call.server
    found = await server.reading.run(describe_models, server.supervisor.settings, os.environ)
    return json_response(server.redactor.json(found | {"offered": list(server.offered.models)}))


def _waits_of(runs: RunList, page: list[RunInfo]) -> dict[str, dict[str, Any]]:
    waits = {info.run: runs.wait_of(info) for info in page}
    return {run: {"needs_you": wait == "person", "waits_for": wait} for run, wait in waits.items()}


async def find_run(call: Call) -> str:
    """The id of the run that the address names: an id, the beginning of just one, or `last`."""
    return await find_run_of(call.server, call.caller, call.path("run"))


def json_response(data: Any, status: int = 200) -> Response:
    return json_text(dump_json(data), status)


def json_text(text: str, status: int = 200) -> Response:
    return Response(text, status, {"cache-control": "no-store"}, "application/json")


def _take(parts: Iterator[str]) -> str:
    """The next parts as text. The first are taken before the response begins, to report a damaged record."""
    return "".join(islice(parts, 200))


def _batches(parts: Iterator[str], first: str) -> Iterator[str]:
    while first:
        yield first
        first = _take(parts)
