"""The body of a chat completion or a response -> the run it asks for: the user's last message, earlier ones, files."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from chargehand.server.begin_runs import MaterialFile
from chargehand.server.refusals import Refusal
from chargehand.values.message import Message

Data = dict[str, Any]
TEAM = "team/"
SMALL = "chargehand/small"
DEFAULT = "chargehand/default"
CONVERSATION = "conversation.md"
_MOST_MESSAGES = 10_000
_LONGEST_TEXT = 1_000_000
# How messages begin that only ask for a title, tags or follow-up questions for a chat.
_CHORES = re.compile(
    r"\s*(?:#+\s*task:\s*)?(?:please\s+)?(?:generate|create|provide|write|suggest|summarize|give)\b[^.\n]{0,120}"
    r"\b(?:title|tags?|emoji|follow-?up (?:questions|prompts)|search quer(?:y|ies)|autocompletion)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a client asks for. `spoken` holds all messages as text, for models that answer at once."""

    model: str
    text: str
    earlier: tuple[Message, ...]
    spoken: tuple[Message, ...]
    material: list[MaterialFile] = field(default_factory=list[MaterialFile])
    answer_schema: Data | None = None
    streams: bool = False
    with_usage: bool = False
    background: bool = False
    max_output: int | None = None

    @property
    def is_chore(self) -> bool:
        """Whether it is one of the small calls that clients make in addition to a conversation."""
        return self.model == SMALL or bool(_CHORES.match(self.text))

    @property
    def team(self) -> str | None:
        return self.model.removeprefix(TEAM) if self.model.startswith(TEAM) else None

    @property
    def last_answer(self) -> str | None:
        """The last message of the assistant, by which its run is found again."""
        return next((each.text for each in reversed(self.earlier) if each.role == "assistant"), None)

    def conversation(self) -> MaterialFile | None:
        """The earlier messages as material, for when their run is not known."""
        said = [f"## {each.role}\n\n{each.text}" for each in self.earlier if each.role != "system"]
        return MaterialFile(name=CONVERSATION, content="\n\n".join(said)) if said else None


def read_chat(body: Data) -> ModelRequest:
    """The request in the body of a chat completion; a Refusal names what cannot be done."""
    if body.get("n") not in (None, 1):
        raise Refusal(400, "n is not 1: a team gives one answer.", param="n")
    material: list[MaterialFile] = []
    said = _messages(body.get("messages"), "messages", material)
    options = _object(body.get("stream_options"))
    longest = body.get("max_completion_tokens") or body.get("max_tokens")
    return _request(
        body,
        said,
        material,
        body.get("response_format"),
        with_usage=bool(options.get("include_usage")),
        longest=longest,
    )


def read_response_request(body: Data) -> ModelRequest:
    """The request in the body of a response; a Refusal names what cannot be done."""
    material: list[MaterialFile] = []
    given = body.get("input")
    written = [{"role": "user", "content": given}] if isinstance(given, str) else given
    said = _messages(written, "input", material)
    if isinstance(rules := body.get("instructions"), str) and rules.strip():
        said = (Message(role="system", text=rules), *said)
    longest = body.get("max_output_tokens")
    return _request(body, said, material, _object(body.get("text")).get("format"), with_usage=True, longest=longest)


