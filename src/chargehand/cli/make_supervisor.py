"""Flags -> a Supervisor with its settings; or only the home with its records, or only the team."""

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


def make_supervisor(team: str | None, flags: Mapping[str, Any], *, given: bool = True) -> Supervisor:
    """Reads the settings. A team that is not `given` by a flag, but named in a plan, is used only if it ships."""
    from chargehand.runs.supervisor import Supervisor

    settings, warnings = load_settings(os.environ, Path.cwd(), flags)
    supervisor = Supervisor(_usable_team(team, given=given), settings=settings)
    supervisor.warnings = warnings
    return supervisor


def prepare_team(team: str | None, *, given: bool) -> PreparedTeam:
    """The same team and settings for a command that checks and runs nothing."""
    settings, _ = load_settings(os.environ, Path.cwd(), {})
    return PreparedTeam(_usable_team(team, given=given), settings=settings)


def _usable_team(team: str | None, *, given: bool) -> str | None:
    return team if given or team in shipped_teams() else None


def supervisor_of_records() -> Supervisor:
    """A supervisor for recorded runs. It reads no settings, so that a wrong setting cannot prevent reading a record."""
    from chargehand.runs.supervisor import Supervisor

    return Supervisor(settings=Settings(home=str(default_path(os.environ).absolute())))
