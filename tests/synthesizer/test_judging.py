"""What workers disagree about: found and decided by a judge, and never silently both in the answer."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from chargehand.errors import ModelError
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.synthesizer import unmentioned as mention
from chargehand.synthesizer.contradictions_by_model import MOST_PAIRS, NOT_JUDGED
from chargehand.synthesizer.group_contradictions import Pair, Ruling, Rulings, Verdict, disagreements
from chargehand.synthesizer.one_word_judge import KNOWN
from chargehand.synthesizer.statement_groups import MOST_IN_GROUP
from chargehand.synthesizer.statements import Statement
from chargehand.values.budget import Budget
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply
from chargehand.values.outcome import Finding, failed
from chargehand.values.report import Contradiction
from tests.kernel import SMALL_MODEL
from tests.synthesizer.syntheses import BRAIN, Made, make, result, text_of

FIVE = "The office in Oslo employs 500 people."
SEVEN = "The office in Oslo employs 700 people."
CASES = Path(__file__).parents[2] / "bench" / "judgement"


def judged(verdict: str, answer: str = "It is said [t1, t2].", **fields: Any) -> Made:
    """Two workers who state different figures, a judge, and a synthesizer that writes `answer` whatever it is told."""

    def talk(call: ModelCall) -> Any:
        if call.role == "judge":
            return {"verdict": verdict, "reason": "One of them is older.", "cause": "another year", **fields}
        return {"answer": answer, "confidence": 70}

    return make([result("t1", FIVE), result("t2", SEVEN)], talk, judge=BRAIN)


def only(made: Made) -> Contradiction:
    [contradiction] = made.synthesis.contradictions
    return contradiction


@pytest.mark.parametrize(
    ("verdict", "resolved", "holds"),
    [
        ("first", True, f"t1: {FIVE}"),
        ("second", True, f"t2: {SEVEN}"),
        ("neither", True, "None of it holds."),
        ("unclear", False, None),
    ],
)
def test_a_verdict_is_kept_with_its_reason_and_cause(verdict: str, resolved: bool, holds: str | None) -> None:
    """The report has both claims, what holds, why, and why they differ."""
    made = judged(verdict, confidence=90)
    found = only(made)
    assert found.claims == (f"t1: {FIVE}", f"t2: {SEVEN}")
    assert (found.resolved, found.verdict) == (resolved, holds)
    assert (found.reason, found.cause) == ("One of them is older (confidence 90)", "another year")
    assert made.keys[0] == "@judge/1/1"
    [call] = made.of("judge")
    assert "500" in text_of(call)
    assert "Do t1." in text_of(call)


def test_a_compatible_pair_was_listed_as_a_contradiction() -> None:
    """It is none: a decision is on the record, the writer is told, and neither report nor answer has it."""
    answer = "There were 500 people in 2020 [t1] and 700 in 2024 [t2]."
    stated = {"subject": "people in the Oslo office", "claims": ["[t1] 500", "t2: 700"]}

    def talk(call: ModelCall) -> Any:
        if call.role == "judge":
            return {"verdict": "both", "reason": "Of two years.", "confidence": 90}
        return {"answer": answer, "contradictions": [stated], "confidence": 70}

    made = make([result("t1", FIVE), result("t2", SEVEN)], talk, judge=BRAIN)
    assert made.synthesis.contradictions == ()
    assert made.synthesis.answer == answer
    assert "Of two years (confidence 90)" in text_of(made.of("synthesizer")[0])
    [decided] = [event.data for event in made.events if event.data.get("decision") == "compatible"]
    assert decided["key"] == "@judge/1/verdict"
    assert decided["value"]["claims"] == [f"t1: {FIVE}", f"t2: {SEVEN}"]
    assert decided["reason"] == "Of two years (confidence 90)"


def test_a_compatible_pair_is_not_listed_by_code_either() -> None:
    """Without a model that writes, the listing names no disagreement that is none."""

    def talk(call: ModelCall) -> Any:
        if call.role == "judge":
            return {"verdict": "both", "reason": "Of two years.", "confidence": 90}
        return ModelError("overloaded", "down", status=400)

    made = make([result("t1", FIVE), result("t2", SEVEN)], talk, judge=BRAIN)
    assert "There is no synthesis" in made.synthesis.notes[-1]
    assert made.synthesis.contradictions == ()
    assert "Where workers disagree" not in made.synthesis.answer


def test_an_unsure_judge_makes_no_pair_compatible() -> None:
    """Under 50 of 100 it stays open."""
    assert not only(judged("both", confidence=30)).resolved


def test_the_synthesizer_is_told_the_verdict() -> None:
    """As data, before it writes."""
    made = judged("second")
    assert "One of them is older." in text_of(made.of("synthesizer")[0])


def test_an_open_contradiction_is_in_the_answer_whatever_the_model_writes() -> None:
    """It is sent back once for it; then code adds the section, every side cited."""
    made = judged("unclear")
    first, second = made.of("synthesizer")
    assert "[t1] and [t2]" in second.messages[-1].text
    assert first.messages == second.messages[:2]
    answer = made.synthesis.answer
    assert "## Where workers disagree" in answer
    assert f"“{FIVE}” [t1]; “{SEVEN}” [t2]. Unresolved." in answer
    assert made.synthesis.provenance.citations["3"] == ("t1", "t2")
    assert made.synthesis.provenance.unused == ()


def test_an_answer_that_names_it_is_left_alone() -> None:
    """One call, nothing added."""
    answer = "The workers disagree: 500 people by one, 700 by the other [t1, t2]."
    made = judged("unclear", answer)
    assert len(made.of("synthesizer")) == 1
    assert made.synthesis.answer == answer
    assert not only(made).resolved


def test_the_rejected_figure_stated_beside_the_other_goes_back() -> None:
    """Resolved, and yet both in the answer as if they agreed: never silently both."""
    both = "Oslo employs 500 people [t1].\n\nOslo employs 700 people [t2]."
    made = judged("second", both)
    assert len(made.of("synthesizer")) == 2
    assert "## Where workers disagree" in made.synthesis.answer
    assert f"Resolved: t2: {SEVEN}" in made.synthesis.answer
    good = "Oslo employs 700 people [t2]; the other result was set aside [t1]."
    assert judged("second", good).synthesis.answer == good


SAFE = "Ibuprofen is safe for this patient."
UNSAFE = "Ibuprofen is unsafe for this patient."


def passes_over(answer: str, first: str = SAFE, second: str = UNSAFE, verdict: Verdict = "first") -> bool:
    """Whether an answer is silent on two results that disagree, judged or not."""
    outcomes = {id: result(id, text) for id, text in (("t1", first), ("t2", second))}
    pair = Pair(*(Statement(id, o.claims[0].statement, 80, (id,)) for id, o in outcomes.items()), "it")
    return bool(mention.unmentioned_disagreements(answer, disagreements({pair: Ruling(verdict, "So.")}), outcomes))


@pytest.mark.parametrize(
    ("answer", "silent"),
    [
        (f"{SAFE[:-1]} [t1].\n\n{UNSAFE[:-1]} [t2].", True),
        (f"{UNSAFE[:-1]} [t2]. See also [t1].", True),
        (f"{UNSAFE}", True),
        (f"{SAFE[:-1]} [t1].", False),
        (f"{SAFE[:-1]} [t1, t2].", False),
        ("The workers disagree on whether ibuprofen is safe or unsafe for this patient [t1, t2].", False),
        ("Paracetamol should be kept in a dry place [t2].", False),
    ],
)
def test_a_rejected_statement_without_figures_is_not_stated(answer: str, silent: bool) -> None:
    """Where the sides differ in words alone, the answer may not have the words that only the rejected side has."""
    assert passes_over(answer) == silent


def test_of_two_that_are_both_wrong_neither_is_stated() -> None:
    """Nothing was upheld: whichever the answer states was rejected."""
    assert passes_over(f"{UNSAFE[:-1]} [t2].", verdict="neither")
    assert not passes_over("Nothing is known of that [t1, t2].", verdict="neither")


LOW = "The tower is 300 m tall."
HIGH = "The tower is 324 m tall."


@pytest.mark.parametrize(
    ("answer", "silent"),
    [
        ("The tower is 300 m tall [t1] but lovely. The tower is 324 m tall [t2].", True),
        ("The tower is 300 m tall [t1]. However lovely. The tower is 324 m tall [t2].", True),
        ("The tower is 300 m tall [t1] and 324 m tall [t2].", True),
        ("The tower is 300 m tall [t1] but 324 m by another source [t2].", False),
        ("The tower is 300 m tall [t1]. However, another source has 324 m [t2].", False),
        ("The tower is 300 m tall, while another source has 324 m. It is lovely [t1]. It is in Paris [t2].", False),
        ("It is 300 m [t1] vs. 324 m [t2].", False),
        ("Sources differ. It is 300 m [t1]. It is 324 m [t2].", False),
    ],
)
def test_a_mere_but_names_a_disagreement_only_between_its_sides(answer: str, silent: bool) -> None:
    """In the sentence that cites or states them all, or that goes on from the one before."""
    assert passes_over(answer, LOW, HIGH, "unclear") == silent


@pytest.mark.parametrize("said", [ModelError("overloaded", "down", status=400), "no JSON at all", {"verdict": "t1"}])
def test_a_judge_that_fails_leaves_it_open(said: Any) -> None:
    """With the reason; a guess is worse than an open question."""

    def talk(call: ModelCall) -> Any:
        return said if call.role == "judge" else {"answer": "So [t1, t2]."}

    made = make([result("t1", FIVE), result("t2", SEVEN)], talk, judge=BRAIN)
    assert not only(made).resolved
    assert only(made).reason
    assert "Unresolved." in made.synthesis.answer


def test_a_judge_that_is_not_paid_for_leaves_it_open() -> None:
    """A denied budget is one more reason; the report is made by code then."""
    made = make([result("t1", FIVE), result("t2", SEVEN)], None, judge=BRAIN, options={"budget": Budget(tokens=300)})
    assert made.calls == []
    assert "budget of 300 tokens" in (only(made).reason or "")
    assert only(made).reason in made.synthesis.answer
    assert "budget of 300 tokens" in made.synthesis.notes[-1]


def test_an_unsure_judge_decides_nothing() -> None:
    """Under 50 of 100 the verdict is not taken."""
    assert not only(judged("first", confidence=49)).resolved
    assert only(judged("first", confidence=50)).resolved
    assert only(judged("first", confidence="high")).resolved


def test_without_a_judge_all_stays_open() -> None:
    """And is in the answer."""
    made = make([result("t1", FIVE), result("t2", SEVEN)], lambda _: {"answer": "So [t1, t2]."})
    assert (only(made).resolved, only(made).verdict) == (False, None)
    assert "Unresolved." in made.synthesis.answer


def test_the_models_word_on_a_judged_one_does_not_count() -> None:
    """One contradiction, with the judge's verdict; one that only the model saw is kept."""

    def talk(call: ModelCall) -> Any:
        if call.role == "judge":
            return {"verdict": "second", "reason": "Newer."}
        mine = [
            {
                "subject": "people in the Oslo office",
                "claims": ["t1: 500", "t2: 700"],
                "verdict": "500",
                "resolved": True,
            },
            {"subject": "its colour", "claims": ["t1: red", "t2: blue"]},
        ]
        return {"answer": "So [t1, t2].", "contradictions": mine}

    made = make([result("t1", FIVE), result("t2", SEVEN)], talk, judge=BRAIN)
    assert [each.verdict for each in made.synthesis.contradictions] == [f"t2: {SEVEN}", None]


