"""Select: the best of several results by a rubric, whoever comes first in the prompt, and the reason on the record."""

from __future__ import annotations

import re
from typing import Any

import pytest

from chargehand.errors import ModelError
from chargehand.synthesizer.select import SelectedResult, choose
from chargehand.testing import run_virtual
from chargehand.values.effect import ModelCall
from chargehand.values.outcome import Outcome, Usage, failed
from chargehand.values.request import Request
from tests.kernel import FunctionModel, after, engine
from tests.synthesizer.syntheses import BRAIN, Made, make, plan_of, result, text_of

TEXTS = {"t1": "A plain text.", "t2": "A better text.\n\nOf two paragraphs.", "t3": "The worst of them."}
SINKS = [result(id, output=text, confidence=60) for id, text in TEXTS.items()]


def shown(call: ModelCall) -> list[str]:
    """The tasks in the order their results are shown."""
    found = re.findall(r"Result \d+\n<data>\n(.*?)\n</data>", text_of(call))
    return [next(id for id, text in TEXTS.items() if text.split(".")[0] in each) for each in found]


def scoring(scores: dict[str, int], best: str) -> Any:
    """A judge that scores by task, wherever it is shown."""

    def talk(call: ModelCall) -> Any:
        assert call.role == "judge"
        order = shown(call)
        entries = [{"candidate": n, "score": scores[id], "reason": f"Why {id}."} for n, id in enumerate(order, 1)]
        return {"scores": entries, "best": order.index(best) + 1, "reason": "It says most."}

    return talk


def select(talk: Any, outcomes: list[Outcome] = SINKS, **fields: Any) -> Made:
    fields.setdefault("plan", plan_of(outcomes, "select"))
    return make(outcomes, talk, judge=BRAIN, **fields)


def test_the_best_result_is_the_answer() -> None:
    """In its own words, with why and what it was chosen from; the others are left out for that reason."""
    made = select(scoring({"t1": 60, "t2": 90, "t3": 20}, "t2"))
    answer = made.synthesis.answer
    assert answer.startswith(TEXTS["t2"])
    assert all(part in answer for part in ("[t2]. It says most.", "t1 (score 60)", "t3 (score 20)"))
    assert made.synthesis.provenance.citations == {"1": ("t2",), "2": ("t2",), "3": ("t2",)}
    provenance = made.synthesis.provenance
    assert (provenance.unused, [each.task for each in provenance.left_out]) == ((), ["t1", "t3"])
    assert all("t2" in each.reason for each in provenance.left_out)
    assert made.synthesis.provenance.problems == ()
    assert made.synthesis.confidence == 60
    assert made.keys == ["@select/1/1"]


def test_the_choice_is_on_the_record() -> None:
    """As a decision with the scores and the reason."""
    made = select(scoring({"t1": 60, "t2": 90, "t3": 20}, "t2"))
    [decision] = [event.data for event in made.events if event.kind == "decision"]
    assert (decision["decision"], decision["reason"]) == ("select", "It says most.")
    assert decision["value"] == {
        "task": "t2", "from": ["t1", "t2", "t3"], "scores": {"t1": 60, "t2": 90, "t3": 20},
    }  # fmt: skip


def test_a_tie_is_explained() -> None:
    """The judge's preference decides and the report says that they were level."""
    made = select(scoring({"t1": 90, "t2": 90, "t3": 20}, "t2"))
    assert "t1 at 90" in made.synthesis.answer


def test_the_scores_decide_and_not_the_name() -> None:
    """A judge that names another than it scores highest is held to its scores."""
    made = select(scoring({"t1": 60, "t2": 90, "t3": 20}, "t3"))
    assert "[t2]. Why t2." in made.synthesis.answer


def choice(candidates: list[Outcome], seed: str, talk: Any = None) -> tuple[SelectedResult, list[str]]:
    async def main() -> tuple[SelectedResult, list[str]]:
        model = FunctionModel(after(0, '{"scores": [], "best": 1, "reason": "r"}'))
        used: list[Usage] = []
        async with engine(model) as local:
            made = await choose("g", candidates, local, BRAIN, "@select/1", used, seed=seed)
        return made, shown(model.asked[0][0]) if model.asked else []

    return run_virtual(main())[0]


def test_the_order_is_shuffled_by_the_seed() -> None:
    """The same for the same run, different between runs; a judge that always takes the first favours nobody."""
    orders = {seed: choice(SINKS, seed) for seed in map(str, range(40))}
    assert orders["7"] == choice(SINKS, "7")
    assert {tuple(order) for _, order in orders.values()}.__len__() == 6
    firsts = [order[0] for _, order in orders.values()]
    assert all(5 <= firsts.count(id) <= 22 for id in TEXTS)
    assert all(SINKS[made.index].task == order[0] for made, order in orders.values())


def test_nobody_sees_whose_result_it_is() -> None:
    """Neither worker nor task is in the prompt."""
    made = select(scoring({"t1": 60, "t2": 90, "t3": 20}, "t2"))
    text = text_of(made.of("judge")[0])
    assert "worker-t" not in text
    assert '"t1"' not in text


