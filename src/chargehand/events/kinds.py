"""One class for each kind of event. The comment behind a field becomes its line in docs/reference/events.md."""

from __future__ import annotations

from typing import TypeAlias

from chargehand.events.body import BODIES, JSON, Body, Data


class _OfTeam(Body):
    """Of the supervisor of the run, or of one of a nested team."""

    within: str | None = None  # The attempt whose nested team it is of, such as `t3/1`.


class _Keyed(Body):
    key: str  # Its place in the run.


class _OfEffect(_Keyed):
    fingerprint: str  # A hash of what was asked.


# -- the run ---------------------------------------------------------------------------------------------------------


class RunStarted(Body, kind="run_started"):
    """A session of the run begins; again for each resume, with a higher `epoch`."""

    version: int  # The version of the events.
    chargehand: str  # The version of chargehand.
    epoch: int  # The number of the session, from 1.
    resumed: bool  # Whether there were sessions before.
    request: Data  # The request with its limits.
    team: Data  # The team as it was loaded.
    settings: Data  # The settings of the session.
    rerun_of: str | None = None  # The run that this one repeats.
    forked_from: Data | None = None  # The `run` that this one was forked from, and the task `at` which, or null.
    copied: int | None = None  # How many of the events after this one are taken over from that run.
    trace: Data | None = None  # The `id` of the trace that the run is part of, and the span of its `parent`, or null.


class RunEnded(Body, kind="run_ended"):
    """The session is over: the last event of a run, until it is resumed."""

    status: str  # How it ended.
    report: Data | None = None  # The report.
    by: str | None = None  # `command`, if a command ended a run that no process owned.
    parked_s: float | None = None  # For how long the session was paused, or waited for a person, before it was stopped.
    budget: Data | None = None  # What the run may use in all, with what was added to it.


class Warned(_OfTeam, kind="warning"):
    """There is something that you should know."""

    message: str  # What it is and what to do about it.


# -- the plan --------------------------------------------------------------------------------------------------------


class PlanDrafted(_OfTeam, kind="plan_drafted"):
    """There is a plan to check, from the planner or from you, or tasks that a planner adds to one."""

    plan: Data | None  # The plan; null if the reply could not be read.
    round: int  # Which draft it is, from 1; 0 for a given plan.
    problems: list[Data]  # What is wrong with it.
    renamed: dict[str, str] | None = None  # Ids of the draft -> ids in the plan, where they had to change.
    source: str  # Where it comes from: `planner`, `router`, `given`, `added` or `split`.


class PlanRejected(_OfTeam, kind="plan_rejected"):
    """The draft has errors, which are sent back to the planner."""

    problems: list[Data]  # What is wrong with it.
    round: int  # Which draft it is.


class PlanApproved(_OfTeam, kind="plan_approved"):
    """The plan is about to run."""

    plan: Data  # The plan.
    strategy: str  # Its shape: `single`, `sequential`, `parallel` or `hybrid`.
    notes: list[str]  # Advice about the plan.
    given: bool | None = None  # Whether you gave it.
    usage: Data | None = None  # What planning used.
    ceiling: Data | None = None  # Tokens that a task may use at the most, and of how many.


class Extended(_OfTeam, kind="extension"):
    """Tasks were added to fill gaps."""

    tasks: list[Data]  # The new tasks.
    round: int | None = None  # How often tasks were added so far.
    fills: dict[str, list[str]] | None = None  # Gap -> the tasks that fill it.


# -- tasks and attempts ----------------------------------------------------------------------------------------------


class TaskReady(Body, kind="task_ready"):
    """All tasks that the task depends on have ended."""

    worker: str  # The worker that does it.


class AttemptStarted(Body, kind="attempt_started"):
    """A worker begins the task."""

    worker: str  # The worker.
    tier: str | None  # The tier of its model, if the task names one.
    model: str | None  # Its model, if it has one.


class AttemptEnded(Body, kind="attempt_ended"):
    """The attempt has ended, with or without a result."""

    status: str  # How it ended.
    error: Data | None  # Why it failed.
    outcome: Data | None = None  # Its outcome, unless that is the outcome of the task.


class TaskEnded(Body, kind="task_ended"):
    """The task has its one outcome."""

    outcome: Data  # The outcome.


# -- effects ---------------------------------------------------------------------------------------------------------


class ModelCalled(_OfEffect, kind="model_called"):
    """A model call is about to be sent."""

    role: str  # What the model is asked to be, such as `planner` or `worker`.
    worker: str | None  # The worker that asks.
    model: str  # The model.
    messages: list[str]  # The messages, by hash.
    tools: list[str]  # The names of the tools that it is offered.
    output_schema: bool  # Whether a schema for the reply is sent.
    options: Data  # Explicit options, such as the temperature.
    tool_choice: str | None = None  # `none`, if no tool may be called.
    max_output: int  # How many tokens the reply may have.
    send: int  # How often it was sent, this time included.


class ModelReplied(_OfEffect, kind="model_replied"):
    """The reply, or the reason why there is none, is known."""

    result: Data  # The reply with its usage, or the error; with `cut` it was cut off and `text` is what had arrived.


class ToolCalled(_OfEffect, kind="tool_called"):
    """A tool is about to be run."""

    worker: str  # The worker that asks.
    tool: str  # The tool.
    arguments: Data  # Its arguments.
    effect: str  # `read`, `idempotent` or `once`.
    send: int  # How often it was begun, this time included.


