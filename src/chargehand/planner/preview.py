"""A plan -> what running it would take, roughly: calls, tokens, money and time before any is spent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from chargehand.models import prices
from chargehand.models.model_size import is_small
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.team import Team, Worker
from chargehand.trace.number_text import duration, money, round_up, several, tasks_in_words
from chargehand.values.budget import ceiling
from chargehand.values.estimate import Figures, Learned, PastRun, learn
from chargehand.values.plan import Plan, Task
from chargehand.values.request import Request
from chargehand.workers import Roster

CHARACTERS_PER_TOKEN = 4
# In tokens: the words around a worker's own prompt, the description of one tool, and a typical answer.
FRAME, TOOL, ANSWER = 400, 150, 700
# A worker with tools typically makes this many calls, one without makes one.
CALLS_WITH_TOOLS = 3
# Calls of a team within the team in addition to its workers': its planner and its synthesizer.
AROUND_A_TEAM = 2
# The synthesizer's own words and what frames each result, in tokens.
SYNTHESIS_FRAME = 1_500
# What a task typically states, the statements a judge compares in one call, and what one statement takes, in tokens.
STATEMENTS, COMPARED, STATEMENT = 6, 40, 40
# In a plan of so few tasks statements are compared in two calls at most.
FEW_TASKS = 10
# A small judge is asked for one word about known pairs first, then twice about each of the nearest pairs.
KNOWN_PAIRS, MOST_PAIRS = 8, 40
# What a call for one word reads, in tokens, and takes, in seconds.
WORD_TOKENS, WORD_S = 350, 1.0
# A typical call with such an answer.
SECONDS_A_CALL = 10.0


def synthesis_tokens(synthesizer: SupervisorModel | None) -> int:
    """Tokens for writing the answer, without those for reading the results; 0 when code writes it."""
    return 0 if synthesizer is None else synthesizer.output_cap + SYNTHESIS_FRAME


def ceiling_of(plan: Plan, request: Request, synthesizer: SupervisorModel | None) -> int | None:
    """The tokens that a task without a token budget may use in a plan made by a model; None without a budget."""
    limit = request.budget.tokens
    # A single task needs no synthesis.
    reserve = 0 if len(plan.tasks) == 1 else synthesis_tokens(synthesizer)
    return None if limit is None else ceiling(limit, reserve, len(plan.tasks))


def preview(
    plan: Plan,
    team: Team,
    roster: Roster,
    synthesizer: str,
    request: Request,
    ceiling: int | None = None,
    judge: str | None = None,
    past: Sequence[PastRun] = (),
    raise_limit: str = "--tokens {tokens}",
) -> str:
    """A few lines: the tasks, the estimate, the limits and how far off the last estimate was.

    `ceiling` is what a task without a token budget may use. `judge` is the model that compares what tasks state, if
    there is one. `past` are runs of the same team and models. `raise_limit` is how to give a run more tokens.
    """
    learned = learn(estimate_by_plan(plan, team, roster, synthesizer, request, judge), past)
    limits = [f"{request.budget.tokens:,} tokens for the run"] if request.budget.tokens else []
    if ceiling is not None and any(task.budget is None or task.budget.tokens is None for task in plan.tasks):
        limits.append(f"{ceiling:,} tokens for a task without a budget of its own")
    chain = f", at most {plan.depth} one after another" if plan.strategy == "hybrid" else ""
    people = " and the time people take" if _people(plan, team) else ""
    lines = (
        f"Running it: {tasks_in_words(len(plan.tasks), plan.strategy)}{chain}.",
        f"Estimated{_source(past)}: {_figures(learned, people)}.",
        f"Never more than: {', '.join(limits)}." if limits else "",
        _above_limit(learned, request, raise_limit),
        _last_estimate(past),
        _web(plan, team),
    )
    return "\n".join(filter(None, lines))


def estimate_by_plan(
    plan: Plan, team: Team, roster: Roster, synthesizer: str, request: Request, judge: str | None
) -> Figures:
    """What the plan would take by the constants above."""
    calls, tokens = 0, 0
    costs: list[float | None] = []
    seconds: dict[str, float] = {}
    for task in plan.tasks:
        each = _calls(task, team)
        number = each * (task.best_of or 1)
        read, written = number * _input(task, team), number * ANSWER
        model = roster[team.worker(task.worker).name].model_for(task.tier)
        calls, tokens = calls + number, tokens + read + written
        seconds[task.id] = each * SECONDS_A_CALL
        costs.append(_usd(model, read, written))
    took = max(plan.critical_path(seconds)[0], sum(seconds.values()) / request.max_concurrent)
    if len(plan.tasks) > 1:
        read = FRAME + len(plan.tasks) * ANSWER
        calls, tokens, took = calls + 1, tokens + read + ANSWER, took + SECONDS_A_CALL
        costs.append(_usd(synthesizer, read, ANSWER))
    if judge is not None and (compared := _judge_calls(plan, team, judge)):
        in_words = is_small(judge)
        read = compared * (WORD_TOKENS if in_words else FRAME) + len(plan.tasks) * STATEMENTS * STATEMENT
        written = compared if in_words else compared * ANSWER
        took += compared * WORD_S if in_words else SECONDS_A_CALL
        calls, tokens = calls + compared, tokens + read + written
        costs.append(_usd(judge, read, written))
    usd = None if None in costs else sum(cost or 0.0 for cost in costs)
    return Figures(calls, tokens, took, usd)


def _source(past: Sequence[PastRun]) -> str:
    return f" from {several(len(past), 'earlier run')} of this team and model, planning included" if past else ""


def _figures(learned: Learned, people: str) -> str:
    """Calls, tokens, time and cost, each with its range where past runs differed."""
    low, expected, high = learned
    tokens = _range(low.tokens, high.tokens, lambda number: f"{round(number):,}")
    time = _range(low.seconds, high.seconds, duration)
    cost = "cost unknown"
    if low.usd is not None and expected.usd is not None and high.usd is not None:
        cost = f"about {money(expected.usd)}{_range(low.usd, high.usd, money)}"
    calls = several(round(expected.calls), "call")
    return f"{calls}, {round(expected.tokens):,} tokens{tokens}, {duration(expected.seconds)}{time}{people}, {cost}"


def _range(low: float, high: float, show: Callable[[float], str]) -> str:
    """Nothing where both ends read the same."""
    return "" if show(low) == show(high) else f" ({show(low)} to {show(high)})"


def _above_limit(learned: Learned, request: Request, raise_limit: str) -> str:
    """What happens when the estimate is above the limit, and a limit that would probably be enough."""
    limit, expected = request.budget.tokens, learned.expected.tokens
    if limit is None or expected <= limit:
        return ""
    enough = round_up(max(learned.high.tokens, 1.2 * expected))
    return (
        "The estimate is above that limit: no model is called beyond it, and the answer lists what is missing. "
        f"Probably enough: {raise_limit.format(tokens=int(enough))}."
    )


def _last_estimate(past: Sequence[PastRun]) -> str:
    """How far off the last estimate was, so a reader knows how far to trust this one."""
    if not past:
        return ""
    _, expected, used = past[-1]
    return (
        f"The last run used {round(used.tokens):,} tokens and {duration(used.seconds)}, where "
        f"{round(expected.tokens):,} and {duration(expected.seconds)} were estimated."
    )


def _web(plan: Plan, team: Team) -> str:
    """Which of the workers may reach the network, and which may with --web."""
    workers = [team.worker(name) for name in dict.fromkeys(task.worker for task in plan.tasks)]
    now = [f"{w.name} ({', '.join(t.name for t in w.offered if t.needs_trust)})" for w in workers if reaches(w)]
    later = [worker.name for worker in workers if worker.web and not reaches(worker)]
    said = [f"May reach the network: {', '.join(now)}."] if now else []
    return " ".join([*said, *([f"With --web, {', '.join(later)} may use the web."] if later else [])])


def reaches(worker: Worker) -> bool:
    return any(tool.needs_trust for tool in worker.offered)


def _people(plan: Plan, team: Team) -> bool:
    return any(team.worker(task.worker).kind == "human" for task in plan.tasks)


def _calls(task: Task, team: Team) -> int:
    worker = team.worker(task.worker)
    if worker.kind in ("human", "analyzer", "command"):
        return 0
    if worker.team is not None:
        return AROUND_A_TEAM + len(worker.team.workers)
    return CALLS_WITH_TOOLS if worker.tool_names else 1


def _judge_calls(plan: Plan, team: Team, judge: str) -> int:
    """The calls in which the statements of the tasks are compared; what analyzers find is not."""
    stating = sum(team.worker(task.worker).kind != "analyzer" for task in plan.tasks)
    if stating < 2:
        return 0
    if is_small(judge):
        return KNOWN_PAIRS + 2 * min(MOST_PAIRS, STATEMENTS * stating)
    calls = -(-stating * STATEMENTS // COMPARED)
    return min(calls, 2) if stating <= FEW_TASKS else calls


def _input(task: Task, team: Team) -> int:
    worker = team.worker(task.worker)
    context = len(json.dumps(task.context, default=str)) if task.context is not None else 0
    written = len(worker.prompt) + len(task.instruction) + len(task.success_criterion) + context
    described = len(worker.tool_names) * TOOL + len(task.depends_on) * ANSWER
    return FRAME + written // CHARACTERS_PER_TOKEN + described


def _usd(model: str | None, read: int, written: int) -> float | None:
    """None when the price is unknown; work without a model costs nothing."""
    if model is None:
        return 0.0
    provider, _, name = model.partition(":")
    price = prices.price(provider, name)
    return None if price is None else (read * price.input + written * price.output) / 1e6
