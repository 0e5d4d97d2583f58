"""The shape of a plan -> a shape without cycles: tasks are t1, t2 and so on, and depend on earlier tasks only.

It is for servers of small models that turn a schema into a grammar: whatever the model writes is then a graph without
cycles, with valid and known ids.
"""

from __future__ import annotations

from typing import Any

MOST_TASKS = 12


def number_tasks(schema: dict[str, Any], most: int = MOST_TASKS) -> dict[str, Any]:
    """The schema with up to `most` tasks, each with an id of its own; `tasks` of the given one is a plain list."""
    task = schema["properties"]["tasks"]["items"]
    names = [f"t{number}" for number in range(1, most + 1)]
    definitions = {name: _with_number(task, name, names[:before]) for before, name in enumerate(names)}
    references = [{"$ref": f"#/$defs/{name}"} for name in names]
    lists = [_exactly(references[:count]) for count in range(1, most + 1)]
    properties = {**schema["properties"], "tasks": {"anyOf": lists}}
    return {**schema, "properties": properties, "$defs": {**schema.get("$defs", {}), **definitions}}


def _with_number(task: dict[str, Any], name: str, earlier: list[str]) -> dict[str, Any]:
    # The first has nothing to depend on.
    needs: dict[str, Any] = {"type": "array", "items": {"enum": earlier}} if earlier else _exactly([])
    return {**task, "properties": {**task["properties"], "id": {"enum": [name]}, "depends_on": needs}}


def _exactly(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
