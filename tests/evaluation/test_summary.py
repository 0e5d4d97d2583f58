"""Results become figures, a verdict and a page."""

from __future__ import annotations

import json
import os
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargehand.evaluation import BaselineVerdict, Check, Evaluation, Result, against
from chargehand.evaluation.evaluation_page import to_html
from chargehand.evaluation.store import Store
from chargehand.values.outcome import Fault, Usage
from tests.counts import examples
from tests.evaluation.samples import evaluated, result

BROKEN = Fault(kind="connection", message="The line is down.")


def routed(case: str, expected: str, chosen: str, **fields: Any) -> Result:
    right = expected == chosen
    return result(case, right, kind="routing", expected=expected, chosen=chosen, **fields)


# --- figures --------------------------------------------------------------------------------------------------------


def test_routing_has_accuracy_and_a_confusion_matrix() -> None:
    """Rows are what was expected; a worker that was only ever chosen has a column too."""
    pairs = [("a", "a"), ("a", "b"), ("a", "a"), ("b", "b"), ("b", "c")]
    kind = evaluated(*(routed(str(n), *pair) for n, pair in enumerate(pairs))).candidates[0].kinds[0]
    assert kind.metrics["accuracy"].estimate.mean == pytest.approx(0.6)
    assert kind.confusion is not None
    assert kind.confusion.workers == ("a", "b", "c")
    assert kind.confusion.counts == ((2, 1, 0), (0, 1, 1), (0, 0, 0))


def test_a_case_that_could_not_be_tried_is_counted_apart() -> None:
    """It is neither passed nor failed: figures are made of the others."""
    found = evaluated(result("1"), result("2", passed=False, error=BROKEN, checks=()))
    kind = found.candidates[0].kinds[0]
    assert (kind.cases, kind.results, kind.passed, kind.errors) == (2, 2, 1, 1)
    assert kind.metrics["passed"].estimate.mean == 1
    assert [each.case for each in found.errors] == ["2"]


def test_an_unknown_price_leaves_no_sum_of_money() -> None:
    """A mean over what is known would look cheaper than it was."""
    known, unknown = result("1", usage=Usage(usd=0.5)), result("2", usage=Usage(usd=None))
    assert "usd" in evaluated(known).candidates[0].kinds[0].metrics
    assert "usd" not in evaluated(known, unknown).candidates[0].kinds[0].metrics


def test_candidates_are_compared_case_by_case() -> None:
    """Twenty cases the second fails and the first passes are a clear difference; equal ones are none."""
    ours = [result(str(n), candidate="a") for n in range(20)]
    theirs = [result(str(n), n >= 12, candidate="b") for n in range(20)]
    found = {each.metric: each for each in evaluated(*ours, *theirs).comparisons}
    assert found["passed"].difference.mean == pytest.approx(-0.6)
    assert found["passed"].clear
    assert found["passed"].difference.high < 0
    assert not found["tokens"].clear
    few = [each for each in (*ours, *theirs) if each.case in ("0", "1", "2")]
    assert not any(each.clear for each in evaluated(*few).comparisons)


def test_an_evaluation_survives_its_own_json() -> None:
    """What --json prints is what --baseline reads."""
    found = evaluated(result("1", metrics={"gaps": 1.0}), result("2", error=BROKEN))
    assert Evaluation.model_validate(json.loads(json.dumps(found.to_json()))) == found


# --- against a baseline ---------------------------------------------------------------------------------------------


def verdict(now: list[Result], before: list[Result]) -> BaselineVerdict:
    return against(evaluated(*now), evaluated(*before))


def told(found: BaselineVerdict) -> list[str]:
    return [each.metric or each.case or "" for each in found.regressions]


def test_equal_results_are_no_regression() -> None:
    """Failures that were there before included."""
    results = [result("1"), result("2", passed=False)]
    assert verdict(results, results) == BaselineVerdict(compared=2)


def test_a_case_that_passed_and_now_fails_is_a_regression() -> None:
    """It is told with its place, and what failed."""
    before = [result(str(n)) for n in range(50)]
    found = verdict([result("0", passed=False), *before[1:]], before)
    assert told(found) == ["0"]
    assert all(part in found.regressions[0].message for part in ("0 (evals/w.jsonl:3)", "exact: it is 5"))


def test_one_case_judged_by_a_model_is_no_regression_by_itself() -> None:
    """A scorer may change its mind; many such cases show in the figures."""
    before = [result(str(n), by="judge") for n in range(50)]
    assert told(verdict([result("0", passed=False, by="judge"), *before[1:]], before)) == []
    after = [result(str(n), passed=n > 20, by="judge") for n in range(50)]
    assert told(verdict(after, before)) == ["passed", "score"]


