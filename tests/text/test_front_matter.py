"""Front matter as agent files in the wild have it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.text.front_matter import FieldValue, FrontMatter, FrontMatterError, parse


def read(*lines: str, body: str = "Body.") -> FrontMatter:
    matter = parse("\n".join(["---", *lines, "---", body]))
    assert matter is not None
    return matter


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("plain words", "plain words"),
        ("Use it when: the user says: go", "Use it when: the user says: go"),
        ("He said 'no' to #1 and C#", "He said 'no' to #1 and C#"),
        ("kept # a comment", "kept"),
        ('"quoted: \\"x\\"\\nnext"', 'quoted: "x"\nnext'),
        ("'it''s'", "it's"),
        ('"a" and "b" are words', '"a" and "b" are words'),
        ("[a, 'b, c', 3]", ["a", "b, c", 3]),
        ("[]", []),
        ("true", True),
        ("False", False),
        ("12", 12),
        ("0.5", 0.5),
        ("-3", -3),
        ("1.2.3", "1.2.3"),
        ("null", None),
        ("", None),
        ("https://example.org/a:b", "https://example.org/a:b"),
    ],
)
def test_a_scalar_means_what_it_looks_like(written: str, value: FieldValue) -> None:
    """Colons, quotes and hashes inside of a value belong to it; numbers, booleans and lists are typed."""
    assert read(f"key: {written}".rstrip()).fields["key"].value == value


def test_a_block_list_is_a_list() -> None:
    """Lines with a dash below a key are its items, indented or not."""
    assert read("tools:", "  - Read", "  - Grep  # find").fields["tools"].value == ["Read", "Grep"]
    assert read("tools:", "- Read", "name: x").fields["tools"].value == ["Read"]


def test_commas_make_a_list_outside_of_brackets_only() -> None:
    """`items` keeps a call pattern with a comma in one piece."""
    assert read("tools: Read, Bash(git log, git diff), Grep").fields["tools"].items == [
        "Read",
        "Bash(git log, git diff)",
        "Grep",
    ]


def test_blocks_keep_or_fold_their_lines() -> None:
    """`|` keeps line breaks, `>` folds lines into paragraphs; both end at the next key."""
    matter = read("a: |", "  one", "    two: 2", "b: >-", "  three", "  four", "", "  five", "c: 1")
    assert matter.fields["a"].value == "one\n  two: 2\n"
    assert matter.fields["b"].value == "three four\nfive"
    assert matter.fields["c"].value == 1


def test_a_value_may_go_on_below_its_key() -> None:
    """Indented lines after a plain value are folded into it."""
    assert read("description: first", "  second: part", "name: x").fields["description"].value == "first second: part"


def test_each_key_has_its_line_and_the_body_follows() -> None:
    """Lines count from 1 at the opening dashes; carriage returns and a byte order mark do no harm."""
    matter = parse("\ufeff---\r\n# note\r\nname: a\r\n\r\ntier: small\r\n---\r\n\r\nYou are a.\r\n--- \r\nMore.\r\n")
    assert matter is not None
    assert {key: field.line for key, field in matter.fields.items()} == {"name": 3, "tier": 5}
    assert matter.body == "You are a.\n--- \nMore."


def test_text_without_front_matter_is_none() -> None:
    """Only a first line of three dashes opens front matter."""
    assert parse("# Title\n---\nname: x\n---\n") is None
    assert parse("") is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("---\nname: x\n", 1, "no closing"),
        ("---\njust words\n---\n", 2, "expected 'key: value'"),
        ("---\nname: x\nname: y\n---\n", 3, "already set on line 2"),
        ("---\nname: x\ntools: [a, b\n---\n", 3, "not closed"),
        ('---\nname: "x\n---\n', 2, "not closed"),
    ],
)
def test_broken_front_matter_names_its_line(text: str, line: int, words: str) -> None:
    """What cannot be read is one error with the line and the reason."""
    with pytest.raises(FrontMatterError, match=words) as caught:
        parse(text)
    assert caught.value.line == line


def _line_of_error(text: str) -> int | None:
    try:
        parse(text)
    except FrontMatterError as error:
        return error.line
    return None


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the reader fail in any other way than with its own error, at a line that is there."""
    whole = f"---\n{text}\n---\n"
    assert (_line_of_error(whole) or 1) in range(1, len(whole.splitlines()) + 1)


@given(st.text(alphabet=st.characters(exclude_categories=["C", "Z"]), min_size=1).filter(lambda t: t[0].isalpha()))
def test_one_word_comes_back_as_it_was(word: str) -> None:
    """A quoted word comes back unchanged whatever it holds."""
    quoted = "'" + word.replace("'", "''") + "'"
    assert read(f"key: {quoted}").fields["key"].value == word
