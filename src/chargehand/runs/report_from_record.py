"""The record of a run -> its report and its open questions, as far as it has come. Needs no team, model or engine."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chargehand.record.replay import Replay
from chargehand.record.storage_errors import reading
from chargehand.text.plan_json import parse
from chargehand.trace.number_text import moment, several
from chargehand.values.effect import Question
from chargehand.values.outcome import Outcome, Usage
from chargehand.values.report import Gap, Report, Timing
from chargehand.values.status_words import FINISHED, RunStatus

if TYPE_CHECKING:
    from chargehand.record.run_source import RunSource


def report_so_far(source: RunSource, state: Replay) -> Report:
    """What the record says now: the final report, or how far it has come."""
    if state.report is not None and state.status in FINISHED:
        return final_report(state)
    with reading(f"of run {state.run}"):
        is_owned = source.owner(state.run) is not None
        if state.report is not None:
            report = final_report(state)
            # Questions may have been answered since the run stopped.
            answer = _describe_progress(state, report.status, is_owned=is_owned)
            return report.model_copy(update={"answer": answer})
        report = unfinished_report(state, _status_now(state, is_owned=is_owned), is_owned=is_owned)
        if not is_owned or not state.seq:
            return report
        return report.model_copy(update={"timing": Timing(wall_s=state.time.until(time.time()))})


def _status_now(state: Replay, *, is_owned: bool) -> RunStatus:
    """The status of a run without a report."""
    if state.paused:
        return "paused"
    asks = state.open_questions() and not (is_owned and state.time.calls_in_flight)
    if asks or state.waits.run_waits:
        return "waiting"
    return "running" if is_owned else "interrupted"


def final_report(state: Replay) -> Report:
    """The report the record ends with."""
    with reading(f"of run {state.run}"):
        return Report.model_validate(state.report)


def open_questions(state: Replay) -> tuple[Question, ...]:
    """The questions without an answer, in the order they were asked; none once the run has ended."""
    if state.status in FINISHED:
        return ()
    with reading(f"of run {state.run}"):
        return tuple(Question.model_validate(asked) for asked in state.open_questions().values())


def waiting_for(state: Replay, status: str) -> dict[str, Any] | None:
    """The provider that a run waits for, and until when, in seconds since 1970; None if it waits for a person."""
    if status != "waiting" or (wait := state.waits.for_provider) is None:
        return None
    return {"until": wait[0], "provider": wait[1]}


def unfinished_report(state: Replay, status: RunStatus | None = None, *, is_owned: bool = False) -> Report:
    """What the record of a run that has not ended says so far; `is_owned`: a process has it."""
    written = state.plan or state.drafted
    plan = parse(written) if written else None
    now: RunStatus = status or "interrupted"
    outcomes: tuple[Outcome, ...] = ()
    gaps: tuple[Gap, ...] = ()
    if plan is not None:
        ended = [state.ended[task.id] for task in plan.tasks if task.id in state.ended]
        outcomes = add_earlier(ended, state.earlier_usage())
    # Tasks that a continuing run still has to do are not gaps.
    if plan is not None and now not in _UNDER_WAY:
        gaps = tuple(
            Gap(
                task=task.id,
                reason="not ended when the run stopped",
                impact=f"Its criterion is not met: {task.success_criterion}",
            )
            for task in plan.tasks
            if task.id not in state.ended
        )
    # While a process has it, calls in flight are expected to report their own usage.
    lost = Usage.total([*state.spending.lost, *(each.usage for each in state.in_flight() if not is_owned)])
    return Report(
        run=state.run,
        request=state.start.get("request", {}).get("text", ""),
        status=now,
        answer=_describe_progress(state, now, is_owned=is_owned),
        gaps=gaps,
        outcomes=outcomes,
        usage=Usage.total([*state.usages(), lost] if lost.calls else state.usages()),
        notes=estimate_notes(lost, state.spending.estimated),
        timing=Timing(wall_s=state.owned_s),
        strategy=plan.strategy if plan else "single",
        plan=plan,
    )


def add_earlier(outcomes: Iterable[Outcome], earlier: Mapping[str, Usage]) -> tuple[Outcome, ...]:
    """The outcomes with what attempts used before a task was reopened: `attempts` counts them too."""

    def add(outcome: Outcome) -> Outcome:
        before = earlier.get(outcome.task)
        return outcome if before is None else outcome.model_copy(update={"usage": Usage.total([before, outcome.usage])})

    return tuple(map(add, outcomes))


_UNDER_WAY: frozenset[RunStatus] = frozenset({"running", "waiting", "paused"})
_NEVER_BEGAN = "Stopped before anything of it was recorded: nothing was done or spent. Start it again."
_NOTHING_RUNNING = "Running; nothing of it is on the record yet."


def _describe_progress(state: Replay, status: RunStatus, *, is_owned: bool) -> str:
    """How far a run has come that has not ended, and what continues it."""
    if not state.seq:
        return _NOTHING_RUNNING if status == "running" else _NEVER_BEGAN
    written = state.plan or state.drafted
    tasks = [task.id for task in parse(written).tasks] if written else []
    done = sum(id in state.ended and state.ended[id].ok for id in tasks)
    far = f"with {done} of {several(len(tasks), 'task')} done" if written else "with no plan yet"
    return f"{_words(state, status)} {far}.{_next(state, status, is_owned=is_owned)}"


def _words(state: Replay, status: RunStatus) -> str:
    if (wait := waiting_for(state, status)) is None:
        is_answered = status == "waiting" and state.questions and not state.open_questions()
        return _ANSWERED if is_answered else _WORDS[status]
    people = " and for a person" if state.open_questions() else ""
    return f"Waiting for {wait['provider']} until {moment(wait['until'])}{people}"


def _next(state: Replay, status: RunStatus, *, is_owned: bool) -> str:
    """What a person or a caller does to continue; each surface adds how.

    A process that has the run continues by itself when its questions are answered.
    """
    if status == "running":
        return ""
    asked = [each["id"] for each in state.open_questions().values()]
    if not asked:
        return " Resume it to continue."
    more = f" and {len(asked) - _MOST_NAMED} more" if len(asked) > _MOST_NAMED else ""
    goes_on = status == "waiting" and is_owned
    return f" Answer {', '.join(asked[:_MOST_NAMED])}{more}{'' if goes_on else ', then resume it'}."


_MOST_NAMED = 5
_ANSWERED = "All questions are answered, and the run is not continued yet,"


def estimate_notes(lost: Usage, estimated: Sequence[int]) -> tuple[str, ...]:
    """Sentences that say which part of the usage is an estimate."""
    most = "counted at what was set aside"
    found: list[str] = []
    if lost.calls:
        calls = "1 call was broken off and is" if lost.calls == 1 else f"{lost.calls:,} calls were broken off and are"
        found.append(f"{calls} {most}: {lost.tokens:,} tokens (estimated), part of the total and of no task.")
    if estimated:
        calls, are = ("1 call", "is") if len(estimated) == 1 else (f"{len(estimated):,} calls", "are")
        said = f"{calls} did not say how many tokens were used, or gave a number that cannot be so, and {are} {most}"
        found.append(f"{said}: {sum(estimated):,} tokens (estimated).")
    return tuple(found)


_WORDS: dict[RunStatus, str] = {
    "running": "Running",
    "waiting": "Waiting for a person",
    "paused": "Paused",
    "interrupted": "Interrupted",
    "cancelled": "Cancelled",
    "complete": "Complete",
    "partial": "Partial",
    "failed": "Failed",
}
