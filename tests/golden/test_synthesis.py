"""What a report says about how its answer was written: notes, verdicts on contradictions, problems, added sections."""

from __future__ import annotations

import re
from typing import Any

from chargehand.errors import ModelError
from chargehand.synthesizer.rate_findings import MOST_RATED
from chargehand.synthesizer.typed_figures import unsupported_figures
from chargehand.values.budget import Budget
from chargehand.values.outcome import Claim, done
from chargehand.values.request import Request
from tests.golden import check_wording
from tests.synthesizer.syntheses import BRAIN, finding, make, result
from tests.synthesizer.test_drafting import BAD, GOOD, REVISE, TWO, in_turn, told
from tests.synthesizer.test_judging import FIVE, SAFE, SEVEN, SMALL, UNSAFE, judged, naming, only
from tests.synthesizer.test_provenance import one, provenance_of
from tests.synthesizer.test_rating import GRAVE, rated
from tests.synthesizer.test_reviewing import reviewed
from tests.synthesizer.test_selecting import TEXTS, scoring, select

DOWN = ModelError("bad_request", "The request is too long.")
TYPED = Request(text="r", answer_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
WRONG = {"answer": "There are 13 mills [t1], and all turn [t2]."}


def _without_estimate(note: str) -> str:
    """What a call needs changes with the prompts."""
    return re.sub(r"needs about [\d,]+", "needs about N", note)


def test_notes() -> None:
    """About the critic, the deadline, the budget, findings that are not rated and what is not compared."""
    many = [
        finding(f"Style of the function {chr(97 + n % 26) * (n // 26 + 3)}.", severity="info", path=f"f{n}.py")
        for n in range(MOST_RATED)
    ]
    parcels = [result(f"t{n}", *(f"Parcel {n}-{m} weighs much." for m in range(12))) for n in range(10)]
    halls = [result(f"t{n}", *(f"The {each} hall is open on day {n}." for each in "abcdef")) for n in range(6)]
    both = {"reason": "r", "verdict": "both"}
    notes = {
        "a critic that does not accept": reviewed(REVISE, rounds=0),
        "a critic whose correction is worse": make(TWO, in_turn(GOOD, BAD, critic=[REVISE]), critic=BRAIN),
        "a correction that fails": reviewed(REVISE, answers=[GOOD, DOWN]),
        "a critic that fails": reviewed(DOWN),
        "a critic without a verdict": reviewed({"verdict": "revise", "problems": []}),
        "no model": make(TWO, brain=None),
        "no model, with a critic": make(TWO, brain=None, critic=BRAIN),
        "a model that fails": make(TWO, lambda _: DOWN),
        "a budget that is used up": make(TWO, None, options={"budget": Budget(tokens=300)}),
        "a deadline before the answer": make(TWO, lambda _: GOOD, seconds=0.5),
        "a deadline before the review": make(TWO, lambda _: GOOD, critic=BRAIN, seconds=1.5),
        "a deadline before the review of a result": make(TWO[:1], lambda _: GOOD, critic=BRAIN, seconds=0.5),
        "a finding that is not rated": rated(GRAVE, scores={"shell": DOWN}),
        "too many findings to rate": rated(*many, GRAVE, scores={"": 10}, options={"max_concurrent": 300}),
        "too many statements to compare": make(parcels, naming(), judge=BRAIN),
        "too many pairs for a small judge": make(
            halls, lambda call: both if call.role == "judge" else GOOD, judge=SMALL
        ),
        "a judge that fails": make(
            [result("t1", SAFE), result("t2", UNSAFE)],
            lambda call: DOWN if call.role == "judge" else GOOD,
            judge=BRAIN,
        ),
        "a selected result of another form": select(
            lambda _: {"answer": "So [t1].", "data": {"n": 2}},
            [result("t1", output={"m": 1})],
            request=TYPED,
        ),
    }
    messages = {name: "\n".join(map(_without_estimate, made.synthesis.notes)) for name, made in notes.items()}
    [discarded] = told(make(TWO, in_turn(WRONG, BAD)), "draft_discarded")
    messages["a second draft that is worse"] = discarded["reason"]
    check_wording("synthesis_notes", messages)


def test_contradictions() -> None:
    """The reason and the verdict of each kind of ruling, and the section that code adds to an answer."""
    two = [result("t1", FIVE), result("t2", SEVEN)]
    plain: Any = {"answer": "It is said [t1, t2]."}
    found = {verdict: judged(verdict, confidence=90) for verdict in ("first", "neither", "unclear")}
    found["no judge"] = make(two, lambda _: plain)
    found["a judge that fails"] = make(two, lambda call: DOWN if call.role == "judge" else plain, judge=BRAIN)
    found["a judge that answers nothing"] = make(two, lambda call: "?" if call.role == "judge" else plain, judge=BRAIN)
    found["a judge beyond the budget"] = make(two, None, judge=BRAIN, options={"budget": Budget(tokens=300)})
    messages = {name: _without_estimate(f"{only(made).verdict}: {only(made).reason}") for name, made in found.items()}
    messages["the section in the answer"] = found["no judge"].synthesis.answer
    check_wording("contradictions", messages)


def test_problems() -> None:
    """What is wrong with an answer; the part before the colon is the code."""
    typed = make(TWO, lambda _: {**GOOD, "data": {"n": 12, "price": 999}}, request=TYPED)
    messages = {
        "a figure": provenance_of("It is 4711 [t1].", one("Yes.")).problems,
        "a task": provenance_of("It is so [t9].", one("Yes.")).problems,
        "a url": provenance_of("See https://example.org/b [t1].", one("https://example.org/a")).problems,
        "many": provenance_of("\n\n".join(f"It is {n} [t1]." for n in range(1000, 1050)), one("Yes.")).problems[-1:],
        "a figure in the data": typed.synthesis.provenance.problems,
        "many figures in the data": unsupported_figures([100 + n for n in range(30)], {}, "")[-1:],
    }
    check_wording("answer_problems", {name: "\n".join(lines) for name, lines in messages.items()})


def test_answers_by_code() -> None:
    """A selection with its reason, and a listing of results that is cut."""
    long = "x" * 10_000
    findings = [finding(f"Problem in the module {n}.", path=f"m{n:03}.py", line=n) for n in range(1, 202)]
    claims = [Claim(statement=f"The module m{n:03} was read.") for n in range(1, 202)]
    listed = [done("t1", "a", summary="s", output=long, findings=findings, claims=claims), result("t2")]
    listing = make(listed, brain=None, request=TYPED)
    uneven = [result("t1", output="x", confidence=50), result("t2", output="y", confidence=70)]
    tied = scoring({"t1": 90, "t2": 90, "t3": 20}, "t2")
    selections = {
        "the best of three": select(scoring({"t1": 60, "t2": 90, "t3": 20}, "t2")),
        "a tie": select(tied),
        "a judge that fails": select(lambda _: DOWN, uneven),
        "a judge that prefers none": select(lambda _: {"verdict": "both", "reason": "Both do."}, uneven),
    }
    messages = {name: made.synthesis.answer.replace(TEXTS["t2"], "TEXT") for name, made in selections.items()}
    messages["why others are left out"] = "\n".join(
        f"{each.task}: {each.reason}" for each in selections["a tie"].synthesis.provenance.left_out
    )
    cut = [line.replace(long[:4000], "TEXT") for line in listing.synthesis.answer.splitlines() if "more" in line]
    messages["what a listing leaves out"] = "\n".join(line[-120:] for line in cut)
    messages["a typed answer that is missing"] = "\n".join(gap.reason for gap in listing.synthesis.gaps)
    check_wording("answers_by_code", messages)
