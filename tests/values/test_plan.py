"""Plans: every problem at once, graphs checked against slow and simple references, ids rewritten consistently."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chargehand.engine.port import Engine
from chargehand.errors import InvalidPlan
from chargehand.testing import run_virtual
from chargehand.text.plan_json import parse, read, with_valid_ids
from chargehand.values.outcome import Outcome, done, failed
from chargehand.values.plan import TASK_ID, Plan, Task, Tier, errors_in
from chargehand.workers import Assignment
from tests.counts import examples
from tests.kernel import FunctionModel, after, engine, run_plan
from tests.pace import Timed, slowness
from tests.plans import WORKERS, valid_plans

quick = settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def task(
    id: str,
    *depends_on: str,
    worker: str = "ann",
    instruction: str = "Do one clear thing.",
    criterion: str = "It is done.",
) -> Task:
    return Task(id=id, worker=worker, instruction=instruction, success_criterion=criterion, depends_on=depends_on)


def codes(plan: Plan, **options: int) -> list[str]:
    return [problem.code for problem in plan.problems(WORKERS, **options)]


# -- problems --------------------------------------------------------------------------------------------------------


@quick
@given(valid_plans())
def test_a_valid_plan_has_no_problems(plan: Plan) -> None:
    """Any graph without cycles whose tasks say what to do is fine."""
    assert plan.problems(WORKERS) == []


def test_every_problem_is_found_at_once() -> None:
    """One look names them all, each by its code and its task."""
    plan = Plan(
        tasks=(
            task("a", "b"),
            task("b", "a"),
            task("self", "self"),
            task("lost", "ghost"),
            task("9 lives"),
            task("twice"),
            task("twice"),
            task("orphan", worker="nobody"),
            task("silent", instruction=" "),
            task("aimless", criterion=""),
            task("vague", instruction="Same as before, etc."),
        )
    )
    found = {(p.code, p.task) for p in plan.problems(WORKERS, max_tasks=5)}
    assert found == {
        ("fan_out", None),
        ("cycle", "a"),
        ("self_dependency", "self"),
        ("unknown_dependency", "lost"),
        ("invalid_id", "9 lives"),
        ("duplicate_id", "twice"),
        ("unknown_worker", "orphan"),
        ("missing_instruction", "silent"),
        ("missing_criterion", "aimless"),
        ("vague_instruction", "vague"),
    }
    assert {p.code for p in plan.problems(WORKERS) if p.severity == "warning"} == {"vague_instruction"}


def test_problems_of_the_whole_plan() -> None:
    """No tasks, budgets beyond the run's, workers a plan may not define."""
    assert codes(Plan()) == ["empty_plan"]
    greedy = task("a").model_copy(update={"budget": parse({"tasks": [{"budget": {"tokens": 900}}]}).tasks[0].budget})
    assert codes(Plan(tasks=(greedy,)), budget_tokens=500) == ["over_budget"]
    assert codes(Plan(tasks=(greedy,)), budget_tokens=900) == []
    made = parse({"tasks": [task("a").to_json()], "workers": [{"name": "new"}]})
    assert codes(made) == ["forbidden_tool"]


@quick
@given(valid_plans(), st.data())
def test_a_planted_cycle_is_named_by_a_path_that_is_one(plan: Plan, data: st.DataObject) -> None:
    """Each step of the path is an edge of the plan and it ends where it began."""
    chain = [t.id for t in plan.in_order()]
    first, last = data.draw(
        st.tuples(st.sampled_from(chain), st.sampled_from(chain)).filter(lambda p: p[0] != p[1])
        if len(chain) > 1
        else st.nothing() | st.just((chain[0], chain[0]))
    )
    edges = {t.id: set(t.depends_on) for t in plan.tasks}
    edges[first].add(last)
    edges[last].add(first)
    planted = Plan(tasks=tuple(t.model_copy(update={"depends_on": tuple(sorted(edges[t.id]))}) for t in plan.tasks))
    named = [p.message for p in planted.problems(WORKERS) if p.code in ("cycle", "self_dependency")]
    assert named
    for message in (m for m in named if "->" in m):
        path = message.removeprefix("Tasks wait for each other: ").removesuffix(".").split(" -> ")
        assert path[0] == path[-1]
        assert len(path) == len(set(path)) + 1
        assert all(there in edges[here] for here, there in pairwise(path))


