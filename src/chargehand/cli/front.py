"""Flags become the front door: a Supervisor with its settings, and one line for each thing a file may not set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chargehand.home import default_path
from chargehand.settings import Settings, load_settings
from chargehand.supervisor import Supervisor
from chargehand.team import shipped


def supervisor(team: str | None, flags: Mapping[str, Any], *, given: bool = True) -> Supervisor:
    """The front door. A team that was not given by a flag, but named in a plan, counts only if it ships."""
    if not given and team not in dict(shipped()):
        team = None
    settings, warnings = load_settings(os.environ, Path.cwd(), flags)
    door = Supervisor(team, settings=settings)
    door.warnings = warnings
    return door


def by_consent(model: str | None) -> tuple[Settings, list[str]]:
    """Settings without what a bare key in the environment would choose: it is no leave to send code out."""
    from chargehand.models.resolve import built_in

    keys = {provider.key_env for provider in built_in(os.environ).values()}
    env = {name: value for name, value in os.environ.items() if name not in keys}
    return load_settings(env, Path.cwd(), {"model": model})


def records() -> Supervisor:
    """The front door to what is on record: it needs the home and no settings, so that none can be in the way."""
    return Supervisor(settings=Settings(home=str(default_path(os.environ).absolute())))
