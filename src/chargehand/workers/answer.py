"""A worker's answer: the JSON schema its model is given, and the text it sends back read into one value."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import BeforeValidator, ConfigDict, ValidationError

from chargehand.answer import read_object
from chargehand.outcome import Claim, Confidence, Finding
from chargehand.schema import violations
from chargehand.value import JSON, Value

_CONFIDENCE: dict[str, Any] = {"type": ["integer", "null"], "minimum": 0, "maximum": 100}
_SOURCES: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_CLAIM: dict[str, Any] = {
    "type": "object",
    "properties": {"statement": {"type": "string"}, "confidence": _CONFIDENCE, "sources": _SOURCES},
    "required": ["statement"],
}
_FINDING: dict[str, Any] = {
    "type": "object",
    "properties": {
        "severity": {"enum": ["critical", "warning", "info"]},
        "category": {"type": "string"},
        "path": {"type": ["string", "null"]},
        "line": {"type": ["integer", "null"]},
        "end_line": {"type": ["integer", "null"]},
        "message": {"type": "string"},
        "suggestion": {"type": ["string", "null"]},
        "confidence": _CONFIDENCE,
        "sources": _SOURCES,
    },
    "required": ["message"],
}


def answer_schema(output: dict[str, Any] | None) -> dict[str, Any]:
    """The JSON schema of a worker's answer; `output` is the worker's own, anything without one."""
    return {
        "type": "object",
        "properties": {
            "summary": {"type": "string"},
            "output": output if output is not None else {},
            "claims": {"type": "array", "items": _CLAIM},
            "findings": {"type": "array", "items": _FINDING},
            "confidence": _CONFIDENCE,
        },
        "required": ["summary", "output"],
    }


def _known_fields(shape: type[Value]) -> BeforeValidator:
    """Only the fields the shape has, and only those that say something: what a model adds besides is not an error."""
    fields = frozenset(shape.model_fields)

    def known(data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        items = cast("dict[str, Any]", data)
        return {name: value for name, value in items.items() if name in fields and value is not None}

    return BeforeValidator(known)


def _whole(value: Any) -> Any:
    """Models write 87.5 and 0.87 where 88 and 87 are meant."""
    if isinstance(value, float):
        return round(value * 100 if 0 < value < 1 else value)
    return value


def _empty(value: Any) -> Any:
    return () if value is None else value


class Answer(Value):
    """What a worker answered, in the agreed shape."""

    model_config = ConfigDict(extra="ignore")

    summary: str
    output: JSON
    claims: Annotated[tuple[Annotated[Claim, _known_fields(Claim)], ...], BeforeValidator(_empty)] = ()
    findings: Annotated[tuple[Annotated[Finding, _known_fields(Finding)], ...], BeforeValidator(_empty)] = ()
    confidence: Annotated[Confidence | None, BeforeValidator(_whole)] = None


def read_answer(text: str, output_schema: dict[str, Any] | None) -> tuple[Answer | None, list[str]]:
    """The answer in a text, or None and what to tell the model."""
    if not text.strip():
        return None, ["the answer is empty"]
    try:
        answer = Answer.model_validate_json(text)
    except ValidationError:
        data, problems = read_object(text)
        if data is None:
            return None, problems
        try:
            answer = Answer.model_validate(data)
        except ValidationError as error:
            return None, [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)[:20]]
    if output_schema is not None and (wrong := violations(answer.output, output_schema)):
        return None, [f"output: {problem}" for problem in wrong]
    return answer, []
