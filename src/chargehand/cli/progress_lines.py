"""Events as they happen -> one readable line each on stderr, where there is no terminal."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Protocol, Self, assert_never

from chargehand.cli.screen import Screen
from chargehand.text.escaping import dump_json
from chargehand.trace import RunState
from chargehand.trace.number_text import duration, several, short
from chargehand.values.event import Event

LONGEST = 160


class Progress(Protocol):
    """Shows a run while it runs. Replies are streamed only to one that shows drafts."""

    shows_drafts: bool

    def on_event(self, event: Event) -> None: ...

    def on_draft(self, number: int, text: str) -> None:
        """A draft of the answer grows; a higher number begins another."""
        ...

    def hold(self) -> AbstractContextManager[None]:
        """Shows nothing while a person is asked; it is shown afterwards."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Lines:
    """One line per noteworthy event; every event with -v, none with -q."""

    shows_drafts = False

    def __init__(self, screen: Screen, view: RunState) -> None:
        self._screen = screen
        self._view = view
        # Lines to print once no person is being asked.
        self._kept: list[str] | None = None

    @contextmanager
    def hold(self) -> Generator[None]:
        self._kept = []
        try:
            yield
        finally:
            kept, self._kept = self._kept, None
            for line in kept:
                self._screen.say(line)

    def on_event(self, event: Event) -> None:
        self._view.apply(event)
        if self._screen.quiet:
            return
        line = describe_event(event, self._view)
        if line is None and self._screen.verbose:
            line = detail(event)
        if line is not None:
            # A warning ends with what to do about it.
            line = line if event.kind == "warning" else short(line, LONGEST)
            line = f"{self._view.elapsed_seconds(event.at):7.1f} s  {line}"
            if self._kept is None:
                self._screen.say(line)
            else:
                self._kept.append(line)

    def on_draft(self, number: int, text: str) -> None:
        """Not shown: lines are for what has happened."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


def describe_event(event: Event, view: RunState) -> str | None:
    """The event in words; None for those only -v shows. Events of a nested supervisor begin with its task."""
    words = _describe(event, view)
    return f"{event.task}: {words}" if words is not None and event.data.get("within") else words


def _describe(event: Event, view: RunState) -> str | None:
    data, task = event.data, event.task or ""
    match event.kind:
        case "run_started":
            return f"{'resumed' if data.get('resumed') else 'run'} {event.run} with the team {view.team}"
        case "plan_rejected":
            return f"the plan has {several(len(data.get('problems') or ()), 'problem')}: asking for a better one"
        case "plan_approved":
            return f"plan: {several(len(data['plan'].get('tasks') or ()), 'task')}, {data.get('strategy')}"
        case "attempt_started":
            number = event.attempt or 1
            return f"{task} {'started' if number == 1 else f'retried (attempt {number})'} by {data.get('worker')}"
        case "tool_refused":
            return f"{task} was refused the tool {data.get('tool')}: {data.get('reason')}"
        case "task_ended":
            return _describe_end(task, view)
        case "question_asked":
            return f"{task or 'the supervisor'} asks a person: question {data['question'].get('id')}"
        case "synthesis_started":
            return f"writing the answer from {several(int(data.get('outcomes') or 0), 'outcome')}"
        case "draft_discarded":
            return f"a draft of the answer was discarded: {data.get('reason')}"
        case "contradiction_found":
            found = data["contradiction"]
            return f"workers disagree about {found['subject']}: {'resolved' if found['resolved'] else 'unresolved'}"
        case "critique":
            return f"the critic says {data.get('verdict')}: {' '.join(data.get('problems') or ()) or 'no problems'}"
        case "extension":
            return f"{several(len(data.get('tasks') or ()), 'task')} added to fill gaps"
        case "breaker_changed":
            return f"{data.get('name')} is {data.get('state')}: {data.get('reason')}"
        case "warning":
            return f"warning: {data.get('message')}"
        case "model_called" | "tool_called":
            sent = data.get("send") or 1
            return f"{task or data.get('role')}: the call is sent again ({sent})" if sent > 1 else None
        case "decision" if data.get("decision") == "transport_retry":
            return f"{task or 'the supervisor'} {tries_again(data)}"
        case "run_ended":
            return f"ended: {data.get('status')}"
        case (
            "decision"
            | "plan_drafted"
            | "task_ready"
            | "model_replied"
            | "tool_returned"
            | "attempt_ended"
            | "question_answered"
            | "gap_found"
            | "budget_reserved"
            | "budget_settled"
            | "reused"
        ):
            return None
        case _:
            assert_never(event.kind)


def tries_again(data: dict[str, Any]) -> str:
    """Why a call is sent again, and when, if not at once."""
    after: float = data["value"]["after_s"]
    return f"tries again{f' in {duration(after)}' if after >= 1 else ''}: {data.get('reason') or ''}"


def detail(event: Event) -> str:
    """Any event on one line."""
    small = {name: value for name, value in event.data.items() if name not in ("messages", "output_schema", "tools")}
    words = dump_json(small)
    return f"{event.kind} {event.task or ''} {words}"


def _describe_end(task: str, view: RunState) -> str:
    ended = view.tasks[task]
    outcome: dict[str, Any] = ended.outcome or {}
    took = duration(max(ended.ended - ended.started, 0.0)) if ended.ended and ended.started else ""
    figures = ", ".join(part for part in (took, f"{ended.tokens:,} tokens" if ended.tokens else "") if part)
    return f"{task} {ended.status}{f' ({figures})' if figures else ''}: {outcome.get('summary', '')}"