@quick
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14))
def test_a_cycle_is_reported_exactly_when_there_is_one(pairs: list[tuple[int, int]]) -> None:
    """Against a reference that takes away what is free until nothing is left."""
    edges: dict[int, set[int]] = {n: set() for n in range(8)}
    for here, there in pairs:
        if here != there:
            edges[here].add(there)
    left = set(edges)
    while free := {n for n in left if not edges[n] & left}:
        left -= free
    plan = Plan(tasks=tuple(task(f"t{n}", *(f"t{d}" for d in sorted(deps))) for n, deps in edges.items()))
    assert ("cycle" in codes(plan)) == bool(left)
    # What is left after the free ones are gone is on a cycle or waits for one.
    assert {t.id for t in plan.in_order()} == {f"t{n}" for n in edges if n not in left}


# -- the graph -------------------------------------------------------------------------------------------------------


@quick
@given(valid_plans())
def test_in_order_is_an_order(plan: Plan) -> None:
    """All tasks, each after those it depends on."""
    order = [t.id for t in plan.in_order()]
    assert sorted(order) == sorted(t.id for t in plan.tasks)
    for t in plan.tasks:
        assert all(order.index(d) < order.index(t.id) for d in t.depends_on)


def longest(plan: Plan, seconds: Mapping[str, float]) -> float:
    """The longest chain, by trying all of them."""
    by_id = {t.id: t for t in plan.tasks}

    def upto(id: str) -> float:
        return seconds[id] + max((upto(d) for d in set(by_id[id].depends_on)), default=0.0)

    return max(map(upto, by_id))


@quick
@given(valid_plans(9), st.data())
def test_the_critical_path_is_the_longest_chain(plan: Plan, data: st.DataObject) -> None:
    """Its length is the longest there is, and its tasks are a chain of that length."""
    seconds = {t.id: float(data.draw(st.integers(0, 9))) for t in plan.tasks}
    length, path = plan.critical_path(seconds)
    assert length == longest(plan, seconds) == sum(seconds[id] for id in path)
    by_id = {t.id: t for t in plan.tasks}
    assert all(before in by_id[id].depends_on for before, id in pairwise(path))
    assert plan.depth == longest(plan, dict.fromkeys(seconds, 1.0))


@quick
@given(valid_plans(5))
def test_the_strategy_says_what_the_graph_is(plan: Plan) -> None:
    """single, all independent, all in one chain, or a mixture."""
    edges = {(d, t.id) for t in plan.tasks for d in t.depends_on}
    if len(plan.tasks) == 1:
        expected = "single"
    elif not edges:
        expected = "parallel"
    elif longest(plan, dict.fromkeys((t.id for t in plan.tasks), 1.0)) == len(plan.tasks):
        expected = "sequential"
    else:
        expected = "hybrid"
    assert plan.strategy == expected


@quick
@given(valid_plans())
def test_sinks_and_dependents_mirror_the_edges(plan: Plan) -> None:
    """A task is a sink exactly when no task depends on it."""
    edges = {(d, t.id) for t in plan.tasks for d in t.depends_on}
    assert {(d, id) for d, ids in plan.dependents().items() for id in ids} == edges
    assert set(plan.sinks()) == {t.id for t in plan.tasks} - {d for d, _ in edges}


class Fated:
    """A worker that fails the tasks it is told to."""

    tier: Tier = "medium"
    check: str | None = None
    output_schema: dict[str, Any] | None = None
    waits_for_person: bool = False

    def __init__(self, fails: set[str]) -> None:
        self.fails = fails
        self.over: list[str] = []

    def model_for(self, tier: Tier | None) -> str | None:
        return None

    async def work(self, assignment: Assignment, engine: Engine) -> Outcome:
        id = assignment.task.id
        assert set(assignment.task.depends_on) <= set(self.over) | {i for i, o in assignment.inputs.items() if not o.ok}
        await asyncio.sleep(len(id) / 10)
        self.over.append(id)
        return failed(id, "w", "tool", "fated") if id in self.fails else done(id, "w", summary="s", output=None)


