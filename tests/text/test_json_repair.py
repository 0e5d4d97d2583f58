"""What models write becomes data, or a sentence that says why it does not."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargehand.text.json_repair import read_json, read_object
from chargehand.text.json_schema import MAX_DEPTH
from tests.counts import examples

A1 = {"a": 1}

REPAIRABLE: list[tuple[str, Any]] = [
    # Nothing to repair.
    ('{"a": 1}', A1),
    ("[1, 2]", [1, 2]),
    ("42", 42),
    ('"text"', "text"),
    ("null", None),
    ("{}", {}),
    ('{"a": 0, "a": 1}', A1),
    ('{"a": "<think>{}</think>"}', {"a": "<think>{}</think>"}),
    # Around it.
    ('\ufeff{"a": 1}', A1),
    (' \n\t{"a": 1}\r\n ', A1),
    ('```json\n{"a": 1}\n```', A1),
    ('```\n{"a": 1}\n```', A1),
    ('```JSON\n{"a": 1}\n```', A1),
    ('```json {"a": 1} ```', A1),
    ('```json\n{"a": 1}', A1),
    ('Here:\n```json\n{"a": 1}\n```\nDone.', A1),
    ('```json\n{"code": "```py\\nx\\n```"}\n```', {"code": "```py\nx\n```"}),
    ('```python\nprint("x")\n```\n```json\n{"a": 1}\n```', A1),
    ('```json\n[1]\n```\n```json\n{"a": 1}\n```', A1),
    ('```json\n{broken}\n```\n```json\n{"a": 1}\n```', A1),
    ('```json\n{"a" 2}\n```\n```json\n{"a": 1}\n```', A1),
    ('First {"b": 2}, then\n```json\n{"a": 1}\n```', A1),
    ('```json\n{"a": 1}\n```\n```json\n{"b": 2}\n```', A1),
    ("```json\n[1, 2]\n```", [1, 2]),
    ('Sure! {"a": 1}', A1),
    ('{"a": 1} I hope this helps :-}', A1),
    ('As in [1], the answer is {"a": 1}.', A1),
    ('Fill {name} with {"a": 1}', A1),
    ('Format {} gives {"a": 1}', A1),
    ('An open { in prose, then {"a": 1}', A1),
    ('An open [see below, then {"a": 1}', A1),
    ('- [ ] a box\n{"a": 1}', A1),
    ("The list: [1, 2].", [1, 2]),
    ('{"a": 1}}', A1),
    ('Text {"a": "} ] { ["} text', {"a": "} ] { ["}),
    ('Text {"a": "\\"}"} text', {"a": '"}'}),
    ('<think>{"draft": 1}</think>{"a": 1}', A1),
    ('<thinking>hm, {"</thinking>\n```json\n{"a": 1}\n```', A1),
    ('hm, maybe {"draft": 1}</think>{"a": 1}', A1),
    ('{"a": "</think>",}', {"a": "</think>"}),
    # Commas and comments.
    ('{"a": 1,}', A1),
    ("[1, 2, ]", [1, 2]),
    ('{"a": [1, {"b": 2,},],\n}', {"a": [1, {"b": 2}]}),
    ('{"a": ",}", }', {"a": ",}"}),
    ('{"a": 1, // one\n}', A1),
    ('{"a": 1 # don\'t\n}', A1),
    ('{/* { " */ "a": 1}', A1),
    ('{ // first\n "a": 1}', A1),
    ('{"a": "http://x/*y*/ #z",}', {"a": "http://x/*y*/ #z"}),
    # Python.
    ("{'a': 1}", A1),
    ("{'a': True, 'b': False, 'c': None}", {"a": True, "b": False, "c": None}),
    ('{"a": True}', {"a": True}),
    ("{'a': \"it's\"}", {"a": "it's"}),
    ("{'a': 'it\\'s'}", {"a": "it's"}),
    ("{'a': 'say \"x\"'}", {"a": 'say "x"'}),
    ("{'a': 'None of True'}", {"a": "None of True"}),
    ("{'a': '\\xe9\\n'}", {"a": "é\n"}),
    ("[None, {'a': 'b, }'}]", [None, {"a": "b, }"}]),
    # Strings.
    ('{"a": "x\ny"}', {"a": "x\ny"}),
    ('{"a": "x\r\n\ty"}', {"a": "x\r\n\ty"}),
    ("{'a': 'x\ny'}", {"a": "x\ny"}),
    ("{“a”: “b”}", {"a": "b"}),
    ('{“a”: “say "x"”}', {"a": 'say "x"'}),
    ("{„a“: 1}", A1),
    ("{‘a’: 1}", A1),
    ('{"a": "“b”",}', {"a": "“b”"}),
    ('{"a": "don\\\'t"}', {"a": "don't"}),
    ('{"a": "\\d+\\\\ \\u00e9"}', {"a": "\\d+\\ é"}),
    ('{"a": "\\ud800"}', {"a": "?"}),
    ('{"a": "\\ud83d\\ude00",}', {"a": "😀"}),
]

UNREADABLE: list[tuple[str, str]] = [
    ("", "empty"),
    (" \n", "empty"),
    ("I cannot do that.", "no JSON"),
    ("{name}", "near"),
    ("Use {name}.", "no JSON"),
    ("{", "cut off at line 1 column 2"),
    ('{"a": 1', "cut off at line 1 column 8, } still missing"),
    ('{"a": [1, {"b":\n', "cut off at line 1 column 16, } ] } still missing"),
    ('{"a":\n "some te', "cut off at line 2 column 10, inside a string that starts at line 2 column 2"),
    ('```json\n{"a": [{"b": 1}, {"c": 2}', "cut off at line 2"),
    ('```json\n{"a": {"b": 1}\n```', "cut off at line 3"),
    ('An example {"a": 1}; the answer {"b": {"c": 1}', "cut off"),
    ("{'a': 'b", "inside a string"),
    ("{“a", "inside a string"),
    ('{"a": 1 /* so', "inside a comment"),
    ('<think>{"a": 1}', "cut off in the thinking"),
    ('<think>{"a": 1}</think>I do not know.', "no JSON"),
    ('{"a": [1}', "line 1 column 9: expected ] but got }"),
    ('{"a": [{"b": 1}}, {"c": 2}', "expected ] but got }"),
    ("NaN", "NaN is not a JSON number"),
    ('{"a": NaN}', "NaN is not a JSON number"),
    ("[-Infinity,]", "-Infinity is not a JSON number"),
    ('{"a": 1e999}', "1e999 is too large a number"),
    ("9" * 5000, "limit"),
    ('{"a" 1}', "Expecting ':' delimiter, near"),
    ("{'a', 'b'}", "Expecting ':' delimiter, near"),
    ("[1,,2]", "Expecting value, near"),
    ('{"a": "he said "hi""}', "near"),
    ("[" * 10_000, "100 levels"),
    ("[" * 10_000 + "]" * 10_000, "100 levels"),
    ("text " + '{"a":' * 10_000, "100 levels"),
    ("[" * (MAX_DEPTH + 1) + "1" + "]" * (MAX_DEPTH + 1), "100 levels"),
]

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(), values, min_size=1, max_size=4)
wrappings = st.sampled_from(
    [
        "{}",
        "\ufeff  {}\n",
        "```json\n{}\n```",
        "```\n{}\n```",
        "Here it is:\n\n```json\n{}\n```\nAnything else?",
        "Sure. {} That's it [1].",
        "<think>a {{ or {{draft}}</think>\n{}",
    ]
)


@pytest.mark.parametrize(("text", "data"), REPAIRABLE)
def test_what_can_be_read_in_one_way_only_is_read(text: str, data: Any) -> None:
    """Wrapping, commas, comments, quotes and Python words are put right without guessing."""
    found, problem = read_json(text)
    assert problem is None
    # As text, because True equals 1.
    assert json.dumps(found) == json.dumps(data)


@pytest.mark.parametrize(("text", "part"), UNREADABLE)
def test_what_cannot_be_read_is_a_problem_in_words(text: str, part: str) -> None:
    """A cut, broken or missing JSON gives no data and says what is wrong."""
    data, problem = read_json(text)
    assert data is None
    assert problem is not None
    assert part in problem
    assert len(problem) < 300
    assert problem.endswith(".")


def test_nesting_up_to_the_limit_is_read() -> None:
    """The depth limit is not off by one, strict or repaired."""
    deep = "[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH
    assert read_json(deep)[1] is None
    assert read_json(deep[:-MAX_DEPTH] + "," + "]" * MAX_DEPTH)[1] is None


@given(objects, wrappings, st.booleans())
def test_an_object_in_any_wrapping_reads_back_as_itself(data: dict[str, Any], wrapping: str, ascii_only: bool) -> None:
    """Fences and prose around an object never change it."""
    assert read_json(wrapping.format(json.dumps(data, ensure_ascii=ascii_only))) == (data, None)


@given(objects)
def test_a_python_dict_reads_back_as_itself(data: dict[str, Any]) -> None:
    """What repr writes is read as the same data."""
    text = repr(data)
    # Astral characters that repr escapes as \\UXXXXXXXX have no JSON spelling.
    if "\\U" not in text:
        assert read_json(text) == (data, None)


@given(objects, st.data())
def test_a_cut_object_is_never_data(data: dict[str, Any], draw: st.DataObject) -> None:
    """No prefix of an object is read as data: nothing is made up, no inner part is taken for the whole."""
    text = json.dumps(data)
    cut = draw.draw(st.integers(1, len(text) - 1))
    assert read_json(text[:cut])[0] is None


@settings(max_examples=examples(300))
@given(st.text() | st.text(alphabet="{}[]\"'“”‘’,:/*#\\` \nax1N-eTrunoe<>thik", max_size=60))
def test_no_text_raises(text: str) -> None:
    """Any text gives data or a problem, and both can be written down."""
    data, problem = read_json(text)
    json.dumps([data, problem], ensure_ascii=False, allow_nan=False).encode()
    assert problem is None or data is None
    found, problems = read_object(text, {"required": ["a"]})
    assert (found is None) == bool(problems)


def test_lone_surrogates_do_not_pass() -> None:
    """Text that no encoding can carry is replaced, so that it can be recorded."""
    assert read_json('{"a": "\ud800"}') == ({"a": "?"}, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "unit", "tail"),
    [
        ("", "[", ""),
        ("", '{"a":1} ', ""),
        ("", "{} ", ""),
        ("", "[1] ", ""),
        ("", "[1}", ""),
        ("", '{"a" 1}', ""),
        ("", "```{", ""),
        ("", "```json\n", ""),
        ("", "{ ", ""),
        ("", '"', ""),
        ("", "<think>", ""),
        ("x", "</think>", ""),
        ("{", "/*", ""),
        ('{"a": [', "1, ", "]}"),
        ('{"a": [', "'b', ", "]}"),
        ('{"a": [', "/* c */ ", "1,]}"),
        ('{"a": "', "\\'", '"}'),
        ('{"a": "', "x", '",}'),
        ('{"a": [1', " ", ",]}"),
        ('{"a": 1}', "\n", "x{"),
    ],
)
def test_time_grows_with_the_length_only(head: str, unit: str, tail: str) -> None:
    """Eight times the text takes about eight times the time, whatever the text; 64 times would be quadratic."""

    def seconds(repeats: int) -> float:
        text = head + unit * repeats + tail
        best = float("inf")
        for _ in range(3):
            started = time.process_time()
            read_json(text)
            best = min(best, time.process_time() - started)
        return best

    small = 12_000 // len(unit)
    assert seconds(small * 8) < 32 * seconds(small) + 0.005


def test_ten_megabytes_are_read() -> None:
    """A huge answer with a trailing comma is read, not refused."""
    data, problem = read_json('Here: {"a": "' + "x\n" * 5_000_000 + '",}')
    assert problem is None
    assert data is not None
    assert len(data["a"]) == 10_000_000


def test_an_object_must_satisfy_its_schema() -> None:
    """The object is given when it fits, else every violation in words and no object."""
    schema = {"properties": {"n": {"type": "integer"}, "s": {"type": "string"}}, "required": ["n"]}
    assert read_object('```json\n{"n": 1}\n```', schema) == ({"n": 1}, [])
    assert read_object('{"n": "1", "s": 2}', schema) == (
        None,
        ['n: expected an integer, got "1"', "s: expected a string, got 2"],
    )
    assert read_object("{}", schema) == (None, ['"n" is missing'])
    assert read_object("{}") == ({}, [])


def test_only_an_object_is_an_object() -> None:
    """Lists, scalars and prose are refused with the reason, whatever the schema says."""
    assert read_object("[1, 2]") == (None, ["expected an object, got a list of 2"])
    assert read_object("null", {"type": "null"}) == (None, ["expected an object, got null"])
    assert read_object("no")[1] == ["There is no JSON in the answer; answer with JSON only."]
