"""A candidate: a team with its models, or one plain call. Its fingerprint covers all that could change an answer."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chargehand import __version__
from chargehand.models.resolve import Models
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.runs.roster import supervisor_model
from chargehand.runs.single_call import single_team
from chargehand.settings import ModelChoice, Settings
from chargehand.team import Team
from chargehand.values.plan import Tier
from chargehand.values.role import Role

SCRIPTED = "scripted:"
PLAIN_CALL = "one plain call"


@dataclass(frozen=True, slots=True)
class Candidate:
    """`settings` include those of the team. `scorer` is the model that checks rubrics; None for its own."""

    name: str
    team: Team
    team_ref: str
    settings: Settings
    scorer: str | None = None
    # One plain call instead of the team: only whole runs are tried with it.
    is_plain: bool = False

    @property
    def model(self) -> str | None:
        return self.settings.model

    def models(self) -> Models:
        """Clients for one case, so that every case starts its script at the beginning."""
        return Models(self.settings.providers, os.environ, wide=self.settings.max_concurrent_set)

    def role_model(self, models: Models, role: Role, tier: Tier | None = None) -> SupervisorModel:
        return supervisor_model(self.settings.model_for(role, tier), models)

    def scorer_model(self, models: Models) -> SupervisorModel:
        """The model that checks rubrics: its own scorer of the large tier unless one is named."""
        choice = self.settings.model_for("scorer", "large") if self.scorer is None else ModelChoice(model=self.scorer)
        return supervisor_model(choice, models)

    @property
    def fingerprint(self) -> str:
        what = {
            "version": __version__,
            "team": self.team.to_json(),
            "settings": self.settings.model_dump(mode="json", exclude={"home", "team", "pinned"}),
            "scorer": self.scorer,
            "scripts": [_script(name) for name in sorted(self._scripts())],
        }
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def is_scripted(self) -> bool:
        return bool(self._scripts())

    def _scripts(self) -> set[str]:
        settings = self.settings
        names = {settings.model, self.scorer, *settings.tiers.values(), *(r.model for r in settings.roles.values())}
        names |= {worker.model for worker in self.team.workers}
        return {name.removeprefix(SCRIPTED) for name in names if name is not None and name.startswith(SCRIPTED)}


def plain_calls(candidates: Sequence[Candidate]) -> list[Candidate]:
    """One plain call with the model of each candidate, each model once, as the minimum that a team has to beat."""
    by_model = {each.settings.model: each for each in reversed(candidates)}
    several = len(by_model) > 1
    return [
        replace(
            each,
            name=f"{PLAIN_CALL} · {model or 'configured models'}" if several else PLAIN_CALL,
            team=single_team(),
            is_plain=True,
        )
        for model, each in reversed(by_model.items())
    ]


def _script(name: str) -> str:
    path = Path(name)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
