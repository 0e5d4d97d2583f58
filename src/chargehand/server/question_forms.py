"""A question to a person -> a form with flat fields, as MCP clients show it; the filled form -> words of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chargehand.engine.people import describe_question
from chargehand.server.refusals import Refusal
from chargehand.text.escaping import show_controls
from chargehand.text.redaction import Redactor
from chargehand.values.effect import Question

LONGEST_MESSAGE = 6_000


def form_message(run: str, question: Question, redactor: Redactor, wrong: str = "") -> str:
    """What the person reads; `wrong` is what was wrong with the last answer."""
    text = show_controls(redactor.text(describe_question(question)))
    if len(text) > LONGEST_MESSAGE:
        text = f"{text[:LONGEST_MESSAGE]}\n[cut: chargehand show {run} has all of it]"
    note = f"\n\nThe last answer was not taken: {wrong}" if wrong else ""
    return f"chargehand run {run} asks you:\n\n{text}{note}"


def form_schema(question: Question) -> dict[str, Any]:
    """The fields of the form."""
    if question.kind == "tool" and question.answer_schema is not None:
        return _form(
            ["decision"],
            decision={"type": "string", "title": "Did it happen?", "enum": ["happened", "send", "give up"]},
            result={"type": "string", "title": "What it returned, if it happened and you know"},
        )
    if question.kind in ("plan", "tool"):
        return _form(
            ["decision"],
            decision={"type": "string", "title": "Decision", "enum": ["approve", "reject"]},
            reason={"type": "string", "title": "Reason, if rejected"},
        )
    return _form(["answer"], answer={"type": "string", "title": "Answer"})


def words_of(question: Question, filled: Mapping[str, Any]) -> str:
    """The filled form as a person would have typed it; Refusal when a field is missing."""
    field = "answer" if question.kind in ("escalation", "task") else "decision"
    said = filled.get(field)
    allowed = form_schema(question)["properties"][field].get("enum")
    if not isinstance(said, str) or not said.strip() or (allowed is not None and said not in allowed):
        raise Refusal(422, f"The form has no usable {field}{f': one of {allowed}' if allowed else ''}.")
    more = {"reject": "reason", "happened": "result"}.get(said) if allowed else None
    addition = filled.get(more) if more else None
    return f"{said} {addition}".strip() if isinstance(addition, str) else said


def _form(required: list[str], **fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": required}
