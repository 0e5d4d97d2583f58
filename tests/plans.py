"""Hypothesis strategies for plans: valid ones of any shape, for any test that needs a plan it did not think of."""

from __future__ import annotations

from hypothesis import strategies as st

from chargehand.values.plan import Plan, Task

WORKERS = ("ann", "bob")


@st.composite
def valid_plans(draw: st.DrawFn, most: int = 12) -> Plan:
    """Any directed graph without cycles, its tasks in any order."""
    size = draw(st.integers(1, most))
    ids = [f"t{n}" for n in range(size)]
    tasks = [
        Task(
            id=id,
            worker=draw(st.sampled_from(WORKERS)),
            instruction=f"Work out the part {id}.",
            success_criterion="There is a result.",
            depends_on=tuple(draw(st.lists(st.sampled_from(ids[:n]), max_size=3))) if n else (),
            on_dependency_failure=draw(st.sampled_from(("skip", "proceed"))),
        )
        for n, id in enumerate(ids)
    ]
    return Plan(goal="A goal", tasks=tuple(draw(st.permutations(tasks))))
