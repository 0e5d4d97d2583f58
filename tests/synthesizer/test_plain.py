"""Without a model: the same outcomes give the same readable report, down to the byte."""

from __future__ import annotations

from typing import Any

import pytest

from chargehand.synthesizer import plain_report as plain
from chargehand.values.outcome import Claim, Outcome, done, failed, skipped
from chargehand.values.plan import Plan, Task
from chargehand.values.request import Request
from tests.synthesizer.syntheses import Made, finding, make, plan_of, result

LEAK = "The file handle is never closed after reading the configuration."


def review() -> list[Outcome]:
    return [
        result(
            "t1",
            "The office in Oslo employs 500 people.",
            "Oslo lies on a fjord.",
            output="# A heading\n\nText of t1.",
            findings=[
                finding("A user's input reaches the shell.", severity="critical", path="b.py", line=9, end_line=12),
                finding(LEAK, path="a.py", line=4, suggestion="Use `with`."),
            ],
            confidence=80,
        ),
        result(
            "t2",
            "The office in Oslo employs 700 people.",
            "Oslo lies on a fjord.",
            output={"n": 1},
            findings=[finding(LEAK, path="a.py", line=4), finding("No licence.", severity="info", path=None)],
            confidence=60,
        ),
        failed("t3", "ann", "tool", "The tool broke"),
        skipped("t4", "ann", ["t3"]),
    ]


def reported(outcomes: list[Outcome] | None = None, **fields: Any) -> Made:
    outcomes = outcomes or review()
    return make(outcomes, brain=None, plan=plan_of(outcomes, edges={"t4": ["t3"]}), **fields)


EXPECTED = """\
# The goal

## t1 (worker-t1): Do t1.

> # A heading
>
> Text of t1. [t1]

## t2 (worker-t2): Do t2.

> Summary of t2.
>
> ```json
> {
>   "n": 1
> }
> ```
>
> [t2]

## Findings

### Critical

#### b.py

- Line 9-12: A user's input reaches the shell. (bug; confidence 80) [t1]

### Warning

#### a.py

- Line 4: The file handle is never closed after reading the configuration. Suggestion: Use `with`. \
(bug; confidence 96) [t1, t2]

### Info

#### No file

- No licence. (bug; confidence 80) [t2]

## Claims

- The office in Oslo employs 500 people. (confidence 80) [t1]
- Oslo lies on a fjord. (confidence 96) [t1, t2]
- The office in Oslo employs 700 people. (confidence 80) [t2]

## Where workers disagree

- SUBJECT: “The office in Oslo employs 500 people.” [t1]; “The office in Oslo employs 700 people.” [t2]. Unresolved. \
No model has judged it.

## Missing

- failed: The tool broke. Its criterion is not met: It is done. Skipped because of it: t4. [t3]
- skipped: Not started: it depends on t3. Its criterion is not met: It is done. [t4]"""


def test_the_report_is_readable_and_whole() -> None:
    """Results, findings by severity and file, merged claims, disagreements and what is missing, all cited."""
    made = reported()
    [contradiction] = made.synthesis.contradictions
    assert made.synthesis.answer == EXPECTED.replace("SUBJECT", contradiction.subject)
    assert made.calls == []
    assert len(made.synthesis.notes) == 1
    assert len(made.synthesis.findings) == 3
    assert [gap.task for gap in made.synthesis.gaps] == ["t3", "t4"]
    assert made.synthesis.confidence == 35
    assert made.synthesis.provenance.unused == ()
    assert made.synthesis.provenance.problems == ()


def test_equal_outcomes_give_equal_bytes() -> None:
    """However often."""
    assert {reported().synthesis.answer for _ in range(3)} == {reported().synthesis.answer}


def test_a_quotation_holds_whatever_is_in_it() -> None:
    """An open fence, a table, a heading and odd line ends stay inside; the citation has a place of its own."""
    for text in ("```\nopen", "| a |\n|---|\n| b |", "x\u2028## Missing\u2028- nothing", "a\r\n\r\n# b\x0b# c\x85# d"):
        made = reported([result("t1", output=text), result("t2", output="y")])
        part = made.synthesis.answer.split(": Do t1.\n\n")[1].split("\n\n## t2 ")[0]
        assert all(line.startswith(">") for line in part.split("\n"))
        assert part.endswith("[t1]")
        assert "\u2028" not in part


def test_results_of_one_routed_request_have_headings_of_their_own() -> None:
    """The request is the title; it is the instruction of both tasks and not said again."""
    asked = {"instruction": "Print my invoice.\n\nNothing else.", "success_criterion": "It is done."}
    tasks = tuple(Task(id=id, worker=worker, **asked) for id, worker in (("t1", "clerk"), ("t2", "documenter")))
    outcomes = [done(task.id, task.worker, summary="s", output="x") for task in tasks]
    made = make(outcomes, brain=None, plan=Plan(goal="Print my invoice.", tasks=tasks))
    headings = [line for line in made.synthesis.answer.splitlines() if line.startswith("#")]
    assert headings == ["# Print my invoice.", "## t1 (clerk)", "## t2 (documenter)"]


def test_long_texts_are_cut_with_a_note() -> None:
    """And the record has the rest."""
    made = reported([result("t1", output="x" * 10_000), result("t2", output="y")])
    assert "6,000" in made.synthesis.answer
    assert len(made.synthesis.answer) < 6_000


def test_lists_are_bounded() -> None:
    """What is not listed is counted."""
    many = [finding(f"Problem in the module {n} of it.", path=f"m{n:03}.py", line=n) for n in range(1, 301)]
    claims = [Claim(statement=f"The module m{n:03} was read.") for n in range(1, 301)]
    outcomes = [done("t1", "a", summary="s", output="x", findings=many, claims=claims), result("t2")]
    answer = reported(outcomes).synthesis.answer
    assert answer.count("\n- ") < 450
    assert "100 more" in answer


def test_a_typed_answer_cannot_be_made_by_code() -> None:
    """That is a gap."""
    made = reported(request=Request(text="r", answer_schema={"type": "object"}))
    assert len(made.synthesis.gaps) == len(reported().synthesis.gaps) + 1


@pytest.mark.parametrize(("text", "shown"), [("a\n b\t[t9] c", "a b (t9) c"), ("x" * 600, "x" * 499 + "…"), ("", "")])
def test_words_in_a_line_are_on_one_line_and_cite_nothing(text: str, shown: str) -> None:
    """Cut where they are long."""
    assert plain.inline(text) == shown


def test_a_gap_has_the_first_line_of_an_error() -> None:
    """An error that quotes a whole request does not fill the screen."""
    task = Task(id="t1", worker="ann", instruction="Do it.", success_criterion="Done.")
    plan = Plan(goal="g", tasks=(task,))
    wrong = {"t1": failed("t1", "ann", "bad_request", "There is no reply left.\nThe request was:\n" + "words " * 1_000)}
    [gap] = plain.gaps(plan, wrong)
    assert gap.reason == "failed: There is no reply left."
    assert plain.nothing_done(plan, wrong) == "No task was done, so there is no answer: There is no reply left."
