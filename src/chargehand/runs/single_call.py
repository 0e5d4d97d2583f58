"""A request -> a team of one worker and the plan that gives it the whole request: one plain call, on the record."""

from __future__ import annotations

from chargehand.models.model_size import is_small_open
from chargehand.models.resolve import known_window
from chargehand.planner.before_spending import material_size
from chargehand.settings import Settings
from chargehand.team import Team, Worker
from chargehand.values.plan import Plan, Task
from chargehand.values.request import SINGLE_CALL, Request
from chargehand.workers.worker_prompt import NO_PROMPT, material_room

WORKER = "assistant"
_PROMPT = "Answer the request. Where there is material, answer from it, and say so when it does not have the answer."
_CRITERION = "The request is answered, or what is missing is said."


def single_team() -> Team:
    """One worker with the tools that read material, for what is too long for its prompt."""
    tools = ("read_file", "list_files", "search_files")
    return Team(
        [Worker(WORKER, "Answers the whole request", prompt=_PROMPT, small_prompt=NO_PROMPT, tools=tools)],
        name=SINGLE_CALL,
    )


def single_plan(request: str) -> Plan:
    task = Task(id="t1", worker=WORKER, instruction=request, success_criterion=_CRITERION)
    return Plan(goal=request, tasks=(task,), team=SINGLE_CALL)


def prefers_one_call(request: Request, settings: Settings, stdin: str | None = None) -> str | None:
    """Why one plain call answers this instead of the team that nobody chose, for the report; None where the team works.

    A small open model answers from material that it has before it better alone than in a team. What only a team does
    (the web, a follow-up, a plan to approve, a critic, a typed answer) is left to the team.
    """
    for_a_team = request.web or request.earlier or request.approve or request.critic or request.answer_schema
    if for_a_team or not settings.has_model or not (request.material or stdin):
        return None
    models = [settings.model_for("planner").model, settings.model_for("worker").model]
    if not all(map(is_small_open, models)):
        return None
    size, room = material_size(request), material_room(known_window(models[-1], settings.providers))
    if size is None or (size := size + len((stdin or "").encode())) > room:
        return None
    return (
        f"`run` takes one plain call instead of a team: {models[-1]} is a small open model, and the material of about "
        f"{size:,} characters fits into one prompt. --no-single, --team or --plan give the team."
    )
