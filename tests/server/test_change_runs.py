"""Runs started, answered, resumed and stopped over HTTP: the same report as from Python, and every refusal."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from chargehand.record.home import Home
from chargehand.server.http_calls import LARGEST_BODY
from chargehand.server.wanted_runs import Wanted, WantedRuns
from chargehand.testing import ScriptedModel
from tests.pace import PATIENCE_S
from tests.server.serving import ANSWERS, PLAN, Client, make_supervisor, serving

RUNS = "/api/v1/runs"
SLOW: list[dict[str, Any]] = [
    ANSWERS[0],
    ANSWERS[1] | {"delay_ms": int(PATIENCE_S * 1000)},
    ANSWERS[2],
]


@pytest.fixture(scope="module")
def active(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with a model that answers at once."""
    with serving(make_supervisor(tmp_path_factory.mktemp("active"))) as client:
        yield client


def test_a_run_started_here_gives_the_report_that_python_gives(active: Client, tmp_path: Path) -> None:
    """But for its id and times."""
    run = active.start()
    assert active.wait(run)["status"] == "complete"
    found = active.get(f"{RUNS}/{run}").json
    expected = make_supervisor(tmp_path).run_sync("Do both parts").to_json()
    same = ("request", "status", "answer", "gaps", "contradictions", "confidence", "provenance", "plan", "strategy")
    assert {name: found[name] for name in same} == {name: json.loads(json.dumps(expected[name])) for name in same}
    assert [outcome["output"] for outcome in found["outcomes"]] == ["the part is done"] * 2


def test_a_key_starts_a_run_once(active: Client) -> None:
    """The same body with the same key is the same run; another body is a problem that names it."""
    body = {"request": "Do both parts", "tokens": 50_000}
    first, again = (active.post(RUNS, body, idempotency_key="k-1") for _ in range(2))
    assert (first.status, first.json) == (again.status, again.json) == (202, first.json)
    other = active.post(RUNS, body | {"tokens": 60_000}, idempotency_key="k-1")
    assert (other.status, first.json["run"] in other.json["detail"]) == (422, True)
    assert active.post(RUNS, body, idempotency_key="k-2").json != first.json
    assert active.post(RUNS, body, idempotency_key="k" * 256).status == 422
    for answer in (first, active.post(RUNS, body, idempotency_key="k-2")):
        active.wait(answer.json["run"])


def test_a_plan_with_problems_names_all_of_them(active: Client) -> None:
    """422 with every problem, and no run is made; `check` lists the same."""
    tasks = [task | {"depends_on": ["a", "b"]} for task in PLAN["tasks"]] + [{"id": "c", "worker": "nobody"}]
    before = len(active.get(RUNS).json["runs"])
    refused = active.post(RUNS, {"request": "Do it", "plan": PLAN | {"tasks": tasks}})
    checked = active.post("/api/v1/check", {"plan": PLAN | {"tasks": tasks}}).json
    codes = {problem["code"] for problem in refused.json["problems"]}
    assert refused.status == 422
    assert {"self_dependency", "unknown_worker"} <= codes
    assert checked["ok"] is False
    assert {problem["code"] for problem in checked["problems"]} >= {"self_dependency", "unknown_worker"}
    assert active.post("/api/v1/check", {"plan": PLAN}).json == {"ok": True, "problems": []}
    assert len(active.get(RUNS).json["runs"]) == before


def test_a_plan_is_made_without_a_run(active: Client) -> None:
    """As `plan` prints it."""
    made = active.post("/api/v1/plan", {"request": "Do both parts"})
    assert (made.status, [task["id"] for task in made.json["tasks"]]) == (200, ["a", "b"])


def test_the_shape_of_a_part_is_given_by_its_fields(active: Client) -> None:
    """A caller knows no class of this program."""
    refused = active.post(RUNS, {"request": "Say it", "material": ["old.md"]})
    assert refused.status == 422
    assert "material.0: Input should be an object with name, content" in refused.json["detail"]


