"""What a workflow puts on the record, carried by a step -> events, with the words that the workflow cannot know."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from chargehand.engine.temporal.step_order import ORDER_MARK, StepOrder, read_head
from chargehand.events import Event, TaskEnded, read_body
from chargehand.runs.temporal.stored_run import StoredOutcomes

# As `why_mark` makes it.
_MARK = re.compile("\x02([^\x03]*)\x03")


def marked_refs(notes: list[list[Any]]) -> list[str]:
    """The outcomes whose texts are in notes as marks."""
    found: dict[str, None] = {}

    def note_ref(mark: re.Match[str]) -> str:
        if not ORDER_MARK.fullmatch(mark[0]):
            found[mark[1]] = None
        return mark[0]

    for kind, _, _, fields, _ in notes:
        if kind != "task_ended":  # its head names what it refers to
            _replace_marks(fields, note_ref)
    return list(found)


def notes_as_events(order: StepOrder, outcomes: StoredOutcomes) -> list[Event]:
    """The notes in their order; `outcomes` holds what they refer to."""
    return [_as_event(order.run, note, outcomes) for note in order.notes]


def _as_event(run: str, note: list[Any], outcomes: StoredOutcomes) -> Event:
    kind, task, attempt, fields, at = note
    if kind == "task_ended":
        outcome = outcomes.end(task, read_head(fields))
        return Event(run, 0, at, task, attempt, TaskEnded(outcome=outcome.to_json()))

    def words(mark: re.Match[str]) -> str:
        return outcomes.with_reasons(mark[0]) if ORDER_MARK.fullmatch(mark[0]) else outcomes.at(mark[1]).summary

    said = _replace_marks(fields, words)
    return Event(run, 0, at, task, attempt, read_body(kind, said))


def _replace_marks(value: Any, words: Callable[[re.Match[str]], str]) -> Any:
    match value:
        case str():
            return _MARK.sub(words, value)
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {name: _replace_marks(each, words) for name, each in items}
        case list() | tuple():
            return [_replace_marks(each, words) for each in cast("list[Any]", value)]
        case _:
            return value