def test_a_figure_is_worse_only_when_its_interval_lies_below() -> None:
    """A mean that fell within the interval is within chance."""
    before = [result(str(n), by="judge", score=0.8 if n % 2 else 0.6) for n in range(30)]
    near = [result(str(n), by="judge", score=0.78 if n % 2 else 0.58) for n in range(30)]
    far = [result(str(n), by="judge", score=0.6 if n % 2 else 0.4) for n in range(30)]
    assert told(verdict(near, before)) == []
    assert told(verdict(far, before)) == ["score"]
    assert told(verdict(before, far)) == []


@pytest.mark.parametrize("cases", [1, 3, 30])
def test_a_judge_who_gives_a_point_less_trips_no_gate(cases: int) -> None:
    """However many cases: 90, then 89, and met both times."""
    before = [result(str(n), by="judge", score=0.95) for n in range(cases)]
    assert verdict([result(str(n), by="judge", score=0.945) for n in range(cases)], before) == BaselineVerdict(
        compared=cases
    )


def test_a_judge_of_few_cases_who_gives_far_less_is_told_and_trips_no_gate() -> None:
    """A few cases do not tell a worse answer from a scorer that varies; five that all fall do."""
    before = [result(str(n), by="judge", score=0.9) for n in range(5)]
    after = [result(str(n), by="judge", score=0.7) for n in range(5)]
    few = verdict(after[:4], before[:4])
    assert (told(few), [each.metric for each in few.unclear]) == ([], ["score"])
    assert all(part in few.unclear[0].message for part in ("0.9", "0.7", "-0.2"))
    assert told(verdict(after, before)) == ["score"]
    now, then = evaluated(*after[:4]), evaluated(*before[:4])
    assert "Too few cases with a rubric to decide" in "\n".join(Page(to_html(now, against(now, then))).texts)


def test_what_code_checks_counts_from_the_first_case_on_also_beside_a_judge() -> None:
    """One case, with a rubric: its exact answer went wrong, and the score is as good as before."""
    by_scorer = Check(name="rubric", passed=True, by="judge", score=0.9)

    def mixed(right: bool) -> Result:
        exact = Check(name="exact", passed=right, score=float(right), said="it is 5")
        return result("1", right, checks=(exact, by_scorer), score=0.95 if right else 0.45)

    assert told(verdict([mixed(False)], [mixed(True)])) == ["1"]
    assert told(verdict([routed("r", "a", "b")], [routed("r", "a", "a")])) == ["accuracy", "r"]


def test_each_case_is_held_to_itself() -> None:
    """All ten fall by a tenth: sure, though cases differ among each other by far more than that."""
    before = [result(str(n), kind="plan", metrics={"graph_f1": n / 10 + 0.1}) for n in range(10)]
    after = [result(str(n), kind="plan", metrics={"graph_f1": n / 10}) for n in range(10)]
    assert told(verdict(after, before)) == ["graph_f1"]


def test_more_gaps_are_worse_and_more_tokens_are_only_shown() -> None:
    """What a case may cost is set in the case."""
    before = [result(str(n), kind="run", metrics={"gaps": 0.0}) for n in range(10)]
    usage = Usage(input_tokens=9_000)
    after = [result(str(n), kind="run", metrics={"gaps": 1.0}, usage=usage, seconds=99) for n in range(10)]
    assert told(verdict(after, before)) == ["gaps"]


def test_only_cases_both_have_are_compared() -> None:
    """A suite may grow by hard cases without failing its gate, and a case that could not be tried is not compared."""
    before = [result("1"), result("2")]
    found = verdict([result("1"), result("2", passed=False, error=BROKEN), result("3", passed=False)], before)
    assert found == BaselineVerdict(compared=1)


def test_the_only_candidate_of_a_baseline_stands_for_any() -> None:
    """A new model is held to what the old one did; with several, names decide."""
    one = [result("1", candidate="old")]
    assert told(verdict([result("1", passed=False, candidate="new")], one)) == ["passed", "score", "1"]
    two = [*one, result("1", candidate="older")]
    found = verdict([result("1", passed=False, candidate="new")], two)
    assert (found.unknown, found.compared, found.regressions) == (("new",), 0, ())


def test_a_case_that_passed_only_sometimes_may_fail() -> None:
    """Of repeated cases only those that always passed are held to it."""
    before = [result("1"), result("1", passed=False, repeat=2)]
    assert told(verdict([result("1", passed=False), result("1", repeat=2)], before)) == []


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.floats(0, 1)), min_size=1, max_size=12))
def test_nothing_is_a_regression_against_itself(given_: list[tuple[int, bool, float]]) -> None:
    """Whatever the results are."""
    results = [result(str(case), passed, score=score, repeat=n) for n, (case, passed, score) in enumerate(given_, 1)]
    found = evaluated(*results)
    assert against(found, found).regressions == ()