def test_a_person_approves_a_plan_over_http(active: Client) -> None:
    """The run waits; a wrong answer is refused; the right one lets it continue here; a second one is too late."""
    run = active.start(approve=True)
    asked = active.wait(run)
    assert asked["status"] == "waiting"
    (question,) = active.get(f"{RUNS}/{run}").json["questions"]
    assert question["kind"] == "plan"
    assert [each["run"] for each in active.get(f"{RUNS}?needs_you=true&limit=1").json["runs"]] == [run]
    path = f"{RUNS}/{run}/answers/plan"
    wrong = active.post(path, {"answer": "perhaps"})
    assert (wrong.status, wrong.headers["content-type"]) == (422, "application/problem+json")
    assert active.post(f"{RUNS}/{run}/answers/other", {"answer": "approve"}).status == 409
    assert active.post(path, {"answer": "approve"}).status == 200
    assert active.wait(run, after=asked["seq"])["status"] == "complete"
    assert active.post(path, {"answer": "approve"}).status == 409


def test_an_edited_plan_is_an_answer(active: Client) -> None:
    """As JSON, not as text that holds JSON; one with problems is refused with all of them."""
    run = active.start(approve=True)
    asked = active.wait(run)
    path = f"{RUNS}/{run}/answers/plan"
    bad = {"tasks": [PLAN["tasks"][0] | {"worker": "nobody"}]}
    assert active.post(path, {"answer": bad}).json["problems"][0]["code"] == "unknown_worker"
    assert active.post(path, {"answer": {"tasks": PLAN["tasks"][:1]}}).status == 200
    ended = active.wait(run, after=asked["seq"])
    assert [outcome["task"] for outcome in ended["report"]["outcomes"]] == ["a"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (RUNS, b"{", 400),
        (RUNS, b"\xff\xfe", 400),
        (RUNS, b"[]", 422),
        (RUNS, b'{"request": NaN}', 400),
        (RUNS, {}, 422),
        (RUNS, {"request": " "}, 422),
        (RUNS, {"request": 7}, 422),
        (RUNS, {"request": "x", "tokens": "many"}, 422),
        (RUNS, {"request": "x", "tokens": 0}, 422),
        (RUNS, {"request": "x", "usd": -1}, 422),
        (RUNS, {"request": "x", "usd": 1}, 422),
        (RUNS, {"request": "x", "colour": "red"}, 422),
        (RUNS, {"request": "x", "team": "../../etc"}, 422),
        (RUNS, {"request": "x", "model": "scripted:/etc/passwd"}, 422),
        (RUNS, {"request": "x", "follow_up": "nothing"}, 404),
        (RUNS, {"request": "x", "material": [{"name": "../x", "content": ""}]}, 422),
        (RUNS, {"request": "x", "material": [{"name": "x", "content": ""}] * 2}, 422),
        (RUNS, {"request": "x", "material": [{"name": "..", "content": ""}]}, 422),
        (RUNS, {"request": "x", "schema": {"type": "nonsense"}}, 422),
        ("/api/v1/plan", {}, 422),
        ("/api/v1/check", {"plan": 1}, 422),
        ("/api/v1/review", {"patch": ""}, 422),
        (f"{RUNS}/nothing/cancel", {}, 404),
        (f"{RUNS}/nothing/resume", {}, 404),
        (f"{RUNS}/nothing/rerun", {}, 404),
        (f"{RUNS}/nothing/fork", {"at": "a"}, 404),
        (f"{RUNS}/nothing/pause", {}, 404),
        (f"{RUNS}/nothing/tasks/a/stop", {}, 404),
        (f"{RUNS}/nothing/tasks/a/restart", {"model": "scripted:/etc/passwd"}, 404),
        (f"{RUNS}/nothing/tasks/a/tell", {"text": ""}, 422),
        (f"{RUNS}/nothing/answers/plan", {"answer": "approve"}, 404),
    ],
)
def test_what_cannot_be_done_is_a_problem(active: Client, path: str, body: Any, status: int) -> None:
    """Malformed JSON, wrong types, unknown names, paths instead of names: nothing is started."""
    answer = active.post(path, body)
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json"), answer.body
    assert answer.json["detail"]


def test_a_body_of_more_than_32_mb_is_refused(active: Client) -> None:
    """By what the header says, and by what comes where it says nothing."""
    body = b'{"request": "' + b"x" * LARGEST_BODY + b'"}'
    assert active.post(RUNS, body).status == 413


