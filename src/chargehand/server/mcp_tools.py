"""The tools that other programs' models use over MCP: checked arguments -> a run, and its result so far.

A tool waits at most 45 seconds, because many programs cut a call after 60. Plans and calls of tools are approved by a
person: no tool here takes such an answer, unless the server was started with --allow-approvals.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from pydantic import Field

from chargehand.errors import InvalidAnswer, NoOpenQuestion
from chargehand.server.access import Caller
from chargehand.server.begin_runs import (
    Name,
    PlanRequest,
    ReviewRequest,
    StartRun,
    begin_review,
    begin_run,
    draft_plan_for,
)
from chargehand.server.change_runs import stop_run
from chargehand.server.checked_input import Input
from chargehand.server.client_runs import find_run_of, refuse_client
from chargehand.server.read_runs import read_run
from chargehand.server.refusals import Refusal
from chargehand.server.run_summary import Told, may_answer, summarize_run
from chargehand.server.shared_state import Server
from chargehand.server.wait_for_run import Enough, Say, is_over, wait_for_run
from chargehand.text.escaping import dump_json
from chargehand.trace.run_state import RunState
from chargehand.values.effect import Question

LONGEST_WAIT_S = 45
_MOST_ASKS = 3


class AskPerson(Protocol):
    """Asks the person who uses the calling program."""

    async def __call__(self, run: str, question: Question, wrong: str) -> str | None:
        """The person's words; None if they do not want to answer now. `wrong` is the error of the last answer."""
        ...


@dataclass(slots=True)
class ToolUse:
    """One call of a tool: the caller, and how to send lines to it meanwhile."""

    server: Server
    caller: Caller
    say: Say
    person: AskPerson | None = None
    # Whether the calling model may approve plans and calls of tools itself.
    approvals: bool = False
    # Questions that the person did not want to answer in this call.
    declined: set[str] = field(default_factory=set[str])


class WaitRun(Input):
    """A run to wait for."""

    run: Name
    seconds: float = Field(default=LONGEST_WAIT_S, ge=0, le=LONGEST_WAIT_S)


class GetRun(Input):
    """A run to read, or one of its tasks."""

    run: Name
    task: Name | None = None


class CancelRun(Input):
    """A run to stop."""

    run: Name


class AnswerRun(Input):
    """An answer to an escalation of a run."""

    run: Name
    question: Name
    answer: str = Field(min_length=1, max_length=100_000)


# -- tools -------------------------------------------------------------------------------------------------------------


async def run_team(use: ToolUse, body: StartRun) -> Told:
    """Give a request to a team of agents, and wait for the answer."""
    return await follow_run(use, await begin_run(use.server, use.caller, body), LONGEST_WAIT_S, begun=True)


async def review_diff(use: ToolUse, body: ReviewRequest) -> Told:
    """Review a patch, and wait for the findings."""
    return await follow_run(use, await begin_review(use.server, use.caller, body), LONGEST_WAIT_S, begun=True)


async def wait_run(use: ToolUse, body: WaitRun) -> Told:
    """Wait for a run; one that was interrupted continues."""
    return await follow_run(use, await find_run_of(use.server, use.caller, body.run), body.seconds)


async def get_run(use: ToolUse, body: GetRun) -> Told:
    """A run as it is now, or the whole outcome of one task."""
    run = await find_run_of(use.server, use.caller, body.run)
    whole = await read_run(use.server, run)
    if body.task is None:
        return _summarize(use, whole)
    outcome = next((each for each in whole["outcomes"] if each["task"] == body.task), None)
    if outcome is None:
        ended = ", ".join(each["task"] for each in whole["outcomes"][:50]) or "none yet"
        raise Refusal(404, f"No task {body.task[:80]!r} of run {run} has ended. Ended: {ended}.")
    return Told({"run": run, "status": whole["status"], "outcome": outcome}, dump_json(outcome, indent=1))


async def answer_question(use: ToolUse, body: AnswerRun) -> Told:
    """Answer an escalation of a run, which then continues."""
    refuse_client(use.caller, "answer questions")
    server, run = use.server, await find_run_of(use.server, use.caller, body.run)
    asked = await server.reading.run(server.supervisor.questions, run)
    kind = next((each.kind for each in asked if each.id == body.question), None)
    if kind is None:
        listed = ", ".join(each.id for each in asked) or "nothing"
        raise Refusal(409, f"Run {run} does not ask {body.question[:80]!r} now. Open: {listed}.")
    if not may_answer(use.caller, kind, approvals=use.approvals):
        raise Refusal(
            403,
            f"Question {body.question[:80]!r} is for a person: a model answers escalations only. Tell the user to "
            f"answer on the page, or with: chargehand answer {run} {body.question[:80]} "
            f"{'approve' if kind == 'plan' else 'ANSWER'}",
        )
    await server.supervisor.answer(run, body.question, body.answer, by="mcp")
    return await follow_run(use, run, LONGEST_WAIT_S)


async def cancel_run(use: ToolUse, body: CancelRun) -> Told:
    """Stop a run."""
    stopped = await stop_run(use.server, await find_run_of(use.server, use.caller, body.run))
    return Told(stopped, f"Run {stopped['run']}: {stopped['status']}.")


async def plan(use: ToolUse, body: PlanRequest) -> Told:
    """The plan for a request, nothing run."""
    made = use.server.redactor.json((await draft_plan_for(use.server, body)).to_json())
    return Told({"plan": made}, dump_json(made, indent=1))


# -- following ---------------------------------------------------------------------------------------------------------


