"""Flags become the front door: a Supervisor with its settings, and one line for each thing a file may not set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chargehand.record.home import default_path
from chargehand.record.trust import TrustRegistry
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


def by_consent(model: str | None) -> tuple[Settings, list[str]]:
    """Settings without what nobody agreed to: a key in the environment, or a file of the tree, unless it is trusted.

    A flag, the environment, and the settings in the home always count.
    """
    from chargehand.models.resolve import built_in

    keys = {provider.key_env for provider in built_in(os.environ).values()}
    env = {name: value for name, value in os.environ.items() if name not in keys}
    here = Path.cwd()
    settings, warnings = load_settings(env, here, {"model": model})
    if model or env.get("CHARGEHAND_MODEL"):
        return settings, warnings
    own, _ = load_settings(env, Path(here.anchor), {})
    models = {"tiers": own.tiers, "roles": own.roles, "model": own.model}
    same = all(getattr(settings, name) == value for name, value in models.items())
    if same or (folder := _untrusted_folder(here, TrustRegistry(settings.home))) is None:
        return settings, warnings
    said = f"{folder}: ignored, the models its settings name would be sent code; to allow it: chargehand trust {folder}"
    return settings.model_copy(update=models), [*warnings, said]


def _untrusted_folder(here: Path, trust: TrustRegistry) -> Path | None:
    """The nearest folder whose settings count here and which nobody has trusted."""
    chain = (here, *here.parents)
    top = next((number for number, folder in enumerate(chain) if (folder / ".git").exists()), 0)
    for folder in chain[: top + 1]:
        for name in ("chargehand.toml", "pyproject.toml"):
            if (file := folder / name).is_file() and not (trust.is_trusted(folder) and trust.is_trusted(file)):
                return folder
    return None


def records() -> Supervisor:
    """The front door to what is on record: it needs the home and no settings, so that none can be in the way."""
    return Supervisor(settings=Settings(home=str(default_path(os.environ).absolute())))