def test_material_is_read_by_workers_under_its_name(active: Client) -> None:
    """It is kept in the folder of the run, so that a resume finds it."""
    run = active.start(material=[{"name": "notes.txt", "content": "Oslo has 717,710 inhabitants."}])
    active.wait(run)
    (kept,) = active.server.home.path.glob(f"runs/{run}/material/*")
    assert (kept.name, kept.stat().st_mode & 0o777) == ("notes.txt", 0o600)
    first = json.loads(active.get(f"{RUNS}/{run}/events").body.splitlines()[0])
    assert [each["name"] for each in first["request"]["material"]] == ["notes.txt"]


def test_a_rerun_is_a_new_run_that_repeats_nothing(active: Client) -> None:
    """All calls of the run before are reused."""
    run = active.start()
    active.wait(run)
    again = active.post(f"{RUNS}/{run}/rerun").json["run"]
    assert again != run
    assert active.wait(again)["status"] == "complete"
    kinds = [json.loads(line)["kind"] for line in active.get(f"{RUNS}/{again}/events").body.splitlines()]
    assert "reused" in kinds
    assert "model_called" not in kinds


def test_a_fork_is_a_new_run_that_does_a_task_again(active: Client) -> None:
    """The rest is taken over; what cannot be forked is a problem, and no run is begun."""
    active.wait(run := active.start())
    made = active.post(f"{RUNS}/{run}/fork", {"at": "b"})
    assert made.status == 202
    forked = made.json["run"]
    active.wait(forked)
    outcomes = active.get(f"{RUNS}/{forked}").json["outcomes"]
    assert [each["usage"]["calls"] for each in outcomes] == [0, 1]
    assert active.get(f"{RUNS}/{forked}/state").json["forked_from"] == {"run": run, "at": "b"}
    before = len(active.get(RUNS).json["runs"])
    for body in ({}, {"at": "nowhere"}, {"model": "scripted:/etc/passwd"}, {"plan": {"tasks": []}}):
        assert active.post(f"{RUNS}/{run}/fork", body).status == 422
    assert len(active.get(RUNS).json["runs"]) == before


def test_a_running_run_is_cancelled_and_has_one_owner(tmp_path: Path) -> None:
    """A second resume is a problem that names process and address; cancelling works from here."""
    with serving(make_supervisor(tmp_path, ScriptedModel(SLOW))) as client:
        run = client.start()
        with client.stream(f"{RUNS}/{run}/stream") as events:
            next(event for event in events if json.loads(event["data"])["kind"] == "model_replied")
        twice = client.post(f"{RUNS}/{run}/resume")
        assert (twice.status, "process" in twice.json["detail"]) == (409, True)
        assert client.post(f"{RUNS}/{run}/cancel").json == {"run": run, "status": "cancelled", "stopped": True}
        assert client.get(f"{RUNS}/{run}").json["status"] == "cancelled"
        assert client.server.started.wanted.all() == []


def test_runs_beyond_the_limit_wait_for_their_turn(tmp_path: Path) -> None:
    """Each has its id at once, and all are carried out."""
    with serving(make_supervisor(tmp_path), max_runs=1) as client:
        runs = [client.start() for _ in range(4)]
        assert [client.wait(run)["status"] for run in runs] == ["complete"] * 4


@pytest.mark.slow
def test_a_server_that_stops_parks_its_runs_and_the_next_continues_them(tmp_path: Path) -> None:
    """Also those that were still in the queue, and one that was promised and never begun."""
    with serving(make_supervisor(tmp_path, ScriptedModel(SLOW)), max_runs=1) as client:
        begun, queued = client.start(), client.start(material=[{"name": "a.txt", "content": "text"}])
        with client.stream(f"{RUNS}/{begun}/stream") as events:
            next(event for event in events if json.loads(event["data"])["kind"] == "model_replied")
    assert make_supervisor(tmp_path).report(begun).status == "interrupted"
    promised = Wanted("promised-and-not-begun", "owner", {"request": "Do both parts"})
    WantedRuns(Home(tmp_path)).mark(promised)
    with serving(make_supervisor(tmp_path)) as client:
        for run in (begun, queued, promised.run):
            _until_there(client, run)
            seen = 0
            while (ended := client.wait(run, after=seen))["status"] == "interrupted":
                seen = ended["seq"]
            assert ended["status"] == "complete"


