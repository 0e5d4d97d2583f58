"""Figures, urls and results of an answer, held against the outcomes it cites."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.synthesizer.check_citations import (
    ADVICE,
    Known,
    corrections,
    provenance_of,
    provenance_of_listing,
    why_unfounded,
)
from chargehand.synthesizer.figures import figures
from chargehand.synthesizer.result_index import ResultIndex
from chargehand.synthesizer.synthesis import keeps_open
from chargehand.values.outcome import Claim, Finding, Outcome, done, escalated, failed, skipped
from chargehand.values.plan import Plan, SynthesisSpec
from chargehand.values.report import Provenance
from chargehand.values.request import Earlier, Request

LABELLED = Path(__file__).parent / "labelled"
SETS: dict[str, Any] = json.loads((LABELLED / "citations_outcomes.json").read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = [
    json.loads(line) for line in (LABELLED / "citations.jsonl").read_text(encoding="utf-8").splitlines()
]


def labelled(name: str) -> dict[str, Outcome]:
    return {id: Outcome.model_validate({"task": id, **data}) for id, data in SETS[name]["outcomes"].items()}


def codes(problems: tuple[str, ...]) -> set[str]:
    return {problem.partition(":")[0] for problem in problems}


def checked(case: dict[str, Any]) -> set[str]:
    known = Known(SETS[case["outcomes"]]["request"])
    outcomes = labelled(case["outcomes"])
    found = provenance_of(case["answer"], outcomes, known=known)
    unfounded = why_unfounded(found, outcomes)
    return codes((*([unfounded] if unfounded and not found.cited else []), *corrections(found)))


def one(output: Any, **fields: Any) -> dict[str, Outcome]:
    return {"t1": done("t1", "ann", summary="A summary.", output=output, **fields)}


def problems(answer: str, output: Any, request: str = "", **fields: Any) -> set[str]:
    """The codes for an answer that cites its one result."""
    return codes(provenance_of(f"{answer} [t1]", one(output, **fields), known=Known(request)).problems)


# -- the labelled set ------------------------------------------------------------------------------------------------


def test_planted_faults_are_caught_and_clean_answers_are_not_blamed() -> None:
    """Of over 50 answers with faults, each kind of fault several times, and over 25 without, all but those labelled."""
    faulty, clean = [c for c in CASES if c["expect"]], [c for c in CASES if not c["expect"]]
    assert len(faulty) >= 50
    assert len(clean) >= 25
    kinds = Counter(code for case in faulty for code in case["expect"])
    assert set(kinds) == set(ADVICE)
    assert min(kinds.values()) >= 2
    # `beyond` says why the check of figures cannot see it: a unit, a version, a label, a rounding to one digit.
    missed = [case for case in faulty if set(case["expect"]) - checked(case)]
    assert [case["answer"] for case in missed if "beyond" not in case] == []
    assert len(missed) <= 7
    # False alarms: in clean answers, and of another kind in faulty ones.
    alarms = [case for case in CASES if checked(case) - set(case["expect"])]
    assert [case["answer"] for case in alarms if "beyond" not in case] == []
    assert len(alarms) <= 2
    assert sum("beyond" in case for case in CASES) == len(missed) + len(alarms)


# -- figures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "output"),
    [
        ("1,234 people", {"people": 1234}),
        ("1234 people", "There are 1 234 people."),
        ("12 percent", "It is 12%."),
        ("12 %", {"share": 0.12}),
        ("5.6", "EUR 5.6 billion"),
        ("$5m", "5 million dollars"),
        ("a fall of 5 %", "-5%"),
        ("in 2024", "On 5 March 2024."),
        ("in March 2024", {"on": "2024-03-05"}),
        ("in Q1 2024", {"on": "2024-03-05"}),
        ("on 5 March", {"on": "2024-03-05"}),
        ("about 1,200", 1234),
        ("1,200", 1234),
        ("roughly 0.27", 0.2718),
        ("the 3 makers", ["a", "b", "c"]),
        ("7 makers", "Seven makers."),
        ("line 42", "src/auth.py:42"),
        ("twelve makers", "Many makers."),
        ("step 3", "It is done."),
        ("so:\n**7. Cost** is low", "It is done."),
        ("so:\n\n### 7. Cost\n\nIt is low", "It is done."),
        ("so for (1) cost and (2) time", "It is done."),
        ("so: 1) cost 2) time", "It is done."),
        ("our #1 choice, two weeks on", "It is done."),
        ("1e-7", 0.0000001),
        ("`12 %`", "It is 12%."),
        ("`timeout=99`", "It is done."),
    ],
)
def test_a_figure_that_the_cited_result_holds_is_supported(said: str, output: Any) -> None:
    """In whatever spelling, and rounded to two digits or more."""
    assert problems(f"It is {said}.", output) == set()


@pytest.mark.parametrize(
    ("said", "output"),
    [
        ("1,243 people", {"people": 1234}),
        ("5.6 million", "EUR 5.6 billion"),
        ("-5 %", "5%"),
        ("in 2023", "On 5 March 2024."),
        ("on 5 March 2024", "In 2024."),
        ("about 1,300", 1234),
        ("~1,230", 1234),
        ("in 2020", "In 2021."),
        ("roughly 0.3", 0.2718),
        ("more than 1,300", 1234),
        ("nearly 1,400", 1234),
        ("the 4 makers", ["a", "b", "c"]),
        ("14:05", "It began at 15:05."),
        ("`13 %`", "It is 12%."),
        ("3,000", [1000, 2000]),
    ],
)
def test_a_figure_that_the_cited_result_does_not_hold_keeps_the_run_open(said: str, output: Any) -> None:
    """Other digits, scales, signs, dates; wrong rounding, rounding to tens or to one digit; sums nobody made."""
    found = provenance_of(f"It is {said} [t1].", one(output))
    assert codes(found.problems) == codes(keeps_open(found)) == {"unsupported_figure"}


def test_what_the_request_says_needs_no_result() -> None:
    """Nor does the run that is followed up on."""
    request = Request(text="Plan 14 days up to 3,000 m.", earlier=Earlier(run="r", request="q", answer="It is 99 km."))
    known = Known.of(request, Plan(goal="A plan."))
    answer = "14 days, 99 km, up to 3,000 m."
    assert provenance_of(f"{answer} [t1]", one("Yes."), known=known).problems == ()
    assert len(provenance_of(f"{answer} [t1]", one("Yes.")).problems) == 3
    assert provenance_of(f"{answer}\n\nYes [t1].", one("Yes."), known=known).problems == ()


def test_what_a_planner_makes_of_the_request_is_no_evidence() -> None:
    """Its goal and instruction hold no figures; those of a plan whose goal is the request do."""
    plan = Plan(goal="Explain why 9,999 people died.", synthesis=SynthesisSpec(instruction="Name the 8,888 houses."))
    planned = Known.of(Request(text="What happened?"), plan)
    given_without_request = Known.of(Request(text=plan.goal), plan)
    answer = "Of 8,888 houses, 9,999 people died [t1]."
    assert len(provenance_of(answer, one("Many died."), known=planned).problems) == 2
    assert provenance_of(answer, one("Many died."), known=given_without_request).problems == ()


@pytest.mark.parametrize(
    "said", ["The glucose level 500", "His pain level 9", "It scored points 90", "Room no. 5555", "After days 14",
             "Step 9999", "The number 12"],
)  # fmt: skip
def test_a_label_excuses_no_measure(said: str) -> None:
    """Only the smallest whole numbers are not looked up."""
    assert problems(f"{said} is so.", "Yes.") == {"unsupported_figure"}


@pytest.mark.parametrize("said", ["Step 3", "Option 2", "On day 3", "Two of 3"])
def test_a_small_whole_number_is_not_looked_up(said: str) -> None:
    """It may count or number a part of the answer."""
    assert problems(f"{said} is so.", "Yes.") == set()


@pytest.mark.parametrize(
    ("said", "output"), [("12 percent", "12 EUR"), ("$5m", "5 million euros"), ("version 2.1", "2.10"), ("sixty", "70")]
)
def test_what_the_check_of_figures_does_not_cover(said: str, output: str) -> None:
    """Units, versions that end in a zero, number words: docs/explanation/synthesis.md says so."""
    assert problems(f"It is {said}.", output) == set()


@pytest.mark.parametrize(
    ("said", "blamed"),
    [
        ("The rooms have a view of the sea [t2].", True),
        ("- The rooms have a view of the sea [t2, t4]", True),
        ("The hotel is near [t1], and the rooms have a view of the sea [t2].", True),
        ("The hotel is near [t1], and its rooms [t2] are unknown.", False),
        ("The rooms have a view of the sea [t1] [t2].", False),
        ("The rooms are missing [t2].", False),
        ("The prices were not found [t2].", False),
        ("Die Preise liegen nicht vor [t2].", False),
        ("The hotel's site answers too slowly [t2].", False),
        ("What it costs is open [t2, t4].", False),
        ("The rooms have a view [t1, t2].", False),
        ("The rooms have a view [t3].", False),
        ("## Rooms with a view [t2]\n\nYes [t1].", False),
        ("*Source: [t2]*", False),
    ],
)
def test_a_task_without_a_result_is_cited_for_nothing_but_its_gap(said: str, blamed: bool) -> None:
    """It is shown, and keeps no run open."""
    outcomes = {
        **one("Yes."),
        "t2": failed("t2", "bob", "timeout", "The site of the hotel answers slowly."),
        "t3": escalated("t3", "bob", "confidence_too_low", "Not sure.", partial={"rooms": 150}),
        "t4": skipped("t4", "bob", ["t2"]),
    }
    found = provenance_of(f"Yes [t1].\n\n{said}", outcomes)
    assert codes(found.problems) == ({"failed_citation"} if blamed else set())
    assert keeps_open(found) == ()


def test_an_answer_that_rests_on_a_stopped_task_says_so() -> None:
    """Also where the paragraph rests on other tasks too."""
    outcomes = {**one("Yes."), "t2": failed("t2", "bob", "cancelled", "A person stopped it.")}
    found = provenance_of("The hotel is near [t1], and the rooms have a view of the sea [t2].", outcomes)
    said = "Paragraph 1 rests on [t2], which a person stopped: it has no result."
    assert found.problems == (f"failed_citation: {said}",)


def test_only_who_can_mend_it_is_told_what_to_do() -> None:
    """The report says what is wrong; the advice is for the synthesizer."""
    two = {
        **one(150),
        "t2": done("t2", "ann", summary="s", output="Yes."),
        "t3": failed("t3", "bob", "tool", "Broken."),
    }
    answer = "It has 7,777 rooms [t1].\n\nIt has 150.\n\nSee https://no.example [t9].\n\nAll are lovely [t3]."
    found = provenance_of(answer, two)
    told = corrections(found)
    assert found.problems
    for problem, correction in zip(found.problems, told, strict=False):
        advice = ADVICE[problem.partition(":")[0]]  # pyright: ignore[reportArgumentType]
        assert correction == f"{problem} {advice}"
        assert advice.casefold().rstrip(".") not in problem.casefold()
    assert len(told) == len(found.problems) + len(found.unused)


def test_a_figure_counts_only_where_its_task_is_cited() -> None:
    """By item and by row, by paragraph otherwise; the sentence names paragraph, figure and what was cited."""
    two = {id: done(id, "ann", summary="s", output=f"It has {n} rooms.") for id, n in (("t1", 150), ("t2", 270))}
    assert provenance_of("It has 150, the other 270 [t1, t2].", two).problems == ()
    assert provenance_of("It has 150 [t1] and the other has 270 [t2].", two).problems == ()
    assert provenance_of("- It: 150\n\n- Other: 270\n\n*Source: [t1, t2]*", two).problems == ()
    assert provenance_of("- It: 150\n- Other: 270\n\nAll of it is so [t1, t2].", two).problems != ()
    assert provenance_of("Rooms [t1, t2]:\n- It: 150\n- Other: 270", two).problems == ()
    assert provenance_of("Rooms [t1, t2]:\n\n- It: 150\n\n- Other: 270", two).problems == ()
    assert provenance_of("| a | b |\n|---|---|\n| 150 | [t1] |\n| 270 | [t2] |", two).problems == ()
    [problem] = provenance_of("Rooms.\n\n- It: 270 [t1]\n- Other: 270 [t2]", two).problems
    assert problem.startswith("unsupported_figure: Paragraph 2 says 270, which [t1] does not contain")
    [problem] = provenance_of("| a | b |\n|---|---|\n| 270 | [t1] |\n| 270 | [t2] |", two).problems
    assert "[t1]" in problem


def test_a_paragraph_with_a_figure_cites_its_task() -> None:
    """Else it is a problem that is shown; a figure no result holds keeps the run open there too."""
    found = provenance_of("It is so [t1].\n\nIt has 150 rooms.", one(150))
    assert codes(found.problems) == {"uncited_figure"}
    assert keeps_open(found) == ()
    found = provenance_of("It is so [t1].\n\nIt has 151 rooms.", one(150))
    assert codes(keeps_open(found)) == {"unsupported_figure"}
    assert provenance_of("# All 150 rooms\n\nIt is so [t1].", one(150)).problems == ()
    assert keeps_open(provenance_of("# All 151 rooms\n\nIt is so [t1].", one(150))) != ()


def test_a_failed_task_supports_no_figure_but_those_of_its_failure() -> None:
    """To speak of a gap is fine; a partial result is a result."""
    two = {
        **one("Yes."),
        "t2": failed("t2", "bob", "timeout", "No answer within 30 s."),
        "t3": escalated("t3", "bob", "confidence_too_low", "Not sure.", partial={"rooms": 150}),
    }
    assert provenance_of("Yes [t1].\n\nThe prices are missing: no answer within 30 s [t2].", two).problems == ()
    assert provenance_of("Yes [t1].\n\nPerhaps 150 rooms [t3].", two).problems == ()
    assert codes(provenance_of("Yes [t1].\n\nA room costs 99 EUR [t2].", two).problems) == {"unsupported_figure"}


def test_the_run_may_be_counted() -> None:
    """Its tasks and findings are there to be counted."""
    findings = [Finding(message="m", severity="critical") for _ in range(17)]
    outcomes = {"t1": done("t1", "ann", summary="s", output=None, findings=findings[:8]),
                "t2": done("t2", "ann", summary="s", output=None, findings=findings[8:])}  # fmt: skip
    assert provenance_of("There are 17 findings from 2 workers [t1, t2].", outcomes).problems == ()
    assert provenance_of("There are 13 findings [t1, t2].", outcomes).problems != ()
    assert provenance_of("There are 13 findings [t1, t2].", outcomes, merged=findings[:13]).problems == ()


def test_an_answer_may_count_its_own_lists() -> None:
    """Whole numbers up to the number of its items, rows and headings are not looked up, and never more than 12."""
    for answer in (
        "There are 3 reasons [t1]:\n- a\n- b\n  - b1\n- c",
        "There are 3 reasons [t1]:\n\n1. a\n\n2. b\n\n3. c\n\nThat is all.",
        "# The 3 reasons\n\nThey are [t1]:\n\n- a\n- b\n- c",
        "It has 2 rows [t1]:\n\n| a | b |\n|---|---|\n| x | y |\n| x | y |",
    ):
        assert provenance_of(answer, one("Yes.")).problems == ()
        assert provenance_of(answer.replace("3 r", "14 r").replace("2 r", "14 r"), one("Yes.")).problems != ()


# -- urls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a_(b)",
        "https://EXAMPLE.org/a_(b)/",
        "HTTPS://example.org:443/a_(b)#there",
        "<https://example.org/a_(b)>",
        "(see https://example.org/a_(b)).",
        "[page](https://example.org/a_(b))",
        "https://asked.example.org",
        "https://read.example.org/x?y=1&z=2",
        "www.example.net/found,",
    ],
)
def test_a_url_that_is_known_is_no_problem(url: str) -> None:
    """From a result's output, sources and findings, the request, or what a tool returned; in whatever spelling."""
    outcomes = one(
        {"deep": [{"https://example.org/a_(b)": None}]},
        findings=[Finding(message="See https://www.example.net/found")],
    )
    known = Known.of(Request(text="Read https://asked.example.org/."), Plan(), ["https://read.example.org/x?y=1&z=2"])
    outcomes["t1"] = outcomes["t1"].model_copy(
        update={"claims": (Claim(statement="s", sources=("t1", "https://www.example.net/found")),)}
    )
    assert provenance_of(f"It is so {url} [t1]", outcomes, known=known).problems == ()


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/b",
        "http://example.org/a",
        "https://example.org/a?x=1",
        "https://example.org",
        "www.a.org/b",
    ],
)
def test_a_url_nobody_gave_is_shown(url: str) -> None:
    """It does not keep a run open, which figures do."""
    found = provenance_of(f"See {url} [t1].", one("https://example.org/a"))
    [problem] = found.problems
    assert problem.startswith("unknown_url: ")
    assert keeps_open(found) == ()


