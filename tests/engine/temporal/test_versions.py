"""A run beside workers with other code of chargehand: it continues on the code that it began with."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import chargehand
from chargehand.cli.make_supervisor import make_supervisor
from chargehand.runs.temporal.client import follow_run
from chargehand.runs.temporal.stored_run import team_queue
from tests.engine.temporal.fleet import Server
from tests.engine.temporal.test_orders_on_temporal import under_way
from tests.flows import Flow, by_task, task, tasks, works
from tests.pace import PATIENCE_S

pytestmark = pytest.mark.xdist_group("temporal")
FILES = {
    "script.json": '{"replies": []}\n',
    "team.toml": 'name = "office"\ndescription = "Does office work."\n',
    "workers/clerk.md": "---\nname: clerk\ndescription: Does clerical work\ntools: []\n---\nYou are a clerk.\n",
    "workers/boss.md": "---\nname: boss\ndescription: Decides\nkind: human\n---\nDecide.\n",
}
DECIDES = "        own = worker in self._start.workers\n"


def make_team(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def change_workflow(folder: Path) -> Path:
    """A copy of chargehand whose workflow waits a second before each step: it cannot replay a history of ours."""
    copy = folder / "chargehand"
    shutil.copytree(Path(chargehand.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    code = copy / "runs" / "temporal" / "run_workflow.py"
    text = code.read_text(encoding="utf-8")
    assert text.count(DECIDES) == 1
    code.write_text(text.replace(DECIDES, f"        await asyncio.sleep(1)\n{DECIDES}"), encoding="utf-8")
    return folder


@contextmanager
def worker_of(packages: Path, home: Path, team: Path) -> Generator[str]:
    """The queue that a worker process with another chargehand polls."""
    worker = subprocess.Popen(
        [sys.executable, "-m", "chargehand", "worker", "--team", str(team)],
        env={**os.environ, "PYTHONPATH": str(packages), "CHARGEHAND_HOME": str(home), "CHARGEHAND_MODEL": "scripted"},
        cwd=packages, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert worker.stderr is not None
    try:
        said = list[str]()
        for line in worker.stderr:
            said.append(line)
            if "worker of " in line:
                break
        yield next((line.split()[2] for line in said if "worker of " in line), "".join(said))
    finally:
        worker.kill()
        worker.wait()
        worker.stderr.close()


def test_a_worker_with_a_changed_workflow_leaves_a_run_alone(server: Server, tmp_path: Path) -> None:
    """The run says that it waits for a worker, and is complete once one with its own code is back."""
    folder = make_team(tmp_path / "team")
    packages = change_workflow(tmp_path / "packages")
    team = make_supervisor(str(folder), {"model": "scripted:medium"}).team
    plan = tasks(task("a"), task("b", "a", worker="boss"), task("c", "b"))
    flow = Flow(works, plan, team, {"ask": True}, seconds=0.01)

    async def work() -> None:
        async with under_way(server, tmp_path, flow) as run:
            assert (await run.fleet.report(run.run)).status == "waiting"
        config = f'[temporal]\naddress = "{server.address}"\nblobs = "{run.fleet.store.url}"\n'
        (run.home / "config.toml").write_text(config, encoding="utf-8")
        with worker_of(packages, run.home, folder) as other:
            assert (other.partition("@")[0], other == team_queue(team)) == ("ch.office", False), other
            said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            following = asyncio.ensure_future(
                follow_run(run.fleet.client, run.fleet.store, run.run, say=said.set_result)
            )
            assert team_queue(team) in await asyncio.wait_for(said, PATIENCE_S)
            async with run.fleet.working():
                assert (await asyncio.wait_for(following, PATIENCE_S)).status == "waiting"
                answered = await run.command("answer", "b", "Yes, do it.")
                assert answered.code == 0, answered
                report = await run.fleet.report(run.run)
        assert report.status == "complete"
        assert by_task(report)["b"].output == "Yes, do it."

    asyncio.run(work())


def test_the_same_code_at_another_place_has_the_same_queue(tmp_path: Path) -> None:
    """Machines that installed the same chargehand work on the same runs, wherever they keep it and the team."""
    folder = make_team(tmp_path / "team")
    copy = shutil.copytree(
        Path(chargehand.__file__).parent, tmp_path / "copy" / "chargehand", ignore=shutil.ignore_patterns("__pycache__")
    )
    program = (
        "import sys, chargehand\n"
        "from chargehand.cli.make_supervisor import make_supervisor\n"
        "from chargehand.runs.temporal.stored_run import team_queue\n"
        "print(chargehand.__file__, team_queue(make_supervisor(sys.argv[1], {}).team))\n"
    )
    elsewhere = shutil.copytree(folder, tmp_path / "other-team")
    done = subprocess.run(
        [sys.executable, "-c", program, str(elsewhere)],
        env={**os.environ, "PYTHONPATH": str(copy.parent)},
        check=True, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    file, queue = done.stdout.split()
    assert Path(file).parent == copy
    assert queue == team_queue(make_supervisor(str(folder), {}).team)
