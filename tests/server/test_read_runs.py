"""Runs over HTTP: lists, reports, states, events, exports, and what is refused."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.record.home import Home
from chargehand.record.index import RunInfo
from chargehand.server.run_figures import RunFigures
from chargehand.server.run_list import RunList, RunsQuery
from chargehand.testing import ScriptedModel
from chargehand.trace.pack_page import asset, page_modules
from tests.server.serving import ANSWERS, Client, make_supervisor, serving

RUNS = "/api/v1/runs"


def test_the_list_has_the_run(client: Client, run: str) -> None:
    """As `runs --json` has it."""
    listed = client.get(RUNS).json
    assert [each["run"] for each in listed["runs"]] == [run]
    assert listed["runs"][0]["status"] == "complete"
    assert listed["next"] is None


def test_the_report_is_that_of_the_command_line(client: Client, run: str, home: Path) -> None:
    """Report and open questions, whatever names the run: its id, the beginning of it, or `last`."""
    report = make_supervisor(home).report(run).to_json()
    for name in (run, run[:-2], "last"):
        found = client.get(f"{RUNS}/{name}").json
        assert found == json.loads(json.dumps(report)) | {"questions": []}


def test_the_state_says_up_to_which_event_it_goes(client: Client, run: str, home: Path) -> None:
    """So that a stream after that number misses nothing."""
    state = client.get(f"{RUNS}/{run}/state").json
    assert state["seq"] == Home(home).last_event(run)
    assert state["status"] == "complete"
    assert [task["id"] for task in state["tasks"]] == ["a", "b"]
    assert {task["status"] for task in state["tasks"]} == {"done"}


def test_the_time_of_a_run_that_is_over_is_that_of_its_report(client: Client, run: str) -> None:
    """Not that of its last event, which comes a little later."""
    report = client.get(f"{RUNS}/{run}").json
    assert client.get(f"{RUNS}/{run}/state").json["elapsed_s"] == round(report["timing"]["wall_s"], 3)


def test_two_runs_are_compared_as_the_command_does(client: Client, run: str, home: Path) -> None:
    """What `Supervisor.diff` gives; a run that is not there is 404."""
    found = client.get(f"/api/v1/diff?a={run}&b=last").json
    assert found == json.loads(json.dumps(make_supervisor(home).diff(run, run).to_json()))
    assert found["answer"]["same"]
    assert client.get(f"/api/v1/diff?a={run}&b=nowhere").status == 404
    assert client.get(f"/api/v1/diff?a={run}").status == 422


def test_events_are_lines_of_json_after_a_number(client: Client, run: str, home: Path) -> None:
    """One event a line, dense from `after` on."""
    last = Home(home).last_event(run)
    answer = client.get(f"{RUNS}/{run}/events?after=3")
    assert answer.headers["content-type"].startswith("application/jsonl")
    events = [json.loads(line) for line in answer.body.splitlines()]
    assert [event["seq"] for event in events] == list(range(4, last + 1))
    assert events[-1]["kind"] == "run_ended"


@pytest.mark.parametrize(
    ("form", "media"),
    [("json", "application/json"), ("jsonl", "jsonl"), ("html", "text/html"), ("otlp", "application/json")],
)
def test_a_run_can_be_exported(client: Client, run: str, form: str, media: str) -> None:
    """As `trace --format` does."""
    answer = client.get(f"{RUNS}/{run}/trace?format={form}")
    assert media in answer.headers["content-type"]
    assert run.encode() in answer.body


def test_the_page_and_its_files_are_served(client: Client, run: str) -> None:
    """The same frame for the list and for a run; it forbids scripts and requests from elsewhere."""
    for address in ("/", f"/runs/{run}"):
        page = client.get(address)
        assert b"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'" in page.body
    for name in ("style.css", *page_modules()):
        assert client.get(f"/page/{name}").body.decode() == asset(name)
    assert client.get("/page/index.html").status == client.get("/page/..%2fmarkdown.py").status == 404


def test_a_state_can_be_asked_for_what_changed_and_for_one_task(client: Client, run: str) -> None:
    """All tasks at first, then only those that a later event touched; one task in full by its id."""
    whole = client.get(f"{RUNS}/{run}/state").json
    assert [task["id"] for task in whole["tasks"]] == whole["order"]
    assert whole["now"] > whole["started"]
    assert client.get(f"{RUNS}/{run}/state?since={whole['seq']}").json["tasks"] == []
    detail = client.get(f"{RUNS}/{run}/state?task={whole['order'][0]}").json
    (attempt,) = detail["attempts"]
    assert attempt["status"] == "done"
    assert attempt["calls"][0]["messages"][0]["role"] == "system"
    assert client.get(f"{RUNS}/{run}/state?task=nothing").status == 404


def test_a_line_of_the_list_has_its_figures(tmp_path: Path) -> None:
    """Progress, tokens, cost and gaps, of a run that is over and of one that waits for a person."""
    with serving(make_supervisor(tmp_path)) as client:
        run, waiting = client.start(), client.start(approve=True)
        client.wait(run)
        client.wait(waiting)
        figures = _figures(client)
    assert figures[run] | {"tokens": 0} == {
        "tasks": 2, "done": 2, "tokens": 0, "usd": None, "gaps": 0, "questions": 0,
        "budget": {"tokens": 500_000, "usd": None},
    }  # fmt: skip
    assert figures[run]["tokens"] > 0
    assert {"tasks": 2, "done": 0, "questions": 1}.items() <= figures[waiting].items()


def test_a_line_of_the_list_has_the_budget_after_a_top_up(tmp_path: Path) -> None:
    """What was added when the run was resumed is part of it, whether the run then used more than before or not."""
    supervisor = make_supervisor(tmp_path)
    short = asyncio.run(supervisor.run("Do both parts", tokens=100))
    late = asyncio.run(supervisor.run("Do both parts", tokens=50_000, deadline=0.001))
    assert (short.status, late.status) == ("failed", "failed")
    assert asyncio.run(supervisor.resume(short.run, tokens=50_000)).status == "complete"
    assert asyncio.run(supervisor.resume(late.run, tokens=1_000, deadline=3_600)).status == "complete"
    figures = RunFigures(Home(tmp_path)).read(Home(tmp_path).runs())
    assert figures[short.run]["tokens"] > 100
    assert figures[short.run]["budget"]["tokens"] == 50_100
    assert figures[late.run]["tokens"] < 50_000
    assert figures[late.run]["budget"]["tokens"] == 51_000


def test_a_line_of_the_list_counts_the_tasks_of_nested_teams(tmp_path: Path) -> None:
    """As the page of the run does, though a report has only the tasks of the run's own team."""
    team = Team([Worker("w", "Hands on", kind="delegate", team=Team([Worker("w", "Works")]))])
    with serving(Supervisor(team, model=ScriptedModel(ANSWERS), home=tmp_path)) as client:
        run = client.start()
        client.wait(run)
        figures = _figures(client)[run]
        counts = client.get(f"{RUNS}/{run}/state").json["counts"]
    assert counts == {"done": 6}
    assert (figures["tasks"], figures["done"]) == (6, 6)