@pytest.mark.parametrize("said", [ModelError("bad_request", "no"), "?", {"best": 1, "reason": "x"}])
def test_without_a_usable_choice_the_surest_is_taken(said: Any) -> None:
    """And the answer says so."""
    outcomes = [result("t1", output="x", confidence=50), result("t2", output="y", confidence=70)]
    made = select(lambda _: said, outcomes)
    assert made.synthesis.answer.startswith("y\n\n")
    assert "[t2]" in made.synthesis.answer


def test_one_candidate_is_no_choice() -> None:
    """No call; failed sinks are no candidates, and stay gaps."""
    outcomes = [result("t1", output="x"), failed("t2", "ann", "tool", "It broke.")]
    made = select(None, outcomes)
    assert made.calls == []
    assert [gap.task for gap in made.synthesis.gaps] == ["t2"]


def test_what_the_chosen_result_rests_on_is_cited() -> None:
    """Tasks before it are used through it; those of others are not."""
    outcomes = [result("a"), result("b"), *SINKS[:2]]
    plan = plan_of(outcomes, "select", {"t1": ["a"], "t2": ["b"]})
    made = select(scoring({"t1": 60, "t2": 90}, "t2"), outcomes, plan=plan)
    assert "It rests on [b]." in made.synthesis.answer
    provenance = made.synthesis.provenance
    assert (provenance.unused, [each.task for each in provenance.left_out]) == ((), ["a", "t1"])


def test_what_others_say_differently_is_decided_by_the_choice() -> None:
    """No judge is asked of two results of which only one is used; the contradiction is in the report all the same."""
    outcomes = [
        result("t1", "The office in Oslo employs 500 people.", output=TEXTS["t1"]),
        result("t2", "The office in Oslo employs 700 people.", output=TEXTS["t2"]),
    ]
    made = select(scoring({"t1": 60, "t2": 90}, "t2"), outcomes)
    [contradiction] = made.synthesis.contradictions
    assert contradiction.verdict == "t2: The office in Oslo employs 700 people."
    assert "t2" in (contradiction.reason or "")
    assert len(made.calls) == 1


def test_what_was_not_chosen_is_not_called_false() -> None:
    """Two results that are not used may disagree: that stays open, unless the chosen one says otherwise itself."""
    said = [result("t1", output=TEXTS["t1"]),
            result("t2", "The tower is 300 m tall.", output=TEXTS["t2"]),
            result("t3", "The tower is 324 m tall.", output=TEXTS["t3"])]  # fmt: skip
    best = scoring({"t1": 90, "t2": 60, "t3": 50}, "t1")
    contradiction = next(each for each in select(best, said).synthesis.contradictions if "tower" in each.subject)
    assert (contradiction.resolved, contradiction.verdict) == (False, None)
    assert "t1" in (contradiction.reason or "")
    said[0] = result("t1", "The tower is 310 m tall.", output=TEXTS["t1"])
    contradiction = next(each for each in select(best, said).synthesis.contradictions if "tower" in each.subject)
    assert (contradiction.resolved, contradiction.verdict) == (True, "t1: The tower is 310 m tall.")


def test_a_typed_answer_is_the_output_of_the_chosen_one_or_is_written() -> None:
    """A chosen result that does not fit the schema is no answer: one is written from all."""
    schema: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    request = Request(text="r", answer_schema=schema)
    fits = [result("t1", output={"n": 1}), failed("t2", "ann", "tool", "It broke.")]
    assert select(None, fits, request=request).synthesis.data == {"n": 1}
    other = [result("t1", output={"m": 1}), failed("t2", "ann", "tool", "It broke.")]
    made = select(lambda _: {"answer": "So [t1].", "data": {"n": 2}}, other, request=request)
    assert (made.synthesis.data, made.synthesis.answer) == ({"n": 2}, "So [t1].")
    assert any("t1" in note for note in made.synthesis.notes)


@pytest.mark.parametrize(
    ("verdict", "chosen", "why"),
    [
        ("first", 0, "It says more."),
        ("second", 1, "It says more."),
        ("both", 1, "(both): It says more."),
        ("unclear", 1, "(unclear): It says more."),
    ],
)
def test_of_two_the_judge_may_answer_as_of_any_pair(verdict: str, chosen: int, why: str) -> None:
    """First and second are as they were shown; without a preference the surest is taken, and that is said."""
    two = [result("t1", output=TEXTS["t1"], confidence=50), result("t2", output=TEXTS["t2"], confidence=70)]
    made = select(lambda _: {"verdict": verdict, "reason": "It says more.", "confidence": 80}, two)
    id = shown(made.calls[0])[chosen] if verdict in ("first", "second") else two[chosen].task
    assert made.synthesis.answer.startswith(TEXTS[id])
    assert why in made.synthesis.answer


def test_of_two_an_answer_that_names_neither_is_asked_for_again() -> None:
    """Then the surest is taken."""
    made = select(lambda _: {"reason": "Both are fine."}, SINKS[:2])
    assert len(made.calls) == 2
    assert made.synthesis.answer.startswith(TEXTS["t1"])
