"""Facts that hold for any outcomes and any answer: nothing is lost, and nothing is asked for twice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargehand.models import Attribution
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.record.replay import replay
from chargehand.synthesizer import Synthesis
from chargehand.testing import run_virtual
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply
from chargehand.values.outcome import Outcome, failed, skipped
from chargehand.values.request import Request
from tests.counts import examples
from tests.kernel import FunctionModel, engine, stored
from tests.synthesizer.syntheses import BRAIN, finding, make, plan_of, result, synthesize

STATEMENTS = [
    "The office in Oslo employs 500 people.",
    "The office in Oslo employs 700 people.",
    "The mill was built by hand.",
    "The bridge is safe.",
    "The bridge is not safe.",
]
FINDINGS = [
    finding("The file is never closed.", path="a.py", line=3),
    finding("The file is never closed.", path="a.py", line=3, severity="critical"),
    finding("A user's input reaches the shell.", path="b.py", line=9),
]


@st.composite
def results(draw: st.DrawFn) -> list[Outcome]:
    """Two to seven outcomes, at least one of them done."""
    made: list[Outcome] = [result("t1", draw(st.sampled_from(STATEMENTS)), output="One.")]
    for number in range(2, draw(st.integers(2, 7)) + 1):
        match draw(st.sampled_from(["done", "done", "done", "failed", "partial", "skipped"])):
            case "done":
                claims = draw(st.lists(st.sampled_from(STATEMENTS), max_size=3, unique=True))
                found = draw(st.lists(st.sampled_from(FINDINGS), max_size=2))
                made.append(result(f"t{number}", *claims, output=draw(st.sampled_from(["x", None])), findings=found))
            case "failed":
                made.append(failed(f"t{number}", "ann", "tool", "It broke."))
            case "partial":
                made.append(failed(f"t{number}", "ann", "tool", "It broke.", output="half"))
            case _:
                made.append(skipped(f"t{number}", "ann", ["t1"]))
    return made


def accounted(synthesis: Synthesis, outcomes: list[Outcome]) -> None:
    """Each done outcome is cited, merged into something a cited one has too, left out for a reason, or unused."""
    cited = {task for tasks in synthesis.provenance.citations.values() for task in tasks}
    merged = {task for found in synthesis.findings if cited.intersection(found.sources) for task in found.sources} | {
        claimant.task for claimant in outcomes if _shares_a_claim(claimant, outcomes, cited)
    }
    # The report lists findings itself: a result that is nothing else needs no citation.
    listed = {task for found in synthesis.findings for task in found.sources}
    apart = {*synthesis.provenance.unused, *(each.task for each in synthesis.provenance.left_out)}
    for outcome in outcomes:
        if outcome.ok:
            ways = [outcome.task in cited, outcome.task in merged, outcome.task in apart]
            ways.append(outcome.task in listed and outcome.output is None and not outcome.claims)
            assert any(ways), outcome.task
            assert not (ways[0] and ways[2]), outcome.task


def _shares_a_claim(outcome: Outcome, outcomes: list[Outcome], cited: set[str]) -> bool:
    said = {claim.statement for claim in outcome.claims}
    return any(other.task in cited and said & {claim.statement for claim in other.claims} for other in outcomes)


@settings(max_examples=examples(60), deadline=None)
@given(
    results(), st.sampled_from(["merge", "select", "reduce"]), st.sampled_from(["first", "both", "unclear"]), st.data()
)
def test_every_outcome_is_cited_merged_or_unused_and_no_contradiction_is_lost(
    outcomes: list[Outcome], mode: str, verdict: str, data: st.DataObject
) -> None:
    """Whatever the model cites; with a judge the open contradictions are in the answer, and so are they without."""
    cites = data.draw(st.lists(st.sampled_from([outcome.task for outcome in outcomes] + ["t99"]), max_size=5))

    def talk(call: ModelCall) -> Any:
        if call.role == "judge" and "Result 1" in call.messages[-1].text:
            return {"scores": [{"candidate": 1, "score": 60}], "best": 1, "reason": "r"}
        if call.role == "judge":
            return {"verdict": verdict, "reason": "r"}
        return {"answer": " ".join(["It is so.", *(f"[{id}]" for id in cites)])}

    made = make(outcomes, talk, plan=plan_of(outcomes, mode), judge=BRAIN)
    by_code = make(outcomes, brain=None)
    for synthesis in (made.synthesis, by_code.synthesis):
        accounted(synthesis, outcomes)
        tasks = {gap.task for gap in synthesis.gaps if "was rejected" not in gap.reason}
        assert tasks == {outcome.task for outcome in outcomes if not outcome.ok}
        assert synthesis.provenance.cited, "an answer that cites nothing is never given"
        for each in synthesis.contradictions:
            assert each.resolved or each.claims[0].partition(": ")[2] in synthesis.answer
    subjects = [each.subject for each in by_code.synthesis.contradictions]
    decided = [event.data["value"] for event in made.events if event.data.get("decision") == "compatible"]
    reported = [each.subject for each in made.synthesis.contradictions]
    assert set(subjects) <= {*reported, *(value["subject"] for value in decided)}, (
        "what is in no report is on the record"
    )
    assert bool(decided) <= (verdict == "both")
    assert make(outcomes, brain=None).synthesis == by_code.synthesis


@pytest.mark.parametrize(
    ("ruling", "unused"),
    [
        ({"verdict": "second", "reason": "Newer."}, ("t2",)),
        ({"contradictions": [], "same": [[1, 3]]}, ()),
    ],
)
def test_what_was_asked_is_not_asked_again_after_a_crash(ruling: dict[str, Any], unused: tuple[str, ...]) -> None:
    """Judge, rating, critic and drafts are found on the record; the synthesis comes out the same."""
    outcomes = [
        result("t1", STATEMENTS[0], output="One.", findings=[FINDINGS[0]]),
        result("t2", STATEMENTS[1], output="Two."),
    ]
    if "same" in ruling:
        outcomes = [result("t1", "The pool is heated.", "It has a slide."), result("t2", "They heat the pool.")]
        outcomes[0] = outcomes[0].model_copy(update={"findings": (FINDINGS[0],)})
    store = MemoryStore()
    asked: list[str] = []

    async def answer(call: ModelCall, attribution: Attribution) -> Reply:
        asked.append(call.role)
        said = {
            "judge": ruling,
            "scorer": {"score": 60, "met": True, "reason": "r"},
            "critic": {"verdict": "accept", "problems": []},
            "synthesizer": {"answer": f"Draft {len(asked)} says nothing [t1]."},
        }
        return Reply(text=json.dumps(said[call.role]))

    def session() -> Synthesis:
        async def main() -> Synthesis:
            before = stored(store)
            async with engine(
                FunctionModel(answer), MemoryJournal(store), replay=replay(before) if before else None
            ) as local:
                by_task = {outcome.task: outcome for outcome in outcomes}
                return await synthesize(
                    Request(text="r"), plan_of(outcomes), by_task, local, BRAIN, judge=BRAIN, critic=BRAIN, rater=BRAIN
                )  # fmt: skip

        return run_virtual(main())[0]

    first = session()
    assert first.provenance.unused == unused
    assert sorted(set(asked)) == ["critic", "judge", "scorer", "synthesizer"]
    count = len(asked)
    assert session() == first
    assert len(asked) == count
