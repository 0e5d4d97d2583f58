"""`diff`: two recorded runs become a comparison, in columns or as JSON."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import click

from chargehand.cli.shared_options import Command, screen, source
from chargehand.values.status_words import FINISHED

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from chargehand.cli.screen import Screen
    from chargehand.record.run_source import RunSource
    from chargehand.values.base import JSON
    from chargehand.values.outcome import Outcome
    from chargehand.values.run_diff import FieldDiff, RunDiff, RunSide

# From this width on, texts are in two columns; in a narrower terminal, one after the other.
TWO_COLUMNS = 76
WIDEST = 160
# Width of the labels above the plans, the longest with the space behind it.
HEAD = len("request a") + 2
# With more tasks than the first limit, only those that differ are listed, up to the second limit.
MOST_TASKS = 40
MOST_DIFFERENT = 200
# Lines shown of a text, except for the answers.
MOST_LINES = 12
# Texts of more lines than this are not aligned: it would take too long.
MOST_ALIGNED = 3_000


@click.command(cls=Command)
@click.argument("run_a", metavar="RUN")
@click.argument("run_b", metavar="[RUN]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as one JSON document.")
def diff(run_a: str, run_b: str | None, as_json: bool) -> None:
    """Compare two runs: plans, each task with its result, cost and time, and the answers side by side.

    A single RUN is compared with the run that it was forked from, or that it repeats.

    RUN is an id, the beginning of one, or `last`. Neither run need have ended. The exit code is 0 whatever differs.
    """
    from chargehand.cli.make_supervisor import supervisor_of_records
    from chargehand.errors import UsageError

    runs = source()
    b = runs.find(run_a if run_b is None else run_b)
    a = _origin(b) if run_b is None else runs.find(run_a)
    if a == b:
        raise UsageError(f"Both are the same run, {a}: name another one. `chargehand runs` lists them.")
    found = supervisor_of_records().diff(a, b)
    out = screen()
    if as_json:
        out.document(found.to_json())
    else:
        _Page(out, {"a": _open_statuses(runs, found.a), "b": _open_statuses(runs, found.b)}).print(found)


def _origin(run: str) -> str:
    """The run that a fork or a rerun began with."""
    from chargehand.errors import UsageError

    start = source().state(run).start
    forked: dict[str, str] = start.get("forked_from") or {}
    origin: str | None = forked.get("run") or start.get("rerun_of")
    if origin is None:
        raise UsageError(f"{run} is not a fork and not a rerun: name the run to compare it with.")
    return origin


class _Page:
    """A comparison as text, as wide as the terminal."""

    def __init__(self, out: Screen, open_statuses: dict[str, dict[str, str]]) -> None:
        """`open_statuses`: a and b -> the tasks that have not ended, each with its status."""
        from rich.console import Console

        from chargehand.cli.screen import terminal_columns

        self._out = out
        self._open = open_statuses
        self._text = io.StringIO()
        width = min(terminal_columns(), WIDEST)
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._console = Console(file=self._text, width=width, force_terminal=colour, no_color=not colour)
        self._wide = width >= TWO_COLUMNS

    def print(self, found: RunDiff) -> None:
        from chargehand.cli.screen import write_painted

        self._add(self._heads(found))
        self._plans(found)
        self._tasks(found)
        for task in found.tasks:
            if "output" in task.differs and task.a is not None and task.b is not None:
                self._texts(f"output of {task.task}", task.a.output, task.b.output, MOST_LINES)
        self._answers(found)
        lines = (line.rstrip() for line in self._text.getvalue().splitlines())
        write_painted("\n".join(lines) + "\n")

    # -- parts -------------------------------------------------------------------------------------------------------

    def _heads(self, found: RunDiff) -> RenderableType:
        from chargehand.cli.screen import wrap

        grid = self._grid()
        for name, side in (("a", found.a), ("b", found.b)):
            figures = self._clean(f"{side.run}: {_figures(side)}")
            grid.add_row(name, "\n".join(wrap(figures, self._console.width - HEAD)))
        if found.a.request == found.b.request:
            grid.add_row("request", self._clean(found.a.request))
        else:
            grid.add_row("request a", self._clean(found.a.request))
            grid.add_row("request b", self._clean(found.b.request))
        return grid

    def _plans(self, found: RunDiff) -> None:
        if not found.plan:
            self._title("plan: the same in both")
            return
        self._title("plan")
        whole = [each for each in found.plan if each.field is None]
        for sign, tasks in (
            ("only in a", [each.task for each in whole if each.b is None]),
            ("only in b", [each.task for each in whole if each.a is None]),
        ):
            if tasks:
                self._add(self._clean(f"{sign}: {', '.join(map(str, tasks))}"))
        for each in found.plan:
            if each.field is not None:
                self._texts(_name(each), each.a, each.b, MOST_LINES)

    def _tasks(self, found: RunDiff) -> None:
        from chargehand.trace.number_text import several

        if not found.tasks:
            return
        listed = [task for task in found.tasks if task.differs or len(found.tasks) <= MOST_TASKS]
        listed = listed[:MOST_DIFFERENT]
        if listed:
            self._add("")
            table = self._table()
            for task in listed:
                cells = [
                    _outcome(outcome) if outcome else statuses.get(task.task, "-")
                    for outcome, statuses in ((task.a, self._open["a"]), (task.b, self._open["b"]))
                ]
                table.add_row(task.task, *cells, ", ".join(task.differs) or "-")
            self._add(table)
        if left := len(found.tasks) - len(listed):
            self._add(f"and {several(left, 'more task')}; --json has all of them")

    def _answers(self, found: RunDiff) -> None:
        """The answers. What a run that has not ended says instead is advice, which would differ in any case."""
        sides = {"a": (found.a, found.answer.a), "b": (found.b, found.answer.b)}
        missing = [name for name, (side, _) in sides.items() if side.status not in FINISHED]
        if not missing and found.answer.same:
            self._title("answer: the same in both")
            self._add(self._clean(found.answer.a))
        elif not missing:
            self._texts("answer", found.answer.a, found.answer.b)
        else:
            self._title("answer")
            for name in missing:
                self._add(f"{name} has no answer yet ({sides[name][0].status})")
            for name in (name for name in sides if name not in missing):
                self._add(f"{name}:")
                self._add(self._clean(sides[name][1]))

    def _texts(self, title: str, a: JSON, b: JSON, most: int | None = None) -> None:
        lines_a, lines_b = (self._clean(_words(each)).splitlines() for each in (a, b))
        pairs = list(_align(lines_a, lines_b))
        if most is not None and not self._wide:
            most *= 2
        shown = pairs if most is None else pairs[:most]
        self._title(title)
        if self._wide:
            grid = self._columns()
            for left, sign, right in shown:
                grid.add_row(left, sign, right)
            self._add(grid)
        else:
            for name, column, signs in (("a", 0, " |<"), ("b", 2, " |>")):
                self._add(f"{name}:")
                grid = self._marked_lines()
                for pair in shown:
                    if pair[1] in signs:
                        grid.add_row(pair[1], pair[column])
                self._add(grid)
        if len(shown) < len(pairs):
            self._add(f"and {len(pairs) - len(shown):,} more lines; --json has all of them")

    # -- shapes ------------------------------------------------------------------------------------------------------

    def _grid(self) -> Table:
        from rich.table import Table

        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style="dim")
        grid.add_column(overflow="fold")
        return grid

    def _table(self) -> Table:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("task", overflow="fold")
        table.add_column("a")
        table.add_column("b")
        table.add_column("differs")
        return table

    def _columns(self) -> Table:
        from rich.table import Table

        grid = Table.grid(padding=(0, 1, 0, 0), expand=True)
        grid.add_column(ratio=1, overflow="fold")
        grid.add_column(width=1, style="yellow")
        grid.add_column(ratio=1, overflow="fold")
        return grid

    def _marked_lines(self) -> Table:
        from rich.table import Table

        grid = Table.grid(padding=(0, 1, 0, 0), expand=True)
        grid.add_column(width=1, style="yellow")
        grid.add_column(ratio=1, overflow="fold")
        return grid

    def _title(self, text: str) -> None:
        from rich.text import Text

        self._add("")
        self._add(Text(self._out.clean(text), style="bold"))

    def _add(self, what: RenderableType) -> None:
        self._console.print(what, markup=False, highlight=False, soft_wrap=False)

    def _clean(self, text: str) -> str:
        # Line breaks are kept, other control characters are made visible.
        return "\n".join(self._out.clean(line) for line in text.splitlines())


def _align(a: list[str], b: list[str]) -> Iterator[tuple[str, str, str]]:
    """Lines side by side: ` ` the same, `|` changed, `<` and `>` only on that side."""
    if max(len(a), len(b)) > MOST_ALIGNED:
        blocks = [("replace", 0, len(a), 0, len(b))]
    else:
        blocks = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    for kind, from_a, to_a, from_b, to_b in blocks:
        for at in range(max(to_a - from_a, to_b - from_b)):
            has_a, has_b = from_a + at < to_a, from_b + at < to_b
            sign = " " if kind == "equal" else "|" if has_a and has_b else "<" if has_a else ">"
            yield a[from_a + at] if has_a else "", sign, b[from_b + at] if has_b else ""


def _words(value: JSON) -> str:
    from chargehand.text.escaping import dump_json

    if value is None:
        return "-"
    return value if isinstance(value, str) else dump_json(value, indent=2)


def _name(each: FieldDiff) -> str:
    field = (each.field or "").replace("_", " ")
    return field if each.task is None else f"{field} of {each.task}"


def _open_statuses(runs: RunSource, side: RunSide) -> dict[str, str]:
    """The tasks of a run that has not ended, and the status of each that has not ended either."""
    if side.status in FINISHED:
        return {}
    from chargehand.trace import fold

    view = fold(runs.events(side.run))
    is_over = True if runs.owner(side.run) is None else None
    return {id: view.status_of(task, is_over=is_over) for id, task in view.tasks.items()}


def _outcome(outcome: Outcome) -> str:
    from chargehand.cli.show import REUSED, describe_time
    from chargehand.trace.number_text import money

    usd, time = outcome.usage.usd, describe_time(outcome.to_json())
    # What made no call here took no time and cost nothing.
    cost = "" if time in ("", REUSED) else f"{'cost ' if usd is None else ''}{money(usd)}"
    return ", ".join(filter(None, (outcome.status, time, cost)))


def _figures(side: RunSide) -> str:
    from chargehand.trace.number_text import duration, money

    confidence = "" if side.confidence is None else f" · confidence {side.confidence}"
    figures = f"{duration(side.timing.wall_s)} · {side.usage.tokens:,} tokens · cost {money(side.usage.usd)}"
    return f"{side.status} · {figures}{confidence}"
