"""Flags become the front door: a Supervisor with its settings, and one line for each thing a file may not set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chargehand.record.home import default_path
from chargehand.runs.prepared_team import PreparedTeam
from chargehand.settings import Settings, load_settings
from chargehand.team import shipped_teams

if TYPE_CHECKING:
    from chargehand.runs.supervisor import Supervisor


def supervisor(team: str | None, flags: Mapping[str, Any], *, given: bool = True) -> Supervisor:
    """The front door. A team that was not given by a flag, but named in a plan, counts only if it ships."""
    from chargehand.runs.supervisor import Supervisor

    settings, warnings = load_settings(os.environ, Path.cwd(), flags)
    door = Supervisor(_team_that_counts(team, given=given), settings=settings)
    door.warnings = warnings
    return door


def prepared_team(team: str | None, *, given: bool) -> PreparedTeam:
    """The team of the front door, for what checks and does not run."""
    settings, _ = load_settings(os.environ, Path.cwd(), {})
    return PreparedTeam(_team_that_counts(team, given=given), settings=settings)


def _team_that_counts(team: str | None, *, given: bool) -> str | None:
    return team if given or team in shipped_teams() else None


def records() -> Supervisor:
    """The front door to what is on record: it needs the home and no settings, so that none can be in the way."""
    from chargehand.runs.supervisor import Supervisor

    return Supervisor(settings=Settings(home=str(default_path(os.environ).absolute())))
