"""The home of runs is hidden from tools: no worker reads the record of a run, or sends an order to one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.errors import ToolError
from chargehand.record.home import Home
from chargehand.testing import ScriptedModel, run_virtual
from chargehand.tools import BUILTIN, ToolContext, call
from chargehand.tools import material_files as material
from chargehand.values.order import new_order
from chargehand.values.request import Material


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    """The user's own folder as material, with the home of runs in it."""
    home = tmp_path / ".chargehand"
    (home / "runs" / "r" / "orders").mkdir(parents=True)
    (home / "runs" / "r.sqlite").write_text("record")
    (home / "runs" / "r" / "stdin.txt").write_text("given")
    (home / "server.token").write_text("token")
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "way").symlink_to(home)
    (tmp_path / "file").symlink_to(home / "server.token")
    given = (
        Material(name="mine", path=str(tmp_path)),
        Material(name="home", path=str(home)),
        Material(name="stdin.txt", path=str(home / "runs" / "r" / "stdin.txt")),
    )
    return ToolContext(material=given, folder=home / "runs" / "r", hidden=home)


def test_files_of_the_home_are_not_listed(context: ToolContext) -> None:
    """Neither directly nor through a link; what a run was given in its own folder is."""
    assert material.files("**/*", "mine", context).names == ("mine/notes.txt",)
    assert material.files("**/*", "stdin.txt", context).names == ("stdin.txt",)
    with pytest.raises(ToolError) as refused:
        material.files("**/*", "home", context)
    assert refused.value.code == "not_allowed"


@pytest.mark.parametrize(
    "path",
    ["mine/.chargehand/server.token", "mine/.chargehand/runs/r.sqlite", "mine/way/server.token", "mine/file", "home"],
)
def test_files_of_the_home_are_not_read(path: str, context: ToolContext) -> None:
    """Whatever way leads there."""
    with pytest.raises(ToolError) as refused:
        material.read(material.locate(path, context))
    assert refused.value.code == "not_allowed"


def test_what_a_run_was_given_in_its_own_folder_is_read(context: ToolContext) -> None:
    """Standard input, and files that came over HTTP."""
    assert material.read(material.locate("stdin.txt", context)) == b"given"


@pytest.mark.parametrize("name", ["../orders/{}.json", "orders/{}.json", "/orders/{}.json", "..\\orders\\{}.json"])
def test_a_document_is_not_an_order(name: str, context: ToolContext) -> None:
    """No name of a document leads to the mailbox of the run, and its own folder is not read as one."""
    order = new_order("answer", question="plan", text="approve")
    assert context.folder is not None
    for path, ok in ((name.format(order.id), False), (f"{order.id}.json", True)):
        arguments = {"name": path, "text": order.model_dump_json()}
        assert asyncio.run(call(BUILTIN["write_document"], arguments, context)).ok is ok
    assert Home(context.folder.parent.parent).orders("r").pending() == []


def test_workers_of_a_run_do_not_see_its_home(tmp_path: Path) -> None:
    """With the folder around it as material."""
    reads = {"tool_calls": [{"name": "read_file", "arguments": {"path": f"{tmp_path.name}/home/runs"}}]}
    done: dict[str, Any] = {"json": {"summary": "Done.", "output": "It was refused.", "confidence": 90}}
    says = ScriptedModel(
        [
            {"when": {"role": "worker", "contains": "do not see"}, "reply": done},
            {"when": {"role": "worker"}, "reply": reads, "times": 1},
        ]
    )
    team = Team([Worker("clerk", "Reads", tools=[BUILTIN["read_file"]])])
    task = {"id": "t1", "worker": "clerk", "instruction": "Read the index.", "success_criterion": "It is read."}
    plan = {"goal": "Read", "tasks": [task]}
    door = Supervisor(team, model=says, home=tmp_path / "home")
    report = run_virtual(door.run("Read", plan=plan, material=[tmp_path]))[0]
    assert report.outcomes[0].summary == "Done."
