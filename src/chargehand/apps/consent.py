"""A supervisor for an app that sends code to models: its settings leave out models that the user has not agreed to."""

from __future__ import annotations

import os
from pathlib import Path

from chargehand.models import ModelClient
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.runs.supervisor import Supervisor
from chargehand.settings import Settings, load_settings


def make_supervisor(
    team: str, model: str | ModelClient | None, home: str | Path | None = None, settings: Settings | None = None
) -> Supervisor:
    """A supervisor for the shipped team. Given `settings` are used unchanged; otherwise a model needs consent."""
    if settings is not None:
        return Supervisor(team, model=model, home=home, settings=settings)
    named = model if isinstance(model, str) else None
    settings, warnings = _load_consented_settings(named)
    door = Supervisor(team, model=None if named else model, home=home, settings=settings)
    door.warnings = warnings
    return door


def _load_consented_settings(model: str | None) -> tuple[Settings, list[str]]:
    """The settings without keys from the environment and without untrusted files of the tree, and the warnings.

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
    """The nearest untrusted folder whose settings apply here."""
    chain = (here, *here.parents)
    top = next((number for number, folder in enumerate(chain) if (folder / ".git").exists()), 0)
    for folder in chain[: top + 1]:
        for name in ("chargehand.toml", "pyproject.toml"):
            if (file := folder / name).is_file() and not (trust.is_trusted(folder) and trust.is_trusted(file)):
                return folder
    return None