# -- results ---------------------------------------------------------------------------------------------------------


def test_a_result_merged_into_something_cited_is_used() -> None:
    """If all of its items are; one item that stands alone leaves it unused."""
    outcomes = {
        id: done(id, "ann", summary="s", output=None, claims=[Claim(statement=id)]) for id in ("t1", "t2", "t3")
    }
    shared, own = Claim(statement="a", sources=("t1", "t2", "https://a.b")), Claim(statement="b", sources=("t3",))
    found = provenance_of("It is so [t1].", outcomes, merged=[shared, own])
    assert (found.problems, found.unused) == ((), ("t3",))
    assert codes(corrections(found)) == {"unused_result"}
    alone = Claim(statement="c", sources=("t2",))
    assert provenance_of("It is so [t1].", outcomes, merged=[shared, alone, own]).unused == ("t2", "t3")
    assert provenance_of_listing("It is so [t1].", outcomes, [shared, own]).unused == ("t3",)


IDS = ("t1", "t2", "t3", "x1.t1", "market")


@given(
    answer=st.lists(st.sampled_from([*(f"[{id}]" for id in IDS), "[t1-t3]", "[t9]", "`[t2]`", "\n\n", "- ", "7 %"])),
    ok=st.lists(st.booleans(), min_size=5, max_size=5),
    groups=st.lists(st.lists(st.sampled_from(IDS), min_size=1, unique=True)),
)
def test_every_result_is_cited_merged_into_something_cited_or_unused(
    answer: list[str], ok: list[bool], groups: list[list[str]]
) -> None:
    """Exactly one of these, whatever the answer; what is not done is never unused."""
    outcomes = {
        id: done(id, "ann", summary="s", output="o") if good else failed(id, "ann", "tool", "no")
        for id, good in zip(IDS, ok, strict=True)
    }
    merged = [Claim(statement="s", sources=tuple(group)) for group in groups]
    found = provenance_of(" ".join(answer), outcomes, merged=merged)
    cited = {task for tasks in found.citations.values() for task in tasks}
    for id, outcome in outcomes.items():
        mine = [group for group in groups if id in group]
        in_use = bool(mine) and all(cited.intersection(group) for group in mine)
        assert (id in found.unused) == (outcome.ok and id not in cited and not in_use)