def test_what_only_the_model_states_is_kept() -> None:
    """A word like `the` makes no two subjects one, and neither does a contradiction that names no task."""
    stated = [
        {"subject": "The price of the ticket", "claims": []},
        {"subject": "the colour of the office", "claims": ["t1: red", "t2: blue"]},
        {"subject": "people in the Oslo office", "claims": ["t1: 500", "t2: 700"]},
    ]
    talk = lambda _: {"answer": "The results disagree [t1, t2].", "contradictions": stated}  # noqa: E731
    made = make([result("t1", FIVE), result("t2", SEVEN)], talk)
    assert [each.subject for each in made.synthesis.contradictions] == [
        FIVE[:-1], "The price of the ticket", "the colour of the office"
    ]  # fmt: skip


def statements_of(call: ModelCall) -> list[str]:
    """The numbered statements that a judge is shown, in their order, without task and sources."""
    return re.findall(r"^\d+\. \[\w+\] (.*?)(?: \(confidence \d+\))?$", text_of(call), re.MULTILINE)


def naming(*pairs: tuple[str, str], **fields: Any) -> Any:
    """A judge that names these pairs of statements where it sees both, and nothing else."""

    def talk(call: ModelCall) -> Any:
        if call.role != "judge":
            return {"answer": "The results disagree about many things [t1, t2]."}
        shown = statements_of(call)
        found = [
            {"first": shown.index(one) + 1, "second": shown.index(other) + 1, "subject": f"{one[:20]}...",
             "reason": "They exclude each other.", "verdict": "unclear", **fields}
            for one, other in pairs if one in shown and other in shown
        ]  # fmt: skip
        return {"contradictions": found}

    return talk


