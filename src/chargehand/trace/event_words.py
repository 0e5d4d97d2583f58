"""An event and the state of its run -> one line of words, for displays that show a run as it happens."""

from __future__ import annotations

from typing import Any, assert_never

from chargehand.events import (
    AttemptEnded,
    AttemptStarted,
    BreakerChanged,
    BudgetReserved,
    BudgetSettled,
    ContradictionFound,
    Control,
    Critiqued,
    Decided,
    DraftDiscarded,
    Event,
    Extended,
    GapFound,
    ModelCalled,
    ModelReplied,
    PlanApproved,
    PlanDrafted,
    PlanRejected,
    Progressed,
    QuestionAnswered,
    QuestionAsked,
    Reused,
    RunEnded,
    RunStarted,
    SynthesisStarted,
    TaskEnded,
    TaskReady,
    ToolCalled,
    ToolRefused,
    ToolReturned,
    Unknown,
    Unreadable,
    Warned,
)
from chargehand.text.escaping import dump_json
from chargehand.trace.number_text import duration, first_line, moment, several, short, tasks_in_words
from chargehand.trace.run_parts import text_in
from chargehand.trace.run_state import RunState
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.request import SINGLE_CALL

# The code before a problem of a draft, which is for programs.
_CODES = lazy_regex(r"(?:^|(?<=; ))[a-z]+(?:_[a-z]+)+: ")


def describe_event(event: Event, view: RunState) -> str | None:
    """The event in words; None for events that only -v shows. The text for a nested supervisor begins with its task.

    Of the work that a fork takes over, only the plan and the results are described: it did not happen now.
    """
    if event.seq <= view.copied_to and not isinstance(event.body, RunStarted | PlanApproved | TaskEnded):
        return None
    words = _describe(event, view)
    return f"{event.task}: {words}" if words is not None and event.data.get("within") else words


def _describe(event: Event, view: RunState) -> str | None:
    task = event.task or ""
    match event.body:
        case RunStarted(resumed=resumed, rerun_of=rerun_of, forked_from=fork):
            team = "one plain call" if view.team == SINGLE_CALL else f"the team {view.team}"
            origin = f", a rerun of {rerun_of}" if rerun_of else f", a fork of {fork['run']}" if fork else ""
            # Somebody who wrote `last` sees which run it is.
            request = f": {short(view.request, 60)}" if resumed or origin else ""
            return f"{'resumed' if resumed else 'run'} {event.run} with {team}{origin}{request}"
        case PlanRejected(problems=problems):
            first = text_in(problems[0], "message") if problems else ""
            return f"the plan has {several(len(problems), 'problem')}: {first}"
        case PlanApproved(plan=plan, strategy=strategy):
            return f"plan: {tasks_in_words(len(plan.get('tasks') or ()), strategy)}"
        case AttemptStarted(worker=worker):
            number = event.attempt or 1
            return f"{task} {'started' if number == 1 else f'retried (attempt {number})'} by {worker}"
        case ToolRefused(tool=tool, reason=reason):
            return f"{task} was refused the tool {tool}: {reason}"
        case TaskEnded():
            return _describe_end(task, view, event.at)
        case QuestionAsked(question=question, source=str(source)):
            return f"{task or 'the supervisor'} uses the answer to question {question.get('id')} of run {source}"
        case QuestionAsked(question=question):
            return f"{task or 'the supervisor'} asks a person: question {question.get('id')}"
        case SynthesisStarted(outcomes=outcomes):
            return f"writing the answer from {several(outcomes, 'outcome')}"
        case DraftDiscarded(reason=reason):
            return f"a draft of the answer was discarded: {_CODES.sub('', reason)}"
        case ContradictionFound(contradiction=found):
            return f"workers disagree about {found['subject']}: {'resolved' if found['resolved'] else 'unresolved'}"
        case Critiqued(verdict=verdict, problems=problems):
            return f"the critic says {verdict}: {' '.join(problems) or 'no problems'}"
        case Extended(tasks=tasks):
            return f"{several(len(tasks), 'task')} added to fill gaps"
        case BreakerChanged(name=name, state=state, reason=reason):
            why = "" if state != "open" else f" {reason}" if reason.startswith("for ") else f": {reason}"
            return f"{name.removeprefix('provider:').replace(':', ' ')} {_BREAKERS.get(state, state)}{why}"
        case Warned(message=message):
            return f"warning: {message}"
        case ModelCalled(send=sent, role=role):
            return f"{task or role}: the call that got no reply is repeated" if sent > 1 else None
        case ToolCalled(send=sent):
            return f"{task}: the call that got no result is repeated" if sent > 1 else None
        case Progressed(text=text):
            return f"{task}: {text}"
        case Decided(decision="transport_retry") as decided:
            return f"{task or 'the supervisor'}: the call is {sent_again(decided)}"
        case Decided(decision="wait", value=value, reason=reason) if event.task is not None:
            return f"{task} waits for {value['provider']} until {moment(value['until'])}: {reason}"
        case Decided(decision="wait", value=value):
            return f"waiting for {value['provider']} until {moment(value['until'])}"
        case Decided(decision="wait_over"):
            return "the wait is over"
        case Decided(decision="extend", value=True):
            return "asking the planner for tasks that could fill the gaps"
        case RunEnded(status=status):
            return f"ended: {status}"
        case Control(order=order, verdict="accepted"):
            return _describe_order(order, event)
        case Control(order="tell", verdict="too_late", reason=reason):
            return f"the words for {task} came too late: {reason}"
        case Control(order=order, verdict=verdict, reason=reason):
            return f"the order {order}{f' for {task}' if task else ''} is {verdict.replace('_', ' ')}: {reason}"
        case (
            Decided()
            | PlanDrafted()
            | TaskReady()
            | ModelReplied()
            | ToolReturned()
            | AttemptEnded()
            | QuestionAnswered()
            | GapFound()
            | BudgetReserved()
            | BudgetSettled()
            | Reused()
            | Unknown()
            | Unreadable()
        ):
            return None
        case _:
            assert_never(event.body)


