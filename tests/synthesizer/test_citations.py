"""Which brackets of an answer are citations, which of those are unknown, and which are none at all."""

from __future__ import annotations

import pytest

from chargehand.synthesizer.check_citations import provenance_of, provenance_of_listing, why_unfounded
from chargehand.values.outcome import Outcome, done, failed

NUMBERED = ("t1", "t2")
WORDS = ("market", "legal")


def outcomes(*ids: str) -> dict[str, Outcome]:
    return {id: done(id, "ann", summary="s", output="o") for id in ids}


def unknown(answer: str, *ids: str) -> list[str]:
    """The unknown citations of an answer that cites a task besides."""
    found = provenance_of(f"{answer}\n\nSo it is [{ids[0]}].", outcomes(*ids)).problems
    cited = [problem for problem in found if problem.startswith("unknown_citation: ")]
    return [problem.partition("[")[2].partition("]")[0] for problem in cited]


@pytest.mark.parametrize("ids", [NUMBERED, WORDS, ("t1", "market"), ("a", "b")])
def test_an_invented_number_is_unknown(ids: tuple[str, ...]) -> None:
    """Whatever the plan's own ids look like; two digits or a letter more make no difference."""
    assert unknown("All good [t7] and [t9x], also [T12] and [task3; task_4].", *ids) == [
        "t7",
        "t9x",
        "T12",
        "task3",
        "task_4",
    ]


def test_an_invented_word_is_unknown_where_ids_are_words() -> None:
    """And not where they are numbers: then it is prose."""
    assert unknown("All good [finance] [market_size].", *WORDS) == ["finance", "market_size"]
    assert unknown("All good [finance] [market_size].", *NUMBERED) == []
    assert unknown("All good [finance].", "a", "b") == ["finance"]


@pytest.mark.parametrize("ids", [NUMBERED, WORDS, ("a", "b")])
@pytest.mark.parametrize(
    "prose",
    [
        "He said it [sic], see [1] and [2, 3].",
        "- [x] one\n- [ ] two",
        "[note] and [TODO] and [Note] and [...]",
        "[finance](https://example.org) and [t9](#there)",
        "[finance]: https://example.org\n[t9]: <x>",
        "Call `rows[t9]` or ``x[finance]``.",
        "```python\nrows[t9]\n\nrows[finance]\n```",
        "~~~\n[t9]\n~~~",
        "[RFC2119], [SHA256] and [Q3]",
        "[t]he [w]ord",
        "[see the finance report] [emphasis mine]",
        "[Finance] and [FY]",
    ],
)
def test_brackets_of_other_kinds_are_no_citations(prose: str, ids: tuple[str, ...]) -> None:
    """Few false alarms: each would cost a second synthesis."""
    assert unknown(prose, *ids) == []


def test_known_tasks_are_found_in_every_form() -> None:
    """Alone, in lists, one after the other, with dots, before a colon, at a paragraph's end."""
    answer = "[t1]: first [t2][t3]と.\n\nThen [t1,t2; t3.s.t1]\n\nNone."
    found = provenance_of(answer, outcomes("t1", "t2", "t3", "t3.s.t1", "t4"))
    assert found.citations == {"1": ("t1", "t2", "t3"), "2": ("t1", "t2", "t3.s.t1")}
    assert (found.problems, found.unused) == ((), ("t4",))


@pytest.mark.parametrize(
    ("brackets", "tasks"),
    [
        ("[t1-t3]", ("t1", "t2", "t3")),
        ("[t1\u2013t3]", ("t1", "t2", "t3")),
        ("[t1-3]", ("t1", "t2", "t3")),
        ("[t2..t3]", ("t2", "t3")),
        ("[t3 to t1]", ("t1", "t2", "t3")),
        ("[t1-t2, x1.t1]", ("t1", "t2", "x1.t1")),
        ("[x1.t1-x1.t2]", ("x1.t1", "x1.t2")),
        ("[t1][t2]", ("t1", "t2")),
        ("[t1, t2 and t3]", ("t1", "t2", "t3")),
        ("[t1 & t2]", ("t1", "t2")),
        ("[t1](#task-1)", ("t1",)),
        ("[t1](https://example.org/t1)", ("t1",)),
        ("[T1]", ("t1",)),
        ("[task t1]", ("t1",)),
        ("[Sources: t1, t2]", ("t1", "t2")),
        ("[t1, page 3]", ("t1",)),
        ("**[t1]**", ("t1",)),
        ("[t3.s.t1]", ("t3.s.t1",)),
        ("[t-4]", ("t-4",)),
        ("[t1,\n t2]", ("t1", "t2")),
    ],
)
def test_a_citation_may_be_written_in_many_ways(brackets: str, tasks: tuple[str, ...]) -> None:
    """Ranges, lists, links and words around an id all name the tasks that are meant."""
    found = provenance_of(f"So it is {brackets}.", outcomes("t1", "t2", "t3", "x1.t1", "x1.t2", "t3.s.t1", "t-4"))
    assert found.citations == {"1": tasks}
    assert not any(problem.startswith("unknown_citation") for problem in found.problems)


@pytest.mark.parametrize(
    ("brackets", "names"),
    [
        ("[t1-t9]", ["t9"]),
        ("[t1, t9]", ["t9"]),
        ("[x1.t9]", ["x1.t9"]),
        ("[t1.s.t9]", ["t1.s.t9"]),
        ("[t0-t9]", ["t0", "t9"]),
    ],
)
def test_the_unknown_part_of_a_citation_is_named(brackets: str, names: list[str]) -> None:
    """And only that."""
    assert unknown(f"So it is {brackets}.", "t1", "t2") == names


def test_code_moves_no_paragraph() -> None:
    """Blank lines in code count as they do without."""
    found = provenance_of("a [t1]\n\n```\nx\n\ny[t2]\n```\n\nb [t2]", outcomes("t1", "t2"))
    assert found.citations == {"1": ("t1",), "4": ("t2",)}


def test_an_answer_that_rests_on_no_result_is_rejected() -> None:
    """It cites nothing, since brackets in code do not count, or only tasks without a result."""
    two = {**outcomes("t1"), "t2": failed("t2", "ann", "tool", "no")}

    def why(answer: str) -> str:
        return (why_unfounded(provenance_of(answer, two), two) or "").partition(":")[0]

    assert why("All good. `[t1]`") == "no_citation"
    assert why("It could not be found out [t2].") == "uses_no_result"
    assert why("All good [t1].") == ""


def test_results_listed_by_code_are_quoted_as_they_are() -> None:
    """What a worker put into brackets is no citation of this run."""
    found = provenance_of_listing("It says [t9].\n\n```json\ncut off [t1]\n\nmore [t2]", outcomes("t1", "t2"))
    assert (found.problems, found.unused) == ((), ())