@settings(quick, max_examples=examples(60))
@given(valid_plans(), st.data())
def test_any_valid_plan_ends(plan: Plan, data: st.DataObject) -> None:
    """One outcome per task in plan order, never before its dependencies, whatever fails."""
    fails = data.draw(st.sets(st.sampled_from([t.id for t in plan.tasks])))

    async def main() -> dict[str, Outcome]:
        async with engine(FunctionModel(after(0))) as local:
            return await run_plan(plan, dict.fromkeys(WORKERS, Fated(fails)), local)

    outcomes, _ = run_virtual(main())
    assert list(outcomes) == [t.id for t in plan.tasks]
    for t in plan.tasks:
        held_up = t.on_dependency_failure == "skip" and any(not outcomes[d].ok for d in t.depends_on)
        expected = "skipped" if held_up else "failed" if t.id in fails else "done"
        # A worker that failed three tasks in a row may be out for the rest.
        may_be_out = not held_up and sum(o.worker == t.worker and o.id in fails for o in plan.tasks) >= 3
        assert outcomes[t.id].status in ((expected, "failed") if may_be_out else (expected,))


# -- ids -------------------------------------------------------------------------------------------------------------

ids = (
    st.text(st.sampled_from("ab1 _-.é\u4e00"), max_size=6)
    | st.text(max_size=60)
    | st.sampled_from(["x" * 39, "x" * 41, "x" * 60])
)


@quick
@given(st.lists(ids, min_size=1, max_size=12, unique=True), st.data())
def test_rewritten_ids_are_valid_distinct_and_consistent(names: list[str], data: st.DataObject) -> None:
    """Ids that break the rule change, edges follow them, valid ones stay, and doing it again changes nothing."""
    edges = {name: data.draw(st.lists(st.sampled_from(names), max_size=2)) for name in names}
    plan = Plan(tasks=tuple(task(name, *edges[name]) for name in names))
    fixed, renamed = with_valid_ids(plan)
    new = [t.id for t in fixed.tasks]
    assert len(set(new)) == len(names)
    assert all(TASK_ID.fullmatch(id) for id in new if id)
    assert set(renamed) == {name for name in names if name and not TASK_ID.fullmatch(name)}
    now = {name: renamed.get(name, name) for name in names}
    assert new == [now[name] for name in names]
    assert [list(t.depends_on) for t in fixed.tasks] == [[now[d] for d in edges[name]] for name in names]
    assert with_valid_ids(fixed) == (fixed, {})


def test_thousands_of_ids_that_come_down_to_one_stay_apart() -> None:
    """Nothing is left of these ids but a number each, and it fits."""
    long = "x" * 50
    plan = Plan(tasks=tuple(task(f"{long}{'!' * n}") for n in range(3000)))
    with Timed(time.process_time) as took:
        fixed, _ = with_valid_ids(plan)
    assert len({t.id for t in fixed.tasks}) == 3000
    assert all(TASK_ID.fullmatch(t.id) for t in fixed.tasks)
    assert took.within(1)


# -- JSON ------------------------------------------------------------------------------------------------------------


@quick
@given(valid_plans())
def test_a_plan_survives_json(plan: Plan) -> None:
    """What is written is read back as it was."""
    assert parse(plan.to_json()) == plan


def test_a_misshapen_plan_names_every_field() -> None:
    """All of it in one InvalidPlan, each by its place."""
    data = {"goal": 5, "tasks": [{"id": ["x"]}, {"timeout_s": -1, "colour": "red"}], "synthesis": {"mode": "mix"}}
    with pytest.raises(InvalidPlan) as raised:
        parse(data)
    text = str(raised.value)
    for place in ("goal", "tasks[0].id", "tasks[1].timeout_s", "tasks[1].colour: is not a field", "synthesis.mode"):
        assert place in text


def test_context_that_cannot_be_recorded_is_named() -> None:
    """Data nested beyond any use and text that is no Unicode are valid JSON and no context."""
    deep: list[object] = []
    for _ in range(300):
        deep = [deep]
    tasks = [{"context": deep}, {"context": {"a": "\ud800"}}, {"context": {"a": float("nan")}}]
    with pytest.raises(InvalidPlan) as raised:
        parse({"tasks": tasks})
    places = [str(problem).partition(": ")[2].partition(":")[0] for problem in raised.value.problems]
    assert places[:2] == ["tasks[0].context", "tasks[1].context"]


