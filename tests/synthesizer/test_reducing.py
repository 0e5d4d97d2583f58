"""Reduce: more than a model's window holds becomes a tree of summaries; nothing is dropped without a word."""

from __future__ import annotations

import re
from typing import Any

import pytest

from chargehand.errors import ModelError
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.synthesizer import prompt, reduce
from chargehand.values.budget import Budget
from chargehand.values.effect import ModelCall
from tests.kernel import MODEL, SMALL_MODEL
from tests.synthesizer.syntheses import BRAIN, Made, make, plan_of, result, text_of

ENDS = ("vik", "gum", "vo", "len", "tad", "lun", "dorf", "heim")
SMALL = SupervisorModel(model=MODEL, window=4_000, output_cap=500)


def is_summary(call: ModelCall) -> bool:
    return "ummarise" in call.messages[0].text


def cites_all(call: ModelCall) -> Any:
    """Summaries cite every task below; the answer those it sees."""
    text = text_of(call)
    seen = dict.fromkeys(re.findall(r"(?<=^Task )\w+(?=, by)|(?<=\[)t\d+(?=\])", text, re.MULTILINE))
    cited = " ".join(f"[{id}]" for id in seen)
    return {"answer": f"In short. {cited}" if is_summary(call) else f"All of it. {cited}"}


