"""The table of endpoints -> the OpenAPI 3.1 document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from chargehand import __version__
from chargehand.server.endpoints import PREFIX, Operation
from chargehand.server.http_calls import Input
from chargehand.server.refusals import MEDIA_TYPE, TITLES

# Statuses that any request may get.
_ANYWHERE = (401, 403, 414, 421, 422, 503, 507)
_WITH_BODY = (400, 413)
_REFERENCES = "#/components/schemas/"
_PROBLEM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "problems": {"type": "array"},
    },
    "required": ["type", "title", "status", "detail"],
}


def describe_api(endpoints: Iterable[Operation]) -> dict[str, Any]:
    """The document."""
    schemas: dict[str, Any] = {"Problem": _PROBLEM}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        path = re.sub(r":\w+}", "}", PREFIX + endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "chargehand", "version": __version__, "description": "Runs of teams of LLM agents."},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


def _operation(endpoint: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    statuses = sorted({*_ANYWHERE, *endpoint.problems, *(_WITH_BODY if endpoint.body else ())})
    answer = endpoint.answer
    content = _contents(endpoint, schemas)
    operation: dict[str, Any] = {
        "operationId": getattr(endpoint.handle, "__name__", endpoint.path),
        "summary": endpoint.summary,
        "parameters": [*_path_parameters(endpoint.path), *_query_parameters(endpoint.query)],
        "responses": {
            **{
                str(status): {"description": endpoint.summary, "content": content}
                for status in (answer.status, answer.also)
                if status is not None
            },
            **{str(status): _problem(status) for status in statuses},
        },
    }
    if endpoint.body is not None:
        schema = _move_definitions(endpoint.body.model_json_schema(), schemas)
        operation["requestBody"] = {
            "required": bool(schema.get("required")),
            "content": {"application/json": {"schema": schema}},
        }
    return operation


def _contents(endpoint: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    media = endpoint.answer.media.split(", ")
    return {each: {"schema": _move_definitions(endpoint.answer.schema, schemas)} for each in media}


def _path_parameters(path: str) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{(\w+)", path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _query_parameters(query: type[Input] | None) -> Iterator[dict[str, Any]]:
    schema = query.model_json_schema() if query else {}
    for name, one in schema.get("properties", {}).items():
        # A parameter that is left out is null, and null cannot be written in a query.
        given = [each for each in one.get("anyOf", [one]) if each.get("type") != "null"]
        described = {key: value for key, value in given[0].items() if key != "title"}
        yield {"name": name, "in": "query", "required": False, "schema": described}


def _problem(status: int) -> dict[str, Any]:
    return {
        "description": TITLES[status],
        "content": {MEDIA_TYPE: {"schema": {"$ref": f"{_REFERENCES}Problem"}}},
    }


def _move_definitions(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """The schema, with its own definitions moved to those of the document."""
    found = _redirect_refs(schema)
    schemas.update(found.pop("$defs", {}))
    return found


def _redirect_refs(part: Any) -> Any:
    if isinstance(part, list):
        return [_redirect_refs(each) for each in part]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(part, dict):
        return part
    moved: dict[str, Any] = {str(key): _redirect_refs(value) for key, value in part.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(moved.get("$ref"), str):
        moved["$ref"] = moved["$ref"].replace("#/$defs/", _REFERENCES)
    return moved
