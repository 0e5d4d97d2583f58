"""A synthesizer's reply -> its answer and its other statements, as the fields of one object.

    The answer in Markdown, which cites tasks [t1].

    ## Notes
    - Missing: [t3] the price of 2024, so that the trend is unknown.
    - Left out: t4, because it repeats t1.
    - Disagree: number of people; t1: 500; t2: 700
    - Confidence: 80

Without the heading, lines like these at the end of the text count. An object in JSON with the fields `answer`,
`contradictions`, `gaps`, `left_out` and `confidence` is read as well, and is the only form of a typed answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, cast

from chargehand.text.citation import Citations
from chargehand.text.json_repair import read_object
from chargehand.text.json_schema import violations
from chargehand.text.optional_nulls import without_nulls
from chargehand.values.base import JSON
from chargehand.workers.worker_answer import read_confidence

NOTES = re.compile(r"^[ \t]*(?:#{1,6}[ \t]*|\*\*)notes\b[ \t:*#]*$", re.IGNORECASE | re.MULTILINE)
_LINE = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?\**(missing|gaps?|left out|disagree(?:ment)?s?|contradictions?|confidence)\**[ \t]*:"
    r"\**[ \t]*(.*)",
    re.IGNORECASE,
)
_THINKING = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_FENCE = re.compile(r"\s*```(?:markdown|md)?[ \t]*\n(.*)\n```\s*", re.DOTALL)
_JSON = re.compile(r"\s*(?:```(?:json)?\s*)?\{")
# `t4, because it repeats t1`; `[t4-t6]: they repeat t1`.
_LEFT_OUT = re.compile(
    r"\[?([\w.]+(?:\s*(?:[,–-]|and|to)\s*[\w.]+)*?)\]?\s*(?:[:(,–—-]\s*(?:because\b)?|\bbecause\b)\s*(.*)", re.DOTALL
)


def read_draft(
    text: str, schema: dict[str, Any], tasks: Collection[str], *, typed: bool
) -> tuple[dict[str, Any] | None, list[str]]:
    """The fields, or None and what is wrong. An odd confidence is repaired; a blank answer is not an answer."""
    data, problems = read_object(text) if typed or _JSON.match(text) else (None, [])
    if data is None or (not typed and "answer" not in data):
        if typed or (problems and _JSON.match(text)):
            return None, problems
        return read_markdown(text, tasks)
    # `data` is for a run that asked for data, where null may be what its schema wants.
    data = {name: value for name, value in data.items() if (typed if name == "data" else value is not None)}
    if "confidence" in data:
        data["confidence"] = read_confidence(data["confidence"], "confidence", [])
    if problems := violations(data, schema):
        data = cast("dict[str, Any]", without_nulls(data, schema))
        if violations(data, schema):
            return None, problems
    return (data, []) if data["answer"].strip() else (None, ["The answer is empty."])


def read_text(text: str) -> str:
    """The text alone, of Markdown or of an object with the field `answer`; empty where an object has none."""
    if _JSON.match(text):
        data, _ = read_object(text)
        answer = None if data is None else data.get("answer")
        return answer.strip() if isinstance(answer, str) else ""
    return _without_wrapping(text).strip()


def read_markdown(text: str, tasks: Collection[str]) -> tuple[dict[str, Any] | None, list[str]]:
    answer, notes = _split_notes(_without_wrapping(text))
    if not answer.strip():
        return None, ["The answer is empty."]
    data: dict[str, Any] = {"answer": answer.strip(), "gaps": [], "left_out": [], "contradictions": []}
    citations = Citations(tasks)
    for label, said in notes:
        match label[:3].lower():
            case "mis" | "gap":
                data["gaps"].append(_gap(said, citations))
            case "lef":
                data["left_out"].append(_left_out(said))
            case "con" if label.lower() == "confidence":
                data["confidence"] = read_confidence(said.strip(" .%*"), "confidence", [])
            case _:
                data["contradictions"].append(_disagreement(said, citations))
    return data, []


def _without_wrapping(text: str) -> str:
    """The text without the thinking before it and without a fence around all of it."""
    text = _THINKING.sub("", text, count=1)
    return fenced[1] if (fenced := _FENCE.fullmatch(text)) else text


def _split_notes(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The answer, and the labelled lines under the last heading for notes or at the end of the text."""
    headings = list(NOTES.finditer(text))
    if headings:
        return text[: headings[-1].start()], _split_by_label(text[headings[-1].end() :])
    lines = text.rstrip().split("\n")
    at = len(lines)
    while at and (not lines[at - 1].strip() or _LINE.fullmatch(lines[at - 1])):
        at -= 1
    return "\n".join(lines[:at]), _split_by_label("\n".join(lines[at:]))


def _split_by_label(text: str) -> list[tuple[str, str]]:
    """Each label with its text; a line without a label continues the one before."""
    found: list[tuple[str, str]] = []
    for line in text.split("\n"):
        if labelled := _LINE.fullmatch(line):
            found.append((labelled[1], labelled[2].strip()))
        elif found and line.strip():
            label, said = found[-1]
            found[-1] = label, f"{said} {line.strip(' -*')}".strip()
    return found


def _gap(said: str, citations: Citations) -> JSON:
    """What is missing, of the task that is named first."""
    named = next(iter(citations.find(said)), None)
    if named is None or named.start > 0 or len(named.tasks) != 1:
        return said
    return {"task": named.tasks[0], "reason": said[named.end :].lstrip(" :,-–")}


def _left_out(said: str) -> JSON:
    parts = _LEFT_OUT.fullmatch(said)
    return said if parts is None else {"task": parts[1], "reason": parts[2].strip(" )")}


def _disagreement(said: str, citations: Citations) -> JSON:
    """The subject and the sides, which begin with their tasks; without sides, the tasks that are cited."""
    subject, *sides = (part.strip() for part in said.split(";"))
    if not sides:
        sides = list(citations.tasks(said))
    return {"subject": subject, "claims": sides, "resolved": False}
