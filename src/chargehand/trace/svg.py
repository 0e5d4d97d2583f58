"""A run's state -> two drawings for the page: the plan as a graph, and when each task was worked on as a timeline.

Colours come from the page's style sheet by class; status is a word and a pattern too, never colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from chargehand.trace.number_text import duration, short
from chargehand.trace.plan_graph import NODE_HEIGHT, NODE_WIDTH, Edge, layout
from chargehand.trace.run_parts import AttemptView, CallView, TaskState, arrange_tasks
from chargehand.trace.run_state import RunState
from chargehand.values.plan import Plan

MOST_NODES = 300
MOST_ROWS = 400
_MARGIN = 6
_WIDTH, _GUTTER, _TAIL = 1080, 176, 118
_AXIS = 30
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)

GLYPHS = {"done": "✓", "failed": "✕", "escalated": "▲", "skipped": "–", "running": "●", "ready": "○", "waiting": "○"}


def graph(plan: Plan, view: RunState, anchors: Mapping[str, str]) -> str:
    """The plan with what became of each task; the critical path is drawn stronger."""
    placed = layout(plan)
    seconds = {id: task.worked_seconds(view.last_event) for id, task in view.tasks.items()}
    path = plan.critical_path(seconds)[1] if any(seconds.values()) else ()
    critical = set(pairwise(path))
    edges = "".join(_edge(edge, (edge.source, edge.target) in critical) for edge in placed.edges)
    nodes = "".join(
        _node(view.tasks[node.id], node.x, node.y, anchors[node.id], node.id in path, seconds[node.id])
        for node in placed.nodes
        if node.id in view.tasks
    )
    width, height = placed.width + 2 * _MARGIN, placed.height + 2 * _MARGIN
    return (
        f'<svg class="graph" viewBox="{-_MARGIN} {-_MARGIN} {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="group" aria-label="Plan of {len(plan.tasks)} tasks">{edges}{nodes}</svg>'
    )


def _edge(edge: Edge, critical: bool) -> str:
    (x, y), *rest = edge.points
    path = f"M{x:g} {y:g}"
    for number, (to_x, to_y) in enumerate(rest):
        # Every second stretch crosses a layer and is straight.
        middle = (x + to_x) / 2
        path += f"L{to_x:g} {to_y:g}" if number % 2 else f"C{middle:g} {y:g} {middle:g} {to_y:g} {to_x:g} {to_y:g}"
        x, y = to_x, to_y
    arrow = f"M{x - 6:g} {y - 4:g}L{x:g} {y:g}L{x - 6:g} {y + 4:g}"
    return f'<path class="edge{" critical" if critical else ""}" d="{path}{arrow}"/>'


def _node(task: TaskState, x: float, y: float, anchor: str, critical: bool, seconds: float) -> str:
    status = task.status
    took = f" · {duration(seconds)}" if task.started is not None else ""
    retried = f" · try {len(task.attempts)}" if len(task.attempts) > 1 else ""
    return (
        f'<a class="node s-{status}{" critical" if critical else ""}" href="#{anchor}" data-task="{escape(task.id)}" '
        f'aria-label="{escape(task.id)}, {escape(task.worker)}, {status}">'
        f'<rect class="box" x="{x:g}" y="{y:g}" width="{NODE_WIDTH}" height="{NODE_HEIGHT}" rx="9"/>'
        f'<rect class="strip" x="{x:g}" y="{y + 10:g}" width="4" height="{NODE_HEIGHT - 20}" rx="2"/>'
        f'<text class="name" x="{x + 14:g}" y="{y + 21:g}">{escape(short(task.id, 20))}</text>'
        f'<text class="word" x="{x + NODE_WIDTH - 12:g}" y="{y + 21:g}">{GLYPHS[status]} {status}</text>'
        f'<text class="small" x="{x + 14:g}" y="{y + 39:g}">{escape(short(task.worker, 16))}{took}{retried}</text></a>'
    )


@dataclass(frozen=True, slots=True)
class _Clock:
    """Time of day -> seconds of running: time between sessions, when no process ran the run, is left out."""

    sessions: tuple[tuple[float, float, float], ...]  # began, ended, running seconds before
    last: float

    @staticmethod
    def of(view: RunState) -> _Clock:
        sessions: list[tuple[float, float, float]] = []
        before = 0.0
        for session in view.sessions:
            sessions.append((session.started, session.ended, before))
            before += session.seconds
        return _Clock(tuple(sessions), view.sessions[-1].ended if view.sessions else 0.0)

    def running(self, at: float) -> float:
        for began, ended, before in reversed(self.sessions):
            if at >= began:
                return before + max(min(at, ended) - began, 0.0)
        return 0.0


def timeline(view: RunState, anchors: Mapping[str, str]) -> str:
    """One row per task, one bar per attempt, the calls inside it; waiting is a thin line, work a bar."""
    drawing = _Timeline(view)
    rows = [drawing.supervisor_row("planner", [call for call in view.calls if call.role in ("planner", "router")])]
    rows += [drawing.task_row(task, anchors[task.id]) for task in tasks_with_room(view)]
    later = [call for call in view.calls if call.role not in ("planner", "router")]
    rows.append(drawing.supervisor_row("synthesizer", later))
    return drawing.finish([row for row in rows if row])


def tasks_with_room(view: RunState) -> list[TaskState]:
    """The tasks a timeline has room for, by when they could start; those that are not done are kept first."""
    tasks = list(view.tasks.values())
    if len(tasks) > MOST_ROWS:
        tasks = sorted(tasks, key=lambda task: task.status == "done" and len(task.attempts) < 2)[:MOST_ROWS]
    # Sorting is stable: plan order where times are equal or there are none.
    return arrange_tasks(
        sorted(tasks, key=lambda t: min(_known_times(t.ready, t.started, t.ended), default=float("inf")))
    )


def _known_times(*times: float | None) -> Iterable[float]:
    return (time for time in times if time is not None)


class _Timeline:
    def __init__(self, view: RunState) -> None:
        self._clock = _Clock.of(view)
        self._total = max(view.elapsed_seconds(), 0.001)
        self._sessions = view.sessions
        self._row = 28 if len(view.tasks) <= 60 else 20
        self._scale = (_WIDTH - _GUTTER - _TAIL) / self._total

    def _x(self, at: float | None) -> float:
        return _GUTTER + self._clock.running(self._clock.last if at is None else at) * self._scale

    def supervisor_row(self, name: str, calls: list[CallView]) -> str:
        if not calls:
            return ""
        end = max(self._x(call.ended) for call in calls)
        seconds = (end - self._x(calls[0].started)) / self._scale
        marks = "".join(self._call(call, self._row - 12) for call in calls)
        return f"{self._label(name, 'supervisor')}{marks}{self._tail(end, duration(seconds))}"

    def task_row(self, task: TaskState, anchor: str) -> str:
        name = "· " * task.depth + task.label
        parts = [f'<a class="row" href="#{anchor}" data-task="{escape(task.id)}">', self._label(name, task.worker)]
        waiting_from = task.ready
        for attempt in task.attempts:
            if waiting_from is not None:
                parts.append(self._waiting(waiting_from, attempt.started))
            parts.append(self._attempt(attempt))
            waiting_from = attempt.ended
        parts += [self._call(call, self._row - 16) for call in task.calls]
        end = self._x(task.ended) if task.started or task.ended else None
        if task.started is not None:
            took = duration(task.worked_seconds(self._clock.last))
            parts.append(self._tail(end or _GUTTER, took if task.status == "done" else f"{took} · {task.status}"))
        elif end is not None:
            parts.append(f'<path class="never" d="M{end:.1f} 8V{self._row - 8}"/>{self._tail(end, task.status)}')
        else:
            if task.ready is not None:
                parts.append(self._waiting(task.ready, self._clock.last))
            parts.append(self._tail(self._x(task.ready) if task.ready else _GUTTER, task.status))
        return "".join(parts) + "</a>"

    def _label(self, name: str, beside: str) -> str:
        y = self._row / 2 + 4
        return (
            f'<rect class="hit" x="0" y="0" width="{_WIDTH}" height="{self._row}" rx="5"/>'
            f'<text class="name" x="8" y="{y:g}">{escape(short(name, 14))}'
            f'<tspan class="small" dx="6">{escape(short(beside, max(24 - min(len(name), 14), 6)))}</tspan></text>'
        )

    def _waiting(self, began: float, ended: float) -> str:
        x, end = self._x(began), self._x(ended)
        return f'<path class="wait" d="M{x:.1f} {self._row / 2:g}H{end:.1f}"/>' if end - x > 0.5 else ""

    def _attempt(self, attempt: AttemptView) -> str:
        x = self._x(attempt.started)
        width = max(self._x(attempt.ended) - x, 2.0)
        status = attempt.status if attempt.status in GLYPHS else "failed"
        box = f'x="{x:.1f}" y="4" width="{width:.1f}" height="{self._row - 8}" rx="4"'
        over = f'<rect class="hatched" {box}/>' if status in ("failed", "escalated") else ""
        return f'<rect class="attempt s-{status}" {box}/>{over}'

    def _call(self, call: CallView, height: float) -> str:
        x = self._x(call.started)
        width = max(self._x(call.ended) - x, 1.5)
        state = "bad" if call.ok is False else "open" if call.ok is None else "reused" if call.reused else "good"
        return (
            f'<rect class="{call.kind} {state}" x="{x:.1f}" y="{(self._row - height) / 2:g}" width="{width:.1f}" '
            f'height="{height:g}" rx="2"><title>{escape(describe(call))}</title></rect>'
        )

    def _tail(self, x: float, words: str) -> str:
        return f'<text class="small" x="{x + 7:.1f}" y="{self._row / 2 + 4:g}">{escape(words)}</text>'

    def finish(self, rows: list[str]) -> str:
        height = _AXIS + len(rows) * self._row + 4
        placed = "".join(f'<g transform="translate(0 {_AXIS + n * self._row})">{row}</g>' for n, row in enumerate(rows))
        return (
            f'<svg class="timeline" viewBox="0 0 {_WIDTH} {height}" role="group" aria-label="Timeline">'
            '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><path class="hatch" d="M1.5 0V6"/></pattern></defs>'
            f"{self._axis(height)}{placed}</svg>"
        )

    def _axis(self, height: float) -> str:
        step = next((step for step in _STEPS if self._total / step <= 8), self._total / 8)
        ticks = [number * step for number in range(int(self._total / step) + 1)]
        lines = "".join(
            f'<path class="tick" d="M{_GUTTER + t * self._scale:.1f} {_AXIS - 6}V{height:g}"/>'
            f'<text class="axis" x="{_GUTTER + t * self._scale:.1f}" y="16">{_tick(t, step)}</text>'
            for t in ticks
        )
        resumed = "".join(
            f'<path class="resumed" d="M{self._x(session.started):.1f} {_AXIS - 6}V{height:g}"/>'
            f'<text class="axis" x="{self._x(session.started):.1f}" y="{_AXIS - 2}">resumed</text>'
            for session in self._sessions
            if session.resumed
        )
        return lines + resumed


def _tick(seconds: float, step: float) -> str:
    if seconds == 0:
        return "0"
    if step < 1:
        return f"{seconds:.3f}".rstrip("0").rstrip(".") + " s"
    return f"{seconds:g} s" if seconds < 60 else duration(seconds).replace(" 00 s", "")


def describe(call: CallView) -> str:
    """A call in one line."""
    words = [f"{call.role or call.kind} {call.name}".strip()]
    if call.ended is not None:
        words.append("from an earlier run" if call.reused else duration(call.ended - call.started))
    if call.input_tokens or call.output_tokens:
        words.append(f"{call.input_tokens:,} in, {call.output_tokens:,} out")
    if call.waiting_s >= 0.0005:
        words.append(f"waited {duration(call.waiting_s)}")
    if call.sends > 1:
        words.append(f"sent {call.sends} times")
    if call.error:
        words.append(short(call.error, 200))
    elif call.ok is None:
        words.append("no reply on the record")
    return " · ".join(words)
