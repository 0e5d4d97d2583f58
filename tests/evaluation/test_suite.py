"""Suites: what can be read, and every problem with its file and line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargehand.evaluation import InvalidSuite, Suite, files_of, read_suite
from chargehand.team import Team, Worker
from tests.counts import examples
from tests.evaluation.samples import as_plan, lines, task

TEAM = {"team": Team([Worker("researcher", "Looks things up"), Worker("writer", "Writes")], name="team")}
ROUTE = {"request": "My screen is black", "primary": "writer"}
PLAN = as_plan(task("t1", "researcher"), task("t2", "writer", "t1"))


def read(path: Path, folder: Path | None = None) -> Suite:
    return read_suite("suite", files_of(path), TEAM, folder)


def problems(path: Path) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSuite) as caught:
        read(path)
    assert caught.value.exit_code == 2
    return [(each.code, each.message) for each in caught.value.problems]  # type: ignore[attr-defined]


def test_the_kind_of_a_case_is_told_by_what_it_has(tmp_path: Path) -> None:
    """`kind` may be left out."""
    outcomes = [{"task": "t1", "status": "done"}, {"task": "t2", "status": "done"}]
    path = lines(
        tmp_path / "s.jsonl",
        ROUTE,
        {"request": "x", "plan": PLAN},
        {"worker": "writer", "instruction": "Say it.", "expect": {"exact": None}},
        {"plan": PLAN, "outcomes": outcomes, "expect": {"cites": "t1"}},
        {"request": "x", "expect": {"status": "complete"}},
        {"request": "x", "plan": PLAN, "expect": {"gaps": 0}},
    )
    assert [placed.case.kind for placed in read(path).cases] == ["routing", "plan", "worker", "synthesis", "run", "run"]


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ('{"request": "x",', "invalid_json", ":2:17:"),
        ("[1]", "invalid_case", ":2:"),
        ('{"kind": "routng", "request": "x"}', "unknown_kind", "Did you mean 'routing'?"),
        ('{"kind": ["plan"]}', "unknown_kind", ":2:"),
        ('{"request": "x"}', "unknown_kind", ":2:"),
        ('{"request": "x", "primary": "wrter"}', "unknown_worker", "Did you mean 'writer'?"),
        ('{"request": "x", "primary": "writer", "secondary": "nobody"}', "unknown_worker", "'secondary' names"),
        ('{"request": " ", "primary": "writer"}', "invalid_case", "request: "),
        ('{"primary": "writer"}', "invalid_case", "'request'"),
        ('{"request": "x", "primary": "writer", "secondry": "writer"}', "invalid_case", "Did you mean 'secondary'?"),
        ('{"worker": "ghost", "instruction": "Go.", "expect": {"exact": 1}}', "unknown_worker", "'worker' names"),
        ('{"worker": "writer", "instruction": "Go.", "expect": {}}', "invalid_case", "expect"),
        ('{"worker": "writer", "instruction": "Go.", "expect": {"regex": "x"}}', "invalid_case", "expect.regex"),
        ('{"worker": "writer", "instruction": "Go.", "expect": {"numeric": NaN}}', "invalid_json", "NaN"),
        ('{"worker": "writer", "instruction": "Go.", "expect": {"numeric": 1e999}}', "invalid_json", "1e999"),
        (
            '{"worker": "writer", "instruction": "Go.", "expect": {"numeric": {"value": 1, "tolerance": -1e999}}}',
            "invalid_json",
            "-1e999",
        ),
        ('{"request": "x", "with": ["no.csv"], "expect": {"gaps": 0}}', "no_material", "no.csv"),
        ('{"kind": "plan", "request": "x", "plan": {"tasks": []}}', "empty_plan", "'plan'"),
        ('{"kind": "run", "request": "x", "expect": {"status": "great"}}', "invalid_case", "expect.status"),
        ('{"kind": "run", "request": "x", "expect": {"max_usd": 0}}', "invalid_case", "expect.max_usd"),
        ("\ufeff{}", "invalid_json", "BOM"),
        ("[" * 100_000, "invalid_json", ":2:"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_line_is_told_with_file_and_line(tmp_path: Path, line: str, code: str, said: str) -> None:
    """A typed problem that names the second line, and nothing is run."""
    path = lines(tmp_path / "s.jsonl", ROUTE, line)
    [(found, message)] = problems(path)
    assert found == code
    assert message.startswith(f"{path}:2:")
    assert said in message


def test_problems_in_plans_and_outcomes_are_told(tmp_path: Path) -> None:
    """Unknown workers, cycles, tasks without an outcome, expectations about tasks that are not there."""
    looped = as_plan(task("t1", "ghost", "t2"), task("t2", "writer", "t1"))
    outcomes = [{"task": "t1", "status": "done"}, {"task": "t1", "status": "done"}, {"task": "t9", "status": "done"}]
    path = lines(
        tmp_path / "s.jsonl",
        {"request": "x", "plan": looped},
        {"plan": PLAN, "outcomes": outcomes, "expect": {"cites": ["t7"]}},
    )
    found = [f"{code} {message.partition(': ')[0].rpartition(':')[2]}" for code, message in problems(path)]
    assert found == ["unknown_worker 1", "cycle 1", "outcomes 2", "outcomes 2", "outcomes 2", "unknown_task 2"]


def test_all_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    """By the file's name inside of the team, up to fifty of them."""
    lines(tmp_path / "evals" / "a.jsonl", "{", ROUTE)
    lines(tmp_path / "evals" / "b.jsonl", *["{"] * 60)
    with pytest.raises(InvalidSuite) as caught:
        read(tmp_path, tmp_path)
    assert "\n  evals/a.jsonl:1:2: " in str(caught.value)
    assert "\n  evals/b.jsonl:49:2: " in str(caught.value)
    assert str(caught.value).endswith("and 11 more")


