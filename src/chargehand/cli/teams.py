"""`teams`: the teams that ship and those in this folder, and `teams new`, which begins one."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chargehand.cli.command import Command, screen, verbosity

if TYPE_CHECKING:
    from chargehand.team import Team

# Where a project keeps teams: folders with a team.toml, and agent files.
TEAM_FILES = ("team.toml", "*/team.toml", "teams/*/team.toml")
AGENT_FOLDERS = (".claude/agents",)


@click.group(invoke_without_command=True, params=[*verbosity()])
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON document.")
@click.pass_context
def teams(ctx: click.Context, as_json: bool) -> None:
    """List the teams that ship with chargehand and those in this folder, with their workers."""
    if ctx.invoked_subcommand is not None:
        return
    from chargehand.team import shipped

    found = [_team(name, "shipped") for name, _ in shipped()]
    found += [_team(str(folder), "folder") for folder in _folders(Path())]
    out = screen()
    if as_json:
        out.document({"teams": found})
        return
    for team in found:
        out.put(f"{team['ref']}  ({team['source']})  {team['description']}")
        for worker in team["workers"]:
            held = [*worker["tools"], *(["the web with --web"] if worker.get("web") else [])]
            tools = f"  [{', '.join(held)}]" if held else ""
            out.put(f"    {worker['name']:<14}{worker['description']}{tools}")
        for problem in team["problems"]:
            out.put(f"    {problem}")


@teams.command(cls=Command)
@click.argument("name")
def new(name: str) -> None:
    """Write a new team to the folder NAME: two workers, an example, an eval and a script to run it without a key."""
    from chargehand.team.scaffold import REQUEST, new_team

    out = screen()
    for path in new_team(Path(name)):
        out.put(str(path))
    team, script = shlex.quote(name), shlex.quote(f"scripted:{name}/script.json")
    out.say(f'Try it: chargehand run "{REQUEST}" --team {team} --model {script}')


def _folders(root: Path) -> list[Path]:
    listed = {file.parent for pattern in TEAM_FILES for file in root.glob(pattern)}
    listed |= {root / name for name in AGENT_FOLDERS if any((root / name).glob("*.md"))}
    return sorted(listed)


def _team(ref: str, source: str) -> dict[str, Any]:
    from chargehand.errors import InvalidTeam
    from chargehand.home import default_path
    from chargehand.team import load
    from chargehand.trust import TrustRegistry

    try:
        team: Team = load(
            ref if source == "shipped" else Path(ref), TrustRegistry(str(default_path(os.environ).absolute()))
        )
    except InvalidTeam as error:
        problems = [str(error)]
        return {"ref": ref, "source": source, "name": None, "description": "", "workers": [], "problems": problems}
    workers = [
        {
            "name": worker.name,
            "description": worker.description,
            "tools": list(worker.tool_names),
            "kind": worker.kind,
            **({"team": worker.team.name} if worker.team else {}),
            **({"pool": worker.pool} if worker.pool else {}),
            **({"web": True} if worker.web else {}),
        }
        for worker in team.workers
    ]
    return {
        "ref": ref,
        "source": source,
        "name": team.name,
        "description": team.description,
        "workers": workers,
        "problems": [problem.message for problem in team.problems()],
    }
