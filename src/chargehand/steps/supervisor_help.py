"""The supervisor's help for the steps of a dispatch: models that rewrite, split, score, select, route; and people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from chargehand.dispatcher import Rungs
from chargehand.engine.people import question_about
from chargehand.engine.port import Engine
from chargehand.models.supervisor_models import SupervisorModel, SupervisorModels
from chargehand.steps.criterion import Scorer
from chargehand.team import Team
from chargehand.values.effect import Question
from chargehand.values.outcome import Outcome, Usage
from chargehand.values.plan import Plan, Task
from chargehand.values.request import Request

if TYPE_CHECKING:
    from chargehand.steps.best_of import Selector
    from chargehand.steps.score import Score
    from chargehand.workers import Assignment

# These add what they use to the list, call by call.
Refiner = Callable[[Task, Outcome, int, list[Usage]], Awaitable[Task]]
Splitter = Callable[[Task, Outcome, int, list[Usage]], Awaitable[Plan | None]]
# Which of several workers tries a task next.
Rerouter = Callable[[Task, Outcome, Sequence[str], int, list[Usage]], Awaitable[str]]
AskAbout = Callable[[Task, Outcome], Question]


class SupervisorHelp(NamedTuple):
    """If one of these is missing, its rung is skipped.

    Without `select` the most confident member of a `best_of` is taken, and without `reroute` the next worker in order.
    """

    refine: Refiner | None = None
    split: Splitter | None = None
    ask: AskAbout | None = None
    score: Scorer | None = None
    select: Selector | None = None
    reroute: Rerouter | None = None

    @property
    def rungs(self) -> Rungs:
        """What a dispatch has to know about it."""
        return Rungs(
            refine=self.refine is not None,
            split=self.split is not None,
            ask=self.ask is not None,
            reroute=self.reroute is not None,
        )


def make_help(
    request: Request, team: Team, engine: Engine, role_models: SupervisorModels, *, planned_here: bool
) -> SupervisorHelp:
    """What the dispatcher may use when a task fails. A given plan gets no planned tasks, so it has no split."""
    refiner, scorer, router = role_models.get("refiner"), role_models.get("scorer"), role_models.get("router")
    planner, split = role_models.get("planner") if planned_here else None, None
    if planner:
        from chargehand.planner.draft import split_task  # loaded already: it made the plan

        split = partial(split_task, request=request, team=team, engine=engine, planner_model=planner)
    return SupervisorHelp(
        refine=partial(_refine, engine=engine, model=refiner) if refiner else None,
        split=split,
        ask=question_about if request.ask else None,
        score=partial(_score, engine=engine, model=scorer) if scorer and team.recovery.score else None,
        select=partial(_best_of, engine=engine, model=role_models.get("judge")),
        reroute=partial(_reroute, team=team, engine=engine, router_model=router) if router else None,
    )


# Most tasks do not need any of these: each is loaded when it is used.


async def _refine(
    task: Task, outcome: Outcome, number: int, used: list[Usage], *, engine: Engine, model: SupervisorModel
) -> Task:
    from chargehand.steps.refine import refine

    return await refine(task, outcome, number, used, engine=engine, model=model)


async def _score(assignment: Assignment, outcome: Outcome, *, engine: Engine, model: SupervisorModel) -> Score | None:
    from chargehand.steps.score import score

    return await score(assignment, outcome, engine, model)


async def _reroute(
    task: Task,
    outcome: Outcome,
    others: Sequence[str],
    number: int,
    used: list[Usage],
    *,
    team: Team,
    engine: Engine,
    router_model: SupervisorModel,
) -> str:
    from chargehand.planner.route import reroute

    return await reroute(task, outcome, others, number, used, team=team, engine=engine, router_model=router_model)


async def _best_of(
    task: Task,
    results: Sequence[Outcome],
    number: int,
    used: list[Usage],
    *,
    engine: Engine,
    model: SupervisorModel | None,
) -> tuple[int, str]:
    from chargehand.synthesizer.select import choose

    key, seed = f"{task.id}/{number}/select", f"{engine.run}/{task.id}/{number}"
    choice = await choose(
        task.instruction, results, engine, model, key, used, criterion=task.success_criterion, seed=seed
    )
    return choice.index, choice.reason
