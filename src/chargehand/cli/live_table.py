"""Events as they happen -> a table on the terminal, drawn a few times a second for any number of events."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, cast

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from chargehand.cli.screen import Screen, console, fit
from chargehand.events import (
    BreakerChanged,
    Control,
    Decided,
    Event,
    ModelReplied,
    Progressed,
    ToolCalled,
    ToolReturned,
    Warned,
)
from chargehand.trace import RunState, TaskState
from chargehand.trace.event_words import describe_event, phase_words, progress_words, sent_again
from chargehand.trace.number_text import duration, first_line, money, several, short
from chargehand.values.key import TaskPath

REFRESH_S = 0.125
# With more tasks than this, only running ones are listed.
MOST_ROWS = 25
# From the first width on there is room for more columns; below the second, for fewer.
WIDE = 100
NARROW = 80
BAR = 20
# The columns of a table other than names and the bar, with their margins and a summary of a few words.
OTHER_COLUMNS = 56
# The least characters of both names together.
LEAST_NAMES = 14
# How many of the last lines of a draft answer are shown, and how many of its last characters are kept for them.
DRAFT_LINES = 8
_DRAFT_TAIL = 4_000
STYLES = {
    "waiting": "dim",
    "ready": "cyan",
    "running": "bold cyan",
    "done": "green",
    "failed": "bold red",
    "escalated": "magenta",
    "skipped": "yellow",
    "stopped": "yellow",
}
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class LiveTable:
    """Redraws at most eight times a second; an event only changes the view."""

    shows_drafts = True

    def __init__(self, screen: Screen, view: RunState, terminal: Console | None = None, *, stays: bool = True) -> None:
        self._screen = screen
        self._view = view
        # Whether the table is still there after the run has ended.
        self._stays = stays
        # Task -> why its call will be sent again; None means the supervisor.
        self._again: dict[str | None, str] = {}
        # Provider or worker that gets no calls for now -> the text that says so.
        self._left_alone: dict[str, str] = {}
        # Task -> the tool that it is using, with the arguments.
        self._tool: dict[str, str] = {}
        self._console = terminal or console(stderr=True)
        self._live = self._new_live()
        self._began = time.time()
        self._ticking: asyncio.Task[None] | None = None
        # Warnings to show once no person is being asked.
        self._kept: list[Text] | None = None
        # Whether the terminal showed Ctrl-C as ^C before.
        self._shown_controls = False
        # The number of the current draft and the end of its text.
        self._draft = (0, "")

    def on_event(self, event: Event) -> None:
        self._view.apply(event)
        match event.body:
            case Decided(decision="transport_retry") as decided:
                self._again[event.task] = sent_again(decided)
            case ModelReplied():
                self._again.pop(event.task, None)
            case ToolCalled(tool=tool, arguments=arguments) if event.task:
                self._tool[event.task] = f"{tool}({', '.join(_values(arguments))})"
            case Progressed(text=text) if event.task:
                self._tool[event.task] = text
            case ToolReturned() if event.task:
                self._tool.pop(event.task, None)
            case BreakerChanged(name=name, state="open"):
                self._left_alone[name] = describe_event(event, self._view) or ""
            case BreakerChanged(name=name):
                self._left_alone.pop(name, None)
            case Warned(message=message):
                self._print("warning: ", message)
            case Control(verdict="too_late"):
                # The sender may not have waited for the verdict.
                self._print("order: ", describe_event(event, self._view) or "")
            case _:
                pass

    def _print(self, label: str, message: str) -> None:
        """Print a line above the table, once no person is being asked."""
        words = f"{label}{self._screen.clean(first_line(message))}"
        # Broken here, so that a command or a path in it can be copied.
        line = Text(fit(words, sys.stderr, below=len(label)), "yellow")
        if self._kept is None:
            self._console.print(line, soft_wrap=True)
        else:
            self._kept.append(line)

    def on_draft(self, number: int, text: str) -> None:
        before = self._draft[1] if self._draft[0] == number else ""
        self._draft = (number, (before + text)[-_DRAFT_TAIL:])

    @contextmanager
    def hold(self) -> Generator[None]:
        # The table is drawn again below the answer: left above the question too, each answer would add a copy.
        self._live.transient = True
        self._live.stop()
        self._kept = []
        try:
            yield
        finally:
            kept, self._kept = self._kept, None
            for warning in kept:
                self._console.print(warning, soft_wrap=True)
            self._live = self._new_live()
            self._live.start()

    @property
    def is_held(self) -> bool:
        return self._kept is not None

    def _new_live(self) -> Live:
        return Live(console=self._console, auto_refresh=False, vertical_overflow="ellipsis")

    async def __aenter__(self) -> Self:
        self._shown_controls = _show_typed_controls(False)
        self._live.start()
        self._ticking = asyncio.create_task(self._tick(), name="live display")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)
        self._draft = (0, "")  # the answer itself is printed elsewhere
        stays = self._stays and bool(self._view.sessions)
        if stays:
            self._live.update(self.render(time.time()), refresh=True)
        self._live.transient = not stays
        self._live.stop()
        if self._shown_controls:
            _show_typed_controls(True)
        if stays:
            # Between the table and the answer.
            self._console.rule(style="dim")

    async def _tick(self) -> None:
        while True:
            if self._kept is None:
                self._live.update(self.render(time.time()), refresh=True)
            await asyncio.sleep(REFRESH_S)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def render(self, now: float) -> RenderableType:
        view = self._view
        parts: list[RenderableType] = [self._head(now), self._totals(now)]
        if not view.ended:
            parts += self._trouble()
        tasks = _in_tree_order(view.tasks.values())
        draft = self._draft_lines()
        rows = min(MOST_ROWS, max(self._console.height - 6 - len(draft), 5))
        if len(tasks) > rows:
            parts.append(self._counts())
            tasks = [task for task in tasks if task.status == "running"][: rows - 1]
        parts.append(self._table(tasks, now))
        return Group(*parts, *draft)

    def _trouble(self) -> list[Text]:
        """How to continue a paused run, providers and workers that get no calls for now, and why a call of the
        supervisor is sent again.
        """
        again = [] if (words := self._again.get(None)) is None else [f"the call is {words}"]
        if self._view.status == "paused":
            again.append(f"Continue it from another terminal: chargehand resume {self._view.run}")
        return [
            Text(f"  {self._screen.clean(first_line(words))}", "yellow", no_wrap=True, overflow="ellipsis")
            for words in (*self._left_alone.values(), *again)
        ]

    def _draft_lines(self) -> list[Text]:
        """The last lines of the draft answer, without its last word, which may be the beginning of a secret."""
        text = self._draft[1]
        whole = text[: max(text.rfind(" "), text.rfind("\n"), 0)]
        if not whole or self._view.ended:
            return []
        shown = Text(self._screen.clean(whole), "italic")
        return list(shown.wrap(self._console, max(self._console.width - 2, 10)))[-DRAFT_LINES:]

    def _head(self, now: float) -> Text:
        mark = " " if self._view.ended else _SPINNER[int(now / REFRESH_S) % len(_SPINNER)]
        width = self._console.width - 4
        return Text.assemble((f"{mark} ", "cyan"), (short(self._screen.clean(self._view.request), width), "bold"))

    def _totals(self, now: float) -> Text:
        view = self._view
        if not view.sessions:
            return Text(f"  starting · {_seconds(now - self._began)}", "dim")
        # As below the answer: a task counts with the team that does it and with its parts.
        tasks = [task for id, task in view.tasks.items() if TaskPath.parse(id).whole == id]
        done = sum(task.status == "done" for task in tasks)
        roomy = self._console.width >= NARROW
        total = several(len(tasks), "task") if roomy else f"{len(tasks):,}"
        limit = f" of {view.budget['tokens']:,}" if view.budget.get("tokens") else ""
        spent = f" of {money(view.budget['usd'])}" if view.budget.get("usd") else ""
        parts = [
            phase_words(view),
            (duration if view.ended else _seconds)(view.elapsed_seconds(now)),
            f"{done} of {total} done{_time_left(view, now)}" if view.tasks else "",
        ]
        if self._console.width >= WIDE:
            parts.append(several(view.usage.calls, "call"))
        used = f"{view.usage.tokens:,}"
        # Before the first reply it is not known whether the model has a price.
        cost = f"cost {money(view.usage.usd)}" if view.usage.calls or view.ended else ""
        line = "  " + " · ".join(filter(None, [*parts, f"{used}{limit} tokens", cost and f"{cost}{spent}"]))
        if not roomy or len(line) > self._console.width:
            # What is used is more important than the limits. A part that does not fit is left out, not cut.
            parts = [part for part in (*parts, f"{used} tokens", cost) if part]
            while len(line := "  " + " · ".join(parts)) > self._console.width and len(parts) > 1:
                parts.pop()
        return Text(line, "dim", no_wrap=True, overflow="ellipsis")

    def _counts(self) -> Text:
        parts: list[tuple[str, str]] = [("  ", "")]
        for status, number in self._view.counts().items():
            parts += [(f"{number:,} {status}", STYLES[status]), ("   ", "")]
        return Text.assemble(*parts)

    def _table(self, tasks: list[TaskState], now: float) -> Table:
        table = Table(box=None, padding=(0, 1), expand=True, show_header=bool(tasks), header_style="dim")
        narrow = self._console.width < NARROW
        ids, workers = self._name_widths(tasks)
        table.add_column("task", no_wrap=True, min_width=4, max_width=ids, overflow="ellipsis")
        if not narrow:
            table.add_column("worker", no_wrap=True, max_width=workers, overflow="ellipsis")
        table.add_column("status", no_wrap=True, min_width=9)
        if not narrow:
            table.add_column("tries", justify="right", no_wrap=True)
        table.add_column("time", justify="right", no_wrap=True, min_width=6)
        table.add_column("tokens", justify="right", no_wrap=True)
        priced = any(task.usd for task in tasks)
        if priced:
            table.add_column("cost", justify="right", no_wrap=True)
        wide = self._console.width >= WIDE
        if wide:
            table.add_column("when", no_wrap=True, min_width=BAR)
        table.add_column("summary", ratio=1, no_wrap=True, overflow="ellipsis")
        for task in tasks:
            status = self._view.status_of(task)
            cells = [
                Text(self._screen.clean(_branch(task.id))),
                *([] if narrow else [Text(self._screen.clean(task.worker), "dim")]),
                Text(status, STYLES[status]),
                *([] if narrow else [Text(str(task.tries or ""))]),
                Text(_time(task, self._view.counted_until(now))),
                Text(f"{task.tokens:,}" if task.tokens or task.outcome is not None else ""),
                *([Text(money(task.usd) if task.tokens else "")] if priced else []),
                *([self._bar(task, now)] if wide else []),
                Text(short(self._screen.clean(self._doing(task)), 200), "dim"),
            ]
            table.add_row(*cells)
        return table

    def _name_widths(self, tasks: list[TaskState]) -> tuple[int, int]:
        """The most characters of a task's and a worker's name, so that something is left for the summary."""
        width = self._console.width
        ids = max((len(_branch(task.id)) for task in tasks), default=0)
        workers = max((len(task.worker) for task in tasks), default=0) if width >= NARROW else 0
        room = max(width - OTHER_COLUMNS - (BAR if width >= WIDE else 0), LEAST_NAMES)
        shown = max(min(ids, max(room - workers, room // 2)), 4)
        return shown, max(min(workers, room - shown), 6)

    def _bar(self, task: TaskState, now: float) -> Text:
        """When the task was running, between the start of the run and now."""
        if task.started is None:
            return Text("")
        whole = max(self._view.seconds_until(now, now), 0.001)
        start = min(int(self._view.seconds_until(task.started, now) / whole * BAR), BAR - 1)
        end = max(int(self._view.seconds_until(task.ended or now, now) / whole * BAR), start + 1)
        return Text.assemble(
            ("·" * start, "dim"), ("━" * (end - start), STYLES[task.status]), ("·" * (BAR - end), "dim")
        )

    def _doing(self, task: TaskState) -> str:
        """What a task is doing: its result, the tasks it waits for, or its current step."""
        if task.outcome is not None:
            return first_line(str(task.outcome.get("summary") or ""))
        if task.status == "waiting" and task.depends_on:
            return f"after {', '.join(task.depends_on)}"
        if task.id in self._again:
            return self._again[task.id]
        return self._tool.get(task.id) or task.instruction


def _values(arguments: dict[str, Any]) -> Iterator[str]:
    """The values of the arguments of a call; for a list, its elements."""
    for value in arguments.values():
        if isinstance(value, list | tuple):
            yield from map(str, cast("Iterable[object]", value))
        elif value is not None:
            yield str(value)


def _show_typed_controls(show: bool) -> bool:
    """Let the terminal show Ctrl-C as ^C or not; returns whether it did. ^C in a full row would break the table."""
    if not sys.stdin.isatty():
        return False
    try:
        import termios

        terminal = sys.stdin.fileno()
        settings = termios.tcgetattr(terminal)
        shown = bool(settings[3] & termios.ECHOCTL)
        settings[3] = settings[3] | termios.ECHOCTL if show else settings[3] & ~termios.ECHOCTL
        termios.tcsetattr(terminal, termios.TCSADRAIN, settings)
    except (ImportError, OSError, ValueError):
        return False
    return shown


def _in_tree_order(tasks: Iterable[TaskState]) -> list[TaskState]:
    """The tasks of a nested team, such as t3/1/t1, below the task that it does."""
    places: dict[str, tuple[int, ...]] = {}
    for number, task in enumerate(tasks := list(tasks)):
        parent = task.id.rpartition("/")[0].rpartition("/")[0]
        places[task.id] = (*places.get(parent, ()), number)
    return sorted(tasks, key=lambda task: places[task.id])


def _branch(id: str) -> str:
    """The name of a task, indented below the task that it belongs to."""
    above, slash, name = id.rpartition("/")
    return f"{'  ' * (above.count('/') // 2)}└ {name}" if slash else id


def _time(task: TaskState, now: float) -> str:
    if task.started is None or task.status == "waiting":
        return ""
    return "reused" if task.reused and task.ended is not None else _seconds(task.worked_seconds(now))


def _seconds(passed: float) -> str:
    """Without milliseconds, which would flicker."""
    return f"{max(passed, 0.0):.1f} s" if passed < 60 else duration(passed)


def _time_left(view: RunState, now: float) -> str:
    """The part of the progress text after the number of tasks: the estimate."""
    return "" if view.ended else "".join(progress_words(view, now).partition(", ")[1:])
