"""The line of figures under an answer, and the time of a task in `show`."""

from __future__ import annotations

from typing import Any

import pytest

from chargehand.cli.report_footer import commands, details, figures, label_lines
from chargehand.cli.show import describe_time
from chargehand.trace.number_text import round_up, share


def _report(cached: int) -> Any:
    usage = {"calls": 3, "input_tokens": 2_000, "output_tokens": 100, "cached_tokens": cached, "usd": None}
    timing = {"wall_s": 1.0, "sequential_s": 0.0, "speedup": 1.0}
    return {"outcomes": [], "plan": None, "timing": timing, "usage": usage, "confidence": None}


@pytest.mark.parametrize(
    ("cached", "says"), [(0, "2,100 tokens ·"), (1_500, "2,100 tokens (75 % of the input from cache)")]
)
def test_the_share_from_a_cache_is_shown_where_there_is_one(cached: int, says: str) -> None:
    """Of the input, as that is what a cache makes cheaper."""
    assert says in figures(_report(cached))


@pytest.mark.parametrize(
    ("status", "calls", "has_cost"), [("running", 0, False), ("running", 1, True), ("complete", 0, True)]
)
def test_before_the_first_reply_there_is_no_cost(status: str, calls: int, has_cost: bool) -> None:
    """It is not known whether the model has a price. An ended run without calls has cost nothing."""
    report = _report(0) | {"status": status}
    report["usage"] |= {"calls": calls}
    assert ("cost" in figures(report)) == has_cost


@pytest.mark.parametrize(
    ("part", "whole", "says"), [(999, 1_000, "99 %"), (5, 5, "100 %"), (1, 0, "0 %"), (9, 5, "100 %")]
)
def test_a_share_is_not_rounded_up(part: int, whole: int, says: str) -> None:
    """Nearly all is not all, and odd counts break nothing."""
    assert share(part, whole) == says


@pytest.mark.parametrize(
    ("status", "used", "says"),
    [
        ("done", {"calls": 1}, "reused"),
        ("done", {"calls": 1, "input_tokens": 9}, "0.0 s"),
        ("failed", {"calls": 2}, "0.0 s"),
        ("done", {"calls": 1, "seconds": 1.3}, "1.3 s"),
        ("skipped", {}, ""),
        ("done", {"models": ["m"]}, "reused"),
        ("failed", {"models": ["m"]}, "reused"),
        ("done", {"seconds": 0.2}, "0.2 s"),
    ],
)
def test_only_a_result_that_cost_nothing_is_reused(status: str, used: dict[str, Any], says: str) -> None:
    """A call of this run may be too short to measure."""
    usage = {"calls": 0, "input_tokens": 0, "output_tokens": 0, "seconds": 0.0, "models": []} | used
    assert describe_time({"status": status, "usage": usage}) == says


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Three are small; `chargehand review --all` lists them.", ["`chargehand review --all` lists", "them."]),
        ("and 3 more: chargehand show 20260101-000000-abcd", ["chargehand show 20260101-000000-abcd"]),
    ],
)
def test_a_command_in_a_note_stays_on_one_line(text: str, lines: list[str]) -> None:
    """Even if the line is then longer than the terminal: it will be copied."""
    assert [line.strip() for line in label_lines("note", text, 46)][1:] == lines


@pytest.mark.parametrize(
    ("number", "rounded"), [(9_822, 9_900), (9_900, 9_900), (15_590, 16_000), (0.0123, 0.013), (1, 1), (0, 0)]
)
def test_advice_is_rounded_up_to_two_digits(number: float, rounded: float) -> None:
    """Never down: the advice has to be enough."""
    assert round_up(number) == rounded


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("the run's budget of 8,000 tokens has 882 left and this call needs about 1,463", "--tokens 14000"),
        ("the run's budget of 0.01 USD has 0.0020 left and this call needs about 0.0104", "--usd 0.094"),
        ("the run's budget of 0.01 USD cannot be kept: the price is unknown", None),
    ],
)
def test_a_budget_that_was_too_small_is_raised_by_a_number(message: str, advice: str | None) -> None:
    """Three times the largest need of a call, or what a done task took, for each task that is not done."""
    usage = {"input_tokens": 1_000, "output_tokens": 0}
    tasks = [{"task": f"t{n}", "status": "failed", "error": {"kind": "budget", "message": message}} for n in range(3)]
    outcomes = [{**task, "usage": usage} for task in tasks] + [{"task": "t9", "status": "done", "usage": usage}]
    report = {"run": "r", "status": "partial", "outcomes": outcomes, "plan": {"tasks": outcomes}}
    assert commands(report)[2:] == ([] if advice is None else [f"chargehand resume r {advice}"])


@pytest.mark.parametrize(
    ("reason", "offered"), [("ambiguous_input", False), ("out_of_scope", False), ("confidence_too_low", True)]
)
def test_another_try_is_offered_where_it_may_end_otherwise(reason: str, offered: bool) -> None:
    """The same material and the same task give the same question again."""
    outcome = {"task": "t1", "status": "escalated", "escalation": {"reason": reason, "message": "Which?"}}
    report = {"run": "r", "status": "partial", "outcomes": [outcome], "plan": {"tasks": [outcome]}}
    assert ("chargehand resume r --retry-failed" in commands(report)) == offered


def test_details_are_sentences() -> None:
    """A question keeps its mark, and the code of a problem is left to programs."""
    gap = {"task": "t1", "reason": "escalated: City or region?", "impact": "Not met: One number."}
    problem = "failed_citation: Paragraph 1 rests on [t4], which has no result."
    provenance = {"problems": [problem], "unused": [], "left_out": []}
    report = {"status": "partial", "answer": "", "gaps": [gap], "contradictions": [], "notes": []}
    assert details(report | {"provenance": provenance}) == [
        ("gap", "t1: escalated: City or region? Not met: One number."),
        ("citation", "Paragraph 1 rests on [t4], which has no result."),
    ]