def _figures(client: Client) -> dict[str, dict[str, Any]]:
    """The figures by run, once all are counted. A request counts for a short time: a busy machine needs several."""
    found: dict[str, dict[str, Any]] = {}
    for _ in range(1_000):
        found = {each["run"]: each["figures"] for each in client.get(RUNS).json["runs"]}
        if all(found.values()):
            break
    return found


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{RUNS}/nothing", 404),
        (f"{RUNS}/..%2f..%2fetc", 404),
        (f"{RUNS}/nothing/state", 404),
        (f"{RUNS}/nothing/stream", 404),
        (f"{RUNS}/last/files/..%2f..%2fconfig.toml", 404),
        (f"{RUNS}/last/files/x", 404),
        (f"{RUNS}?limit=0", 422),
        (f"{RUNS}?limit=x", 422),
        (f"{RUNS}?status=lost", 422),
        (f"{RUNS}?colour=red", 422),
        (f"{RUNS}?limit=1&limit=2", 422),
        (f"{RUNS}?q={'x' * 2_000}", 422),
        (f"{RUNS}?q={'x' * 10_000}", 414),
        (f"{RUNS}/last/events?after=-1", 422),
        (f"{RUNS}/last/events?after=99999999999999999999", 422),
        (f"{RUNS}/last/trace?format=pdf", 422),
        ("/nowhere", 404),
    ],
)
def test_what_cannot_be_answered_is_a_problem(client: Client, path: str, status: int) -> None:
    """Status, title, and in `detail` what to do."""
    answer = client.get(path)
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert {"type", "title", "status", "detail"} <= answer.json.keys()


