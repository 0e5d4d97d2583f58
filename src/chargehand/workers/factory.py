"""Workers a plan defines -> agents, made from the tools and tiers their team allows and from nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from chargehand.errors import InvalidPlan
from chargehand.values.plain_class import with_changes
from chargehand.values.plan import TIERS, Problem, Tier, WorkerSpec
from chargehand.workers.agent import Agent
from chargehand.workers.refuse_or_call_tool import AgentTool


class WorkerFactory(NamedTuple):
    """One per run. A tool that is not in `tools` cannot be given to anybody: the factory has no other way to one."""

    # None is a tool that is allowed but does not work here: its worker does without it.
    tools: Mapping[str, AgentTool | None]
    # In rising order, at least one.
    tiers: tuple[Tier, ...]
    # What all agents have in common: models by tier, options, steps, patience.
    blank: Agent

    def make_agents(self, specs: Sequence[WorkerSpec]) -> dict[str, Agent]:
        """An agent for each of them, by name."""
        return {spec.name: self._make_agent(spec) for spec in specs}

    def _make_agent(self, spec: WorkerSpec) -> Agent:
        if forbidden := [name for name in spec.tools if name not in self.tools]:
            message = f"The worker {spec.name!r} may not have {', '.join(forbidden)}: its team does not allow it."
            raise InvalidPlan(message, [Problem(code="forbidden_tool", message=message)])
        tier = self._allowed_tier(spec.tier or self.blank.tier)
        models: dict[Tier | None, str] = {each: self.blank.models[self._allowed_tier(each)] for each in TIERS}
        return with_changes(
            self.blank,
            name=spec.name,
            description=spec.description,
            prompt=spec.prompt,
            tools={name: tool for name in spec.tools if (tool := self.tools[name]) is not None},
            tier=tier,
            models={**models, None: models[tier]},
        )

    def _allowed_tier(self, tier: Tier) -> Tier:
        """The tier, or the nearest below it that is allowed, or the lowest one that is."""
        below: list[Tier] = [each for each in self.tiers if TIERS.index(each) <= TIERS.index(tier)]
        return below[-1] if below else self.tiers[0]
