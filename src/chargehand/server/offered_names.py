"""Names that callers may give: teams and models, never paths. From `[serve]` in the settings, with defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chargehand.record.trusted_folders import TrustRegistry
from chargehand.server.refusals import Refusal
from chargehand.settings import NO_MODEL_TO_SERVE, Settings
from chargehand.team import shipped_teams
from chargehand.team.team_summary import describe_team, team_folders


class Offered:
    """The teams and models of one server. Folders are read when a name is looked up: trust may be given later."""

    def __init__(self, settings: Settings, trust: TrustRegistry) -> None:
        self._settings = settings
        self._trust = trust

    @property
    def models(self) -> tuple[str, ...]:
        """The models in `[serve] models`, else the configured ones."""
        return self._settings.serve.models or tuple(sorted(self._settings.named_models))

    def model(self, name: str | None) -> str | None:
        if name is not None and name not in self.models:
            offered = (
                f"Offered: {', '.join(self.models)}."
                if self.models
                else f"This server offers none. {NO_MODEL_TO_SERVE}"
            )
            raise Refusal(422, f"The model {name[:100]!r} is not offered here. {offered}")
        return name

    def team(self, name: str | None) -> str | None:
        """How to load the team offered under this name; None for the configured team."""
        if name is None:
            return None
        teams = self.teams()
        if name not in teams:
            raise Refusal(422, f"The team {name[:100]!r} is not offered here. Offered: {', '.join(teams)}.")
        return teams[name]

    def teams(self) -> dict[str, str]:
        """Name -> how to load it: the teams that ship and those in trusted folders, or those in `[serve] teams`."""
        found = {name: name for name in shipped_teams()}
        for folder in self._trust.directories():
            for team in team_folders(Path(folder)):
                found.setdefault(team.name, str(team))
        listed = self._settings.serve.teams
        return {name: ref for name, ref in found.items() if not listed or name in listed}

    def describe_teams(self) -> list[dict[str, Any]]:
        shipped = shipped_teams()
        return [
            describe_team(ref, "shipped" if name in shipped else "folder", self._trust) | {"ref": name}
            for name, ref in self.teams().items()
        ]