def test_text_that_is_not_utf_8_is_told_with_its_line(tmp_path: Path) -> None:
    """And a byte order mark, Windows line ends and blank lines are no problem."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"request": "x", "primary": "writer"}\r\n\r\n{"request": "\xff"}\n')
    [(code, message)] = problems(path)
    assert (code, message.startswith(f"{path}:3:14: ")) == ("invalid_encoding", True)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_suite_is_a_problem(tmp_path: Path, text: str) -> None:
    """A gate over no cases would always pass."""
    path = tmp_path / "s.jsonl"
    path.write_text(text)
    assert [code for code, _ in problems(path)] == ["empty_suite"]


def test_a_team_without_evals_is_a_problem(tmp_path: Path) -> None:
    """It says where they go."""
    with pytest.raises(InvalidSuite, match=r"evals/NAME\.jsonl"):
        files_of(tmp_path)


def test_one_id_twice_and_one_case_twice_are_problems(tmp_path: Path) -> None:
    """A baseline knows cases by their ids."""
    path = lines(tmp_path / "s.jsonl", ROUTE, ROUTE, {**ROUTE, "id": "a"}, {**ROUTE, "id": "a", "request": "y"})
    found = problems(path)
    assert [code for code, _ in found] == ["duplicate_id", "duplicate_id"]
    assert f"{path}:1" in found[0][1]


def test_an_id_stays_when_lines_move_and_changes_with_the_case(tmp_path: Path) -> None:
    """So that results and baselines outlive edits of other lines."""
    other = {**ROUTE, "request": "Another"}
    before = read(lines(tmp_path / "a.jsonl", ROUTE)).cases[0]
    after = read(lines(tmp_path / "b.jsonl", other, "", {**ROUTE, "note": "why"})).cases[1]
    assert (after.id, after.digest, after.line) == (before.id, before.digest, 3)
    assert read(lines(tmp_path / "c.jsonl", other)).cases[0].id != before.id


def test_what_a_case_reads_is_part_of_it(tmp_path: Path) -> None:
    """Beside the suite first, then in the team's folder; a changed file makes it another case."""
    case = {"request": "x", "with": ["data.csv", "docs"], "expect": {"gaps": 0}}
    path = lines(tmp_path / "evals" / "s.jsonl", case)
    (tmp_path / "evals" / "data.csv").write_text("1")
    lines(tmp_path / "docs" / "a.md", "text")
    first = read(path, tmp_path)
    assert first.cases[0].material == (tmp_path / "evals" / "data.csv", tmp_path / "docs")
    (tmp_path / "docs" / "a.md").write_text("other")
    assert read(path, tmp_path).hash != first.hash


def test_an_outcome_has_the_worker_of_its_task(tmp_path: Path) -> None:
    """It need not be written twice."""
    outcomes = [{"task": "t1", "status": "done"}, {"task": "t2", "status": "done", "worker": "me"}]
    path = lines(tmp_path / "s.jsonl", {"plan": PLAN, "outcomes": outcomes, "expect": {"gaps": 0}})
    case: Any = read(path).cases[0].case
    assert [outcome.worker for outcome in case.outcomes] == ["researcher", "me"]


KEYS = st.sampled_from(["kind", "request", "plan", "expect", "worker", "outcomes", "tasks", "task", "with", "id"])
ALMOST_CASES = st.recursive(
    st.none() | st.integers() | st.text(max_size=4) | st.sampled_from(["plan", "worker", "writer"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=12,
)


@settings(max_examples=examples(150), deadline=None)
@given(st.binary(max_size=60) | ALMOST_CASES)
def test_whatever_a_file_holds_it_is_a_suite_or_an_invalid_suite(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    """Never another exception."""
    path = tmp_path_factory.getbasetemp() / "fuzz.jsonl"
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    found: Sequence[object]
    try:
        found = read(path).cases
    except InvalidSuite as error:
        found = error.problems
    assert found
