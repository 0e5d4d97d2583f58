"""What is left of Markdown when only its words count."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.synthesizer.strip_markdown import one_line, words_of
from tests.pace import Timed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- **The fee** is *5 EUR*.", "The fee is 5 EUR."),
        ("* The fee is `5 EUR`.", "The fee is 5 EUR."),
        ("## The fee ##", "The fee"),
        ("> The fee is 5 EUR.", "The fee is 5 EUR."),
        ("- [x] The fee is **5 EUR**", "The fee is 5 EUR"),
        ("**The fee is 5 EUR.", "The fee is 5 EUR."),
        ("The fee is 5 EUR.**", "The fee is 5 EUR."),
        ("***The fee*** is 5 EUR.", "The fee is 5 EUR."),
        ("The fee is [5 EUR](https://example.org/a_(b)?c=1).", "The fee is 5 EUR."),
        ("[![Fee](https://example.org/fee.svg)](https://example.org) The fee", "Fee The fee"),
        ("See <https://example.org/fee>.", "See https://example.org/fee."),
        ("| Fee | 5 EUR |\n|---|:--:|\n| Rent | **9 EUR** |", "Fee; 5 EUR Rent; 9 EUR"),
        ("```text\nThe fee is 5 EUR.\n```", "The fee is 5 EUR."),
        ("``a ` b``", "a ` b"),
    ],
)
def test_markdown_is_reduced_to_its_words(text: str, words: str) -> None:
    """Emphasis, list marks, headings, quotations, code marks, tables and links."""
    assert one_line(text) == words


@pytest.mark.parametrize(
    "text",
    [
        "-5 °C is the minimum.",
        "> 5 % of all users left.",
        "x**2 + y**2 is 25.",
        "5 * 3 * 2 is 30.",
        "**/*.py and **/*.md are read.",
        "*.py and *.md are read.",
        "#5448 is fixed.",
        "The type is int | None.",
        "The method __init__ sets self.a_b_c.",
        "It has rows[0](1) and [t1].",
        "[t1, t2]",
    ],
)
def test_what_only_looks_like_markdown_is_left_alone(text: str) -> None:
    """A minus, a power, a pattern, a number of an issue, a type, a name, a citation."""
    assert one_line(text) == text


def test_words_in_code_keep_their_stars() -> None:
    """Only the marks around code go: what is inside is no Markdown."""
    assert one_line("`**kwargs` is passed to `f(*args)`.") == "**kwargs is passed to f(*args)."


def test_lines_stay_lines() -> None:
    """A sentence ends where a line does."""
    assert words_of("# Fees\n\n- one\n- two") == "Fees\n\none\ntwo"


@given(st.text(alphabet="*_`[]()|#->! ab1\n\\~<", max_size=200))
def test_any_text_is_reduced_once(text: str) -> None:
    """Never an error, and never more characters than there were, but for the cells of a table."""
    assert len(words_of(text)) <= len(text) + text.count("|")


@pytest.mark.parametrize(
    "text",
    ["*" * 100_000, "[" * 100_000, "`" * 99_999 + "a", "**a " * 30_000, "[a](" * 30_000, "|" * 100_000, "a`" * 50_001],
)
def test_no_text_takes_long(text: str) -> None:
    """Linear in its length."""
    with Timed(time.process_time) as timed:
        words_of(text)
    assert timed.within(2.0)