def test_ordinary_sentences_that_exclude_each_other_were_not_found() -> None:
    """All statements go to the judge in one call, and the pairs that it names are in the report."""
    pairs = [
        ("The chair of the board is Ada Holm.", "Per Lind chairs the board."),
        ("The patient is allergic to latex.", "There are no known allergies."),
    ]
    outcomes = [result("t1", *(one for one, _ in pairs), "The pool is heated."),
                result("t2", *(other for _, other in pairs), "The pool opens in May.")]  # fmt: skip
    made = make(outcomes, naming(*pairs, verdict="second", confidence=80, cause="another date"), judge=BRAIN)
    assert len(made.of("judge")) == 1
    assert [each.claims for each in made.synthesis.contradictions] == [
        (f"t1: {one}", f"t2: {other}") for one, other in pairs
    ]
    assert [(each.resolved, each.cause) for each in made.synthesis.contradictions] == [(True, "another date")] * 2


def test_a_statement_may_be_named_by_its_words() -> None:
    """As a script must, which does not know the numbers; what names no statement, or one task alone, is passed over."""
    said = [
        {"first": "ibuprofen is safe", "second": f"t2: {UNSAFE}", "verdict": "first", "reason": "r"},
        {"first": 1, "second": 99, "verdict": "first", "reason": "r"},
        {"first": 1, "second": "1", "verdict": "first", "reason": "r"},
        {"first": "no such words", "second": 2, "verdict": "first", "reason": "r"},
    ]
    talk = lambda call: {"contradictions": said} if call.role == "judge" else {"answer": "It is safe [t1, t2]."}  # noqa: E731
    made = make([result("t1", SAFE), result("t2", UNSAFE)], talk, judge=BRAIN)
    assert only(made).claims == (f"t1: {SAFE}", f"t2: {UNSAFE}")