def big(count: int, size: int = 3_000) -> list[Any]:
    towns = [f"{first}{second}" for first in ("Ar", "Ber", "Cor", "Da", "Els", "Fa", "Gen", "Ho") for second in ENDS]
    return [
        result(f"t{n}", f"{town} has a mill.", output=f"On {town}: " + "word " * (size // 5))
        for n, town in enumerate(towns[:count], 1)
    ]


def reduced(count: int, talk: Any = cites_all, brain: SupervisorModel = SMALL, **fields: Any) -> Made:
    outcomes = fields.pop("outcomes", None) or big(count)
    return make(outcomes, talk, brain=brain, **fields)


def test_what_fits_is_read_in_full_by_one_call() -> None:
    """No summary, nothing cut."""
    made = reduced(3, brain=BRAIN)
    [call] = made.calls
    assert "word " * 500 in text_of(call)
    assert "[cut" not in text_of(call)


def test_a_small_model_is_asked_for_a_summary_in_few_words() -> None:
    """It gives markdown with citations, as larger ones do, and its tree is made the same way."""
    made = reduced(12, brain=SupervisorModel(model=SMALL_MODEL, window=4_000, output_cap=500))
    summaries = [call for call in made.calls if is_summary(call)]
    assert {call.messages[0].text for call in summaries} == {reduce._SMALL_RULES}  # pyright: ignore[reportPrivateUsage]
    assert all(call.output_schema is None for call in summaries)
    assert made.synthesis.provenance.unused == ()


def test_what_does_not_fit_becomes_a_tree() -> None:
    """Neighbours are summarised together, level by level, until one call can read the rest."""
    made = reduced(60)
    summaries = [key for key in made.keys if key.startswith("@reduce/")]
    levels = {key.split("/")[1] for key in summaries}
    assert levels == {"1", "2"}
    assert made.keys[-1] == "@synthesis/1"
    assert made.synthesis.answer.startswith("All of it.")
    assert made.synthesis.provenance.problems == ()
    assert made.synthesis.provenance.unused == ()
    room = SMALL.window * 4
    assert all(len(text_of(call)) < room for call in made.calls)


def test_a_level_is_summarised_at_the_same_time() -> None:
    """The tree takes as long as it is deep."""
    made = reduced(60, options={"max_concurrent": 100})
    assert made.seconds == pytest.approx(3.0)


def test_the_same_outcomes_give_the_same_tree() -> None:
    """Byte by byte, so that a resumed run finds its calls."""
    first, second = reduced(20), reduced(20)
    assert [call.fingerprint for call in first.calls] == [call.fingerprint for call in second.calls]
    assert first.keys == second.keys


def test_claims_and_their_sources_pass_through_every_level() -> None:
    """Code carries them: a model that writes nothing of use loses none."""
    outcomes = [
        result(f"t{n}", f"The town of {name} has a mill.", output="word " * 600)
        for n, name in enumerate(["Arvik", "Bergum", "Corvo", "Dalen", "Elst", "Falun", "Gent", "Hof"], 1)
    ]
    made = make(outcomes, cites_all, brain=SMALL)
    last = text_of(made.calls[-1])
    for outcome in outcomes:
        assert outcome.claims[0].statement in last
        assert f'"sources": ["{outcome.task}"]' in last


def test_a_summary_cites_only_what_is_below_it() -> None:
    """A citation from elsewhere is taken out, a result that is passed over is put in with its summary."""

    def talk(call: ModelCall) -> Any:
        return {"answer": "Something [t1, t60]. More [t60]."} if is_summary(call) else {"answer": "All. [t1-t60]"}

    made = reduced(60, talk)
    last = text_of(made.calls[-1])
    first_node = last.split("Summary 2.1")[1].split("</data>")[0]
    assert "[t60]" not in first_node
    assert "[t1]" in first_node


@pytest.mark.parametrize("said", [ModelError("bad_request", "no"), '{"text": "x"}', " "])
def test_a_summary_that_fails_is_replaced_by_what_is_below_cut_to_fit(said: Any) -> None:
    """With a note; the answer is written all the same, from every result."""

    def talk(call: ModelCall) -> Any:
        return said if is_summary(call) else cites_all(call)

    made = reduced(8, talk)
    last = text_of(made.calls[-1])
    assert all(f"Summary of t{n}." in last for n in range(1, 9))
    assert made.synthesis.answer.startswith("All of it.")
    assert "could not be summarised" in " ".join(made.synthesis.notes)


def test_a_plan_may_ask_for_it() -> None:
    """More than a handful of results are summarised in groups, even if they would fit."""
    outcomes = [result(f"t{n}", output="short") for n in range(1, 21)]
    made = make(outcomes, cites_all, plan=plan_of(outcomes, "reduce"))
    assert [key for key in made.keys if key.startswith("@reduce")] == [f"@reduce/1/{n}/1" for n in (1, 2, 3)]
    few = make(outcomes[:8], cites_all, plan=plan_of(outcomes[:8], "reduce"))
    assert few.keys == ["@synthesis/1"]


@pytest.mark.slow
def test_one_enormous_result_is_cut_with_a_note() -> None:
    """50 MB do not crash anything, and cost no more than the window."""
    outcomes = [result("t1", output="x y " * 12_500_000), result("t2", output="small")]
    made = make(outcomes, cites_all, brain=BRAIN)
    assert any("t1" in note for note in made.synthesis.notes)
    assert max(len(text_of(call)) for call in made.calls) < prompt.room(BRAIN) + 20_000
    assert made.synthesis.answer.startswith("All of it.")


def test_a_denied_budget_gives_the_report_by_code() -> None:
    """Neither summaries nor the answer are paid for: the results are listed, with the reason."""
    made = reduced(20, options={"budget": Budget(tokens=600)})
    assert made.calls == []
    assert "budget" in " ".join(made.synthesis.notes)
    assert ": Do t1." in made.synthesis.answer


def test_other_scripts_are_counted_by_their_bytes() -> None:
    """A Chinese character is about a token: the same number of characters is three times as much."""
    outcomes = [result(f"t{n}", output="字" * 3_000) for n in (1, 2, 3)]
    made = make(outcomes, cites_all, brain=SMALL)
    assert any(is_summary(call) for call in made.calls)
    assert all(len(text_of(call).encode()) < SMALL.window * 4 for call in made.calls)


def test_one_rule_for_the_synthesizer_serves_summaries_too() -> None:
    """Every call of the role has the role's answer shape."""
    outcomes = big(60)
    made = make(outcomes, lambda _: {"answer": "All of it [t1-t60]."})
    assert any(map(is_summary, made.calls))
    assert not any("could not be summarised" in note for note in made.synthesis.notes)