# --- on disk --------------------------------------------------------------------------------------------------------


def test_results_are_kept_for_their_owner_only_and_the_last_of_a_key_counts(tmp_path: Path) -> None:
    """One line each."""
    store = Store(tmp_path / "evals" / "x.jsonl")
    assert store.read() == {}
    store.append(result("1", key="k", passed=False))
    store.append(result("1", key="k"))
    assert store.read() == {"k": result("1", key="k")}
    assert len(store.path.read_text().splitlines()) == 2
    assert os.stat(store.path).st_mode & 0o077 == 0
    store.append(result("2", key="other"))
    store.drop({"k", "unknown"})
    assert store.read() == {"other": result("2", key="other")}
    assert os.stat(store.path).st_mode & 0o077 == 0


def test_a_file_cut_anywhere_keeps_all_whole_lines_and_takes_more(tmp_path: Path) -> None:
    """As after kill -9 in the middle of a write."""
    store = Store(tmp_path / "x.jsonl")
    for number in range(3):
        store.append(result(str(number), key=str(number)))
    whole = store.path.read_bytes()
    second = whole.index(b"\n") + 1
    for cut in (len(whole) - 1, len(whole) - 5, second + 1, second, 10, 0):
        store.path.write_bytes(whole[:cut])
        kept = [str(n) for n in range(whole[:cut].count(b"\n"))]
        assert [key for key in store.read() if key != "2"] == kept[:2] or cut == len(whole) - 1
        store.append(result("new", key="new"))
        assert [*store.read()][-1] == "new"
        assert set(kept) <= set(store.read())


# --- the page -------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Reads a page strictly enough to see tags that do not close, and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.loads: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)


def two_candidates() -> Evaluation:
    results = [
        routed(f"r{n}", "left" if n % 2 else "right", "left" if n % 2 or n == bad else "right", candidate=name)
        for name, bad in (("small & fast", 0), ("large <b>", -1))
        for n in range(8)
    ]
    return evaluated(
        *results, result("w1", candidate="small & fast", answer="<script>alert(1)</script>", run="20250101-x")
    )


def test_the_page_holds_the_figures_and_loads_nothing() -> None:
    """Well-formed, no script, no address; the plots are drawings in the page."""
    found = two_candidates()
    text = to_html(found, against(found, found))
    page = Page(text)
    assert page.open == []
    assert "script" not in page.tags
    assert page.loads == []
    assert "default-src 'none'" in text
    said = "\n".join(page.texts)
    assert "0.88 (0.53 to 0.98)" in said
    assert "7 of 8" in said
    assert "large <b>" in said
    assert "No regression in 17 comparisons of cases." in said
    assert "run 20250101-x" in said
    assert "alert(1)" in said


def test_every_plot_is_a_drawing_with_its_figures_as_text() -> None:
    """The confusion matrix counts every case once; each candidate has its interval."""
    text = to_html(two_candidates())
    drawings = [ElementTree.fromstring(f"<svg{part.partition('</svg>')[0]}</svg>") for part in text.split("<svg")[1:]]
    plots = [each for each in drawings if "plot" in (each.get("class") or "")]
    kinds = [str(each.get("class")).split()[1] for each in plots]
    assert kinds == ["intervals", "confusion", "confusion", "scatter", "intervals"]
    counts = [[int(t.text or 0) for t in plot.iter("text") if t.get("class") == "count" and t.text != "·"]
              for plot in plots if "confusion" in str(plot.get("class"))]  # fmt: skip
    assert counts == [[4, 1, 3], [4, 4]]
    titles = [title.text for title in plots[0].iter("title")]
    assert titles == ["small & fast: 0.88 (0.53 to 0.98), 8 cases", "large <b>: 1.00 (0.68 to 1.00), 8 cases"]


def test_regressions_are_told_on_the_page() -> None:
    """At the top."""
    before, now = evaluated(result("1")), evaluated(result("1", passed=False))
    said = "\n".join(Page(to_html(now, against(now, before))).texts)
    assert "Regressions against the baseline" in said
    assert "passed and now fails" in said


@pytest.mark.parametrize(("speedups", "is_shown"), [((1.0, 1.1), False), ((1.0, 2.0), True)])
def test_a_speed_up_is_shown_where_there_was_one(speedups: tuple[float, ...], is_shown: bool) -> None:
    """A factor near 1 says nothing; the JSON has it."""
    evaluation = evaluated(*(result(f"c{n}", metrics={"speedup": each}) for n, each in enumerate(speedups)))
    [kind] = evaluation.candidates[0].kinds
    assert "speedup" in kind.metrics
    assert ("speedup" in kind.to_show) is is_shown
    assert ("as fast" in to_html(evaluation, None)) is is_shown