class ToolReturned(_OfEffect, kind="tool_returned"):
    """The tool's result is known."""

    result: Data  # What it returned, or the error with its `code` and, for an exception, its `place`.


class ToolRefused(Body, kind="tool_refused"):
    """A worker asked for a tool it does not have or with unusable arguments, or a person rejected it."""

    worker: str  # The worker that asked.
    tool: str  # The tool.
    reason: str  # Why it was refused.
    code: str | None = None  # The same as a code: `unknown_tool`, `wrong_arguments` or `not_approved`.


class Progressed(_Keyed, kind="progress"):
    """A program that does a task says what it is doing. Few of its lines are kept."""

    text: str  # What it says.


class Reused(_OfEffect, kind="reused"):
    """A result was taken from the run that this one repeats or was forked from, or an analyzer's from the cache."""

    result: Data  # The result.
    source: str  # The run that it comes from, or `cache`.


# -- decisions and people --------------------------------------------------------------------------------------------


class Decided(_OfTeam, _Keyed, kind="decision"):
    """A choice that depends on more than plan and outcomes: a retry, a timeout, a denied budget."""

    decision: str  # What was to be decided.
    value: JSON  # What was decided.
    reason: str  # Why.


class QuestionAsked(_Keyed, kind="question_asked"):
    """A person is asked, unless another run has the answer."""

    question: Data  # The question.
    source: str | None = None  # The run that has the answer: it is used again, and nobody is asked.


class QuestionAnswered(_Keyed, kind="question_answered"):
    """A person has answered."""

    answer: JSON  # The answer.
    by: str | None = None  # `person`, `command`, `order`, or the run that the answer was taken from.
    parked_s: float | None = None  # For how long the run did nothing but wait for it.


class Control(_Keyed, kind="control"):
    """A person ordered something of the run, and the verdict on it. Recorded once, before it is acted on."""

    order: str  # `pause`, `continue`, `stop`, `restart`, `tell`, `answer`, `top_up`, or `unreadable`.
    by: str  # The way it was sent, such as `command`.
    sent_at: float  # When it was sent, in seconds since 1970.
    verdict: str  # `accepted`, `refused` or `too_late`.
    reason: str | None = None  # Why it was not accepted, and what to do.
    value: Data | None = None  # What it says; of words also the `call` they precede; of a pause the `waiting` calls.
    parked_s: float | None = None  # For how long the run was paused or waited for a person before it came.


# -- the answer ------------------------------------------------------------------------------------------------------


class SynthesisStarted(_OfTeam, kind="synthesis_started"):
    """The answer is being written."""

    mode: str  # `merge`, `select` or `reduce`.
    outcomes: int  # From how many outcomes.


class DraftDiscarded(_OfTeam, kind="draft_discarded"):
    """A draft of the answer could not be used."""

    reason: str  # Why.


class ContradictionFound(_OfTeam, kind="contradiction_found"):
    """Results disagree."""

    contradiction: Data  # What they disagree about, and the verdict.


class Critiqued(_OfTeam, kind="critique"):
    """A reviewer has judged the draft, or could not."""

    verdict: str  # `accept`, `revise` or `not_reviewed`.
    problems: list[str]  # What is wrong with the draft, or why it was not judged.


class GapFound(_OfTeam, kind="gap_found"):
    """The answer lacks something."""

    gap: Data  # What it lacks and why.


# -- budget and limits -----------------------------------------------------------------------------------------------


class BudgetReserved(_Keyed, kind="budget_reserved"):
    """Tokens and money are reserved for a call."""

    tokens: int  # How many tokens.
    usd: float | None  # How much money; null if the price is unknown.


class BudgetSettled(_Keyed, kind="budget_settled"):
    """The call's real usage replaces the reservation."""

    tokens: int  # How many tokens it used.
    usd: float | None  # What it cost; null if that is unknown.
    estimated: bool | None = None  # Whether the provider did not say what it used: then `tokens` is what was reserved.
    lost: Data | None = None  # The usage to count for a call that was cut off.


class BreakerChanged(_OfTeam, kind="breaker_changed"):
    """A worker or provider stopped getting calls, or gets them again."""

    name: str  # The worker or provider.
    state: str  # `closed`, `half_open` or `open`.
    reason: str  # Why.


# -- what cannot be read as one of these -----------------------------------------------------------------------------


class Unknown(Body):
    """Of a kind that this version does not know: a newer one wrote it, and it can be left out."""


class Unreadable(Body):
    """Of a known kind, but without a field that it must have or with one of another type."""


EventBody: TypeAlias = (
    RunStarted
    | RunEnded
    | Warned
    | PlanDrafted
    | PlanRejected
    | PlanApproved
    | Extended
    | TaskReady
    | AttemptStarted
    | AttemptEnded
    | TaskEnded
    | ModelCalled
    | ModelReplied
    | ToolCalled
    | ToolReturned
    | ToolRefused
    | Progressed
    | Reused
    | Decided
    | QuestionAsked
    | QuestionAnswered
    | Control
    | SynthesisStarted
    | DraftDiscarded
    | ContradictionFound
    | Critiqued
    | GapFound
    | BudgetReserved
    | BudgetSettled
    | BreakerChanged
    | Unknown
    | Unreadable
)
KINDS = tuple(BODIES)
