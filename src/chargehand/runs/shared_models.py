"""Settings -> the clients of their models, shared by the runs under way in this loop, closed with the last of them."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from chargehand.models import ModelClient
from chargehand.models.resolve import Models
from chargehand.runs.session import check_models
from chargehand.settings import Settings
from chargehand.team import Team
from chargehand.values.budget import Budget
from chargehand.values.plan import Plan


class SharedModels:
    """Clients by the settings they are made from. `given` are those that a caller made, by name."""

    def __init__(self, given: Mapping[str, ModelClient]) -> None:
        self._given = given
        # The clients, each with the number of runs that use it.
        self._in_use: dict[str, tuple[Models, int]] = {}

    @asynccontextmanager
    async def use_checked(
        self, settings: Settings, team: Team, budget: Budget, plan: Plan | None
    ) -> AsyncGenerator[Models]:
        """The clients, if every model that may be called can be called. Entered before anything is recorded."""
        async with self.use(settings) as models:
            check_models(models, settings, team, budget, plan)
            yield models

    @asynccontextmanager
    async def use(self, settings: Settings) -> AsyncGenerator[Models]:
        """The clients, shared by all runs under way in this loop and closed with the last of them."""
        name = settings.model_dump_json(include={"providers", "max_concurrent_set"})
        models, users = self._in_use.get(name) or (self._make(settings), 0)
        self._in_use[name] = (models, users + 1)
        try:
            yield models
        finally:
            models, users = self._in_use.pop(name)
            if users > 1:
                self._in_use[name] = (models, users - 1)
            else:
                await models.close()

    def _make(self, settings: Settings) -> Models:
        return Models(settings.providers, os.environ, self._given, wide=settings.max_concurrent_set)