@pytest.mark.slow
def test_a_paused_run_is_not_continued_by_a_new_server(tmp_path: Path) -> None:
    """Only a person continues it, also where a crash left it marked as wanted."""
    slowly = ScriptedModel([ANSWERS[0], ANSWERS[1] | {"delay_ms": 1_000}, ANSWERS[2]])
    home = Home(tmp_path)
    with serving(make_supervisor(tmp_path, slowly)) as client:
        run = client.start()
        assert asyncio.run(make_supervisor(tmp_path).pause(run)).verdict == "accepted"
        while client.server.started.wanted.all():
            pass
        assert client.get(f"{RUNS}/{run}").json["status"] == "paused"
    assert home.runs()[0].status == "paused"
    WantedRuns(home).mark(Wanted(run, "owner", None))
    with serving(make_supervisor(tmp_path)) as client:
        while WantedRuns(home).all():
            pass
        assert client.get(f"{RUNS}/{run}/state").json["status"] == "paused"
        assert [found["run"] for found in client.get(f"{RUNS}?status=paused").json["runs"]] == [run]
        paused = client.wait(run)
        assert paused["status"] == "paused"
        assert client.post(f"{RUNS}/{run}/resume").status == 202
        assert client.wait(run, after=paused["seq"])["status"] == "complete"


def _until_there(client: Client, run: str) -> None:
    while client.get(f"{RUNS}/{run}").status == 404:
        pass


def test_a_program_is_started_when_a_run_ends_or_needs_a_person(tmp_path: Path) -> None:
    """It gets the run, its status and its address on stdin, and nothing else of it."""
    said = tmp_path / "said.jsonl"
    program = f"import sys; open({str(said)!r}, 'a').write(sys.stdin.read())"
    with serving(make_supervisor(tmp_path / "home"), notify=(sys.executable, "-c", program)) as client:
        waiting, ended = client.start(approve=True), client.start()
        client.wait(waiting)
        client.wait(ended)
        while not (said.exists() and len(said.read_text().splitlines()) == 2):
            client.get("/healthz")
    found = {each["run"]: each for each in map(json.loads, said.read_text().splitlines())}
    url = f"http://127.0.0.1:{client.port}/runs/"
    assert found == {
        waiting: {"run": waiting, "status": "waiting", "url": url + waiting},
        ended: {"run": ended, "status": "complete", "url": url + ended},
    }


def test_a_program_that_cannot_be_started_is_logged(tmp_path: Path) -> None:
    """The run does not notice."""
    with serving(make_supervisor(tmp_path), notify=("/nowhere/at/all",)) as client:
        assert client.wait(client.start())["status"] == "complete"
        while "notify failed" not in client.log.getvalue():
            client.get("/healthz")


# -- orders ------------------------------------------------------------------------------------------------------------


def until_called(client: Client, run: str, number: int = 1) -> None:
    """Return once so many workers are at work."""
    with client.stream(f"{RUNS}/{run}/stream") as events:
        for event in events:
            if '"role": "worker"' in event["data"] or '"role":"worker"' in event["data"]:
                number -= 1
                if not number:
                    return


@pytest.fixture
def busy(tmp_path: Path) -> Any:
    """A server whose workers take as long as one waits."""
    with serving(make_supervisor(tmp_path, ScriptedModel(SLOW))) as client:
        yield client


@pytest.mark.slow
def test_a_task_is_stopped_over_http(busy: Client) -> None:
    """The verdict is the answer; a task that is not there, or has ended, is a problem with the remedy."""
    run = busy.start()
    until_called(busy, run, 2)
    tasks = f"{RUNS}/{run}/tasks"
    assert busy.get(f"{RUNS}/{run}/state").json["orders"] == ["pause", "stop", "restart", "tell"]
    stopped = busy.post(f"{tasks}/a/stop", {"reason": "not needed"})
    assert (stopped.status, stopped.json["verdict"], stopped.json["task"]) == (200, "accepted", "a")
    assert busy.post(f"{tasks}/a/stop").status == 409
    missing = busy.post(f"{tasks}/zz/stop")
    assert (missing.status, "has no task 'zz'" in missing.json["detail"]) == (422, True)
    assert busy.post(f"{tasks}/b/restart", {"model": "scripted:/etc/passwd"}).status == 422
    sent = busy.post(f"{tasks}/b/tell", {"text": "Be short."})
    assert (sent.status, sent.json["verdict"]) == (202, None)
    assert busy.post(f"{tasks}/b/stop").status == 200
    ended = busy.wait(run)
    assert [outcome["error"]["kind"] for outcome in ended["report"]["outcomes"]] == ["cancelled"] * 2
    assert busy.get(f"{RUNS}/{run}/state").json["orders"] == ["restart"]


