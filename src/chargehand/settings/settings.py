"""Settings as one frozen value: which model for which role, which providers, how much, how long, how wide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from chargehand.errors import MissingKey, UsageError
from chargehand.models.call_options import Effort, wrong_option
from chargehand.models.provider_settings import Provider
from chargehand.settings.script_path import OF_TEAM
from chargehand.tools.mcp_pins import McpServer
from chargehand.values.base import JSON, Field, Value
from chargehand.values.budget import Budget
from chargehand.values.default_limits import DEFAULT_CONCURRENCY, DEFAULT_TASKS, DEFAULT_TOKENS
from chargehand.values.plan import Tier
from chargehand.values.role import Role

# Settings that a flag or the environment has set; a team does not change them.
Pinned = Literal["tokens", "usd", "deadline", "max_concurrent", "max_tasks"]

DEFAULT_TIER: dict[Role, Tier] = {
    "planner": "large",
    "synthesizer": "large",
    "judge": "large",
    "critic": "large",
    "worker": "medium",
    "refiner": "medium",
    "router": "small",
    "scorer": "small",
}
_NO_MODEL = (
    "No model is configured. Export ANTHROPIC_API_KEY or OPENAI_API_KEY, or name a model with {}. ollama:llama3.1 and "
    "embedded:FILE.gguf need no key, scripted:FILE answers from a script."
)
NO_MODEL = _NO_MODEL.format("--model or CHARGEHAND_MODEL (in Python: model=)")
# For a server, which has no --model.
NO_MODEL_TO_SERVE = _NO_MODEL.format("CHARGEHAND_MODEL, and start the server again")
# The tiers to try when a tier has no model of its own, nearest first.
_NEAREST: dict[Tier, tuple[Tier, ...]] = {
    "small": ("small", "medium", "large"),
    "medium": ("medium", "large", "small"),
    "large": ("large", "medium", "small"),
}


class RoleModel(Value):
    """What is set for a role; without `model` its tier decides."""

    model: str | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    effort: Effort | None = None
    options: dict[str, JSON] = Field(default_factory=dict)


class ModelChoice(Value):
    """The model for one call (`provider:name`) and the sampling options set for its role."""

    model: str
    temperature: float | None = None
    effort: Effort | None = None
    options: dict[str, JSON] = Field(default_factory=dict)


class ModelSettings(Value):
    """Models by tier and by role."""

    tiers: dict[Tier, str] = Field(default_factory=dict[Tier, str])
    roles: dict[Role, RoleModel] = Field(default_factory=dict[Role, RoleModel])


class Limits(Value):
    """Limits of a run; None leaves a limit to the settings."""

    max_concurrent: int | None = Field(default=None, gt=0)
    max_tasks: int | None = Field(default=None, gt=0)
    deadline_s: float | None = Field(default=None, gt=0)


class ServeSettings(Value):
    """Names that callers of `chargehand serve` may give; empty means the default."""

    models: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()


# Variables of OpenTelemetry that name a collector.
OTEL_ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)


class OtelSettings(Value):
    """The collector of OpenTelemetry, as `[otel]` has it. Variables of OpenTelemetry win over it."""

    endpoint: str | None = None
    # The variable that holds headers, as `name=value,name=value`.
    headers_env: str | None = None
    # Whether texts of the run are sent too.
    content: bool = False

    def is_on(self, env: Mapping[str, str]) -> bool:
        """Whether runs of this process are sent to a collector."""
        if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return False
        return self.endpoint is not None or any(env.get(name, "").strip() for name in OTEL_ENDPOINTS)


class TemporalSettings(Value):
    """The server and the blob store of runs on Temporal, as `[temporal]` has them."""

    address: str = "127.0.0.1:7233"
    namespace: str = "default"
    tls: bool = False
    # Files: the authority of the server's certificate, and a certificate of one's own with its key. Each turns TLS on.
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    # The prefix of the names of queues.
    queue: str = "ch"
    # `file:///FOLDER` or `s3://BUCKET/PREFIX`.
    blobs: str | None = None
    # The variable that holds the key with which blobs are encrypted.
    key_env: str | None = None


# Settings of a process, not of a run.
_OF_PROCESS = frozenset({"serve", "temporal", "mcp", "otel"})


class Settings(Value):
    """Holds names of key variables, never a key, so that it can be stored with a run."""

    home: str
    # Set by --model or CHARGEHAND_MODEL: used for every tier, role and worker.
    model: str | None = None
    tiers: dict[Tier, str] = Field(default_factory=dict[Tier, str])
    roles: dict[Role, RoleModel] = Field(default_factory=dict[Role, RoleModel])
    providers: dict[str, Provider] = Field(default_factory=dict[str, Provider])
    budget: Budget = Field(default_factory=lambda: Budget(tokens=DEFAULT_TOKENS))
    deadline_s: float | None = Field(default=None, gt=0)
    max_concurrent: int = Field(default=DEFAULT_CONCURRENCY, gt=0)
    # Whether it was set: if so, it also applies to a server on this machine.
    max_concurrent_set: bool = False
    max_tasks: int = Field(default=DEFAULT_TASKS, gt=0)
    team: str = "general"
    # The engine that runs use, by its name in engine/make_engine.py.
    engine: str = "local"
    pinned: tuple[Pinned, ...] = ()
    serve: ServeSettings = Field(default_factory=ServeSettings)
    temporal: TemporalSettings = Field(default_factory=TemporalSettings)
    otel: OtelSettings = Field(default_factory=OtelSettings)
    mcp: dict[str, McpServer] = Field(default_factory=dict[str, McpServer])

    def to_json(self) -> dict[str, JSON]:
        """The settings as stored with a run, without those of the process. The run's team has the MCP tools it uses."""
        return {name: value for name, value in super().to_json().items() if name not in _OF_PROCESS}

    @property
    def has_model(self) -> bool:
        """Whether a model is named or found; without one, only work that needs no model can be done."""
        return bool(self.model or self.tiers or any(role.model for role in self.roles.values()))

    def without_model(self) -> Settings:
        return self.model_copy(update={"model": None, "tiers": {}, "roles": {}})

    def model_for(self, role: Role, tier: Tier | None = None, worker_model: str | None = None) -> ModelChoice:
        """The first that is set: forced, of the worker, of the requested tier, of the role, of its default tier."""
        of_role = self.roles.get(role, RoleModel())
        name = (
            self.model
            or worker_model
            or (self.tiers.get(tier) if tier else None)
            or of_role.model
            or self._nearest(tier or DEFAULT_TIER[role])
        )
        if name is None:
            raise MissingKey(NO_MODEL)
        if wrong := [why for key, value in of_role.options.items() if (why := wrong_option(key, value))]:
            raise UsageError(f"The options for the role {role} cannot be sent: {' '.join(wrong)}")
        return ModelChoice(model=name, temperature=of_role.temperature, effort=of_role.effort, options=of_role.options)

    def for_team(self, models: ModelSettings, budget: Budget, limits: Limits) -> Settings:
        """These settings, with a team's settings in place of those from files; flags and environment stay."""
        changes: dict[str, object] = {
            "tiers": {**self.tiers, **models.tiers},
            "roles": {**self.roles, **models.roles},
            "budget": self.budget.model_copy(
                update={
                    name: value
                    for name, value in budget.model_dump().items()
                    if value is not None and name not in self.pinned
                }
            ),
        }
        wanted = {
            "deadline": ("deadline_s", limits.deadline_s),
            "max_concurrent": ("max_concurrent", limits.max_concurrent),
            "max_tasks": ("max_tasks", limits.max_tasks),
        }
        for pin, (name, value) in wanted.items():
            if value is not None and pin not in self.pinned:
                changes[name] = value
        return self.model_copy(update=changes)

    @property
    def named_models(self) -> set[str]:
        """Every model that is named here, for any purpose."""
        named = (self.model, *self.tiers.values(), *(role.model for role in self.roles.values()))
        return {name for name in named if name is not None}

    @property
    def models_key(self) -> str:
        """Equal for settings with the same models: the figures of one run then predict those of another."""
        return self.model or " ".join(sorted(self.named_models))

    def with_script(self, script: str) -> Settings:
        """These settings with `scripted:FILE` wherever they name the team's own script."""

        def find_script(model: str | None) -> str | None:
            return f"{OF_TEAM}:{script}" if model == OF_TEAM else model

        roles = {name: role.model_copy(update={"model": find_script(role.model)}) for name, role in self.roles.items()}
        tiers = {tier: find_script(name) for tier, name in self.tiers.items()}
        return self.model_copy(update={"model": find_script(self.model), "tiers": tiers, "roles": roles})

    def _nearest(self, tier: Tier) -> str | None:
        return next((self.tiers[near] for near in _NEAREST[tier] if near in self.tiers), None)
