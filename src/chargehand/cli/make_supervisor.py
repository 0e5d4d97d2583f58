"""Flags become the front door: a Supervisor with its settings, and one line for each thing a file may not set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chargehand.record.home import default_path
from chargehand.runs.supervisor import Supervisor
from chargehand.settings import Settings, load_settings
from chargehand.team import shipped_teams


def supervisor(team: str | None, flags: Mapping[str, Any], *, given: bool = True) -> Supervisor:
    """The front door. A team that was not given by a flag, but named in a plan, counts only if it ships."""
    if not given and team not in dict(shipped_teams()):
        team = None
    settings, warnings = load_settings(os.environ, Path.cwd(), flags)
    door = Supervisor(team, settings=settings)
    door.warnings = warnings
    return door


def records() -> Supervisor:
    """The front door to what is on record: it needs the home and no settings, so that none can be in the way."""
    return Supervisor(settings=Settings(home=str(default_path(os.environ).absolute())))
