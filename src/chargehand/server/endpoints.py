"""The table of endpoints below /api/v1: what each takes and gives. Routes and the OpenAPI document are made from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from starlette.responses import Response

from chargehand.runs.send_order import SentOrder
from chargehand.server import change_runs, read_runs, steer_runs
from chargehand.server.begin_runs import PlanRequest, ReviewRequest, StartRun
from chargehand.server.change_runs import AnswerQuestion, CheckRequest, ForkRun, Nothing, RerunRun, ResumeRun
from chargehand.server.checked_input import Input
from chargehand.server.http_calls import Call
from chargehand.server.read_runs import DiffQuery, EventsQuery, StateQuery, TraceQuery
from chargehand.server.run_list import RunsQuery
from chargehand.server.steer_runs import RestartTask, StopTask, TellTask
from chargehand.values.report import Report
from chargehand.values.run_diff import RunDiff

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
        "needs_you": {"type": "boolean"},
        "waits_for": {"enum": ["person", "provider", "resume", None]},
        "figures": {
            "type": ["object", "null"],
            "properties": {
                "tasks": {"type": "integer"},
                "done": {"type": "integer"},
                "tokens": {"type": "integer"},
                "usd": {"type": ["number", "null"]},
                "gaps": {"type": "integer"},
                "questions": {"type": "integer"},
                "budget": {"type": "object"},
            },
        },
    },
    "required": ["run", "started", "ended", "status", "request", "team", "parent", "needs_you", "waits_for", "figures"],
}
_WAITING: Schema = {
    "type": "object",
    "properties": {"until": {"type": "number"}, "provider": _TEXT},
    "required": ["until", "provider"],
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


class Success(NamedTuple):
    """What an endpoint returns on success."""

    schema: Schema
    status: int = 200
    media: str = "application/json"
    # Another status with the same answer.
    also: int | None = None


class Operation(NamedTuple):
    """One method at one address. Its summary is the first line of the handler's docstring."""

    method: str
    path: str
    handle: Handler
    answer: Success
    query: type[Input] | None = None
    body: type[Input] | None = None
    # Statuses of problems in addition to those that any endpoint may return.
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
    """The JSON schema of the report, with its definitions inside."""
    schema = Report.model_json_schema(mode="serialization")
    schema["properties"]["waiting"] = _WAITING
    schema["properties"]["questions"] = {"type": "array", "items": _QUESTION}
    return schema


_STATE: Schema = {
    "type": "object",
    "properties": {"run": _TEXT, "seq": {"type": "integer"}, "status": _TEXT, "tasks": {"type": "array"}},
    "required": ["run", "seq", "status", "request", "tasks", "questions", "usage", "counts"],
}
_OBJECT: Schema = {"type": "object"}
_STARTED = Success({"type": "object", "properties": {"run": _TEXT}, "required": ["run"]}, status=202)
_RESUMED = Success(
    {"type": "object", "properties": {"run": _TEXT, "note": _TEXT}, "required": ["run"]},
    status=202,
    # Nothing is tried, and `note` says why.
    also=200,
)
# 202 instead: the order was sent, and the process that owns the run has not taken it yet.
_ORDERED = Success(SentOrder.model_json_schema(mode="serialization"), also=202)
_CHECKED: Schema = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "problems": {"type": "array", "items": _OBJECT}},
    "required": ["ok", "problems"],
}

ENDPOINTS: tuple[Operation, ...] = (
    Operation("GET", "/runs", read_runs.list_runs, Success(_runs()), query=RunsQuery),
    Operation("GET", "/runs/{run}", read_runs.get_run, Success(_report()), problems=(404, 409)),
    Operation("GET", "/runs/{run}/state", read_runs.get_state, Success(_STATE), query=StateQuery, problems=(404, 409)),
    Operation(
        "GET",
        "/runs/{run}/events",
        read_runs.get_events,
        Success(_TEXT, media="application/jsonl"),
        query=EventsQuery,
        problems=(404, 409),
    ),
    Operation(
        "GET",
        "/runs/{run}/stream",
        read_runs.stream_events,
        Success(_TEXT, media="text/event-stream"),
        query=EventsQuery,
        problems=(404, 409),
    ),
    Operation(
        "GET",
        "/runs/{run}/trace",
        read_runs.get_trace,
        Success({}, media="application/json, application/jsonl, text/html"),
        query=TraceQuery,
        problems=(404, 409),
    ),
    Operation(
        "GET", "/runs/{run}/files", read_runs.list_files, Success(list_of("files", _OBJECT)), problems=(404, 409)
    ),
    Operation(
        "GET",
        "/runs/{run}/files/{name}",
        read_runs.get_file,
        Success(_TEXT, media="application/octet-stream"),
        problems=(404, 409),
    ),
    # 404: the run that `follow_up` names.
    Operation("POST", "/runs", change_runs.start_run, _STARTED, body=StartRun, problems=(404, 409, 429)),
    Operation("POST", "/review", change_runs.start_review, _STARTED, body=ReviewRequest, problems=(409, 429)),
    Operation("POST", "/runs/{run}/resume", change_runs.resume_run, _RESUMED, body=ResumeRun, problems=(404, 409, 429)),
    Operation("POST", "/runs/{run}/fork", change_runs.fork_run, _STARTED, body=ForkRun, problems=(404, 409, 429)),
    Operation("POST", "/runs/{run}/rerun", change_runs.rerun_run, _STARTED, body=RerunRun, problems=(404, 409, 429)),
    Operation(
        "POST",
        "/runs/{run}/answers/{question}",
        change_runs.answer_question,
        Success(_OBJECT),
        body=AnswerQuestion,
        problems=(404, 409),
    ),
    Operation(
        "POST", "/runs/{run}/cancel", change_runs.cancel_run, Success(_OBJECT), body=Nothing, problems=(404, 409)
    ),
    Operation("POST", "/runs/{run}/pause", steer_runs.pause_run, _ORDERED, body=Nothing, problems=(404, 409)),
    Operation(
        "POST", "/runs/{run}/tasks/{task:path}/stop", steer_runs.stop_task, _ORDERED, body=StopTask, problems=(404, 409)
    ),
    Operation(
        "POST",
        "/runs/{run}/tasks/{task:path}/restart",
        steer_runs.restart_task,
        _ORDERED,
        body=RestartTask,
        problems=(404, 409, 429),
    ),
    Operation(
        "POST", "/runs/{run}/tasks/{task:path}/tell", steer_runs.tell_task, _ORDERED, body=TellTask, problems=(404, 409)
    ),
    Operation("POST", "/plan", change_runs.make_plan, Success(_OBJECT), body=PlanRequest),
    Operation("POST", "/check", change_runs.check_plan, Success(_CHECKED), body=CheckRequest),
    Operation(
        "GET",
        "/diff",
        read_runs.diff_runs,
        Success(RunDiff.model_json_schema(mode="serialization")),
        query=DiffQuery,
        problems=(404, 409),
    ),
    Operation("GET", "/teams", read_runs.list_teams, Success(list_of("teams", _OBJECT))),
    Operation("GET", "/models", read_runs.list_models, Success(list_of("models", _OBJECT))),
)