HEATED = ("The pool is heated.", "They heat the pool.")


@pytest.mark.parametrize(
    ("statements", "same", "merged"),
    [
        (HEATED, [[1, 2]], True),
        (HEATED, [["1", "they heat"]], True),
        ((FIVE, SEVEN), [[1, 2]], False),
        (("The trip takes 5 km.", "The trip is 5 mi long."), [[1, 2]], False),
        (("It opened on 5 March 2024.", "The opening was on 2024-04-05."), [[1, 2]], False),
        (("It opened on 5 March 2024.", "The opening was on 2024-03-05."), [[1, 2]], True),
        ((f"{'The pool is heated ' * 30}.", HEATED[1]), [[1, 2]], False),
        (HEATED, [[1, 99]], False),
        (HEATED, [{"first": 1}, 2, None], False),
        (HEATED, "1 and 2", False),
        (HEATED, None, False),
    ],
)  # fmt: skip
def test_what_the_judge_says_is_the_same_is_listed_once(statements: tuple[str, str], same: Any, merged: bool) -> None:
    """In the call that is made anyway; code does not believe it of other values or of what was cut for the judge."""

    def talk(call: ModelCall) -> Any:
        if call.role == "judge":
            return {"contradictions": [], "same": same}
        return ModelError("overloaded", "down", status=400)

    made = make([result("t1", statements[0]), result("t2", statements[1])], talk, judge=BRAIN)
    assert len(made.of("judge")) == 1
    assert ("[t1, t2]" in claims_listed(made)) == merged
    assert (statements[1] in claims_listed(made)) != merged


def claims_listed(made: Made) -> str:
    """The claims in an answer that is a listing, without the results and the disagreements after them."""
    return made.synthesis.answer.partition("## Claims")[2].partition("\n## ")[0]


