"""Tools that reach the network are kept from untrusted team folders, and documents land in the run's own folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.record.home import Home
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.team import load
from chargehand.testing import ScriptedModel
from chargehand.tools import BUILTIN, sql, web
from chargehand.tools import write_document as write
from chargehand.tools.addresses import PORTS


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """A team folder whose worker wants the network."""
    folder = tmp_path / "team"
    (folder / "workers").mkdir(parents=True)
    (folder / "team.toml").write_text('description = "Looks things up"\n')
    front = "---\nname: finder\ndescription: Finds things\ntools: calculate, fetch_page, web_search\n---\nFind it.\n"
    (folder / "workers" / "finder.md").write_text(front)
    return folder


@pytest.mark.parametrize("bare", [False, True])
def test_an_untrusted_folder_gets_no_tool_that_reaches_the_network(folder: Path, tmp_path: Path, bare: bool) -> None:
    """One line says which are left out, where and what to do; trust lets them in."""
    if bare:
        (folder / "team.toml").unlink()
        (folder / "workers").rename(folder / "agents")
    registry = TrustRegistry(str(tmp_path / "home"))
    for trust in (None, registry):
        team = load(folder, trust)
        assert team.worker("finder").tool_names == ("calculate",)
        (warning,) = [problem for problem in team.problems() if problem.code == "untrusted_tool"]
        assert warning.severity == "warning"
        assert re.match(
            r"(agents|workers)/finder\.md:4:\d+: left out, since it reaches the network: fetch_page, web_search; ",
            warning.message,
        )
        assert warning.message.endswith(f"chargehand trust {folder}")
    registry.trust(folder)
    assert load(folder, registry).worker("finder").tool_names == ("calculate", "fetch_page", "web_search")


def test_only_the_network_needs_trust() -> None:
    """What reads the material or writes into the run's folder does not."""
    assert [name for name, each in BUILTIN.items() if each.needs_trust] == ["fetch_page", "web_search"]


def test_a_run_without_material_has_a_folder_for_its_documents(tmp_path: Path) -> None:
    """A worker with write_document leaves a document behind that outlives the run; other runs make no folder."""
    arguments = {"name": "plan.md", "text": "# Plan\n"}
    wrote = {"tool_calls": [{"name": "write_document", "arguments": arguments}]}
    done = {"json": {"summary": "written", "output": "documents/plan.md"}}
    plan = {
        "goal": "g",
        "tasks": [
            {"id": "a", "worker": "writer", "instruction": "Write the plan", "success_criterion": "It is there."}
        ],
    }
    for tools in (["write_document"], []):
        rules = [{"when": {"contains": "in the folder of this run"}, "reply": done}]
        rules += [{"when": {"role": "worker"}, "reply": wrote if tools else done}]
        team = Team([Worker("writer", "Writes", tools=tools)])
        report = Supervisor(team, model=ScriptedModel(rules), home=tmp_path).run_sync(plan=plan)
        assert report.status == "complete", report
        own = tmp_path / "runs" / report.run
        assert own.exists() == bool(tools)
        if tools:
            assert (own / "documents" / "plan.md").read_text() == "# Plan\n"
            assert Home(tmp_path).folder(report.run) == own


def test_the_reference_names_every_shipped_tool() -> None:
    """With each parameter and each limit as the code has it."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "tools.md").read_text()
    for name, each in BUILTIN.items():
        assert f"`{name}`" in page
        if f"## {name}(" in page:
            heading = page.split(f"## {name}(")[1].split(")")[0]
            assert [part.split("=")[0].strip() for part in heading.split(",")] == list(each.parameters["properties"])
    assert all(f"`{ending}`" in page for ending in write.ENDINGS)
    assert "ports 80, 443, 8080 and 8443" in page
    assert (sorted(PORTS), sql.SECONDS, sql.MAX_ROWS, web.SECONDS) == ([80, 443, 8080, 8443], 30, 200, 20)


def test_a_team_says_at_once_that_its_queries_need_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker is not offered the tool, instead of calling it until all steps are used."""
    monkeypatch.setattr("chargehand.tools.sql.find_spec", lambda _: None)
    team = load("portfolio")
    assert "query_data" not in {tool.name for tool in team.worker("valuer").offered}
    [problem] = [problem for problem in team.problems() if problem.code == "tool_not_offered"]
    assert "pip install 'chargehand[data]'" in problem.message
