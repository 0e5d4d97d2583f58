"""A run and how it was asked for -> a response in OpenAI's shape, and the events of its stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from chargehand.server.kept_responses import RESPONSE
from chargehand.server.model_request import Data
from chargehand.server.refusals import Refusal
from chargehand.text.escaping import dump_json

ResponseStatus: TypeAlias = Literal["queued", "in_progress", "completed", "failed", "cancelled"]


def describe_response(
    run: str, asked: Data, status: ResponseStatus, report: Data | None = None, error: Refusal | None = None
) -> Data:
    """The whole object; with a report its answer and usage."""
    output = [] if report is None else [message_item(run, report["answer"])]
    return {
        "id": f"{RESPONSE}{run}",
        "object": "response",
        "status": status,
        "error": None if error is None else {"code": "server_error", "message": error.detail},
        "incomplete_details": None,
        "output": output,
        "usage": None if report is None else _usage(report),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "temperature": None,
        "top_p": None,
        "reasoning": {"effort": None, "summary": None},
        "truncation": "disabled",
        "store": True,
        **asked,
    }


def message_item(run: str, text: str, status: str = "completed", number: int = 0) -> Data:
    """An answer as an item of the output."""
    part = _text_part(text)
    return {
        "id": f"msg_{run}" if not number else f"msg_{run}_{number}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [] if status == "in_progress" else [part],
    }


def _text_part(text: str) -> Data:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(report: Data) -> Data:
    used: Data = report.get("usage") or {}
    read, written = used.get("input_tokens") or 0, used.get("output_tokens") or 0
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": used.get("cached_tokens") or 0, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }


class StreamEvents:
    """Numbers the events of one stream, and opens and closes the items of its output."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._sequence = 0
        # The index of the open item, and its text so far.
        self._place = -1
        self._open: Literal["reasoning", "message"] | None = None
        self._messages = 0
        self._text = ""

    def response(self, kind: str, response: Data) -> bytes:
        """An event about the whole response, such as `created`."""
        return self._event(f"response.{kind}", {"response": response})

    def add_progress(self, line: str) -> Iterator[bytes]:
        """A line about the run, as reasoning. While a text is written there is none: it would cut the text in two."""
        if self._open == "message":
            return
        yield from self._turn_to("reasoning")
        self._text += f"{line}\n"
        yield self._of_item("reasoning_summary_text.delta", summary_index=0, delta=f"{line}\n")

    def add_text(self, text: str) -> Iterator[bytes]:
        """A part of the answer."""
        yield from self._turn_to("message")
        self._text += text
        yield self._of_item("output_text.delta", content_index=0, delta=text, logprobs=[])

    def close_item(self, status: str = "completed") -> Iterator[bytes]:
        """The end of the item that is open; `incomplete` for a text that is not the answer."""
        if self._open == "reasoning":
            part = {"type": "summary_text", "text": self._text}
            yield self._of_item("reasoning_summary_text.done", summary_index=0, text=self._text)
            yield self._of_item("reasoning_summary_part.done", summary_index=0, part=part)
        elif self._open == "message":
            yield self._of_item("output_text.done", content_index=0, text=self._text, logprobs=[])
            yield self._of_item("content_part.done", content_index=0, part=_text_part(self._text))
        if self._open is not None:
            yield self._event("response.output_item.done", {"output_index": self._place, "item": self._item(status)})
        self._open = None

    def _turn_to(self, kind: Literal["reasoning", "message"]) -> Iterator[bytes]:
        if self._open == kind:
            return
        yield from self.close_item()
        self._open, self._place, self._text = kind, self._place + 1, ""
        self._messages += kind == "message"
        yield self._event(
            "response.output_item.added", {"output_index": self._place, "item": self._item("in_progress")}
        )
        if kind == "reasoning":
            part = {"type": "summary_text", "text": ""}
            yield self._of_item("reasoning_summary_part.added", summary_index=0, part=part)
        else:
            yield self._of_item("content_part.added", content_index=0, part=_text_part(""))

    def _item(self, status: str) -> Data:
        if self._open == "message":
            return message_item(self._run, self._text, status, self._messages - 1)
        summary = [] if status == "in_progress" else [{"type": "summary_text", "text": self._text}]
        return {"id": self._item_id(), "type": "reasoning", "summary": summary, "status": status}

    def _item_id(self) -> str:
        if self._open == "message":
            return message_item(self._run, "", number=self._messages - 1)["id"]
        return f"rs_{self._run}_{self._place}"

    def _of_item(self, kind: str, **fields: Any) -> bytes:
        return self._event(f"response.{kind}", {"item_id": self._item_id(), "output_index": self._place, **fields})

    def _event(self, kind: str, fields: Data) -> bytes:
        data = {"type": kind, "sequence_number": self._sequence, **fields}
        self._sequence += 1
        return f"event: {kind}\ndata: {dump_json(data)}\n\n".encode()
