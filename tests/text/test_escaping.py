"""What leaves as text shows every control character; what leaves as JSON escapes it and loses nothing."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.text.escaping import dump_json, show_controls

RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
CHARACTERS = st.one_of(
    st.characters(exclude_categories=["Cs"]), st.sampled_from("\x1b\x9b\x7f\r\n\t\u202e\u2066\u2028\x00")
)
TEXTS = st.text(CHARACTERS)
VALUES = st.recursive(TEXTS | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))


@given(TEXTS)
def test_no_control_character_is_left_in_text(text: str) -> None:
    """Shown twice it is the same; text without any is untouched."""
    shown = show_controls(text)
    assert RAW.search(shown) is None
    assert show_controls(shown) == shown
    assert shown == text or RAW.search(text)


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_json_is_read_back_as_it_was(value: Any, indent: int | None, ascii_only: bool) -> None:
    """Valid JSON without a raw control character, whatever was in it."""
    text = dump_json(value, indent=indent, ascii_only=ascii_only)
    assert RAW.search(text) is None
    assert json.loads(text) == value


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m\x07\x7f", r"\x1b[31m\x07\x7f"),
        ("\x9b31m\x85", r"\x9b31m\x85"),
        ("a\u202eb\u2066c\u2028", r"a\u202eb\u2066c\u2028"),
        ("one\r\ntwo\rthree\tfour\n", "one\ntwo\\x0dthree\tfour\n"),
        ("lone \ud800", r"lone \ud800"),
        ("\u200eשלום\u200f \u061c\u200d👩\u200d💻 \ufeff", "\u200eשלום\u200f \u061c\u200d👩\u200d💻 \ufeff"),
    ],
)
def test_a_control_character_is_spelled_as_programmers_write_it(text: str, shown: str) -> None:
    """Marks of Hebrew and Arabic, joiners and tabs stay."""
    assert show_controls(text) == shown
