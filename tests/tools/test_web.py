"""`--web`: the worker a team names for it may reach the web, over a real server; without it nobody does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.errors import InvalidTeam, UsageError
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.team import load
from chargehand.testing import ScriptedModel, run_virtual
from chargehand.tools import web
from chargehand.tools.web import fetching
from tests.cli.terminal import Result, Shell
from tests.loopback import Answer, Seen, Server, serving
from tests.tools.test_fetch_page import SITE, fetcher_of, page

HTML = b"<html><head><title>Fjords</title></head><body><h1>Fjords</h1><p>The fjord is 1,308 m deep.</p></body></html>"
KEYS = ("BRAVE_API_KEY", "TAVILY_API_KEY")
WORKER = "---\nname: finder\ndescription: Finds things\n{more}---\nFind it.\n"


@pytest.fixture(autouse=True)
def _no_search_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


def serve_page(_: Seen) -> Answer:
    return page(HTML)


def task(worker: str) -> dict[str, Any]:
    return {
        "id": "t1",
        "worker": worker,
        "instruction": "Look up how deep the fjord is.",
        "success_criterion": "A depth.",
    }


def plan(worker: str) -> dict[str, Any]:
    return {"goal": "How deep is the fjord?", "tasks": [task(worker)]}


def rules(url: str) -> list[dict[str, Any]]:
    """A worker that asks for the page, and then says what it was given."""
    found = {"summary": "It is 1,308 m deep.", "output": "1,308 m", "claims": [], "confidence": 80}
    asks = {"tool_calls": [{"name": "fetch_page", "arguments": {"url": url}}]}
    return [
        {"when": {"role": "worker", "contains": "The fjord is 1,308 m deep."}, "reply": {"json": found}},
        {
            "when": {"role": "worker", "contains": "has no tool"},
            "reply": {"json": found | {"output": "Not looked up."}},
        },
        {"when": {"role": "worker"}, "reply": asks},
    ]


def on_site(monkeypatch: pytest.MonkeyPatch, server: Server) -> str:
    """The tool fetches from a server of ours under the name of a public host; everything else is as it ships."""
    monkeypatch.setattr(web, "fetch_page", fetching(fetcher_of(server)))
    return f"http://{SITE}:{server.port}/fjord"


@pytest.mark.parametrize(
    ("team", "worker"), [("general", "researcher"), ("competitive", "page-reader"), ("launch", "market-reader")]
)
def test_with_web_the_worker_named_for_it_fetches_a_real_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, team: str, worker: str
) -> None:
    """A page on a real server reaches the worker; without --web the same call is refused and nothing is fetched."""
    with serving(serve_page) as server:
        model = ScriptedModel(rules(on_site(monkeypatch, server)))
        door = Supervisor(team, model=model, home=tmp_path)
        report = door.run_sync(plan=plan(worker))
        assert report.outcomes[0].output == "Not looked up."
        assert server.requests == []
        report = door.run_sync(plan=plan(worker), web=True)
        assert report.outcomes[0].output == "1,308 m"
        assert [seen.path for seen in server.requests] == ["/fjord"]


def test_each_team_for_open_questions_names_one_worker_for_the_web() -> None:
    """And only there, with no tool for it until a run may."""
    named = {name: load(name).web_workers for name in ("general", "competitive", "launch", "support", "contract")}
    assert named == {
        "general": ("researcher",),
        "competitive": ("page-reader",),
        "launch": ("market-reader",),
        "support": (),
        "contract": (),
    }
    for name in named:
        assert not any(tool.needs_trust for worker in load(name).workers for tool in worker.tools)


def test_web_search_is_offered_with_a_key_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key fetch_page is all there is."""
    team = load("general")
    assert team.with_web().worker("researcher").tool_names[3:] == ("fetch_page",)
    monkeypatch.setenv("BRAVE_API_KEY", "k")
    assert team.with_web().worker("researcher").tool_names[3:] == ("web_search", "fetch_page")
    assert team.with_web().worker("writer").tool_names == team.worker("writer").tool_names
    assert team.worker("researcher").tool_names == ("read_file", "list_files", "search_files")


def test_a_team_without_a_worker_for_the_web_says_what_to_do(shell: Shell) -> None:
    """Exit code 2, and no run."""
    got = shell("run", "How deep?", "--web", "--team", "support", "--model", shell.script())
    assert got.code == 2
    assert "'support' has no worker that may use the web" in got.complaint
    assert "web: true" in got.complaint
    assert shell("runs", "--json").json["runs"] == []
    with pytest.raises(UsageError, match="no worker that may use the web"):
        Supervisor(Team([Worker("w", "Works")]), model=ScriptedModel([])).run_sync("x", web=True)