def test_shape_and_sense_are_judged_together() -> None:
    """A plan with a wrong field is still checked in all that can be read, under codes of the closed list."""
    data = {"goal": 1, "tasks": [{"id": "a b"}], "zzz": 2}
    found = [(p.code, p.task) for p in read(data).problems(WORKERS)]
    assert found == [
        ("empty_plan", None),
        ("empty_plan", None),
        ("invalid_id", "a b"),
        ("unknown_worker", "a b"),
        ("missing_instruction", "a b"),
        ("missing_criterion", "a b"),
    ]
    with pytest.raises(InvalidPlan) as raised:
        parse(data)
    assert [p.code for p in raised.value.problems] == [code for code, _ in found if code != "unknown_worker"]


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("id", 3, "invalid_id"),
        ("worker", [], "unknown_worker"),
        ("instruction", {}, "missing_instruction"),
        ("success_criterion", 5, "missing_criterion"),
        ("depends_on", "b", "unknown_dependency"),
        ("on_dependency_failure", "hope", "unknown_dependency"),
        ("budget", {"tokens": "all"}, "over_budget"),
        ("timeout_s", -1, "over_budget"),
        ("tier", "huge", "unknown_worker"),
        ("best_of", 0, "fan_out"),
        ("context", "\ud800", "missing_instruction"),
        ("colour", "red", "missing_instruction"),
    ],
)
def test_a_misshapen_field_is_one_problem(field: str, value: object, code: str) -> None:
    """Not a second one for being empty; it is named by its place, and the task by its id."""
    [problem] = read({"tasks": [task("a").to_json() | {field: value}]}).problems(WORKERS)
    assert (problem.code, problem.task) == (code, None if field == "id" else "a")
    assert problem.message.startswith(f"tasks[0].{field}")


def test_a_misshapen_task_takes_part_with_what_is_readable() -> None:
    """Its edges count, also beside one that cannot be read, and what is no task at all is passed over."""
    tasks = [
        task("a").to_json() | {"depends_on": ["b", 7], "best_of": "many"},
        task("b", "a").to_json(),
        "do it",
        task("c", "a").to_json(),
    ]
    found = [(p.code, p.task) for p in read({"tasks": tasks}).problems(WORKERS)]
    assert sorted(found, key=str) == [
        ("cycle", "a"),
        ("fan_out", "a"),
        ("missing_instruction", None),
        ("unknown_dependency", "a"),
    ]


@pytest.mark.parametrize("data", [None, [], 3, "plan", {"tasks": 3}, {"tasks": {"a": {}}}])
def test_what_is_no_plan_is_one_problem(data: object) -> None:
    """There is nothing else to judge."""
    assert [p.code for p in read(data).problems(WORKERS)] == ["empty_plan"]


def test_a_cycle_through_an_id_used_twice_is_seen() -> None:
    """The edges of both count."""
    found = Plan(tasks=(task("a", "b"), task("b", "a"), task("a"))).problems(WORKERS)
    assert {p.code for p in found} == {"duplicate_id", "cycle"}
    assert "a -> b -> a" in next(p.message for p in found if p.code == "cycle")


def seconds_to_check(size: int) -> float:
    """The best of three: a chain, a fan and cross edges through the whole plan."""
    tasks = tuple(task(f"t{n}", *({f"t{n - 1}", f"t{n // 2}", "t0"} if n else ())) for n in range(size))
    plan = Plan(tasks=tasks)
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        assert errors_in(plan.problems(WORKERS, max_tasks=size)) == []
        assert plan.strategy == "sequential"
        with_valid_ids(plan)
        best = min(best, time.process_time() - began)
    return best


@pytest.mark.slow
def test_checking_takes_about_linear_time() -> None:
    """Ten times the tasks take about ten times as long: 10,000 are checked in well under two seconds."""
    small, large = seconds_to_check(1_000), seconds_to_check(10_000)
    assert large < 2 * slowness(time.process_time)
    assert large / small < 25


def test_a_cycle_through_ten_thousand_tasks_is_found() -> None:
    """Depth is no limit: the walk does not recurse."""
    tasks = tuple(task(f"t{n}", f"t{(n + 1) % 10_000}") for n in range(10_000))
    (found,) = (p for p in Plan(tasks=tasks).problems(WORKERS, max_tasks=10_000) if p.code == "cycle")
    assert len(re.findall("->", found.message)) == 10_000