def test_what_the_judge_calls_a_contradiction_is_not_the_same() -> None:
    """One answer that says both of a pair: both sides stay."""

    def talk(call: ModelCall) -> Any:
        if call.role == "judge":
            clash = {"first": 2, "second": 1, "verdict": "unclear", "reason": "r"}
            return {"contradictions": [clash], "same": [[1, 2]]}
        return ModelError("overloaded", "down", status=400)

    made = make([result("t1", SAFE), result("t2", UNSAFE)], talk, judge=BRAIN)
    assert len(made.synthesis.contradictions) == 1
    assert SAFE in claims_listed(made)
    assert UNSAFE in claims_listed(made)


def test_many_statements_are_compared_in_groups_at_the_same_time() -> None:
    """No call has more than 40, each pair that meets is reported once, and nothing else is."""
    subjects = [f"{head}{tail}" for head in ("ban", "cel", "dis", "for", "gun") for tail in ("ter", "vik", "mund")]
    pairs = [(f"The {each} is kept in the cellar.", f"Nobody ever saw a {each} below ground.") for each in subjects]
    others = [f"Item {n} of the {word} list concerns shelf {n * 7} only." for n in range(12) for word in ("A", "B")]
    outcomes = [
        result(f"t{n}", *(one for one, _ in pairs[n::3]), *others[n::6]) for n in range(3)
    ] + [result(f"t{n + 3}", *(other for _, other in pairs[n::3]), *others[n + 3::6]) for n in range(3)]  # fmt: skip
    made = make(outcomes, naming(*pairs), judge=BRAIN, options={"max_concurrent": 100})
    assert 1 < len(made.of("judge")) <= 2
    assert all(len(statements_of(call)) <= MOST_IN_GROUP for call in made.of("judge"))
    reported = [set(each.claims) for each in made.synthesis.contradictions]
    assert sorted(sorted(claim.partition(": ")[2] for claim in each) for each in reported) == sorted(
        sorted(pair) for pair in pairs
    )
    assert made.seconds == pytest.approx(3.0), "both judges at once, and two drafts"


def test_statements_that_no_call_had_room_for_are_counted() -> None:
    """A run of ten tasks has two calls at most; what they leave out is in the notes."""
    outcomes = [result(f"t{n}", *(f"Parcel {n}-{m} weighs much." for m in range(12))) for n in range(10)]
    made = make(outcomes, naming(), judge=BRAIN)
    assert len(made.of("judge")) == 2
    assert any("40 of 120" in note for note in made.synthesis.notes)


def test_agreement_and_a_single_task_cost_no_call() -> None:
    """There is nothing to compare."""
    talk = lambda _: {"answer": "So [t1]."}  # noqa: E731
    assert make([result("t1", FIVE), result("t2", FIVE)], talk, judge=BRAIN).of("judge") == []
    alone = [result("t1", FIVE, SEVEN), failed("t2", "ann", "tool", "It broke.")]
    assert make(alone, talk, judge=BRAIN).of("judge") == []


def test_a_judge_that_fails_says_what_was_not_compared() -> None:
    """Without an answer there may be contradictions that nobody looked for."""
    talk = lambda call: ModelError("overloaded", "down", status=400) if call.role == "judge" else {"answer": "[t1] So."}  # noqa: E731
    made = make([result("t1", SAFE), result("t2", UNSAFE)], talk, judge=BRAIN)
    assert made.synthesis.contradictions == ()
    assert "(overloaded)" in made.synthesis.notes[0]


SMALL = SupervisorModel(model=SMALL_MODEL)


@pytest.mark.parametrize(("again", "found"), [("second", True), ("both", False), ("first", True)])
def test_a_small_judge_is_asked_pair_by_pair_and_once_more(again: str, found: bool) -> None:
    """The second question has the pair in reverse; a pair counts if both answers say that it is a contradiction."""
    asked: list[str] = []

    def talk(call: ModelCall) -> Any:
        if call.role != "judge":
            return {"answer": "It is so [t1, t2]."}
        asked.append(text_of(call))
        reverse = asked[-1].index(UNSAFE) < asked[-1].index(SAFE)
        return {"reason": "r", "verdict": again if reverse else "first", "confidence": 90}

    made = make([result("t1", SAFE), result("t2", UNSAFE)], talk, judge=SMALL)
    assert made.keys[:2] == ["@judge/1/1", "@judge/1/again/1"]
    assert len(asked) == 2
    assert bool(made.synthesis.contradictions) == found
    assert [each.resolved for each in made.synthesis.contradictions] == ([again == "second"] if found else [])