def _request(
    body: Data,
    said: tuple[Message, ...],
    material: list[MaterialFile],
    format: Any,
    *,
    with_usage: bool,
    longest: Any,
) -> ModelRequest:
    """The parts that both have. Sampling options are ignored: the team sets them."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise Refusal(400, "model is missing: GET /v1/models lists them.", param="model")
    if body.get("tool_choice") in ("required",) or isinstance(body.get("tool_choice"), dict):
        raise Refusal(
            400,
            "tool_choice asks for a call of a tool: a team uses its own tools and answers in text.",
            param="tool_choice",
        )
    rules = "\n\n".join(each.text for each in said if each.role == "system" and each.text.strip())
    text = said[-1].text.strip()
    return ModelRequest(
        model=model,
        text=f"{text}\n\nInstructions for the answer\n{rules}" if rules else text,
        earlier=said[:-1],
        spoken=said,
        material=material,
        answer_schema=_schema(format),
        streams=body.get("stream") is True,
        with_usage=with_usage,
        background=body.get("background") is True,
        max_output=longest if isinstance(longest, int) and longest > 0 else None,
    )


def _messages(given: Any, where: str, material: list[MaterialFile]) -> tuple[Message, ...]:
    if not isinstance(given, list) or not given:
        raise Refusal(400, f"{where} is missing or empty.", param=where)
    items = cast("list[Any]", given)
    if len(items) > _MOST_MESSAGES:
        raise Refusal(400, f"There are more than {_MOST_MESSAGES:,} messages: send fewer.", param=where)
    read = (_message(each, f"{where}[{number}]", material) for number, each in enumerate(items))
    said = tuple(each for each in read if each is not None)
    if not said or said[-1].role != "user" or not said[-1].text.strip():
        raise Refusal(400, f"The last of {where} is not a text of the user.", param=where)
    if len(said[-1].text) > _LONGEST_TEXT:
        raise Refusal(
            400, f"The last message has more than {_LONGEST_TEXT:,} characters: attach it as a file.", param=where
        )
    return said


def _message(given: Any, where: str, material: list[MaterialFile]) -> Message | None:
    """None for reasoning, which a client sends back together with the answer."""
    if not isinstance(given, dict):
        raise Refusal(400, f"{where} is not an object.", param=where)
    data = cast("Data", given)
    kind = data.get("type", "message")
    if kind == "reasoning":
        return None
    if kind != "message":
        raise Refusal(400, f"{where} is of the type {str(kind)[:40]!r}: send messages.", param=where)
    role = {"developer": "system"}.get(str(data.get("role")), data.get("role"))
    if role not in ("system", "user", "assistant", "tool"):
        raise Refusal(400, f"{where}.role is {str(role)[:40]!r}: use system, user or assistant.", param=where)
    content = data.get("content")
    parts = cast("list[Any]", content) if isinstance(content, list) else [content or ""]
    texts = [_part(part, f"{where}.content[{place}]", material) for place, part in enumerate(parts)]
    text = "\n".join(each for each in texts if each)
    return Message(role="user" if role == "tool" else role, text=text)


def _part(part: Any, where: str, material: list[MaterialFile]) -> str:
    if isinstance(part, str):
        return part
    data = cast("Data", part) if isinstance(part, dict) else {}
    match data.get("type"):
        case "text" | "input_text" | "output_text":
            return str(data.get("text") or "")
        case "refusal":
            return str(data.get("refusal") or "")
        case "file" | "input_file":
            given = _object(data.get("file")) or data
            material.append(_file(given, where, material))
            return ""
        case other:
            raise Refusal(
                400, f"{where} is of the type {str(other)[:40]!r}: send text, or files that are text.", param=where
            )


def _file(given: Data, where: str, known: Sequence[MaterialFile]) -> MaterialFile:
    data = given.get("file_data")
    if not isinstance(data, str):
        raise Refusal(400, f"{where} has no file_data: files that were uploaded elsewhere are not here.", param=where)
    try:
        content = base64.b64decode(data.partition(";base64,")[2] or data, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise Refusal(400, f"{where} is not text in base64: send text.", param=where) from None
    name = str(given.get("filename") or "file.txt").rpartition("/")[2].rpartition("\\")[2][:150] or "file.txt"
    taken = {each.name for each in known}
    return MaterialFile(name=name if name not in taken else f"{len(taken)}-{name}", content=content)


def _schema(format: Any) -> Data | None:
    data = _object(format)
    if data.get("type") != "json_schema":
        return {"type": "object"} if data.get("type") == "json_object" else None
    schema = (_object(data.get("json_schema")) or data).get("schema")
    if not isinstance(schema, dict):
        raise Refusal(400, "The format of the answer has no schema.", param="response_format")
    return cast("Data", schema)


def _object(given: Any) -> Data:
    return cast("Data", given) if isinstance(given, dict) else {}