# State of a breaker -> what that means for the worker or provider.
_BREAKERS = {"open": "is left alone", "half_open": "is tried with one call", "closed": "is used again"}


def _describe_order(order: str, event: Event) -> str:
    match order:
        case "pause":
            return f"paused by a person; continue with: chargehand resume {event.run}"
        case "continue":
            return "continued by a person"
        case "stop":
            return f"a person stopped {event.task}"
        case "restart":
            return f"a person restarted {event.task}"
        case "top_up":
            return "a person added to the limits of the run"
        case "answer":
            return "a person answered from elsewhere"
        case "tell":
            return f"{event.task} gets the words of a person"
        case _:
            return f"a person ordered: {order}{f' {event.task}' if event.task else ''}"


def sent_again(retry: Decided) -> str:
    """The number of the retry, its delay if it is not immediate, and the reason."""
    after: float = retry.value["after_s"]
    number = retry.key.rpartition("/")[2]
    return f"sent again ({number}){f' in {duration(after)}' if after >= 1 else ''}: {retry.reason}"


def detail(event: Event) -> str:
    """Any event on one line."""
    small = {name: value for name, value in event.data.items() if name not in ("messages", "output_schema", "tools")}
    words = dump_json(small)
    return f"{event.kind} {event.task or ''} {words}"


# From the first number of tasks on, the remaining tasks are reported. From the second number of ended tasks on, the
# remaining time is reported too.
_FEW_TASKS, _ENOUGH_TASKS = 10, 3


def phase_words(view: RunState) -> str:
    """What the run does now, such as `planning more tasks` or `waiting for a person`, or its status."""
    if view.ended:
        return view.status
    if view.status == "paused":
        calls = view.calls_in_flight
        return f"paused, {several(calls, 'call')} in flight" if calls else "paused"
    is_working = any(view.status_of(task) == "running" for task in view.tasks.values())
    if view.questions and not is_working:
        return "waiting for a person"
    if view.waiting is not None:
        return f"waiting for {view.waiting['provider']} until {moment(view.waiting['until'])}"
    if not view.tasks:
        return "planning"
    if is_working:
        return "working"
    roles = {call.role for call in view.in_flight.get("", {}).values()}
    if "planner" in roles:
        return "planning more tasks"
    if "judge" in roles and "synthesizer" not in roles:
        return "looking for contradictions"
    return "writing the answer" if view.synthesis_started else "working"


def progress_words(view: RunState, at: float) -> str:
    """`12 of 21 ended, about 40 s left`, estimated from the ended tasks; empty if there are only a few tasks."""
    counts = view.counts()
    total = len(view.tasks)
    ended = sum(counts.get(status, 0) for status in ("done", "failed", "escalated", "skipped"))
    if total < _FEW_TASKS or not ended:
        return ""
    left = view.elapsed_seconds(at) / ended * (total - ended)
    return f"{ended} of {total} ended" + (
        f", about {duration(left)} left" if ended >= _ENOUGH_TASKS and left >= 1 else ""
    )


def _describe_end(task: str, view: RunState, at: float) -> str:
    ended = view.tasks[task]
    outcome: dict[str, Any] = ended.outcome or {}
    took = "reused" if ended.reused else duration(worked) if (worked := ended.worked_seconds()) else ""
    figures = ", ".join(part for part in (took, f"{ended.tokens:,} tokens" if ended.tokens else "") if part)
    progress = f" [{words}]" if (words := progress_words(view, at)) else ""
    said = first_line(str(outcome.get("summary", "")))
    return f"{task} {ended.status}{f' ({figures})' if figures else ''}{progress}: {said}"
