"""The answer as it is written: pieces of a reply in, the growing text of the answer out."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.synthesizer.streaming import AnswerText, Drafts

ANSWER = 'Über "alles" 😀:\n\n- a\\b\t[t1] {not} a key: "answer"'


def heard(*pieces: str) -> list[tuple[int, str]]:
    """What a listener has of one draft in these pieces, drafts joined."""
    told: dict[int, str] = {}
    drafts = Drafts(lambda number, text: told.update({number: told.get(number, "") + text}), pytest.fail)
    feed = drafts.begin()
    for piece in pieces:
        feed(piece)
    return list(told.items())


def in_pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("ascii_", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_answer_comes_out_whatever_the_pieces(size: int, ascii_: bool) -> None:
    """Escapes and surrogate pairs may be split anywhere; what follows the answer is not shown."""
    text = f"```json\n{json.dumps({'answer': ANSWER, 'gaps': []}, ensure_ascii=ascii_, indent=1)}\n```"
    assert heard(*in_pieces(text, size)) == [(1, ANSWER)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("notes", ["", "\n\n## Notes\n- Missing: all\n", "\n**Notes**\n- Confidence: 3"])
def test_markdown_is_shown_up_to_its_notes(size: int, notes: str) -> None:
    """Headings and emphasis of the answer are shown."""
    answer = "# Mills\n\nThere are *three* [t1].\n\n## More on notes\n* one\n**two** [t2]"
    [(number, text)] = heard(*in_pieces(f"{answer}{notes}\n", size))
    assert (number, text.rstrip()) == (1, answer)


def test_the_text_comes_as_soon_as_it_is_there() -> None:
    """Half an escape is kept until it is whole, and so is a line that may be the heading of the notes."""
    answer = AnswerText()
    assert [answer.feed(piece)[0] for piece in ('{"answer": "on', "e\\", "ntwo\\ud83d", "\\ude00!", '", "gaps"')] == [
        "on", "e", "\ntwo", "😀!", "",
    ]  # fmt: skip
    answer = AnswerText()
    assert [answer.feed(piece)[0] for piece in ("The", " mill.\n", "## No", "rth\nIt", " is old.")] == [
        "The", " mill.\n", "", "## North\nIt", " is old.",
    ]  # fmt: skip


@pytest.mark.parametrize("written", ["\\ud83d x", "\\ude00"])
def test_half_a_character_is_a_mark(written: str) -> None:
    """A lone surrogate could be neither shown nor sent."""
    [(_, text)] = heard(f'{{"answer": "{written}."}}')
    assert "\ufffd" in text


def test_a_reply_that_is_cut_and_sent_again_is_a_new_draft() -> None:
    """A stream that breaks starts over in the middle of the text: nothing is shown twice as one."""
    for opening in ('{"answer": "One and the other', "One and the other mill turn"):
        *_, last = heard(opening, " are", opening, " two.")
        assert (last[0], last[1][-13:]) == (2, f"{opening} two."[-13:])


def test_drafts_are_numbered() -> None:
    """An answer that was sent back is written anew under the next number."""
    told: list[tuple[int, str]] = []
    drafts = Drafts(lambda number, text: told.append((number, text)), pytest.fail)
    drafts.begin()('{"answer": "a"}')
    drafts.begin()('{"answer": "b"}')
    assert told == [(1, "a"), (2, "b")]


def test_a_listener_that_raises_is_not_told_again() -> None:
    """The warning says why; the reply is read on."""
    warnings: list[str] = []

    def listener(number: int, text: str) -> None:
        raise OSError("the pipe is closed")

    feed = Drafts(listener, warnings.append).begin()
    feed('{"answer": "a')
    feed("b")
    [warning] = warnings
    assert warning.endswith("OSError: the pipe is closed")


@given(st.text(max_size=60), st.lists(st.integers(1, 9), max_size=20), st.booleans())
def test_any_answer_is_read_as_json_reads_it(answer: str, cuts: list[int], ascii_: bool) -> None:
    """In any pieces."""
    answer = answer.encode("utf-8", "replace").decode()
    text, pieces = json.dumps({"answer": answer}, ensure_ascii=ascii_), []
    for cut in cuts:
        pieces.append(text[:cut])
        text = text[cut:]
    assert heard(*pieces, text) == ([(1, answer)] if answer else [])


@given(st.lists(st.text(alphabet='{}[]":,\\u0dansewr ', max_size=8), max_size=20))
def test_no_text_breaks_it(pieces: list[str]) -> None:
    """What is no JSON shows something or nothing."""
    heard(*pieces)


def test_the_time_is_linear() -> None:
    """A large reply is no slower by the character than a small one."""

    def took(length: int) -> float:
        text = json.dumps({"answer": "y" * length, "data": "x" * length})
        began = time.process_time()
        heard(*(text[at : at + 20] for at in range(0, len(text), 20)))
        return (time.process_time() - began) / length

    took(20_000)
    assert took(200_000) < 5 * took(20_000)