def test_a_small_judge_is_asked_about_all_of_a_few_pairs() -> None:
    """Also about those that share no word: a contradiction may be in other words altogether."""
    talk = lambda call: {"reason": "r", "verdict": "first"} if call.role == "judge" else {"answer": "So [t1, t2]."}  # noqa: E731
    made = make([result("t1", "It was blind."), result("t2", "Everybody knew.")], talk, judge=SMALL)
    assert made.keys[:2] == ["@judge/1/1", "@judge/1/again/1"]


@pytest.mark.parametrize("makes_grammar", [False, True])
def test_a_small_judge_is_not_asked_about_what_is_the_same(makes_grammar: bool) -> None:
    """It would call that a contradiction too."""
    judge = SupervisorModel(model=SMALL_MODEL, makes_grammar=makes_grammar)
    talk = lambda call: {"reason": "r", "verdict": "first"} if call.role == "judge" else {"answer": "So [t1, t2]."}  # noqa: E731
    made = make([result("t1", FIVE), result("t2", FIVE.upper().rstrip("."))], talk, judge=judge)
    assert (made.of("judge"), made.synthesis.contradictions) == ([], ())


def test_a_small_judge_is_asked_about_so_many_pairs_only() -> None:
    """The nearest; the note says how many were left out."""
    outcomes = [result(f"t{n}", *(f"The {w} hall is open." for w in ("north", "south", "east"))) for n in range(2)]
    outcomes += [result(f"t{n}", *(f"The {w} hall is shut on day {n}." for w in "abcdefgh")) for n in range(2, 6)]
    talk = lambda call: {"reason": "r", "verdict": "both"} if call.role == "judge" else {"answer": "So [t1-t5]."}  # noqa: E731
    made = make(outcomes, talk, judge=SMALL)
    assert len(made.of("judge")) == MOST_PAIRS
    assert str(MOST_PAIRS) in " ".join(made.synthesis.notes)


LEAK, HANDLE = (
    Finding(severity="warning", category="bug", path="a.py", line=line, message=message, confidence=70)
    for line, message in ((3, "The cursor is never closed."), (4, "Leaks a database handle."))
)


def test_the_judge_names_findings_that_say_the_same() -> None:
    """They are numbered after the statements, in the question that is asked anyway; agreement raises confidence."""

    asked: list[str] = []

    def talk(call: ModelCall) -> Any:
        if call.role != "judge":
            return {"answer": "It leaks [t1, t2]."}
        asked.append(text_of(call))
        return {"contradictions": [], "same": [[3, 4]]}

    outcomes = [result("t1", FIVE, findings=[LEAK]), result("t2", SEVEN, findings=[HANDLE])]
    made = make(outcomes, talk, judge=BRAIN)
    assert len(asked) == 1
    assert "3. [t1] warning, a.py:3, bug: The cursor is never closed." in asked[0]
    [merged] = made.synthesis.findings
    assert (set(merged.sources), merged.confidence) == ({"t1", "t2"}, 91)


def test_findings_alone_are_one_question() -> None:
    """Where there are no statements to compare."""

    def talk(call: ModelCall) -> Any:
        return {"contradictions": [], "same": [["1", "2"]]} if call.role == "judge" else {"answer": "So [t1, t2]."}

    outcomes = [result("t1", summary="", findings=[LEAK]), result("t2", summary="", findings=[HANDLE])]
    made = make(outcomes, talk, judge=BRAIN)
    assert made.keys[0] == "@judge/1/1"
    assert len(made.synthesis.findings) == 1


OPEN = SupervisorModel(model=SMALL_MODEL, makes_grammar=True)


def likely(false: float) -> Reply:
    """A reply of one word, from a server that says how likely it was."""
    return Reply(text="false", first_words={"false": -0.1, " Possible": -0.1 - false, "the": -9.0})


