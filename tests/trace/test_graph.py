"""Plans as Mermaid, as text, and as positions on a page."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from chargehand.trace import to_mermaid, to_text
from chargehand.trace.plan_graph import LONGEST_COLUMN, NODE_HEIGHT, NODE_WIDTH, layout, levels
from chargehand.values.plan import Plan, Task
from tests.trace.sample import plan

NODE_LINE = re.compile(r'    n\d+\["<b>[^"<>\n]*</b> · [^"<>\n]*<br/>[^"<>\n]*"\]')
EDGE_LINE = re.compile(r"    n\d+ --> n\d+")


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    size = draw(st.integers(0, 20))
    return Plan(
        tasks=tuple(
            Task(
                id=f"t{n}",
                worker="w",
                depends_on=tuple(f"t{d}" for d in draw(st.sets(st.integers(0, n - 1), max_size=3))),
            )
            if n
            else Task(id="t0", worker="w")
            for n in range(size)
        )
    )


def test_mermaid_has_every_task_and_edge() -> None:
    """One line a task, one line an edge."""
    lines = to_mermaid(plan()).splitlines()
    assert lines[0] == "flowchart LR"
    assert lines[1].startswith('    n1["<b>t1</b> · researcher<br/>Collect population')
    assert sum(" --> " in line for line in lines) == sum(len(task.depends_on) for task in plan().tasks)


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_can_add_to_a_mermaid_diagram(worker: str, instruction: str) -> None:
    """Whatever a model writes, the diagram has the shape of the plan and nothing else."""
    tasks = (Task(id="a", worker=worker, instruction=instruction), Task(id="b", worker=worker, depends_on=("a",)))
    lines = to_mermaid(Plan(tasks=tasks)).split("\n")
    assert len(lines) == 5
    assert all(NODE_LINE.fullmatch(line) for line in lines[1:3])
    assert EDGE_LINE.fullmatch(lines[3])


def test_hostile_words_become_entity_codes() -> None:
    """Quotes, brackets and markup are shown, never parsed."""
    hostile = Plan(tasks=(Task(id="a", worker='"]; click n1 "javascript:x"', instruction="<img src=x onerror=y>"),))
    text = to_mermaid(hostile)
    assert "#34;#93;#59; click n1 #34;javascript:x#34;" in text
    assert "<img" not in text


def test_text_shows_what_runs_together() -> None:
    """Levels stand together and each task says what it waits for."""
    text = to_text(plan())
    assert "Shape     8 tasks, some in parallel: 4 levels, at most 3 at once" in text
    assert "Level 1 (3 at once)\n  t1  researcher  Collect" in text
    assert text.rstrip().endswith("after t7, t1")
    assert max(map(len, text.splitlines())) <= 100


def test_of_many_tasks_that_one_waits_for_only_some_are_named() -> None:
    """The line still fits into a narrow terminal."""
    first = [Task(id=f"first{number}", worker="w", instruction="Look.") for number in range(9)]
    last = Task(id="last", worker="w", instruction="Sum it all up, " * 9, depends_on=tuple(each.id for each in first))
    for width in (60, 80, 120):
        line = to_text(Plan(tasks=(*first, last)), width).splitlines()[-1]
        assert len(line) <= width
        assert re.search(r"  after (first0.* and \d more|9 tasks)$", line)


def test_an_empty_plan_has_a_text_and_a_layout() -> None:
    """Nothing to draw is no error."""
    assert "0 tasks" in to_text(Plan())
    assert layout(Plan()).nodes == ()
    assert to_mermaid(Plan()) == "flowchart LR\n"


@settings(deadline=None)
@given(plans())
def test_tasks_never_overlap_and_edges_point_right(made: Plan) -> None:
    """Each task has its own place inside the drawing, right of all it depends on."""
    drawn = layout(made)
    at = {node.id: node for node in drawn.nodes}
    assert len(at) == len(made.tasks)
    boxes = [(node.x, node.y) for node in drawn.nodes]
    for n, (x, y) in enumerate(boxes):
        assert 0 <= x <= drawn.width - NODE_WIDTH
        assert 0 <= y <= drawn.height - NODE_HEIGHT
        assert all(abs(x - other) >= NODE_WIDTH or abs(y - top) >= NODE_HEIGHT for other, top in boxes[:n])
    assert len(drawn.edges) == sum(len(task.depends_on) for task in made.tasks)
    assert all(at[edge.source].x + NODE_WIDTH < at[edge.target].x for edge in drawn.edges)


@settings(deadline=None)
@given(plans())
def test_each_level_waits_only_for_earlier_ones(made: Plan) -> None:
    """A task's level is one more than the deepest it depends on."""
    level = {task.id: n for n, stage in enumerate(levels(made)) for task in stage}
    assert all(level[t.id] == max((level[d] + 1 for d in t.depends_on), default=0) for t in made.tasks)


def test_a_wide_layer_becomes_a_block() -> None:
    """A hundred tasks at once make a block, not a tower."""
    drawn = layout(Plan(tasks=tuple(Task(id=f"t{n}", worker="w") for n in range(100))))
    assert drawn.height < LONGEST_COLUMN * (NODE_HEIGHT + 20)


def test_a_long_edge_keeps_clear_of_tasks_between() -> None:
    """The edge of t8 to t1 crosses two layers through places of its own."""
    drawn = layout(plan())
    (edge,) = (edge for edge in drawn.edges if (edge.source, edge.target) == ("t1", "t8"))
    assert len(edge.points) == 6
    for x, y in edge.points[1:-1]:
        assert not any(n.x < x < n.x + NODE_WIDTH and n.y < y < n.y + NODE_HEIGHT for n in drawn.nodes)
