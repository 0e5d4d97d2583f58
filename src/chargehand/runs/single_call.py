"""A request -> a team of one worker and the plan that gives it the whole request: one plain call, on the record."""

from __future__ import annotations

from chargehand.team import Team, Worker
from chargehand.values.plan import Plan, Task

WORKER = "assistant"
_PROMPT = "Answer the request. Where there is material, answer from it, and say so when it does not have the answer."
_CRITERION = "The request is answered, or what is missing is said."


def single_team() -> Team:
    """One worker with the tools that read material, for what is too long for its prompt."""
    tools = ("read_file", "list_files", "search_files")
    return Team([Worker(WORKER, "Answers the whole request", prompt=_PROMPT, tools=tools)], name="single")


def single_plan(request: str) -> Plan:
    task = Task(id="t1", worker=WORKER, instruction=request, success_criterion=_CRITERION)
    return Plan(goal=request, tasks=(task,), team="single")
