"""How the events of a stream are cut out of its bytes, and how those that are alike are read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.models.anthropic import Anthropic
from chargehand.models.http_model import Wire
from chargehand.models.openai_chat import OpenAIChat
from chargehand.models.profiles import Profile
from chargehand.models.sse import Events
from chargehand.models.streamed_reply import StreamedReply

TEXTS = st.lists(st.one_of(st.text(max_size=6), st.sampled_from(['"', "\\", '\\"', '","', '",["', '"],"', "\n", "id"])))
LINE = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=8).map(str.encode)


def chat_events(texts: list[str], **delta: Any) -> list[dict[str, Any]]:
    head = {"id": "c1", "object": "chat.completion.chunk", "model": "m"}
    first = head | {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
    pieces = [head | {"choices": [{"index": 0, "delta": {"content": t} | delta}]} for t in texts]
    last = head | {"choices": [{"index": 0, "finish_reason": "stop"}]}
    return [first, *pieces, last]


def message_events(texts: list[str]) -> list[dict[str, Any]]:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    pieces = [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": t}} for t in texts]
    last = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
    return [{"type": "message_start", "message": {"model": "m"}}, start, *pieces, last, {"type": "message_stop"}]


class Reading:
    """A streamed reply with what was read as JSON."""

    def __init__(self, wire: Wire) -> None:
        self.read: list[bytes] = []
        self.streamed = StreamedReply(wire.listen(), self._read, lambda _found: None)

    def _read(self, events: list[bytes]) -> list[dict[str, Any]]:
        self.read += events
        return [json.loads(event) for event in events]

    def hear(self, events: list[dict[str, Any]], cut: int, *, ascii: bool = True) -> str:
        packed = [json.dumps(event, ensure_ascii=ascii).encode() for event in events]
        return "".join(self.streamed.hear(packed[at : at + cut]) for at in range(0, len(packed), cut))


CHAT, MESSAGES = OpenAIChat(Profile("other")), Anthropic()


@given(TEXTS, st.integers(1, 9), st.booleans(), st.sampled_from([CHAT, MESSAGES]))
def test_a_reply_is_the_same_however_its_events_are_read(texts: list[str], cut: int, ascii: bool, wire: Wire) -> None:
    """The text is what the events hold, whatever is in it, as it arrives and in the end."""
    reading = Reading(wire)
    events = chat_events(texts) if wire is CHAT else message_events(texts)
    assert reading.hear(events, cut, ascii=ascii) == "".join(texts)
    reply = reading.streamed.reply()
    assert reply is not None
    assert (reply.text, reply.stop) == ("".join(texts).removeprefix("\ufeff"), "end")


@pytest.mark.parametrize("wire", [CHAT, MESSAGES], ids=["chat", "messages"])
def test_events_that_only_add_text_are_not_read_as_json(wire: Wire) -> None:
    """Of 500 events a handful is: the first ones, to learn their form, and the last."""
    reading, texts = Reading(wire), [f"word {n} " for n in range(500)]
    text = reading.hear(chat_events(texts) if wire is CHAT else message_events(texts), 100)
    assert text == "".join(texts)
    assert len(reading.read) < 20


@given(st.lists(st.tuples(st.sampled_from(["alike", "other", "lines", "cut"]), st.text('ab"\n', max_size=3))))
def test_events_of_several_forms_are_all_heard_in_their_order(pieces: list[tuple[str, str]]) -> None:
    """Some have another id, are written over several lines, or begin alike and end otherwise."""

    def event(form: str, text: str) -> bytes:
        value = {"id": "x" if form == "other" else "c1", "choices": [{"index": 0, "delta": {"content": text}}]}
        if form == "cut":
            value["created"] = 1
        return json.dumps(value, indent=1 if form == "lines" else None).encode()

    reading = Reading(CHAT)
    learnt = [event("alike", "hello"), event("alike", "you")]
    heard = reading.streamed.hear([*learnt, *(event(form, text) for form, text in pieces)])
    assert heard == "helloyou" + "".join(text for _, text in pieces)


def test_what_comes_beside_the_text_is_kept_of_every_event() -> None:
    """Events alike but for their text may each add a piece of something else too."""
    reading = Reading(CHAT)
    assert reading.hear(chat_events(["a", "b", "c", "d", "e"], reasoning="hm"), 50) == "abcde"
    reply = reading.streamed.reply()
    assert reply is not None
    assert reply.opaque == ({"reasoning": "hm" * 5},)


@given(st.lists(st.lists(LINE, min_size=1, max_size=2)), st.integers(1, 40), st.sampled_from([b"\n", b"\r\n"]))
def test_events_are_found_wherever_the_bytes_are_cut(events: list[list[bytes]], cut: int, newline: bytes) -> None:
    """Data of one line or several, comments and names between them."""
    blocks = [b"".join(b"data: %b%b" % (line, newline) for line in lines) for lines in events]
    stream = newline.join([*blocks, b": comment" + newline, b"event: x" + newline + b"data: end" + newline, b""])
    found = Events()
    heard = [event for at in range(0, len(stream), cut) for event in found.feed(stream[at : at + cut])]
    assert heard == [*(b"\n".join(lines) for lines in events), b"end"]
