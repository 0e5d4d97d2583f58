"""Byte order marks and halves of surrogate pairs in what a server sends."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.models.received_json import in_unicode, pair_pieces, read_json
from chargehand.values.message import ToolSpec
from tests.loopback import Answer, Seen, events
from tests.models.asking import BOTH, a_call, ask

HIGH, LOW = "\ud83d", "\ude00"
ADD = ToolSpec(name="add", description="Adds.", parameters={"type": "object"})


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("streamed", [False, True])
def test_half_a_surrogate_pair_in_a_reply_is_replaced(model: str, streamed: bool) -> None:
    """In its text and in the arguments of its tool calls, whole or streamed."""
    answer = Answer(text=f"so {HIGH} it is", tools=(("add", {"a": f"x{LOW}"}),))
    pieces: list[str] = []
    reply, _ = ask(answer, a_call(model, tools=(ADD,)), pieces.append if streamed else None)
    assert reply.text == "so \ufffd it is"
    assert [call.arguments for call in reply.tool_calls] == [{"a": "x\ufffd"}]
    assert "".join(pieces) == (reply.text if streamed else "")


@pytest.mark.parametrize("model", BOTH)
def test_a_pair_in_two_pieces_of_a_stream_is_one_character(model: str) -> None:
    """Servers that cut by UTF-16 units send its halves one after the other."""
    pieces: list[str] = []
    reply, _ = ask(Answer(text=f"1234{HIGH}{LOW}678"), a_call(model), pieces.append)
    assert reply.text == "".join(pieces) == "1234\U0001f600678"
    assert all(piece.isprintable() for piece in pieces)


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_byte_order_mark_before_the_text_is_left_out(model: str, streamed: bool) -> None:
    """Only at its beginning: elsewhere it is a character like others."""
    pieces: list[str] = []
    reply, _ = ask(Answer(text="\ufeffhi \ufeffall"), a_call(model), pieces.append if streamed else None)
    assert reply.text == "hi \ufeffall"
    assert "".join(pieces) == (reply.text if streamed else "")


@pytest.mark.parametrize("model", BOTH)
def test_a_byte_order_mark_before_a_stream_hides_no_event(model: str) -> None:
    """Neither before the first line nor before the data of an event."""

    def answer(seen: Seen) -> Answer:
        lines = [line.replace("data: {", "data: \ufeff{") for line in events(seen, Answer(text="hello"))]
        raw = "\ufeff" + "".join(f"{line}\n\n" for line in lines)
        return Answer(raw=raw.encode(), headers={"Content-Type": "text/event-stream"})

    pieces: list[str] = []
    reply, _ = ask(answer, a_call(model), pieces.append)
    assert reply.text == "".join(pieces) == "hello"
    assert reply.model == model.partition(":")[2]


@pytest.mark.parametrize("bad", [b"", b"{", b"\xff{}", b"<p>", b"[" * 100_000, b"\xef\xbb\xbf"])
def test_what_is_no_json_stays_none(bad: bytes) -> None:
    """A value error, whatever it is."""
    with pytest.raises(ValueError, match=r"."):
        read_json(bad)


@given(st.text(alphabet=st.characters(codec=None, categories=("Lu", "Cs", "So")), max_size=40), st.integers(1, 7))
def test_pieces_say_what_the_whole_says(text: str, size: int) -> None:
    """However a text is cut, what is handed on can be encoded, and is the whole but for a half at its end."""
    pieces: list[str] = []
    hear = pair_pieces(pieces.append)
    for at in range(0, len(text), size):
        hear(text[at : at + size])
    said = "".join(pieces)
    said.encode()
    assert in_unicode(text) in (said, f"{said}\ufffd")
    assert in_unicode(json.loads(json.dumps({"a": [text]}))) == {"a": [in_unicode(text)]}
