"""What a caller asks for -> the team that may do it, or everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping

from chargehand.errors import UsageError
from chargehand.team import Team
from chargehand.text.plan_json import parse, plan_error
from chargehand.tools import BUILTIN
from chargehand.values.base import JSON
from chargehand.values.plan import Plan, errors_in
from chargehand.values.request import Request

_UNTRUSTED = "Not trusted: "
_UNTRUSTED_CODES = frozenset({"untrusted_code", "untrusted_tool", "untrusted_command"})


def team_for(team: Team, request: Request) -> tuple[Team, list[str]]:
    """The team as the request allows it to work, and warnings about it; UsageError when no worker may use the web."""
    if not request.web:
        return team, []
    if not team.web_workers:
        untrusted = [problem.message for problem in team.problems() if problem.code == "untrusted_tool"]
        add = "Add `web: true` to the front matter of a worker (in Python, web=True), or use the team general."
        remedy = untrusted or [add]
        raise UsageError(f"The team {team.name!r} has no worker that may use the web. {' '.join(remedy)}")
    lacking = web_search.lacks() if (web_search := BUILTIN["web_search"]).lacks else None
    return team.with_web(), [f"web_search needs {lacking}: only fetch_page is offered."] if lacking else []


def with_trust_notes(request: Request, team: Team) -> Request:
    """The request with a note for the report about each part of the team that is left out for lack of trust."""
    left_out = [f"{_UNTRUSTED}{each.message}" for each in team.problems() if each.code in _UNTRUSTED_CODES]
    others = [note for note in request.notes if not note.startswith(_UNTRUSTED)]
    return request.model_copy(update={"notes": (*others, *left_out)})


def read_plan(plan: Plan | Mapping[str, JSON] | None, team: Team) -> Plan | None:
    """The plan that a caller gives; InvalidPlan with all problems if it does not have the shape of one."""
    return plan if plan is None or isinstance(plan, Plan) else parse(plan, team.assignable, team.factory)


def check_plan(plan: Plan, team: Team, request: Request) -> None:
    """Raise InvalidPlan with every error in a plan that is to be run as it is."""
    problems = plan.problems(
        team.assignable, max_tasks=request.max_tasks, budget_tokens=request.budget.tokens, factory=team.factory
    )
    if errors_in(problems):
        raise plan_error("The plan cannot be run", problems)