def test_a_task_of_a_finished_run_is_restarted_over_http(active: Client) -> None:
    """The run continues here, with the instruction."""
    run = active.start()
    first = active.wait(run)
    sent = active.post(f"{RUNS}/{run}/tasks/a/restart", {"instruction": "Do the first part in French"})
    assert (sent.status, "resumed" in sent.json["reason"]) == (202, False)
    again = active.wait(run, after=first["seq"])
    assert again["status"] == "complete"
    assert again["report"]["plan"]["tasks"][0]["instruction"] == "Do the first part in French"


@pytest.mark.slow
def test_limits_are_added_to_a_run_under_way_over_http(busy: Client) -> None:
    """Of a run that this server owns; without limits it is a problem that names the owner."""
    run = busy.start(tokens=100_000)
    until_called(busy, run)
    assert busy.post(f"{RUNS}/{run}/resume", {"tokens": 5_000}).status == 202
    assert busy.get(f"{RUNS}/{run}/state").json["budget"]["tokens"] == 105_000
    assert busy.post(f"{RUNS}/{run}/resume", {"usd": 1}).status == 422
    assert busy.post(f"{RUNS}/{run}/resume").status == 409
    busy.post(f"{RUNS}/{run}/cancel")


@pytest.mark.slow
def test_a_run_is_paused_and_continued_over_http(tmp_path: Path) -> None:
    """It is not wanted any more until then: only a person continues it."""
    slow = [ANSWERS[0], ANSWERS[1] | {"delay_ms": 2_000}, ANSWERS[2]]
    with serving(make_supervisor(tmp_path, ScriptedModel(slow))) as client:
        run = client.start()
        until_called(client, run)
        assert client.post(f"{RUNS}/{run}/pause").json["verdict"] == "accepted"
        ended = client.wait(run)
        assert ended["status"] == "paused"
        assert client.get(f"{RUNS}/{run}/state").json["orders"] == ["stop", "restart", "tell"]
        assert client.post(f"{RUNS}/{run}/resume").status == 202
        assert client.wait(run, after=ended["seq"])["status"] == "complete"


@pytest.mark.slow
def test_a_run_that_waits_for_a_provider_continues_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs no person, takes no other run's place, and is continued when the time has come."""
    for limit in ("runs.roster.PATIENCE_S", "engine.local.quota_waits.SHORT_PAUSE_S"):
        monkeypatch.setattr(f"chargehand.{limit}", 0.1)
    out = {"when": {"role": "worker", "task": "b"}, "reply": {"error": {"status": 429, "retry_after": 8}}, "times": 1}
    with serving(make_supervisor(tmp_path, ScriptedModel([out, *ANSWERS])), max_runs=1) as client:
        run = client.start()
        parked = client.wait(run)
        assert parked["status"] == "waiting"
        report = client.get(f"{RUNS}/{run}").json
        assert report["waiting"] == {"until": report["waiting"]["until"], "provider": "scripted"}
        listed = client.get(f"{RUNS}?needs_you=true").json["runs"]
        said = [(each["status"], each["needs_you"], each["waits_for"]) for each in listed]
        assert said == [("waiting", False, "provider")]
        # The place is free when the run is put away, a moment after it is on the record that it waits.
        entry = client.server.started._entries.get(run)
        if entry is not None and entry.task is not None:
            ends = asyncio.run_coroutine_threadsafe(asyncio.wait({entry.task}), entry.task.get_loop())
            ends.result(PATIENCE_S)
        assert client.server.started.under_way == 0
        assert client.wait(run, parked["seq"])["status"] == "complete"
        calls = [json.loads(line) for line in client.get(f"{RUNS}/{run}/events").body.splitlines()]
        sent = [each["key"] for each in calls if each["kind"] == "model_called"]
        assert sorted(sent).count("b/1/model/1") == 2
        assert sent.count("a/1/model/1") == 1
