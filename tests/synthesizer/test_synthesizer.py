"""From outcomes to an answer: what goes back to the model once, and what stands when it does not help."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from chargehand import Supervisor, Team, Worker
from chargehand.errors import IncompleteRun
from chargehand.models import Attribution
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.synthesizer import Synthesis, Validate
from chargehand.testing import ScriptedModel, run_virtual
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply
from chargehand.values.outcome import done
from chargehand.values.plan import Plan, Task
from chargehand.values.report import Report
from chargehand.values.request import Request
from tests.kernel import MODEL, FunctionModel, engine, kinds, result
from tests.synthesizer.syntheses import synthesize

GOOD = {"answer": "Both agree [t1, t2].", "confidence": 80}


def task(id: str, *depends_on: str) -> Task:
    return Task(
        id=id, worker="ann", instruction="Find one number.", success_criterion="A number.", depends_on=depends_on
    )


def write(
    *replies: dict[str, Any] | str, schema: dict[str, Any] | None = None, validate: Validate | None = None
) -> tuple[Synthesis, list[ModelCall], list[str]]:
    """The synthesis of two results, the calls it took and the kinds of events."""
    waiting = list(replies)

    async def answer(call: ModelCall, attribution: Attribution) -> Reply:
        said = waiting.pop(0)
        return Reply(text=said if isinstance(said, str) else json.dumps(said))

    model, store = FunctionModel(answer), MemoryStore()
    plan = Plan(goal="g", tasks=(task("t1"), task("t2")))
    outcomes = {id: done(id, "ann", summary=f"Result of {id}", output=f"{id}!") for id in ("t1", "t2")}

    async def main() -> Synthesis:
        async with engine(model, MemoryJournal(store)) as local:
            request = Request(text="r", answer_schema=schema)
            return await synthesize(request, plan, outcomes, local, SupervisorModel(model=MODEL), validate=validate)

    synthesis, _ = run_virtual(main())
    assert not waiting
    return synthesis, [call for call, _, _ in model.asked], kinds(store)


def test_a_good_answer_is_taken_at_once() -> None:
    """One call."""
    synthesis, calls, _ = write(GOOD)
    assert (synthesis.answer, synthesis.confidence, len(calls)) == (GOOD["answer"], 80, 1)
    assert synthesis.provenance.problems == ()


@pytest.mark.parametrize("blank", ["", " \n", "\t"])
def test_a_blank_answer_goes_back_once_and_is_then_made_by_code(blank: str) -> None:
    """The results are listed: there is always an answer."""
    synthesis, calls, record = write({"answer": blank}, {"answer": blank})
    assert "empty" in calls[1].messages[-1].text or "at least 1" in calls[1].messages[-1].text
    assert "t1! [t1]" in synthesis.answer
    assert synthesis.notes
    assert "draft_discarded" in record
    assert write({"answer": blank}, GOOD)[0].answer == GOOD["answer"]


def test_an_answer_with_a_wrong_citation_goes_back_once() -> None:
    """With what is wrong; if that does not help, the answer stands and the problem is in the report."""
    bad = "All good [t2] and [t9x]."
    synthesis, calls, _ = write({"answer": bad}, GOOD)
    assert (synthesis.answer, synthesis.provenance.problems) == (GOOD["answer"], ())
    assert "[t9x]" in calls[1].messages[-1].text
    synthesis, _, _ = write({"answer": bad}, {"answer": bad})
    assert synthesis.answer == bad
    assert len(synthesis.provenance.problems) == 1


@pytest.mark.parametrize(("written", "read_as"), [(0.8, 80), (150, 100), ("high", None), ("70 %", 70), (None, None)])
def test_an_odd_confidence_does_not_cost_the_answer(written: Any, read_as: int | None) -> None:
    """It is repaired as a worker's is."""
    synthesis, calls, _ = write(GOOD | {"confidence": written, "gaps": None})
    assert (synthesis.answer, synthesis.confidence, len(calls)) == (GOOD["answer"], read_as, 1)


