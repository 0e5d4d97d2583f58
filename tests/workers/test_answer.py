"""A worker's answer is read generously: the optional is corrected or left out, only what is missing is asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chargehand.values.outcome import Claim, Finding
from chargehand.workers.worker_answer import Answer, Unusable, read_answer


def read(**fields: Any) -> Answer:
    answer = read_answer(json.dumps({"summary": "s", "output": "o", **fields}), None)
    assert isinstance(answer, Answer)
    return answer


@pytest.mark.parametrize(
    ("written", "read_as", "said"),
    [
        (0.8, 80, False),
        (1.0, 100, False),
        (87.5, 88, False),
        (1, 1, False),
        (0, 0, False),
        ("85", 85, False),
        ("85 %", 85, False),
        ("0.9", 90, False),
        (None, None, False),
        (150, 100, True),
        (-3, 0, True),
        ("high", None, True),
        (True, None, True),
        ([90], None, True),
    ],
)
def test_an_odd_confidence_is_corrected_wherever_it_is(written: Any, read_as: int | None, said: bool) -> None:
    """In the answer, a claim and a finding alike; what changes its meaning is said."""
    answer = read(
        confidence=written,
        claims=[{"statement": "x", "confidence": written}],
        findings=[{"message": "m", "confidence": written}],
    )
    assert (answer.confidence, answer.claims[0].confidence, answer.findings[0].confidence) == (read_as,) * 3
    assert [place.split()[0] for place in answer.corrected] == (
        ["claims[0].confidence", "findings[0].confidence", "confidence"] if said else []
    )


def test_only_the_misshapen_part_is_lost() -> None:
    """One bad claim and one bad finding leave the others, and both are named."""
    answer = read(
        claims=[{"statement": "good"}, {"confidence": 3}, 7, {"statement": " "}],
        findings=[{"severity": "info"}, {"message": "good"}],
    )
    assert [claim.statement for claim in answer.claims] == ["good"]
    assert [finding.message for finding in answer.findings] == ["good"]
    assert [said.split()[0] for said in answer.corrected] == ["claims[1]", "claims[2]", "claims[3]", "findings[0]"]


def test_words_in_place_of_a_claim_or_finding_are_one() -> None:
    """Also alone, without the list around them."""
    answer = read(claims="The sky is blue.", findings=["Too long."])
    assert answer.claims == (Claim(statement="The sky is blue."),)
    assert answer.findings == (Finding(message="Too long."),)


@pytest.mark.parametrize(
    ("written", "read_as"),
    [("High", "critical"), ("error", "critical"), ("medium", "warning"), ("low", "info"), ("note", "info"),
     ("warning", "warning"), (None, "info"), ("gruesome", "warning"), (3, "warning")],
)  # fmt: skip
def test_other_scales_of_severity_are_understood(written: Any, read_as: str) -> None:
    """An unknown word is a warning: not lost, not cried out."""
    assert read(findings=[{"message": "m", "severity": written}]).findings[0].severity == read_as


@pytest.mark.parametrize(
    ("line", "end_line", "read_as"),
    [(12, 14, (12, 14)), ("12", None, (12, None)), ("12-14", None, (12, 14)), (12.0, "L14", (12, 14)),
     ("somewhere", None, (None, None)), ([1], True, (None, None))],
)  # fmt: skip
def test_line_numbers_come_in_many_forms(line: Any, end_line: Any, read_as: tuple[int | None, int | None]) -> None:
    """A finding is not lost for the line it names."""
    finding = read(findings=[{"message": "m", "line": line, "end_line": end_line}]).findings[0]
    assert (finding.line, finding.end_line) == read_as


def test_sources_of_a_wrong_type_are_left_out() -> None:
    """A single one is a list of one."""
    answer = read(claims=[{"statement": "a", "sources": "x.py:3"}, {"statement": "b", "sources": ["u", {"url": "v"}]}])
    assert [claim.sources for claim in answer.claims] == [("x.py:3",), ("u",)]
    assert answer.corrected == ('claims[1].sources: {"url": "v"} left out',)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "{}",
        "null",
        '""',
        '{"summary": "", "output": null}',
        '{"summary": " ", "output": "\\n", "confidence": 90}',
        '{"summary": null, "output": []}',
        '{"summary": ""}',
        '{"summary": "s"}',
        '{"summary": "Nothing was found.", "output": null, "claims": [], "findings": []}',
    ],
)
def test_nothing_is_no_answer(text: str) -> None:
    """Neither words nor data: there is nothing to fall back on."""
    unusable = read_answer(text, None)
    assert isinstance(unusable, Unusable)
    assert unusable.empty
    assert unusable.problems


def test_an_output_without_a_summary_speaks_for_itself() -> None:
    """Its beginning is the summary."""
    assert read(summary=" ", output="One\n two " + "x" * 500).summary.startswith("One two xxx")
    assert read(summary="", output={"a": 1}).summary == '{"a": 1}'


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("I think so.", "I think so."),
        ("Fergen går fjorten ganger om dagen.", "Fergen går fjorten ganger om dagen."),
        ("渡轮每天航行十四次。", "渡轮每天航行十四次。"),
        ('{"summary": "s", "text": "t"}', {"summary": "s", "text": "t"}),
        ('```json\n["s", "o"]\n```', ["s", "o"]),
        ('Send {"output": 1} to the server.', 'Send {"output": 1} to the server.'),
    ],
)
def test_text_and_data_are_results_as_they_are(text: str, output: object) -> None:
    """No field is required of a worker without a schema; an object inside of prose is an example in it."""
    result = read_answer(text, None)
    assert isinstance(result, Answer)
    assert result.output == output


def test_the_description_of_a_shape_was_a_result() -> None:
    """A model that sends the schema back has given no result."""
    unusable = read_answer('{"type": "object", "properties": {"summary": {"type": "string"}}}', None)
    assert isinstance(unusable, Unusable)
    assert unusable.empty


def test_a_result_of_the_workers_own_schema_stands_alone() -> None:
    """It is the object itself; an object with `output` in it is read as before."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    for text in ('{"n": 3}', '{"summary": "s", "output": {"n": 3}}'):
        result = read_answer(text, schema)
        assert isinstance(result, Answer)
        assert result.output == {"n": 3}
    assert isinstance(read_answer('{"m": 3}', schema), Unusable)
    assert isinstance(read_answer("three", schema), Unusable)


