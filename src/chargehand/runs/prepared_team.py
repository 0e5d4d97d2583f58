"""A team's name or folder -> the loaded team with its settings and its home: enough to check a plan."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from chargehand.errors import UsageError
from chargehand.models import MADE_IN_PYTHON
from chargehand.record.home import Home
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.runs.check_arguments import check_arguments
from chargehand.settings import OF_TEAM, SCRIPT, Settings, check_model_name, found_from, load_settings
from chargehand.team import Team, folder_of, load

if TYPE_CHECKING:
    from chargehand.models import ModelClient
    from chargehand.runs.temporal.all_runs import AllRuns


class PreparedTeam:
    """A team with its settings, and the home its runs are recorded in.

    `model` is `provider:name`, or a client of your own such as a ScriptedModel. Settings come from the environment and
    the files `chargehand` reads, unless given.
    """

    def __init__(
        self,
        team: Team | str | Path | None = None,
        *,
        model: str | ModelClient | None = None,
        home: str | Path | None = None,
        settings: Settings | None = None,
    ) -> None:
        check_arguments(locals())
        # Whether the caller chose them: a run that continues has its own.
        self._gave_team, self._gave_model = team is not None, model is not None
        self._clients: dict[str, ModelClient] = {}
        if model is not None and not isinstance(model, str):
            self._clients[MADE_IN_PYTHON.partition(":")[2]] = model
            model = MADE_IN_PYTHON
        self.warnings: list[str] = []
        if settings is None:
            settings, self.warnings = load_settings(os.environ, Path.cwd(), {"model": model})
        elif model is not None:
            check_model_name(model, settings.providers)
        if model is not None:
            model = model if self._clients else found_from(model, Path.cwd())
            settings = settings.model_copy(update={"model": model})
        own = settings.home
        if home is not None:
            settings = settings.model_copy(update={"home": str(Path(home).expanduser().absolute())})
        self.settings = settings
        self.home = Home(Path(settings.home))
        self._all_runs: AllRuns | None = None
        # Where runs are recorded does not decide what is trusted: the trust in the home of the settings counts too.
        self.trust = TrustRegistry(settings.home, None if own == settings.home else own)
        self._given: Team | str | Path | None = team
        # Whether nobody chose a team, neither here nor in a file.
        self.is_default_team = team is None and settings.team == "general"
        self.team_ref: str | None = None if isinstance(team, Team) else team_reference(team or settings.team)
        if team is not None:
            self._check_models_of(self.team)

    def __repr__(self) -> str:
        """Reads no file: the team of a folder or a name is not loaded for it."""
        team = repr(self._given) if isinstance(self._given, Team) else f"team {self.team_ref!r}"
        return (
            f"<{type(self).__name__} with {team}, {self.settings.model or 'default models'}, runs in {self.home.path}>"
        )

    def _check_models_of(self, team: Team) -> None:
        """UsageError for a worker whose model is of no known provider."""
        for worker in team.workers:
            if worker.model is not None:
                check_model_name(worker.model, self.settings.providers, f"The model of the worker {worker.name}")

    @property
    def source(self) -> Home | AllRuns:
        """The runs on record, to be read: those of the home, and where there are any, those on Temporal."""
        if self._all_runs is None:
            if self.settings.temporal.blobs is None and not (self.home.path / "temporal").is_dir():
                return self.home
            from chargehand.runs.temporal.all_runs import AllRuns  # few homes have such runs

            self._all_runs = AllRuns(self.home)
        return self._all_runs

    def find_run(self, run: str) -> str:
        """The whole id of a run on record; RunNotFound when there is none."""
        check_arguments({"run": run})
        return self.source.find(run)

    @property
    def remote_runs(self) -> list[str]:
        """The runs on Temporal that this home knows."""
        source = self.source
        return [] if isinstance(source, Home) else source.remote()

    @property
    def team(self) -> Team:
        """The team, loaded at first use."""
        if not isinstance(self._given, Team):
            self._given = load(self.team_ref or "general", self.trust, self.settings.mcp)
        return self._given

    def team_settings(self) -> Settings:
        """The settings with the team's limits, budget and models instead of those in files, and with its script."""
        settings = self.settings.for_team(self.team.models, self.team.budget, self.team.limits)
        return settings.with_script(self.script()) if OF_TEAM in settings.named_models else settings

    def script(self) -> str:
        """The path of the team's script, which `scripted` without a file plays."""
        if self.team_ref is None:
            raise UsageError(
                f"The model is {OF_TEAM!r}, but a team made in Python has no script: give a ScriptedModel."
            )
        script = folder_of(self.team_ref).absolute() / SCRIPT
        if not script.is_file():
            raise UsageError(
                f"The model is {OF_TEAM!r}, but the team {self.team.name!r} has no script: there is no {script}. "
                "Name a script with scripted:FILE, or another model."
            )
        return str(script)


def team_reference(team: str | Path) -> str:
    """How to load a team again: a shipped name, or the path of a folder that works from everywhere."""
    return str(Path(team).absolute()) if os.path.isdir(team) else str(team)