def test_data_that_is_not_valid_goes_back_once_and_is_then_a_gap() -> None:
    """The answer and its data stay."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    def validate(data: Any) -> str | None:
        return None if data["n"] > 0 else "n is too small"

    bad, good = GOOD | {"data": {"n": 0}}, GOOD | {"data": {"n": 1}}
    synthesis, calls, _ = write(bad, good, schema=schema, validate=validate)
    assert (synthesis.data, synthesis.gaps) == ({"n": 1}, ())
    assert "n is too small" in calls[1].messages[-1].text
    synthesis, _, _ = write(bad, bad, schema=schema, validate=validate)
    assert synthesis.data == {"n": 0}
    assert [gap.reason for gap in synthesis.gaps] == ["n is too small"]


# -- output_type -----------------------------------------------------------------------------------------------------


class Size(BaseModel):
    people: int

    @field_validator("people")
    @classmethod
    def _enough(cls, people: int) -> int:
        if people < 10:
            raise ValueError("too few people")
        return people


class Touchy(BaseModel):
    people: int

    @field_validator("people")
    @classmethod
    def _touchy(cls, people: int) -> int:
        raise KeyError(people)


def supervised(tmp_path: Any, plan: Plan, output_type: type[BaseModel], *said: Any, output: Any = "x") -> Report:
    rules = [
        {"when": {"role": "worker"}, "reply": {"text": result(output)}},
        *({"when": {"role": "synthesizer"}, "reply": {"json": each}, "times": 1} for each in said),
    ]
    team = Team(workers=[Worker("ann", "Finds numbers")])
    supervisor = Supervisor(team, model=ScriptedModel(rules), home=tmp_path)
    return supervisor.run_sync("How many?", plan=plan, output_type=output_type)


TWO = Plan(goal="g", tasks=(task("t1"), task("t2")))
FEW, MANY = GOOD | {"data": {"people": 3}}, GOOD | {"data": {"people": 30}}


def test_a_validator_has_its_say_while_the_model_can_still_mend(tmp_path: Any) -> None:
    """The second answer is valid: the data has the type, and nothing is open."""
    report = supervised(tmp_path, TWO, Size, FEW, MANY)
    assert (report.status, report.data) == ("complete", Size(people=30))


@pytest.mark.parametrize(("model", "why"), [(Size, "people: Value error, too few people"), (Touchy, "raised KeyError")])
def test_an_answer_that_is_not_valid_is_a_gap_and_not_an_exception(tmp_path: Any, model: Any, why: str) -> None:
    """After all that was spent there is a report without data; the record has the data as it came."""
    report = supervised(tmp_path, TWO, model, FEW, FEW)
    assert (report.status, report.data, report.answer) == ("partial", None, GOOD["answer"])
    [gap] = report.gaps
    assert gap.reason.startswith(f"The answer is not a valid {model.__name__}: ")
    assert why in gap.reason
    team = Team(workers=[Worker("ann", "Finds numbers")])
    recorded = Supervisor(team, model="scripted:none", home=tmp_path).report(report.run)
    assert (recorded.status, recorded.data) == ("partial", {"people": 3})
    with pytest.raises(IncompleteRun, match="has no data of the type"):
        report.unwrap(partial=True)


def test_the_only_result_is_held_to_the_type_as_well(tmp_path: Any) -> None:
    """One task whose output is valid needs no synthesis; one whose output is not gets one."""
    one = Plan(goal="g", tasks=(task("t1"),))
    assert supervised(tmp_path, one, Size, output={"people": 12}).data == Size(people=12)
    report = supervised(tmp_path, one, Size, {"answer": "x [t1]", "data": {"people": 40}}, output={"people": 1})
    assert (report.status, report.data) == ("complete", Size(people=40))


def test_an_empty_result_is_not_a_complete_run(tmp_path: Any) -> None:
    """A one-task plan whose worker says nothing has failed."""
    rules = [{"when": {"role": "worker"}, "reply": {"json": {"summary": "", "output": None}}}]
    team = Team(workers=[Worker("ann", "Finds numbers")])
    supervisor = Supervisor(team, model=ScriptedModel(rules), home=tmp_path)
    report = supervisor.run_sync("How many?", plan=Plan(goal="g", tasks=(task("t1"),)))
    assert report.status == "failed"
    assert report.answer.strip()
