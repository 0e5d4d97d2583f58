"""The table of endpoints below /api/v1: what each takes and gives. Routes and the OpenAPI document are made from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from starlette.responses import Response

from chargehand.server import change_runs, read_runs
from chargehand.server.calls import Call
from chargehand.server.change_runs import (
    AnswerText,
    CheckRequest,
    Nothing,
    PlanRequest,
    RerunRun,
    ResumeRun,
    ReviewRequest,
    StartRun,
)
from chargehand.server.checked_input import Input
from chargehand.server.read_runs import EventsQuery, StateQuery, TraceQuery
from chargehand.server.run_list import RunsQuery
from chargehand.values.report import Report

PREFIX = "/api/v1"
Handler: TypeAlias = Callable[[Call], Awaitable[Response]]
Schema: TypeAlias = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_SECONDS: Schema = {"type": ["number", "null"]}
_RUN_INFO: Schema = {
    "type": "object",
    "properties": {
        "run": _TEXT,
        "started": {"type": "number"},
        "ended": _SECONDS,
        "status": _TEXT,
        "request": _TEXT,
        "team": {"type": ["string", "null"]},
        "parent": {"type": ["string", "null"]},
    },
    "required": ["run", "started", "ended", "status", "request", "team", "parent"],
}
_QUESTION: Schema = {
    "type": "object",
    "properties": {
        "id": _TEXT,
        "kind": {"enum": ["plan", "escalation", "tool", "task"]},
        "prompt": _TEXT,
        "schema": {"type": ["object", "null"]},
    },
    "required": ["id", "kind", "prompt", "schema"],
}


class Answer(NamedTuple):
    """What an endpoint gives when nothing is wrong."""

    schema: Schema
    status: int = 200
    media: str = "application/json"


class Endpoint(NamedTuple):
    """One method at one address. Its summary is the first line of the handler's docstring."""

    method: str
    path: str
    handle: Handler
    answer: Answer
    query: type[Input] | None = None
    body: type[Input] | None = None
    # Statuses of problems besides those any endpoint may give.
    problems: tuple[int, ...] = ()

    @property
    def summary(self) -> str:
        return (self.handle.__doc__ or "").strip().splitlines()[0]


def list_of(name: str, item: Schema) -> Schema:
    return {"type": "object", "properties": {name: {"type": "array", "items": item}}, "required": [name]}


def _runs() -> Schema:
    listed = list_of("runs", _RUN_INFO)
    listed["properties"]["next"] = {"type": ["string", "null"]}
    return listed


def _report() -> Schema:
    """The report as JSON schema; what it refers to is inside of it."""
    schema = Report.model_json_schema(mode="serialization")
    schema["properties"]["questions"] = {"type": "array", "items": _QUESTION}
    return schema


_STATE: Schema = {
    "type": "object",
    "properties": {"run": _TEXT, "seq": {"type": "integer"}, "status": _TEXT, "tasks": {"type": "array"}},
    "required": ["run", "seq", "status", "request", "tasks", "questions", "usage", "counts"],
}
_OBJECT: Schema = {"type": "object"}
_STARTED = Answer({"type": "object", "properties": {"run": _TEXT}, "required": ["run"]}, status=202)
_CHECKED: Schema = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "problems": {"type": "array", "items": _OBJECT}},
    "required": ["ok", "problems"],
}

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/runs", read_runs.list_runs, Answer(_runs()), query=RunsQuery),
    Endpoint("GET", "/runs/{run}", read_runs.get_run, Answer(_report()), problems=(404, 409)),
    Endpoint("GET", "/runs/{run}/state", read_runs.get_state, Answer(_STATE), query=StateQuery, problems=(404, 409)),
    Endpoint(
        "GET",
        "/runs/{run}/events",
        read_runs.get_events,
        Answer(_TEXT, media="application/jsonl"),
        query=EventsQuery,
        problems=(404, 409),
    ),
    Endpoint(
        "GET",
        "/runs/{run}/stream",
        read_runs.stream_events,
        Answer(_TEXT, media="text/event-stream"),
        query=EventsQuery,
        problems=(404, 409),
    ),
    Endpoint(
        "GET",
        "/runs/{run}/trace",
        read_runs.get_trace,
        Answer({}, media="application/json, application/jsonl, text/html"),
        query=TraceQuery,
        problems=(404, 409),
    ),
    Endpoint("GET", "/runs/{run}/files", read_runs.list_files, Answer(list_of("files", _OBJECT)), problems=(404, 409)),
    Endpoint(
        "GET",
        "/runs/{run}/files/{name}",
        read_runs.get_file,
        Answer(_TEXT, media="application/octet-stream"),
        problems=(404, 409),
    ),
    Endpoint("POST", "/runs", change_runs.start_run, _STARTED, body=StartRun, problems=(409, 429)),
    Endpoint("POST", "/review", change_runs.start_review, _STARTED, body=ReviewRequest, problems=(409, 429)),
    Endpoint("POST", "/runs/{run}/resume", change_runs.resume_run, _STARTED, body=ResumeRun, problems=(404, 409, 429)),
    Endpoint("POST", "/runs/{run}/rerun", change_runs.rerun_run, _STARTED, body=RerunRun, problems=(404, 409, 429)),
    Endpoint(
        "POST",
        "/runs/{run}/answers/{question}",
        change_runs.answer_question,
        Answer(_OBJECT),
        body=AnswerText,
        problems=(404, 409),
    ),
    Endpoint("POST", "/runs/{run}/cancel", change_runs.cancel_run, Answer(_OBJECT), body=Nothing, problems=(404, 409)),
    Endpoint("POST", "/plan", change_runs.make_plan, Answer(_OBJECT), body=PlanRequest),
    Endpoint("POST", "/check", change_runs.check_plan, Answer(_CHECKED), body=CheckRequest),
    Endpoint("GET", "/teams", read_runs.list_teams, Answer(list_of("teams", _OBJECT))),
    Endpoint("GET", "/models", read_runs.list_models, Answer(list_of("models", _OBJECT))),
)
