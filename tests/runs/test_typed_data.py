"""Runs on record that are continued with the type of their data."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from chargehand import Report, Supervisor, Team, Worker
from chargehand.errors import UsageError
from chargehand.testing import ScriptedModel


class City(BaseModel):
    name: str
    people: int

    @field_validator("people")
    @classmethod
    def _enough(cls, people: int) -> int:
        if people < 10:
            raise ValueError("too few people")
        return people


TASKS: list[dict[str, Any]] = [
    {"id": id, "worker": "clerk", "instruction": f"Look {id} up", "success_criterion": "A number."}
    for id in ("t1", "t2")
]
PLAN: dict[str, Any] = {"goal": "g", "tasks": TASKS}
OSLO = City(name="Oslo", people=700_000)


def supervisor(home: Path, *people: int) -> Supervisor:
    """A model whose workers report, and whose answers have these numbers of people one after the other."""
    answers = [
        {
            "when": {"role": "synthesizer"},
            "reply": {"json": {"answer": "So [t1, t2].", "confidence": 90, "data": {"name": "Oslo", "people": n}}},
            "times": 1,
        }
        for n in people
    ]
    worker = {"when": {"role": "worker"}, "reply": {"json": {"summary": "s", "output": "x", "confidence": 90}}}
    return Supervisor(Team([Worker("clerk", "Looks up")]), model=ScriptedModel([worker, *answers]), home=home)


def run(home: Path, **options: Any) -> Report[Any]:
    return supervisor(home, OSLO.people).run_sync("How many?", plan=PLAN, **options)


def test_data_that_nobody_asked_for_is_left_out(tmp_path: Path) -> None:
    """The model's reply has some; without a type or a schema the answer is the text."""
    report = run(tmp_path)
    assert (report.status, report.data, report.unwrap()) == ("complete", None, "So [t1, t2].")


def test_a_run_that_ended_is_resumed_with_its_type(tmp_path: Path) -> None:
    """The data on the record becomes the type again, without a call; without a type it is plain data."""
    before = run(tmp_path, output_type=City)
    again = asyncio.run(supervisor(tmp_path).resume(before.run, output_type=City))
    assert again.unwrap() == before.unwrap() == OSLO
    assert asyncio.run(supervisor(tmp_path).resume(before.run)).unwrap() == OSLO.model_dump()


def test_a_run_that_stopped_is_resumed_with_its_type(tmp_path: Path) -> None:
    """The validators of the type judge the answer while the model can still repair it."""

    async def stop() -> str:
        waits = supervisor(tmp_path).run("How many?", plan=PLAN, output_type=City, approve=True)
        return (await waits).run

    name = asyncio.run(stop())

    async def proceed() -> Report[City]:
        door = supervisor(tmp_path, 3, OSLO.people)
        [question] = door.questions(name)
        await door.answer(name, question.id, "yes")
        return await door.resume(name, output_type=City)

    report = asyncio.run(proceed())
    assert (report.status, report.unwrap()) == ("complete", OSLO)


def test_a_rerun_and_a_fork_have_the_type_that_is_given(tmp_path: Path) -> None:
    """Also where the first run was not asked for data: these are new runs."""
    before = run(tmp_path)
    assert asyncio.run(supervisor(tmp_path, OSLO.people).rerun(before.run, output_type=City)).unwrap() == OSLO
    assert asyncio.run(supervisor(tmp_path, OSLO.people).fork(before.run, at="t2", output_type=City)).unwrap() == OSLO


def test_a_rerun_without_a_type_keeps_the_schema_of_the_first_run(tmp_path: Path) -> None:
    """Its data is plain."""
    before = run(tmp_path, output_type=City)
    assert asyncio.run(supervisor(tmp_path).rerun(before.run)).unwrap() == OSLO.model_dump()


def test_a_run_that_was_not_asked_for_data_cannot_be_resumed_with_a_type(tmp_path: Path) -> None:
    """No answer of it can have any."""
    before = run(tmp_path)
    with pytest.raises(UsageError):
        asyncio.run(supervisor(tmp_path).resume(before.run, output_type=City))