def test_an_output_is_held_to_its_schema() -> None:
    """What is wrong is told by place."""
    text = json.dumps({"summary": "s", "output": {"n": "x"}, "confidence": "high"})
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    unusable = read_answer(text, schema)
    assert isinstance(unusable, Unusable)
    assert "n" in unusable.problems[0]
    assert isinstance(read_answer(text, {"type": "object"}), Answer)


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint({})\n```",
        "The list is empty: []",
        "[1] says so, and [2] as well.",
        "[1] Smith says that it rains in Bergen on most days, as does [2]",
        "Use `{}` for an empty object.",
    ],
)
def test_json_inside_of_prose_was_taken_for_the_result(text: str) -> None:
    """An example in a text, or a citation at its beginning, is not the answer."""
    assert read_answer(text, None) == Answer(summary=text.replace("\n", " "), output=text, is_text=True)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"$schema": "x", "properties": {"summary": {"type": "string"}}}),
        json.dumps({"properties": {"summary": {"type": "string"}}, "required": ["summary"]}),
        json.dumps({"name": "read_file", "arguments": {"path": "a.md"}}),
        json.dumps({"summary": "<summary>", "output": "<markdown>"}),
        "<markdown>",
        "...",
        "```json\n{}\n```",
        "<think>What could it be?</think>",
    ],
)
def test_what_small_models_write_instead_of_a_result_was_one(text: str) -> None:
    """A schema, a call of a tool, a placeholder and thinking alone hold no result."""
    answer = read_answer(text, None)
    assert isinstance(answer, Unusable)
    assert answer.empty


@pytest.mark.parametrize(
    "text",
    [
        '{"summary": "a", "output": "first and then',
        '```json\n{"output": {"a": 1, "b": [1, 2',
        '{"summary": "s", "output": "o", "confidence": NaN}',
        '{"output": ' * 200,
    ],
)
def test_half_a_json_was_a_text(text: str) -> None:
    """It is asked for once more; it is a text only where that does not help."""
    answer = read_answer(text, None)
    assert isinstance(answer, Unusable)
    assert not answer.empty


def test_of_two_answers_in_one_text_one_is_left_out_visibly() -> None:
    """The first is read, or the one that is in a fence."""
    one, two = ({"summary": "s", "output": each} for each in ("first", "second"))
    for between in ("\n", ",\n", "\n```\n```json\n"):
        answer = read_answer(json.dumps(one) + between + json.dumps(two), None)
        assert isinstance(answer, Answer)
        assert answer.output == ("second" if "`" in between else "first")
        assert answer.corrected == ("another answer in the same text left out",)


def test_claims_without_end_are_bounded() -> None:
    """200 are read, and of 20,000 the first; the rest is left out visibly."""
    assert len(read(claims=[f"Claim {number}" for number in range(200)]).claims) == 200
    answer = read(claims=[f"Claim {number}" for number in range(20_000)])
    assert len(answer.claims) == 500
    assert answer.corrected == ("claims: 19,500 beyond the first 500 left out",)


def test_thinking_was_part_of_the_result() -> None:
    """The text after it is the result, also where the tag that opens it is missing."""
    for text in ('<think>Is it {"a": 1}?</think>\nParis.', "Hm.\n</think>\n\nParis."):
        assert read_answer(text, None) == Answer(summary="Paris.", output="Paris.", is_text=True)


@pytest.mark.parametrize("text", ["word " * 600_000, "{" * 2_000_000, "```" * 600_000, " " * 2_000_000 + "x"])
def test_a_text_of_megabytes_is_read(text: str) -> None:
    """In time linear in its length; its summary is short."""
    answer = read_answer(text, None)
    assert isinstance(answer, Answer)
    assert 0 < len(answer.summary) <= 300