def test_a_wrong_method_is_a_problem_that_names_the_right_one(client: Client) -> None:
    answer = client.send("DELETE", f"{RUNS}/last")
    assert (answer.status, answer.headers["content-type"]) == (405, "application/problem+json")
    assert "GET" in answer.headers["allow"]


def test_a_record_of_a_newer_version_is_a_problem(client: Client, home: Path) -> None:
    """409 with what to do; the list still answers."""
    import sqlite3

    newer = home / "runs" / "from-the-future.sqlite"
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    try:
        for part in ("", "/state", "/events", "/stream", "/trace"):
            answer = client.get(f"{RUNS}/from-the-future{part}")
            assert (answer.status, "Upgrade" in answer.json["detail"]) == (409, True), part
        assert "from-the-future" in [each["run"] for each in client.get(RUNS).json["runs"]]
    finally:
        newer.unlink()


def test_the_list_and_the_state_say_what_a_run_waits_for(tmp_path: Path) -> None:
    """A run of another process asks a person; once answered, it waits for a resume, until somebody resumes it."""
    run = make_supervisor(tmp_path).run_sync("Do both parts", approve=True).run

    def said() -> tuple[Any, ...]:
        (listed,) = client.get(RUNS).json["runs"]
        return listed["needs_you"], listed["waits_for"], client.get(f"{RUNS}/{run}/state").json["waits_for"]

    with serving(make_supervisor(tmp_path)) as client:
        assert said() == (True, "person", "person")
        client.post(f"{RUNS}/{run}/answers/plan", {"answer": "approve"})
        assert said() == (False, "resume", "resume")
        after = client.get(f"{RUNS}/{run}/state").json["seq"]
        client.post(f"{RUNS}/{run}/resume")
        client.wait(run, after)
        assert said() == (False, None, None)


def test_health_and_metrics(client: Client) -> None:
    """Prometheus text: every line is a comment or a name with a number."""
    assert client.send("GET", "/healthz", token=None).body == b"ok\n"
    text = client.get("/metrics").body.decode()
    assert 'chargehand_runs{status="complete"} 1' in text
    for line in text.splitlines():
        assert line.startswith("# ") or float(line.rpartition(" ")[2]) >= 0


def test_a_page_of_the_list_continues_where_the_one_before_ended(tmp_path: Path) -> None:
    """Also after the run it ended with was removed; `needs_you` puts those that wait first."""
    runs = RunList(_FixedHome(tmp_path))
    found: list[str] = []
    query = RunsQuery(limit=3)
    while True:
        page, more = runs.find(query)
        found += [info.run for info in page]
        if not more:
            break
        query = RunsQuery(limit=3, before=page[-1].run)
    assert found == [f"r{n}" for n in range(9, -1, -1)]
    assert [info.run for info in runs.find(RunsQuery(limit=2, before="r55"))[0]] == ["r5", "r4"]
    assert [info.run for info in runs.find(RunsQuery(limit=2, needs_you="true"))[0]] == ["r2", "r9"]
    assert [info.run for info in runs.find(RunsQuery(limit=2))[0]] == ["r9", "r8"]
    assert [info.run for info in runs.find(RunsQuery(q="NUMBER 7"))[0]] == ["r7"]
    assert [info.run for info in runs.find(RunsQuery(status="waiting"))[0]] == ["r2"]


class _FixedHome(Home):
    def runs(self, limit: int | None = None) -> list[RunInfo]:
        made = [RunInfo(f"r{n}", float(n), status="complete", request=f"Number {n}") for n in range(9, -1, -1)]
        return [info._replace(status="waiting") if info.run == "r2" else info for info in made]
