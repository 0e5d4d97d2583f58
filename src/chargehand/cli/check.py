"""`check`: a plan file or a team folder becomes the list of everything wrong with it, by file and line."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chargehand.cli.shared_options import Command, screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chargehand.runs.prepared_team import PreparedTeam
    from chargehand.team import Team
    from chargehand.text.plan_json import Reading
    from chargehand.values.plan import Problem

MOST = 200


@click.command(cls=Command)
@click.argument("path", metavar="FILE_OR_DIR")
@click.option("--team", metavar="TEAM", help="The team a plan is for. [default: the plan's own, else general]")
@click.option("--json", "as_json", is_flag=True, help="Print {ok, problems} as one JSON document.")
def check(path: str, team: str | None, as_json: bool) -> int:
    """Find everything wrong with a plan file, or with a team folder and its evals, at once. No model is called.

    Exit code 0 without errors, also with warnings; 2 with errors.
    """
    from chargehand.cli.screen import fit, terminal_columns
    from chargehand.errors import UsageError
    from chargehand.values.plan import errors_in

    if path != "-" and not os.path.exists(path):
        raise UsageError(f"There is no file or folder {path}: name a file with a plan or a team folder.")
    if path.endswith(".toml") and Path(path).name != "team.toml":
        raise UsageError(f"{path} is not a plan or a team. Settings are checked by chargehand doctor, in their folder.")
    is_team = os.path.isdir(path) or Path(path).name == "team.toml"
    problems, web = _of_team(path) if is_team else (_of_plan(path, team), ())
    ok = not errors_in(problems)
    out = screen()
    if as_json:
        out.document({"ok": ok, "problems": [problem.to_json() for problem in problems]})
        return 0 if ok else 2
    for problem in problems[:MOST]:
        # Secrets are removed before a line is broken.
        said = fit(out.redactor.text(f"{problem.severity}: {problem.message}"), sys.stdout, below=2)
        # A command at the end of the message is one line: the code does not make it longer than the terminal.
        room = terminal_columns() - len(said.rpartition("\n")[2])
        is_below = sys.stdout.isatty() and len(problem.code) + 3 > room
        between = "\n  " if is_below else " "
        out.put(f"{said}{between}[{problem.code}]")
    if len(problems) > MOST:
        out.put(f"and {len(problems) - MOST:,} more; --json lists all")
    if web:
        out.put(f"note: with --web, {', '.join(web)} may use the web")
    errors = len(errors_in(problems))
    out.put(
        f"{path}: {'ok' if ok else 'not ok'}, {_count(errors, 'error')}, {_count(len(problems) - errors, 'warning')}"
    )
    return 0 if ok else 2


def _of_team(path: str) -> tuple[list[Problem], tuple[str, ...]]:
    """The problems of a team, and its workers that may use the web with --web."""
    from chargehand.errors import InvalidTeam
    from chargehand.record.home import default_path
    from chargehand.record.trusted_folders import TrustRegistry
    from chargehand.team import load
    from chargehand.values.plan import Problem

    folder = Path(path).absolute()
    try:
        team = load(folder, TrustRegistry(str(default_path(os.environ).absolute())))
        evals = _of_evals(folder if folder.is_dir() else folder.parent, team)
        return [*team.problems(), *evals], team.web_workers
    except InvalidTeam as error:
        problems = [
            found if isinstance(found, Problem) else Problem(code="invalid_team", message=str(found))
            for found in error.problems or (str(error),)
        ]
        return problems, ()


def _of_evals(folder: Path, team: Team) -> Sequence[Problem]:
    from chargehand.evaluation import InvalidSuite, files_of, read_suite

    if not any(folder.glob("evals/*.jsonl")):
        return ()
    try:
        read_suite(team.name, files_of(folder), {team.name: team}, folder)
    except InvalidSuite as error:
        return error.problems
    return ()


def _of_plan(path: str, team: str | None) -> list[Problem]:
    from chargehand.cli import read_inputs as inputs
    from chargehand.cli.make_supervisor import prepare_team
    from chargehand.text.plan_json import read

    data = inputs.read_bytes(path, "a plan")
    reading = read(inputs.parse_plan(data, path))
    prepared = prepare_team(team or reading.plan.team, given=team is not None)
    return inputs.place_problems(_find_problems(reading, prepared), data, path)


def _find_problems(reading: Reading, prepared: PreparedTeam) -> list[Problem]:
    settings = prepared.team_settings()
    return reading.problems(
        prepared.team.assignable,
        max_tasks=settings.max_tasks,
        budget_tokens=settings.budget.tokens,
        factory=prepared.team.factory,
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
