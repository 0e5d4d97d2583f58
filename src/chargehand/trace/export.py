"""Events -> JSON lines, one event each, or one JSON document with the messages they name; secrets are redacted here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from chargehand.events import VERSION, Event, ModelCalled
from chargehand.text.escaping import dump_json
from chargehand.text.redaction import Redactor
from chargehand.trace.run_state import RunState

Blobs = Callable[[Iterable[str]], dict[str, bytes]]


def to_jsonl(events: Iterable[Event], redactor: Redactor) -> Iterator[str]:
    """One line per event, with a newline at its end, made lazily."""
    for event in events:
        yield dump_json(redactor.json(event.to_json())) + "\n"


def to_json(events: Iterable[Event], blobs: Blobs, redactor: Redactor) -> dict[str, Any]:
    """The whole record as one document; `blobs` is the journal's method of that name."""
    view = RunState()
    listed: list[Any] = []
    hashes: dict[str, None] = {}
    for event in events:
        view.apply(event)
        listed.append(redactor.json(event.to_json()))
        hashes.update(dict.fromkeys(_message_hashes(event)))
    found = blobs(hashes)
    return {
        "version": VERSION,
        "run": view.run,
        "summary": redactor.json(summary(view)),
        "events": listed,
        "messages": {digest: redactor.json(_message(found[digest])) for digest in hashes if digest in found},
    }


def summary(view: RunState) -> dict[str, Any]:
    """The figures of the run and of each task."""
    return {
        "status": view.status,
        "request": view.request,
        "team": view.team,
        "strategy": view.strategy,
        "started": view.started,
        "ended": view.ended,
        "elapsed_s": round(view.elapsed_seconds(), 6),
        "sessions": len(view.sessions),
        "calls": view.usage.calls,
        "tool_calls": view.tool_calls,
        "tokens": view.usage.tokens,
        "usd": view.usage.usd,
        "counts": view.counts(),
        "tasks": [
            {
                "id": task.id,
                "worker": task.worker,
                "status": view.status_of(task),
                "attempts": len(task.attempts),
                # As in `usage` of its outcome: calls of models.
                "calls": sum(call.kind == "model" for call in task.calls),
                "tool_calls": sum(call.kind == "tool" for call in task.calls),
                "tokens": task.tokens,
                "usd": task.usd,
                "started": task.started,
                "ended": task.ended,
                "reused": task.reused,
            }
            for task in view.tasks.values()
        ],
        "questions": list(view.questions.values()),
        "warnings": view.warnings,
    }


def _message_hashes(event: Event) -> list[str]:
    return event.body.messages if isinstance(event.body, ModelCalled) else []


def _message(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
