"""`teams` lists the teams that ship and those in this folder; `teams show` shows one, `teams new` writes one."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chargehand.cli.shared_options import Command, screen, verbosity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chargehand.cli.screen import Screen
    from chargehand.record.trusted_folders import TrustRegistry


@click.group(invoke_without_command=True, params=[*verbosity()])
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON document.")
@click.pass_context
def teams(ctx: click.Context, as_json: bool) -> None:
    """List the teams that ship with chargehand and those in this folder, with their workers; -q leaves these out."""
    if ctx.invoked_subcommand is not None:
        return
    from chargehand.team import shipped_teams
    from chargehand.team.team_summary import describe_team, team_folders

    trust = _trust()
    found = [describe_team(name, "shipped", trust) for name in shipped_teams()]
    found += [describe_team(str(folder), "folder", trust) for folder in team_folders(Path())]
    out = screen()
    if as_json:
        out.document({"teams": found})
        return
    width = max(len(worker["name"]) for team in found for worker in team["workers"] or [{"name": ""}])
    for team in found:
        _put(team, out, width, workers=not out.quiet)


def _put(team: Mapping[str, Any], out: Screen, width: int = 0, *, workers: bool = True) -> None:
    """A line for the team and, with `workers`, one for each of them; names are padded to `width`, or to the longest."""
    from chargehand.cli.screen import fit

    width = width or max((len(worker["name"]) for worker in team["workers"]), default=0)

    def put(text: str, below: int) -> None:
        # Secrets are removed before a line is broken.
        out.put(fit(out.redactor.text(text), sys.stdout, below))

    name, ref, source = team["name"], team["ref"], team["source"]
    head = f"{ref}  ({source})" if name in (ref, None) else f"{name}  ({source} {ref})"
    put(f"{head}  {team['description']}".rstrip(), 2)
    for worker in team["workers"] if workers else ():
        held = [*worker["tools"], *(["the web with --web"] if worker.get("web") else [])]
        tools = f"  [{', '.join(held)}]" if held else ""
        put(f"    {worker['name']:<{width}}  {worker['description']}{tools}", width + 6)
    for problem in team["problems"]:
        put("\n".join(f"    {line}" for line in problem.splitlines()), 6)


@teams.command(cls=Command)
@click.argument("name", metavar="TEAM")
@click.option("--json", "as_json", is_flag=True, help="Print it as one JSON document.")
def show(name: str, as_json: bool) -> None:
    """Show TEAM, a shipped team or a folder: its workers, where its files are, and the commands to try it.

    A shipped team has sample material and a script, so that you can try it without a key. Copy the material from the
    folder shown to change it.
    """
    from chargehand.errors import InvalidTeam
    from chargehand.team import folder_of, shipped_teams
    from chargehand.team.team_summary import describe_team

    is_shipped = name in shipped_teams()
    team = describe_team(name, "shipped" if is_shipped else "folder", _trust())
    if team["name"] is None:
        raise InvalidTeam("\n".join(team["problems"]))
    places = _places(folder_of(name).absolute())
    commands = _commands(name, places)
    out = screen()
    if as_json:
        out.document(team | places | {"try": [shlex.join(command) for command in commands]})
        return
    _put(team, out)
    for what in ("folder", "material", "script"):
        if places[what] is not None:
            out.put(f"{what:<10}{places[what]}")
    for command in commands:
        out.put(f"Try it: {shlex.join(command)}")


def _places(folder: Path) -> dict[str, str | None]:
    """Where the team, its sample material and its script are."""
    from chargehand.settings import SCRIPT

    there = {"material": folder / "examples" / "material", "script": folder / SCRIPT}
    return {"folder": str(folder)} | {what: str(path) if path.exists() else None for what, path in there.items()}


def _commands(name: str, places: Mapping[str, str | None]) -> list[list[str]]:
    """The first whole run of its evaluation, and the evaluation, both on its script; or the command that uses it."""
    from chargehand.cli import COMMANDS

    if name in COMMANDS:
        return [["chargehand", name, "--help"]]
    cases = _run_cases(Path(str(places["folder"])))
    if not cases or places["script"] is None:
        return []
    given = [part for each in cases[0].get("with", ()) for part in ("--with", f"{places['folder']}/{each}")]
    run = ["chargehand", "run", str(cases[0]["request"]), "--team", name, *given, "--model", "scripted"]
    return [run, ["chargehand", "eval", name, "--model", "scripted"]]


def _run_cases(folder: Path) -> list[dict[str, Any]]:
    """The cases for the whole team. Invalid cases are left out, because `eval` reports them."""
    import json
    from contextlib import suppress

    found: list[dict[str, Any]] = []
    for file in sorted(folder.glob("evals/*.jsonl")):
        with suppress(OSError, ValueError):
            cases = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
            found += [case for case in cases if isinstance(case, dict) and {"request", "expect"} <= case.keys()]
    return [case for case in found if case.get("kind") == "run"]


@teams.command(cls=Command)
@click.argument("name")
def new(name: str) -> None:
    """Write a new team to the folder NAME: workers, a tool, material, a test, an eval and a script to try it.

    The folder is trusted from then on, so that its tools.py is loaded: it holds what chargehand wrote, and what you
    change. `chargehand trust NAME --remove` takes that back.
    """
    from chargehand.team.scaffold import MATERIAL, REQUEST, new_team

    out = screen()
    for path in new_team(Path(name)):
        out.put(str(path))
    trusted = _trust().trust(name)
    out.say(f"{trusted} is trusted: its tools.py is loaded.")
    material = f"{name}/{MATERIAL}"
    commands = [
        ["chargehand", "run", REQUEST, "--team", name, "--with", material, "--model", "scripted"],
        ["chargehand", "eval", name, "--model", "scripted"],
        ["pytest", name],
    ]
    out.say("Try it:")
    for command in commands:
        out.say(f"  {shlex.join(command)}")


def _trust() -> TrustRegistry:
    from chargehand.record.home import default_path
    from chargehand.record.trusted_folders import TrustRegistry

    return TrustRegistry(str(default_path(os.environ).absolute()))
