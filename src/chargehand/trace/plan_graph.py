"""Plan -> Mermaid text, text for a terminal, or positions on a page: layers from left to right, few crossings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from chargehand.text.escaping import show_controls
from chargehand.trace.number_text import several, short, tasks_in_words
from chargehand.values.plan import Plan, Task

NODE_WIDTH, NODE_HEIGHT = 172, 52
LAYER_GAP, ROW_GAP = 56, 18
# A longer layer becomes a block of columns, so that a wide plan does not make an endless page.
LONGEST_COLUMN = 12
# In a plan as text, at least this many characters of an instruction are shown.
_LEAST_ROOM = 24


class GraphNode(NamedTuple):
    id: str
    x: float
    y: float


class Edge(NamedTuple):
    """An edge from a task to a task that depends on it, through the points between them."""

    source: str
    target: str
    points: tuple[tuple[float, float], ...]


class Layout(NamedTuple):
    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float


def levels(plan: Plan) -> list[list[Task]]:
    """Tasks by the length of the longest chain before them; tasks on a cycle are left out."""
    depth: dict[str, int] = {}
    found: list[list[Task]] = []
    for task in plan.in_order():
        level = depth[task.id] = max((depth[dep] + 1 for dep in task.depends_on), default=0)
        if level == len(found):
            found.append([])
        found[level].append(task)
    return found


def to_mermaid(plan: Plan) -> str:
    """The plan as a Mermaid flowchart; words are escaped so that no task can add to the diagram."""
    names = {task.id: f"n{number}" for number, task in enumerate(plan.tasks, 1)}
    lines = ["flowchart LR"]
    lines += [
        f'    {names[task.id]}["<b>{_quote_label(task.id)}</b> · {_quote_label(task.worker)}<br/>'
        f'{_quote_label(short(task.instruction, 60))}"]'
        for task in plan.tasks
    ]
    lines += [
        f"    {names[dependency]} --> {names[task.id]}"
        for task in plan.tasks
        for dependency in dict.fromkeys(task.depends_on)
        if dependency in names
    ]
    return "\n".join(lines) + "\n"


def to_text(plan: Plan, width: int = 100) -> str:
    """The plan by levels: tasks that run at the same time are listed together, and each task says what it waits for."""
    lines = [f"Goal      {short(plan.goal, width - 10)}"] if plan.goal else []
    stages = levels(plan)
    widest = max(map(len, stages), default=0)
    tasks = tasks_in_words(len(plan.tasks), plan.strategy)
    lines.append(f"Shape     {tasks}: {several(len(stages), 'level')}, at most {widest} at once")
    ids = max((len(task.id) for task in plan.tasks), default=0)
    workers = max((len(task.worker) for task in plan.tasks), default=0)
    for number, stage in enumerate(stages, 1):
        lines += ["", f"Level {number}" + (f" ({len(stage)} at once)" if len(stage) > 1 else "")]
        for task in stage:
            after = _after(list(dict.fromkeys(task.depends_on)), max(width // 3, _LEAST_ROOM))
            room = max(width - ids - workers - len(after) - 6, _LEAST_ROOM)
            lines.append(
                f"  {task.id:<{ids}}  {task.worker:<{workers}}  {short(task.instruction, room)}{after}".rstrip()
            )
    return "\n".join(lines) + "\n"


def _after(tasks: list[str], room: int) -> str:
    """The tasks that a task waits for; only as many as there is room for."""
    if not tasks:
        return ""
    for count in range(len(tasks), 0, -1):
        more = f" and {len(tasks) - count} more" if count < len(tasks) else ""
        if len(words := f"  after {', '.join(tasks[:count])}{more}") <= room:
            return words
    return f"  after {several(len(tasks), 'task')}"


def layout(plan: Plan) -> Layout:
    """The position of each task on a page. A long edge has a place in each layer it crosses, between tasks."""
    layers, chains = _layers(plan)
    centres: dict[str, tuple[float, float]] = {}
    columns = [_columns(layer) for layer in layers]
    height = max((_column_height(len(column)) for block in columns for column in block), default=NODE_HEIGHT)
    x = 0.0
    for block in columns:
        for column in block:
            top = (height - _column_height(len(column))) / 2
            for row, name in enumerate(column):
                centres[name] = (x + NODE_WIDTH / 2, top + row * (NODE_HEIGHT + ROW_GAP) + NODE_HEIGHT / 2)
            x += NODE_WIDTH + ROW_GAP
        x += LAYER_GAP - ROW_GAP
    width = max(x - LAYER_GAP, NODE_WIDTH)
    nodes = tuple(
        GraphNode(task.id, centres[task.id][0] - NODE_WIDTH / 2, centres[task.id][1] - NODE_HEIGHT / 2)
        for task in plan.tasks
        if task.id in centres
    )
    edges = tuple(Edge(chain[0], chain[-1], _points(chain, centres)) for chain in chains)
    return Layout(nodes, edges, width, height)


def _layers(plan: Plan) -> tuple[list[list[str]], list[list[str]]]:
    """Names by layer, each near the tasks it depends on, and each edge as the chain of names it passes."""
    layers: list[list[str]] = []
    level_of: dict[str, int] = {}
    before: dict[str, list[str]] = {}
    chains: list[list[str]] = []
    for level, stage in enumerate(levels(plan)):
        layers.append([task.id for task in stage])
        for task in stage:
            level_of[task.id] = level
            for dependency in dict.fromkeys(task.depends_on):
                # A space never occurs in a task's id, so these names are free.
                between = [f"{dependency} {task.id} {n}" for n in range(level_of[dependency] + 1, level)]
                chain = [dependency, *between, task.id]
                chains.append(chain)
                for n, name in enumerate(between, level_of[dependency] + 1):
                    layers[n].append(name)
                for earlier, later in pairwise(chain):
                    before.setdefault(later, []).append(earlier)
    place: dict[str, float] = {}
    for layer in layers:
        layer.sort(key=lambda name: _mean(before.get(name, ()), place))
        place.update({name: (row + 0.5) / len(layer) for row, name in enumerate(layer)})
    return layers, chains


def _mean(names: list[str] | tuple[()], place: Mapping[str, float]) -> float:
    return sum(place[name] for name in names) / len(names) if names else 0.5


def _columns(layer: list[str]) -> list[list[str]]:
    if len(layer) <= LONGEST_COLUMN:
        return [layer]
    return [layer[i : i + LONGEST_COLUMN] for i in range(0, len(layer), LONGEST_COLUMN)]


def _column_height(rows: int) -> float:
    return rows * (NODE_HEIGHT + ROW_GAP) - ROW_GAP


def _points(chain: list[str], centres: Mapping[str, tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    half = NODE_WIDTH / 2
    points = [(centres[chain[0]][0] + half, centres[chain[0]][1])]
    for name in chain[1:-1]:
        x, y = centres[name]
        points += [(x - half, y), (x + half, y)]
    points.append((centres[chain[-1]][0] - half, centres[chain[-1]][1]))
    return tuple(points)


def _quote_label(text: str) -> str:
    """Text inside a Mermaid label: all but plain characters as entity codes, which Mermaid shows and never parses."""
    return re.sub(r"[^\w .,:!?/()\-]", lambda match: f"#{ord(match[0])};", show_controls(text))