async def follow_run(use: ToolUse, run: str, seconds: float, *, begun: bool = False) -> Told:
    """Wait for a run, put its questions to the person, and report progress. `begun`: its id is new to the caller."""
    until = time.monotonic() + seconds
    if begun:
        await use.say(f"run {run}")  # a caller whose connection is cut finds the run by this
    while True:
        left = max(until - time.monotonic(), 0.0)
        view, status = await wait_for_run(use.server, use.caller, run, left, use.say, _enough_for(use, begun=begun))
        asked = next((each for each in _questions(view) if _can_ask(use, each)), None)
        if asked is None or use.person is None or is_over(view, status):
            return _summarize(use, await read_run(use.server, run))
        await _ask(use, use.person, run, asked)
        until = time.monotonic() + seconds


async def _ask(use: ToolUse, person: AskPerson, run: str, question: Question) -> None:
    """Put a question to the person until there is a valid answer, or they decline."""
    wrong = ""
    for _ in range(_MOST_ASKS):
        words = await person(run, question, wrong)
        if words is None:
            break
        try:
            await use.server.supervisor.answer(run, question.id, words, by="mcp")
        except NoOpenQuestion:
            pass  # somebody else answered meanwhile
        except InvalidAnswer as error:
            wrong = str(error)
            continue
        return
    use.declined.add(question.id)


def _enough_for(use: ToolUse, *, begun: bool) -> Enough:
    def enough(view: RunState, status: str) -> bool:
        questions = _questions(view)
        if is_over(view, status) or any(_can_ask(use, each) for each in questions):
            return True
        if any(may_answer(use.caller, each.kind, approvals=use.approvals) for each in questions):
            return True
        # Nobody here can or wants to answer. A caller that does not know this yet gets it reported at once. A caller
        # that knows it waits for the answer.
        return (begun or bool(use.declined)) and bool(questions) and status == "waiting"

    return enough


def _can_ask(use: ToolUse, question: Question) -> bool:
    return use.person is not None and use.caller == "owner" and question.id not in use.declined


def _questions(view: RunState) -> list[Question]:
    return [Question.model_validate(asked) for asked in view.questions.values()]


def _summarize(use: ToolUse, whole: dict[str, Any]) -> Told:
    return summarize_run(whole, use.server.url or None, may_answer=use.caller == "owner")


# -- table -------------------------------------------------------------------------------------------------------------

Handler: TypeAlias = Callable[[ToolUse, Any], Awaitable[Told]]


class ToolEntry(NamedTuple):
    """One tool: its description for models, its arguments, and whether it only reads."""

    handle: Handler
    shape: type[Input]
    title: str
    description: str
    reads: bool = False
    repeatable: bool = False

    @property
    def name(self) -> str:
        return cast("Any", self.handle).__name__


_RESULT = "Gives status, answer, gaps, tasks, usage and `next`: what to do when the run has not ended."
TOOLS: dict[str, ToolEntry] = {
    entry.name: entry
    for entry in (
        ToolEntry(
            run_team,
            StartRun,
            "Run a team",
            "Answer a request with a team of agents that plan, work in parallel and write one answer with sources and "
            "gaps. For work that needs much material or several steps. Waits at most 45 seconds; a longer run "
            f"continues, and wait_run gives its answer. {_RESULT}",
        ),
        ToolEntry(
            wait_run,
            WaitRun,
            "Wait for a run",
            f"Wait for a run, at most 45 seconds. A run that was interrupted continues. {_RESULT}",
            repeatable=True,
        ),
        ToolEntry(
            get_run,
            GetRun,
            "Read a run",
            f"A run as it is now, without waiting; with `task` the whole outcome of one task. {_RESULT}",
            reads=True,
        ),
        ToolEntry(
            answer_question,
            AnswerRun,
            "Answer an escalation",
            "Answer a question of kind `escalation`: a worker needs to know something. Questions of other kinds are "
            "for a person, and refused here.",
        ),
        ToolEntry(
            cancel_run,
            CancelRun,
            "Stop a run",
            "Stop a run. What it has done stays on record; it can be resumed.",
            repeatable=True,
        ),
        ToolEntry(
            plan,
            PlanRequest,
            "Plan only",
            "The plan that run_team would make for a request, nothing run. It can be edited and given to run_team.",
            reads=True,
        ),
        ToolEntry(
            review_diff,
            ReviewRequest,
            "Review a patch",
            "Review a unified diff for bugs, security, performance and style. Works without a model. Of files that it "
            f"changes, what cannot be read here is a gap. {_RESULT}",
        ),
    )
}
PARAMETERS: dict[str, str] = {
    "request": "What is to be done, in plain words, with all the context that is needed.",
    "team": "The name of a team; leave it out for the default one.",
    "material": "Texts that the team may read, each with a name.",
    "model": "The name of a configured model; leave it out for the default.",
    "plan": "A plan to run as it is, such as `plan` gives, edited.",
    "tokens": "The most tokens to spend.",
    "usd": "The most US dollars to spend.",
    "deadline": "Seconds after which the best answer so far is given.",
    "approve": "Let a person approve the plan before it runs.",
    "ask": "Let workers ask a person when they cannot go on.",
    "critic": "Let a reviewer accept the answer or send it back.",
    "schema": "A JSON schema for a typed answer.",
    "follow_up": "The id of an earlier run whose answer this one continues from.",
    "run": "The id of a run.",
    "seconds": "How long to wait.",
    "task": "The id of a task of the run.",
    "question": "The id of the question.",
    "answer": "The answer in words.",
    "patch": "A unified diff, as `git diff` prints it.",
}