@pytest.mark.parametrize(("odds", "found"), [(1.6, True), (1.2, False)])
def test_a_small_open_model_is_measured_on_known_pairs_and_asked_for_one_word(odds: float, found: bool) -> None:
    """It says false of every pair. Of known contradictions it is surer: what separates them decides."""
    yes = {first + second for first, second, contradict in KNOWN if contradict}

    def talk(call: ModelCall) -> Any:
        if call.role != "judge":
            return "It is so [t1, t2]."
        first, second = re.findall(r": (.*)", call.messages[-1].text)
        if {first, second} == {SAFE, UNSAFE}:
            return likely(odds)
        return likely(1.8 if first + second in yes else 1.0)

    made = make([result("t1", SAFE), result("t2", UNSAFE)], talk, judge=OPEN)
    assert sorted(made.keys[: len(KNOWN)]) == [f"@judge/known/{number}/1" for number in range(len(KNOWN))]
    assert made.keys[len(KNOWN) : len(KNOWN) + 2] == ["@judge/1/1", "@judge/1/again/1"]
    assert [(each.claims, each.resolved) for each in made.synthesis.contradictions] == (
        [((f"t1: {SAFE}", f"t2: {UNSAFE}"), False)] if found else []
    )
    assert made.synthesis.notes == ()


@pytest.mark.parametrize("said", [likely(1.0), Reply(text="false"), Reply(text="I cannot say.")])
def test_a_small_open_model_that_tells_nothing_apart_judges_nothing(said: Reply) -> None:
    """It is asked about the known pairs only, and the reader learns that nothing was judged."""
    talk = lambda call: said if call.role == "judge" else "It is so [t1, t2]."  # noqa: E731
    made = make([result("t1", SAFE), result("t2", UNSAFE)], talk, judge=OPEN)
    assert len(made.of("judge")) == len(KNOWN)
    assert (made.synthesis.contradictions, made.synthesis.notes) == ((), (NOT_JUDGED,))


def test_pairs_among_two_hundred_statements_are_reported_if_they_met_and_nothing_else() -> None:
    """The judge names every pair that contradicts and that it sees. The others come from fields of their own."""
    pairs = json.loads((CASES / "cases.json").read_text(encoding="utf-8"))["pairs"]
    wanted = [(first, second) for first, second, contradict in pairs if contradict]
    labelled = (Path(__file__).parent / "labelled" / "contradictions.jsonl").read_text(encoding="utf-8").splitlines()
    others = [second for _, second, contradict in pairs if not contradict]
    others += [text for line in labelled if isinstance(text := json.loads(line)["first"], str)]
    others += [f"Room {number} of house {number % 9} was painted in {1900 + number}." for number in range(100)]
    chance, said = random.Random(7), [list[str]() for _ in range(30)]
    for pair in wanted:
        for task, text in zip(chance.sample(said, 2), pair, strict=True):
            task.append(text)
    for text in others:
        chance.choice(said).append(text)
    met: set[tuple[str, str]] = set()

    def talk(call: ModelCall) -> Any:
        if call.role != "judge":
            return {"answer": " ".join(f"[t{number}]" for number in range(30))}
        shown = {text: int(number) for number, text in re.findall(r"(\d+)\. \[t\d+\] (.*?) \(confid", text_of(call))}
        found = [pair for pair in wanted if set(pair) <= shown.keys()]
        met.update(found)
        named = [{"first": shown[first], "second": shown[second]} for first, second in found]
        return {"contradictions": [{**each, "verdict": "unclear", "reason": "Both cannot be."} for each in named]}

    outcomes = [result(f"t{number}", *dict.fromkeys(texts)) for number, texts in enumerate(said)]
    made = make(outcomes, talk, judge=BRAIN)
    assert len(met) >= 0.8 * len(wanted)
    reported = [tuple(claim.partition(": ")[2] for claim in each.claims) for each in made.synthesis.contradictions]
    assert sorted(map(sorted, reported)) == sorted(map(sorted, met))


A, B, C = (Statement(task, f"It is {n}.", 80, (task,)) for task, n in (("t1", 5), ("t2", 7), ("t3", 5)))
D, E, F, G = (Statement(task, f"The {task} is {n}.", 80) for n, task in enumerate(("t1", "t2", "t1", "t2")))


def test_candidates_about_one_subject_are_one_contradiction() -> None:
    """Verdicts that fit together resolve it; any that is missing or at odds leaves it open."""
    first, second, other = Pair(A, B, "The size"), Pair(B, C, "the  size"), Pair(D, E, "Else")
    good: Rulings = {first: Ruling("first", "Newer."), second: Ruling("second", "Newer."), other: None}
    size, else_ = disagreements(good)
    assert (size.tasks, size.resolved, size.verdict) == (("t1", "t2", "t3"), True, "t1: It is 5.; t3: It is 5.")
    assert size.reason == "Newer."
    assert not else_.resolved
    [at_odds, _] = disagreements(good | {second: Ruling("first", "Older.")})
    assert not at_odds.resolved
    assert "do not fit together" in at_odds.reason
    [missing, _] = disagreements(good | {second: None})
    assert (missing.resolved, missing.verdict) == (False, None)


