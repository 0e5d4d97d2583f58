"""The body of a chat completion -> the run it asks for: the last words of the user, what came before, attachments."""

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
# How clients begin when they want a title, tags or further questions for a chat, and no work done.
_CHORES = re.compile(
    r"\s*(?:#+\s*task:\s*)?(?:please\s+)?(?:generate|create|provide|write|suggest|summarize|give)\b[^.\n]{0,120}"
    r"\b(?:title|tags?|emoji|follow-?up (?:questions|prompts)|search quer(?:y|ies)|autocompletion)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a client asks for. `spoken` are all messages as text, for models that answer at once."""

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
        """Whether it is one of the small calls that clients make beside a conversation."""
        return self.model == SMALL or bool(_CHORES.match(self.text))

    @property
    def team(self) -> str | None:
        return self.model.removeprefix(TEAM) if self.model.startswith(TEAM) else None

    @property
    def last_answer(self) -> str | None:
        """What the assistant said last, by which the run of that answer is known again."""
        return next((each.text for each in reversed(self.earlier) if each.role == "assistant"), None)

    def conversation(self) -> MaterialFile | None:
        """What was said before, as material, where its run is not known."""
        said = [f"## {each.role}\n\n{each.text}" for each in self.earlier if each.role != "system"]
        return MaterialFile(name=CONVERSATION, content="\n\n".join(said)) if said else None


def read_chat(body: Data) -> ChatRequest:
    """The request in a body; a Refusal names what cannot be done. Options of sampling are the team's own affair."""
    model, messages = body.get("model"), body.get("messages")
    if not isinstance(model, str) or not model:
        raise Refusal(400, "model is missing: GET /v1/models lists them.")
    if not isinstance(messages, list) or not messages:
        raise Refusal(400, "messages is missing or empty.")
    if body.get("n") not in (None, 1):
        raise Refusal(400, "n is not 1: a team gives one answer.")
    if body.get("tool_choice") in ("required",) or isinstance(body.get("tool_choice"), dict):
        raise Refusal(400, "tool_choice asks for a call of a tool: a team uses its own tools and answers in text.")
    given = cast("list[Any]", messages)
    if len(given) > _MOST_MESSAGES:
        raise Refusal(400, f"There are more than {_MOST_MESSAGES:,} messages: send fewer.")
    material: list[MaterialFile] = []
    said = tuple(_message(each, number, material) for number, each in enumerate(given))
    if said[-1].role != "user" or not said[-1].text.strip():
        raise Refusal(400, "The last message is not a text of the user.")
    rules = "\n\n".join(each.text for each in said if each.role == "system" and each.text.strip())
    text = said[-1].text.strip()
    options: Data = body.get("stream_options") or {}
    longest = body.get("max_completion_tokens") or body.get("max_tokens")
    return ChatRequest(
        model=model,
        text=f"{text}\n\nInstructions for the answer\n{rules}" if rules else text,
        earlier=said[:-1],
        spoken=said,
        material=material,
        answer_schema=_schema(body.get("response_format")),
        streams=bool(body.get("stream")),
        with_usage=bool(options.get("include_usage")),
        background=bool(body.get("background")),
        max_output=longest if isinstance(longest, int) and longest > 0 else None,
    )


def _message(given: Any, number: int, material: list[MaterialFile]) -> Message:
    if not isinstance(given, dict):
        raise Refusal(400, f"messages[{number}] is not an object.")
    data = cast("Data", given)
    role = {"developer": "system"}.get(str(data.get("role")), data.get("role"))
    if role not in ("system", "user", "assistant", "tool"):
        raise Refusal(400, f"messages[{number}].role is {str(role)[:40]!r}: use system, user or assistant.")
    content = data.get("content")
    parts = cast("list[Any]", content) if isinstance(content, list) else [content or ""]
    texts = [_part(part, f"messages[{number}].content[{place}]", material) for place, part in enumerate(parts)]
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
            given: Data = data.get("file") or data
            material.append(_file(given, where, material))
            return ""
        case other:
            raise Refusal(400, f"{where} is of the type {str(other)[:40]!r}: send text, or files that are text.")


def _file(given: Data, where: str, known: Sequence[MaterialFile]) -> MaterialFile:
    data = given.get("file_data")
    if not isinstance(data, str):
        raise Refusal(400, f"{where} has no file_data: files that were uploaded elsewhere are not here.")
    try:
        content = base64.b64decode(data.partition(";base64,")[2] or data, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise Refusal(400, f"{where} is not text in base64: send text.") from None
    name = str(given.get("filename") or "file.txt").rpartition("/")[2].rpartition("\\")[2][:150] or "file.txt"
    taken = {each.name for each in known}
    return MaterialFile(name=name if name not in taken else f"{len(taken)}-{name}", content=content)


def _schema(format: Any) -> Data | None:
    if not isinstance(format, dict):
        return None
    data = cast("Data", format)
    if data.get("type") != "json_schema":
        return {"type": "object"} if data.get("type") == "json_object" else None
    named: Data = data.get("json_schema") or data
    schema = named.get("schema")
    if not isinstance(schema, dict):
        raise Refusal(400, "response_format has no schema.")
    return cast("Data", schema)
