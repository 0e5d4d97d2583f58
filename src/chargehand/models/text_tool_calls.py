"""Tool calls that a model wrote into its text -> tool calls of the reply.

Small models on local servers do that if the server does not understand their template: between `<tool_call>` tags, in a
fence, or as the whole text. It counts as a call only if it is an object with a name and arguments, and the name is one
of the tools of the request; any other fence in an answer is left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import cast

from chargehand.models.received_json import read_json
from chargehand.text import json_repair
from chargehand.values.base import JSON
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, ToolRequest

_OPEN, _CLOSE, _FENCE = "<tool_call>", "</tool_call>", "```"
# The names that models use for the arguments.
_ARGUMENTS = ("arguments", "parameters")
_FIELDS = frozenset({"name", "id", "type", *_ARGUMENTS})


def read_calls_in_text(reply: Reply, call: ModelCall) -> Reply:
    """The reply, with calls of the request's tools moved out of its text when it has no other calls."""
    if reply.tool_calls or reply.stop != "end" or not call.tools or call.tool_choice == "none":
        return reply
    text = reply.text
    if not (_OPEN in text or _FENCE in text or text.lstrip().startswith(("{", "["))):
        return reply
    names = [tool.name for tool in call.tools if tool.name in text]
    rest, requests = _split(text, names) if names else (text, [])
    if not requests:
        return reply
    return reply.model_copy(update={"text": rest, "tool_calls": tuple(requests), "stop": "tools"})


def _split(text: str, names: Collection[str]) -> tuple[str, list[ToolRequest]]:
    """The text without the calls in it, and the calls."""
    kept: list[str] = []
    requests: list[ToolRequest] = []
    for part, inner in _parts(text):
        found = None if inner is None else _calls(inner, names)
        if found is None:
            kept.append(part)
            continue
        for name, arguments in found:
            requests.append(ToolRequest(id=f"call_{len(requests)}", name=name, arguments=arguments))
    return "".join(kept).strip(), requests


def _parts(text: str) -> Iterator[tuple[str, str | None]]:
    """The parts of the text; for a part that may hold calls, also the text inside its marks."""
    if text.lstrip().startswith(("{", "[")):
        # One value, whose strings may hold any marks.
        yield text, text
        return
    start = 0
    while start < len(text):
        tag, fence = text.find(_OPEN, start), text.find(_FENCE, start)
        if tag < 0 and fence < 0:
            break
        if fence < 0 or 0 <= tag < fence:
            begin, body, mark = tag, tag + len(_OPEN), _CLOSE
        else:
            line_end = text.find("\n", fence)
            begin, body, mark = fence, line_end if line_end >= 0 else len(text), _FENCE
        end = text.find(mark, body)
        stop = len(text) if end < 0 else end + len(mark)
        yield text[start:begin], None
        yield text[begin:stop], text[body : len(text) if end < 0 else end]
        start = stop
    yield text[start:], None


def _calls(inner: str, names: Collection[str]) -> list[tuple[str, dict[str, JSON]]] | None:
    """The calls in JSON, one or a list of them; None when it is anything else."""
    try:
        found: object = read_json(inner.strip())
    except ValueError:
        found, problem = json_repair.read_json(inner)
        if problem is not None:
            return None
    items = cast("list[object]", found) if isinstance(found, list) else [found]
    calls = [_call(item, names) for item in items]
    return None if not calls or None in calls else cast("list[tuple[str, dict[str, JSON]]]", calls)


def _call(item: object, names: Collection[str]) -> tuple[str, dict[str, JSON]] | None:
    if not isinstance(item, dict):
        return None
    data = cast("dict[str, JSON]", item)
    arguments = next((data[name] for name in _ARGUMENTS if name in data), None)
    if isinstance(arguments, str):
        try:
            arguments = read_json(arguments)
        except ValueError:
            return None
    name = data.get("name")
    if not isinstance(name, str) or name not in names or not isinstance(arguments, dict) or not data.keys() <= _FIELDS:
        return None
    return name, cast("dict[str, JSON]", arguments)
