"""The text a worker's model sends back -> its result: text, JSON of a schema, or findings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar, cast

from chargehand.text.json_repair import read_json
from chargehand.text.json_schema import violations
from chargehand.text.optional_nulls import without_nulls
from chargehand.values.base import JSON
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.outcome import Claim, Finding, Severity

_CONFIDENCE: dict[str, Any] = {"type": ["integer", "null"], "minimum": 0, "maximum": 100}
_SOURCES: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
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


# What a worker that is asked for findings answers with.
FINDINGS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"summary": {"type": "string"}, "findings": {"type": "array", "items": _FINDING}},
    "required": ["summary", "findings"],
}


# Models' words for a severity -> ours. On other scales the top is critical, the middle warning and the rest info.
_SEVERITIES: dict[str, Severity] = {
    **dict.fromkeys(("critical", "high", "error", "severe", "fatal", "blocker"), "critical"),
    **dict.fromkeys(("warning", "warn", "medium", "moderate", "major"), "warning"),
    **dict.fromkeys(("info", "information", "low", "minor", "note", "notice", "hint", "suggestion", "nit"), "info"),
}
_NUMBER = lazy_regex(r"\s*(-?\d{1,9}(?:\.\d{1,9})?)\s*%?\s*")
_LINES = lazy_regex(r"\s*[Ll]?(\d{1,9})(?:\s*[-–:]\s*[Ll]?(\d{1,9}))?\s*")
# JSON and nothing else, in a fence or not: JSON in prose may be an example, and "[1] is ..." a citation.
_JSON_ONLY = lazy_regex(r"\s*+(?:```\w*+\s*+)?[{\[].*[}\]]\s*+(?:```\s*+)?", re.DOTALL)
# The beginning of an object: a text that begins like this was meant as JSON, even if it cannot be read.
_OBJECT = lazy_regex(r"\s*+(?:```\w*+\s*+)?\{\s*+\"")
_NEXT_OBJECT = lazy_regex(r"[`\s,]*+(?:json\s*+)?\{\s*+\"")
_EMPTY_JSON = lazy_regex(r"\s*+(?:```\w*+\s*+)?(?:null|\"\"|\{\s*+\}|\[\s*+\])\s*+(?:```\s*+)?")
# Thinking before the answer; some models leave out the tag that opens it.
_THINKING_ENDS = lazy_regex(r"</think(?:ing)?>\s*+", re.IGNORECASE)
# Words of a description of the shape that small models copy instead of writing a result.
_PLACEHOLDER = lazy_regex(r"\s*(?:<(?:markdown|summary|output|result|answer|text|string)>|\.\.\.|…)\s*", re.IGNORECASE)
_EMPTY: tuple[JSON, ...] = (None, "", {}, [])
# The fields of an answer that comes in parts: those that hold a result, and those that say something about it.
_RESULTS = frozenset({"output", "claims", "findings"})
_ABOUT = frozenset({"summary", "confidence"})
_LONGEST_SUMMARY = 300
# More claims than this are not read: no reader compares them all.
MOST_CLAIMS = 500


class Answer(NamedTuple):
    """What a worker answered, in the agreed shape. `corrected` says which optional parts were changed or left out."""

    summary: str
    output: JSON
    claims: tuple[Claim, ...] = ()
    findings: tuple[Finding, ...] = ()
    confidence: int | None = None
    # Whether it came as text: its statements and sources are in the output.
    is_text: bool = False
    corrected: tuple[str, ...] = ()


class Unusable(NamedTuple):
    """Why a text is not an answer, in words for the model. `empty`: there is no result in it to fall back on."""

    problems: tuple[str, ...]
    empty: bool = False


# Why an answer is not a result, for the model and for the record.
NOTHING = "it holds no result: output, claims and findings are all empty, and a summary alone is not a result"


def read_answer(text: str, output_schema: dict[str, Any] | None, *, wants_findings: bool = False) -> Answer | Unusable:
    """The result in a text: text as it is, JSON of the worker's own schema, or findings.

    An object with `summary` and `output`, and with `claims`, `findings` and `confidence` where there are any, is read
    too, whatever was asked for. Only what is required can make it unusable: the rest is corrected, or left out. Output,
    claims and findings may not all be empty. For a worker that was asked for findings, an empty list is a result.
    Everything that a schema allows is a result too. Claims alone become the output.
    """
    if not text.strip():
        return Unusable(("the answer is empty",), empty=True)
    found, problem = read_json(text)
    whole = problem is None and _JSON_ONLY.fullmatch(text) is not None
    if problem is None and isinstance(found, dict):
        data = cast("dict[str, JSON]", found)
        if _has_fields(data, output_schema) and (_OBJECT.match(text) or {"summary", "output"} <= data.keys()):
            answer = _read_fields(data, output_schema, wants_findings=wants_findings)
            if isinstance(answer, Answer) and _has_second(text):
                return answer._replace(corrected=(*answer.corrected, "another answer in the same text left out"))
            return answer
        if output_schema is None and whole and (what := _not_a_result(data)) is not None:
            return Unusable((what,), empty=True)
    if output_schema is not None:
        if problem is not None:
            return Unusable((problem,))
        if wrong := violations(found, output_schema):
            found = without_nulls(found, output_schema)
            if violations(found, output_schema):
                return Unusable(tuple(wrong))
        return Answer(summary=head(found), output=found)
    if wants_findings:
        return Unusable((problem or "findings: Field required",))
    if _EMPTY_JSON.fullmatch(text):
        return Unusable((NOTHING,), empty=True)
    if problem is not None and _OBJECT.match(text):
        return Unusable((problem,))
    if whole and _is_all_of(found, text):
        return Answer(summary=head(found), output=found)
    answer = as_text(text)
    if not answer.output:
        return Unusable(("there is nothing after the thinking",), empty=True)
    return Unusable((NOTHING,), empty=True) if _blank(answer.output) else answer


def as_text(text: str) -> Answer:
    """The result that is a text itself, without the thinking before it."""
    if (thinking := _THINKING_ENDS.search(text)) is not None:
        text = text[thinking.end() :]
    return Answer(summary=head(text), output=text.strip(), is_text=True)


def _has_second(text: str) -> bool:
    """Whether another object follows the first."""
    try:
        _, end = json.JSONDecoder().raw_decode(text, text.index("{"))
    except (ValueError, RecursionError):
        return False
    return _NEXT_OBJECT.match(text, end) is not None


def _is_all_of(found: JSON, text: str) -> bool:
    """Whether what was read is the whole text, and not the first of several pieces of it."""
    return 2 * len(json.dumps(found, ensure_ascii=False)) > len("".join(text.split()))


def _has_fields(data: dict[str, JSON], output_schema: dict[str, Any] | None) -> bool:
    """Whether an object is an answer with its parts in fields, and not itself the output that a schema asks for."""
    own: dict[str, Any] = (output_schema or {}).get("properties", {})
    return bool(data.keys() & _RESULTS - own.keys()) or data.keys() <= _ABOUT - own.keys()


def _not_a_result(data: dict[str, JSON]) -> str | None:
    """What small models wrote instead of a result, such as a copied schema; None where the object may be a result."""
    about = data.get("type") == "object" or "$schema" in data or "required" in data
    if about and isinstance(data.get("properties"), dict):
        return "it is a description of a shape and holds no result"
    if data.keys() == {"name", "arguments"} and isinstance(data["arguments"], dict):
        return "it is a call of a tool that is not offered, and not a result"
    return None


def _read_fields(
    data: dict[str, JSON], output_schema: dict[str, Any] | None, *, wants_findings: bool
) -> Answer | Unusable:
    summary, output = data.get("summary"), data.get("output")
    corrected: list[str] = []
    given = data.get("claims")
    some = cast("list[JSON]", given)[:MOST_CLAIMS] if isinstance(given, list) else given
    if isinstance(given, list) and (beyond := len(cast("list[JSON]", given)) - MOST_CLAIMS) > 0:
        corrected.append(f"claims: {beyond:,} beyond the first {MOST_CLAIMS} left out")
    claims = tuple(_each(some, "claims", _claim, corrected))
    findings = tuple(_each(data.get("findings"), "findings", _finding, corrected))
    # Claims or findings are a result without an output, where no schema asks for one.
    stated = output_schema is None and bool(claims or findings or (wants_findings and data.get("findings") == []))
    if output_schema is not None and "output" not in data:
        return Unusable(("output: Field required",))
    if summary is not None and not isinstance(summary, str):
        return Unusable(("summary: should be a string",), empty=_blank(output) and not stated)
    if output_schema is not None and (wrong := violations(output, output_schema)):
        output = without_nulls(output, output_schema)
        if violations(output, output_schema):
            return Unusable(tuple(f"output: {problem}" for problem in wrong))
    if output_schema is None and _blank(output):
        if not stated:
            return Unusable((NOTHING,), empty=True)
        if claims:
            mark = "- " if len(claims) > 1 else ""
            output = "\n".join(f"{mark}{claim.statement}" for claim in claims)
    return Answer(
        summary=(summary or "").strip() or head(output),
        output=output,
        claims=claims,
        findings=findings,
        confidence=read_confidence(data.get("confidence"), "confidence", corrected),
        corrected=tuple(corrected),
    )


def _blank(value: JSON) -> bool:
    if isinstance(value, str):
        return not value.strip() or _PLACEHOLDER.fullmatch(value) is not None
    return value in _EMPTY


def head(output: JSON) -> str:
    """The beginning of an output on one line: a summary where none was given."""
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    return " ".join(text.lstrip()[: 10 * _LONGEST_SUMMARY].split())[:_LONGEST_SUMMARY]


def read_confidence(value: JSON, where: str, corrected: list[str]) -> int | None:
    """A confidence from 0 to 100, None where there is none to read. Models write 87.5, 0.87 and "87 %" as well."""
    if isinstance(value, str) and (number := _NUMBER.fullmatch(value)):
        value = float(number[1]) if "." in number[1] else int(number[1])
    if isinstance(value, bool) or not isinstance(value, int | float):
        if value is not None:
            corrected.append(f"{where} {_shorten(value)} left out")
        return None
    # A fraction is a share of 1: 1.0 means 100, not 1 of 100.
    scaled = round(value * 100) if isinstance(value, float) and 0 < value <= 1 else round(value)
    if not 0 <= scaled <= 100:
        corrected.append(f"{where} {_shorten(value)} read as {min(max(scaled, 0), 100)}")
    return min(max(scaled, 0), 100)


_Part = TypeVar("_Part", Claim, Finding)


def _each(
    value: JSON, where: str, read: Callable[[dict[str, JSON], str, list[str]], _Part | None], corrected: list[str]
) -> Iterator[_Part]:
    """The parts of a list that can be read; one part alone is a list of one, and its words alone are a part."""
    items = cast("list[JSON]", value) if isinstance(value, list) else [] if value in _EMPTY else [value]
    for number, item in enumerate(items):
        place = f"{where}[{number}]"
        words = {"statement": item, "message": item} if isinstance(item, str) else item
        part = read(cast("dict[str, JSON]", words), place, corrected) if isinstance(words, dict) else None
        if part is None:
            corrected.append(f"{place} {_shorten(item)} left out")
        else:
            yield part


def _claim(data: dict[str, JSON], where: str, corrected: list[str]) -> Claim | None:
    statement = data.get("statement")
    if not isinstance(statement, str) or not statement.strip():
        return None
    return Claim(
        statement=statement,
        confidence=read_confidence(data.get("confidence"), f"{where}.confidence", corrected),
        sources=_sources(data.get("sources"), f"{where}.sources", corrected),
    )


def _finding(data: dict[str, JSON], where: str, corrected: list[str]) -> Finding | None:
    message = data.get("message")
    if not isinstance(message, str) or not message.strip():
        return None

    def text(name: str) -> str | None:
        value = data.get(name)
        if value is None or isinstance(value, str):
            return value
        corrected.append(f"{where}.{name} {_shorten(value)} left out")
        return None

    line, last = _lines(data.get("line"), f"{where}.line", corrected)
    return Finding(
        severity=_severity(data.get("severity"), where, corrected),
        category=text("category") or "",
        path=text("path"),
        line=line,
        end_line=_lines(data.get("end_line"), f"{where}.end_line", corrected)[0] or last,
        message=message,
        suggestion=text("suggestion"),
        confidence=read_confidence(data.get("confidence"), f"{where}.confidence", corrected),
        sources=_sources(data.get("sources"), f"{where}.sources", corrected),
    )


def _severity(value: JSON, where: str, corrected: list[str]) -> Severity:
    if value is None:
        return "info"
    known = _SEVERITIES.get(value.strip().lower()) if isinstance(value, str) else None
    if known is None or known != value:
        # An unknown word counts as a warning.
        corrected.append(f"{where}.severity {_shorten(value)} read as {known or 'warning'}")
    return known or "warning"


def _lines(value: JSON, where: str, corrected: list[str]) -> tuple[int | None, int | None]:
    """A line number; of a range, also the last line."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value, None
    if isinstance(value, float) and value.is_integer() and value >= 0:
        return int(value), None
    if isinstance(value, str) and (found := _LINES.fullmatch(value)):
        return int(found[1]), int(found[2]) if found[2] else None
    corrected.append(f"{where} {_shorten(value)} left out")
    return None, None


def _sources(value: JSON, where: str, corrected: list[str]) -> tuple[str, ...]:
    items = cast("list[JSON]", value) if isinstance(value, list) else [] if value in _EMPTY else [value]
    if others := [item for item in items if not isinstance(item, str)]:
        corrected.append(f"{where}: {', '.join(map(_shorten, others[:5]))} left out")
    return tuple(item for item in items if isinstance(item, str))


def _shorten(value: JSON) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"