# -- anything a model may write --------------------------------------------------------------------------------------


@given(st.text(alphabet="t1x9.,-[]()`|#>*: \n%/ahtps\u2013\ud800", max_size=80), st.text(max_size=40))
def test_no_text_breaks_the_check(answer: str, output: str) -> None:
    """There is always a provenance, and it can be told."""
    found = provenance_of(answer, one(output) | one(output))
    assert isinstance(found, Provenance)
    assert all(problem.partition(":")[0] in ADVICE for problem in corrections(found))


ODD: list[Any] = [None, float("nan"), float("inf"), 10**400, True, [[[[]]]], {"a": {"b": None}}, "\ud800", "", -0.0]


@pytest.mark.parametrize("output", ODD)
def test_no_result_breaks_the_check(output: Any) -> None:
    """Whatever JSON, and what is none, a worker came up with."""
    assert codes(provenance_of("It is 123456 [t1].", one(output)).problems) == {"unsupported_figure"}


def test_a_deep_result_is_read_to_its_end() -> None:
    """Without recursion."""
    deep: Any = 4711
    for _ in range(50_000):
        deep = [deep]
    outcome = one(None)["t1"].model_copy(update={"output": deep})
    assert provenance_of("It is 4711 [t1].", {"t1": outcome}).problems == ()