def test_two_tasks_that_differ_twice_about_one_subject_contradict_each_other_once() -> None:
    """A claim and a sentence of the output may both show it; another subject is another contradiction."""
    [found] = disagreements({Pair(A, B, "The size"): None, Pair(F, G, "the size"): None})
    assert found.statements == (A, B, F, G)
    assert len(disagreements({Pair(A, B, "The size"): None, Pair(F, G, "The price"): None})) == 2


def test_a_compatible_pair_holds_nothing_together() -> None:
    """Of three that hang together the rest is one contradiction, and without a link it is two."""
    third = Statement("t4", "It is 9.", 80, ("t4",))
    both = Ruling("both", "Two years.")
    [rest] = disagreements({Pair(A, B): both, Pair(B, C): None})
    assert (rest.statements, rest.resolved) == ((B, C), False)
    assert disagreements({Pair(A, B): both, Pair(B, C): both}) == ()
    chain: Rulings = {Pair(A, B): None, Pair(B, C): both, Pair(C, third): None}
    assert [each.tasks for each in disagreements(chain)] == [("t1", "t2"), ("t3", "t4")]


def test_a_model_that_writes_markdown_states_the_same_clash_once() -> None:
    """Stars and brackets around a task or a subject make no other contradiction of it."""
    stated = {"subject": "**People** in the `Oslo` office", "claims": ["**t1**: 500", "[t2] 700"]}
    talk = lambda _: {"answer": "The results disagree [t1, t2].", "contradictions": [stated]}  # noqa: E731
    made = make([result("t1", FIVE), result("t2", SEVEN)], talk)
    assert [each.subject for each in made.synthesis.contradictions] == [FIVE[:-1]]


def test_a_claim_and_its_summary_are_judged_and_listed_once() -> None:
    """One call, one contradiction with two claims, without Markdown."""

    def talk(call: ModelCall) -> Any:
        return {"verdict": "unclear", "reason": "No source."} if call.role == "judge" else {"answer": "So [t1, t2]."}

    said = "## Result\n\nAs the register says, **the office in Oslo** employs {} people today."
    made = make(
        [
            result("t1", f"- **{FIVE}**", summary=said.format(500)),
            result("t2", f"- **{SEVEN}**", summary=said.format(700)),
        ],
        talk,
        judge=BRAIN,
    )
    assert len(made.of("judge")) == 1
    assert only(made).claims == (f"t1: {FIVE}", f"t2: {SEVEN}")
    assert "**" not in made.synthesis.answer


# -- the labelled set ------------------------------------------------------------------------------------------------

ROWS = (Path(__file__).parent / "labelled" / "contradictions.jsonl").read_text(encoding="utf-8").splitlines()
LABELLED = [row for row in map(json.loads, ROWS) if isinstance(row["first"], str)]


def test_labelled_pairs_end_to_end() -> None:
    """A judge that knows the labels: what contradicts is resolved or shown as open, what does not is no contradiction.

    Every second contradiction is one the judge cannot decide; the synthesizer never says a word about any.
    """
    for number, row in enumerate(LABELLED):
        decides = number % 4 < 2

        def talk(call: ModelCall, row: Any = row, decides: bool = decides) -> Any:
            if call.role == "judge":
                verdict = ("second" if decides else "unclear") if row["contradict"] else "both"
                return {"verdict": verdict, "reason": "As labelled.", "confidence": 90}
            return {"answer": "What the results say [t1, t2]."}

        made = make([result("t1", row["first"]), result("t2", row["second"])], talk, judge=BRAIN)
        found = made.synthesis.contradictions
        assert bool(found) == row["contradict"], row
        if not row["contradict"]:
            assert "Where workers disagree" not in made.synthesis.answer
        elif decides:
            assert all(each.resolved and (each.verdict or "").startswith("t2: ") for each in found)
        else:
            assert "Unresolved." in made.synthesis.answer
