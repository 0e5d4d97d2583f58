"""A script of a user who checks types strictly: every line without an ignore is right, every line with one is wrong."""

from __future__ import annotations

from typing import Any, assert_type

from pydantic import BaseModel

import chargehand
from chargehand import (
    Event,
    Outcome,
    Plan,
    Question,
    Report,
    SentOrder,
    Supervisor,
    Task,
    Team,
    ToolContext,
    Worker,
    review,
    testgen,
    tool,
)
from chargehand.errors import IncompleteRun
from chargehand.events import RunEnded, TaskEnded, ToolCalled
from chargehand.testing import ScriptedModel


class City(BaseModel):
    name: str
    inhabitants: int


@tool(effect="read")
def population(city: str, year: int = 2026) -> int:
    """Inhabitants of a city."""
    return {"Oslo": 717_710}[city] + year - 2026


@tool(effect="read")
def first_line(context: ToolContext, name: str) -> bytes:
    """The first line of a file."""
    assert_type(context.read(name), str)
    with context.open(name) as file:
        return file.readline()


@tool
async def mayor(city: str) -> str:
    """Who leads a city."""
    return city


assert_type(population("Oslo", year=2025), int)
population("Oslo", yaer=2025)  # type: ignore
population(17)  # type: ignore
print(chargehand.Supervisr)  # type: ignore

team = Team(
    workers=[Worker("researcher", "Looks figures up", tools=[population, mayor]), Worker("writer", "Writes")],
    name="cities",
)
Team(workers=[], nam="cities")  # type: ignore
Worker("writer", "Writes", tool=[population])  # type: ignore

supervisor = Supervisor(team, model=ScriptedModel([]), home="runs")
Supervisor(team, modle="anthropic:claude-sonnet-5-5")  # type: ignore
plan = Plan(goal="Describe Oslo", tasks=(Task(id="t1", worker="writer", instruction="Describe Oslo."),))


async def approve(question: Question, wrong: str | None) -> str:
    print(question.id, question.prompt if wrong is None else wrong, question.answer_schema)
    return "approve" if question.kind == "plan" else "Use euros."


async def main() -> None:
    await supervisor.run("Describe Oslo.", approve=True, person=approve)
    assert_type(supervisor.questions("last"), tuple[Question, ...])
    sent = await supervisor.steer("last", "t1", "Use euros.")
    assert_type(sent, SentOrder)
    if sent.verdict == "refused":
        print(sent.reason)

    plain = await supervisor.run("Describe Oslo.", plan=plan, material=["notes.md"], tokens=50_000, deadline=60)
    assert_type(plain, Report[str])
    assert_type(plain.unwrap(), str)
    await supervisor.run("Describe Oslo.", tokns=50_000)  # type: ignore
    await supervisor.run("Describe Oslo.", tokens="many")  # type: ignore

    typed = await supervisor.run("How many people live in Oslo?", output_type=City)
    assert_type(typed, Report[City])
    assert_type(typed.data, City | None)
    assert_type(typed.unwrap(partial=True), City)
    print(typed.unwrap().mayor)  # type: ignore

    by_schema = await supervisor.run("How many?", schema={"type": "object"})
    assert_type(by_schema.unwrap(), Any)

    try:
        (await supervisor.resume(plain.run, tokens=1_000)).unwrap()
    except IncompleteRun as error:
        print(error.report)
    await supervisor.resume(plain.run, token=1_000)  # type: ignore
    assert_type(await supervisor.resume(plain.run, output_type=City), Report[City])
    assert_type(await supervisor.rerun(plain.run, plan=plan, output_type=City), Report[City])
    assert_type((await supervisor.fork(plain.run, at="t1", output_type=City)).unwrap(), City)

    supervisor.stream("How many?", output_type=City)
    async for event in supervisor.stream("Describe Oslo.", single=True):
        assert_type(event, Event)
        match event.body:
            case TaskEnded(outcome=outcome):
                print(event.task, Outcome.model_validate(outcome).status)
            case ToolCalled(tool=name, arguments=arguments):
                assert_type(name, str)
                print(event.seq, event.kind, arguments["city"])
            case RunEnded(report=data) if data is not None:
                print(Report.model_validate(data).answer)
            case _:
                pass
    found = await review("src", min_confidence=60)
    print(found.report.findings, found.failed_gate)
    await review("src", min_confidnce=60)  # type: ignore
    print((await testgen("src", out="tests/generated")).files)
    supervisor.stream("Describe Oslo.", singel=True)  # type: ignore


def report_of(run: str) -> Report:
    """A report whose data may be anything needs no type."""
    outcomes: tuple[Outcome, ...] = supervisor.report(run).outcomes
    print([outcome.status for outcome in outcomes])
    return supervisor.report(run)


assert_type(supervisor.run_sync("How many?", output_type=City).unwrap(), City)
supervisor.run_sync("Describe Oslo.", deadlin=60)  # type: ignore