def test_many_problems_are_told_briefly() -> None:
    """Ten of a kind, then how many more."""
    found = provenance_of("\n\n".join(f"It is {n} [t1]." for n in range(1000, 1050)), one("Yes."))
    assert len(found.problems) == 11
    assert found.problems[-1].startswith("unsupported_figure: 40 ")
    assert len(keeps_open(found)) == 11


PIECES = ("[", "]", "[t1", "[t1,", "`", "``", "```\n", "[a]", "[t1](", "[t1-t2] ", "1,", "1.", "12 % ", "| a ", "- 1\n",
          "https://a.b/c) ", "www.", "(", "\n \n", "# 1\n", "t1 to ", "about ", "> ", "[t1]: ", "1 [t1]\n\n", "\u2013",
          "Q3 2024 ")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_no_text_takes_more_than_linear_time(piece: str) -> None:
    """Four times the text takes about four times as long, and never sixteen."""

    def seconds(times: int) -> float:
        text = piece * (times // len(piece))
        before = process_time()
        provenance_of(text, one(text))
        return process_time() - before

    seconds(1_000)
    short = min(seconds(10_000) for _ in range(2))
    assert min(seconds(40_000) for _ in range(2)) < 9 * short + 0.1


def test_a_result_is_read_only_when_a_figure_is_looked_for_in_it() -> None:
    """A wide run has hundreds of results, and most figures of an answer are where it says they are."""

    read: set[str] = set()

    class Results(dict[str, Outcome]):
        def __getitem__(self, task: str) -> Outcome:
            read.add(task)
            return super().__getitem__(task)

    results = Results({f"t{n}": done(f"t{n}", "w", summary="", output=f"{n} units") for n in range(90)})
    (held,), (rounded,) = figures("43 units"), figures("430 units")
    evidence = ResultIndex(results)
    assert evidence.has(held, ["t42", "t43"])
    assert read == {"t42", "t43"}
    assert not evidence.has(rounded, ["t43"])
    assert len(read) == 90


def test_a_clock_time_is_named_whole_and_once() -> None:
    """Not its hours, minutes and seconds; a file with line and column is not a time."""
    one = {"t1": done("t1", "ann", summary="s", output="It began at 18:04:12.")}
    assert provenance_of("It began at 18:04:12 [t1].", one).problems == ()
    assert provenance_of("It began at 18:04:12, over at 19:20:56 [t1].", one).problems == (
        "unsupported_figure: Paragraph 1 says 19:20:56, which [t1] does not contain.",
    )
    assert [problem.split(", which")[0] for problem in provenance_of("It is at 7:45 pm [t1].", one).problems] == [
        "unsupported_figure: Paragraph 1 says 7:45"
    ]
    [problem, _] = provenance_of("See notes.md:31:59 [t1].", one).problems
    assert problem.startswith("unsupported_figure: Paragraph 1 says 31, which")