def test_a_folder_needs_trust_to_name_a_worker_for_the_web(shell: Shell) -> None:
    """The mark of an untrusted folder counts for nothing; the complaint names the command that trusts it."""
    folder = shell.folder / "team"
    (folder / "workers").mkdir(parents=True)
    (folder / "team.toml").write_text('description = "Looks things up"\n')
    (folder / "workers" / "finder.md").write_text(WORKER.format(more="web: true\n"))
    registry = TrustRegistry(str(shell.home))
    assert load(folder, registry).web_workers == ()
    got = shell("run", "How deep?", "--web", "--team", folder, "--model", shell.script())
    assert got.code == 2
    assert "left out, since it reaches the network: web" in got.complaint
    assert f"chargehand trust {folder}" in got.complaint
    assert shell("trust", folder).code == 0
    assert load(folder, registry).web_workers == ("finder",)
    assert "note: with --web, finder may use the web" in shell("check", folder).out


@pytest.mark.parametrize(
    ("more", "says"), [("web: yes please\n", "true or false"), ("kind: human\nweb: true\n", "agents only")]
)
def test_a_mark_for_the_web_that_cannot_be_is_an_error(tmp_path: Path, more: str, says: str) -> None:
    """Told by file and line."""
    (tmp_path / "workers").mkdir()
    (tmp_path / "team.toml").write_text('description = "x"\n')
    (tmp_path / "workers" / "finder.md").write_text(WORKER.format(more=more))
    registry = TrustRegistry(str(tmp_path / "home"))
    registry.trust(tmp_path)
    with pytest.raises(InvalidTeam, match=rf"workers/finder.md:\d+:1: .*{says}"):
        load(tmp_path, registry)


def test_a_team_within_the_team_has_its_own_worker_for_the_web() -> None:
    """A delegate passes the permission on."""
    outer = Team([Worker("desk", "Looks things up", kind="delegate", team=load("general"))])
    assert outer.web_workers == ("desk/researcher",)
    inner = outer.with_web().worker("desk").team
    assert inner is not None
    assert "fetch_page" in inner.worker("researcher").tool_names


def test_resume_and_rerun_keep_the_web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The permission is on the record: what was allowed then is allowed when the run goes on, or again."""
    with serving(serve_page) as server:
        url = on_site(monkeypatch, server)
        down = Supervisor("general", model=ScriptedModel([fails(400, role="worker")]), home=tmp_path)
        report = run_virtual(down.run(plan=plan("researcher"), web=True))[0]
        assert (report.status, server.requests) == ("failed", [])
        door = Supervisor("general", model=ScriptedModel(rules(url)), home=tmp_path)
        assert asyncio.run(door.resume(report.run, retry_failed=True)).outcomes[0].output == "1,308 m"
        door = Supervisor("general", model=ScriptedModel([*rules(url)]), home=tmp_path)
        assert asyncio.run(door.rerun(report.run)).outcomes[0].output == "1,308 m"


def test_plan_teams_and_doctor_say_who_may_use_the_web(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what, and what is missing for a search."""
    model = shell.script({"when": {"role": "planner"}, "reply": {"json": plan("researcher")}})
    assert "With --web, researcher may use the web." in shell("plan", "How deep?", "--model", model).err
    teams = shell("teams")
    (line,) = [line for line in teams.out.splitlines() if "market-reader" in line]
    assert "the web with --web" in line
    listed = {t["ref"]: t for t in shell("teams", "--json").json["teams"]}
    assert [w["name"] for w in listed["general"]["workers"] if w.get("web")] == ["researcher"]
    doctor = shell("doctor").out
    assert "with run --web, researcher of the team general may use fetch_page; web_search needs" in doctor
    monkeypatch.setenv("TAVILY_API_KEY", "k")
    assert "may use web_search, fetch_page" in shell("doctor").out


# --- nobody to be reached -------------------------------------------------------------------------------------------

ROUTED = {"when": {"role": "router"}, "reply": {"json": {"primary": "documenter", "reason": "How-to."}}}


def fails(status: int, **when: str) -> dict[str, Any]:
    return {"when": when, "reply": {"error": {"status": status, "message": "no"}}}


def ran(shell: Shell, *replies: dict[str, Any]) -> Result:
    """A run of `support`, its pauses in no time, and how the command line shows it."""
    door = Supervisor("support", model=ScriptedModel(replies), home=shell.home)
    run_virtual(door.run("Printing is odd today, help"))
    return shell("resume", "last")


@pytest.mark.parametrize("unreached", [[ROUTED, fails(503, role="worker")], [fails(503)], [fails(429)]])
def test_when_nobody_can_be_reached_the_team_says_where_to_turn(shell: Shell, unreached: list[dict[str, Any]]) -> None:
    """The run has failed and says why; the answer on stdout is the team's contact line."""
    got = ran(shell, *unreached)
    assert got.code == 1
    assert "support@example.com" in got.out
    assert "No worker could be reached" in got.complaint
    shown = shell("show", "last", "--json").json
    assert (shown["status"], shown["when_nothing"]) == ("failed", True)
    assert shown["gaps"]


@pytest.mark.parametrize("refused", [[ROUTED, fails(400, role="worker")], [ROUTED, fails(401, role="worker")]])
def test_a_run_that_failed_for_another_reason_has_no_contact_line(shell: Shell, refused: list[dict[str, Any]]) -> None:
    """Who was reached and refused, or was asked with a wrong key, is no case for it."""
    got = ran(shell, *refused)
    assert got.code in (1, 2)
    assert got.out == ""
    assert "when_nothing" not in shell("show", "last", "--json").json
