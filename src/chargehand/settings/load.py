"""Flags, environment and files become one Settings: flags win over environment, environment over files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from chargehand.errors import UsageError
from chargehand.models.prices import default_model, list_models
from chargehand.models.provider_settings import Provider, built_in
from chargehand.record.home import default_path
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.settings.script_path import OF_TEAM, found_from
from chargehand.settings.settings import OtelSettings, Pinned, RoleModel, ServeSettings, Settings, TemporalSettings
from chargehand.settings.settings_file import (
    NOT_SERVED,
    PROVIDER_LIMITS,
    PROVIDER_SECONDS,
    TIERS,
    Layer,
    problem_with_url,
    read_layer,
)
from chargehand.settings.toml_file import read, suggestion
from chargehand.values.budget import Budget
from chargehand.values.default_limits import DEFAULT_TOKENS
from chargehand.values.plan import Tier
from chargehand.values.role import Role

# The endpoints that the environment can set.
BASE_URLS = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
_PINS: tuple[Pinned, ...] = ("tokens", "usd", "deadline", "max_concurrent", "max_tasks")


def load_settings(env: Mapping[str, str], cwd: str | Path, flags: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """The settings and one line for each thing an untrusted file may not set.

    Flags: model, team, tokens, usd, deadline, max_concurrent, max_tasks; one that is None was not given.
    """
    home = default_path(env).absolute()
    known = _built_in(env)
    layers: list[Layer] = []
    if (own := home / "config.toml").is_file():
        file = read(own)
        layers.append(read_layer(file, file.data, (), known, trusted=True))
        known.update(_as_env_has_them(layers[0].providers, known, env))
    if (tree := _tree_layer(Path(cwd), known, TrustRegistry(str(home)))) is not None:
        layers.append(tree)
        known.update(_as_env_has_them(tree.providers, known, env))
    given = {name: value for name, value in flags.items() if value is not None}
    settings = _settings(str(home), known, layers, env, given)
    if (model := _forced_model(given, env, known)) is not None:
        settings = settings.model_copy(update={"model": found_from(model, Path(cwd))})
    return settings, [line for layer in layers for line in layer.warnings]


def _settings(
    home: str, providers: dict[str, Provider], layers: list[Layer], env: Mapping[str, str], flags: dict[str, Any]
) -> Settings:
    tiers: dict[Tier, str] = {tier: name for layer in layers for tier, name in layer.tiers.items()}
    roles: dict[Role, RoleModel] = {role: entry for layer in layers for role, entry in layer.roles.items()}
    plain = {key: value for layer in layers for key, value in layer.plain.items() if value is not None}
    money = {k: v for layer in layers for k, v in layer.budget.model_dump().items() if v is not None}
    money = {"tokens": DEFAULT_TOKENS, **money, **{k: flags[k] for k in ("tokens", "usd") if k in flags}}
    plain.update({k: flags[k] for k in ("team", "max_concurrent", "max_tasks") if k in flags})
    if "engine" in flags:
        plain["engine"] = flags["engine"]
    if "deadline" in flags:
        plain["deadline_s"] = flags["deadline"]
    for tier, name in _defaults_by_key(env).items():
        tiers.setdefault(tier, name)
    for name, value in (*money.items(), *plain.items()):
        if name not in ("team", "engine") and not value > 0:
            raise UsageError(f"--{name.removesuffix('_s').replace('_', '-')} is {value:g}: it must be over 0.")
    return Settings(
        home=home,
        tiers=tiers,
        roles=roles,
        providers=providers,
        budget=Budget(**money),
        max_concurrent_set="max_concurrent" in plain,
        pinned=tuple(pin for pin in _PINS if pin in flags),
        mcp={name: server for layer in layers for name, server in layer.mcp.items()},
        serve=ServeSettings(**{key: names for layer in layers for key, names in layer.serve.items()}),
        otel=OtelSettings(**{key: value for layer in layers for key, value in layer.otel.items()}),
        temporal=TemporalSettings(**{key: value for layer in layers for key, value in layer.temporal.items()}),
        **plain,
    )


def _forced_model(flags: Mapping[str, Any], env: Mapping[str, str], providers: Mapping[str, Provider]) -> str | None:
    source, name = (
        ("The model", flags["model"]) if "model" in flags else ("CHARGEHAND_MODEL", env.get("CHARGEHAND_MODEL"))
    )
    if not name:
        return None
    check_model_name(str(name), providers, source)
    return str(name)


def check_model_name(name: str, providers: Mapping[str, Provider], source: str = "The model") -> None:
    """UsageError unless it is `provider:name` with a known provider, or the script of the team."""
    if name == OF_TEAM:
        return
    provider, _, rest = name.partition(":")
    if not provider or not rest:
        # Most often the user gave only the name, as the provider's own pages write it.
        known = next((full for full, *_ in list_models() if full.partition(":")[2] == name), None)
        like = f"like {known!r}" if known else "like 'ollama:llama3.1' or 'scripted:replies.json'"
        raise UsageError(f"{source} is {name!r}: write 'provider:name', {like}.")
    if provider not in (known := {*providers, *NOT_SERVED}):
        raise UsageError(f"{source} is {name!r}, but there is no provider {provider!r}.{suggestion(provider, known)}")


def _defaults_by_key(env: Mapping[str, str]) -> dict[Tier, str]:
    """The default models of the first provider whose key is set."""
    for name in ("anthropic", "openai"):
        key = built_in(env)[name].key_env
        if key and env.get(key, "").strip():
            return {tier: model for tier in TIERS if (model := default_model(name, tier))}
    return {}


def _built_in(env: Mapping[str, str]) -> dict[str, Provider]:
    for variable in BASE_URLS.values():
        if env.get(variable) and (wrong := problem_with_url(env[variable])):
            raise UsageError(f"{variable}: {wrong}")
    return built_in(env)


def _as_env_has_them(
    providers: Mapping[str, Provider], known: Mapping[str, Provider], env: Mapping[str, str]
) -> dict[str, Provider]:
    """If the environment sets an endpoint, a file sets only its limits: no key from a file is sent there."""
    found = dict(providers)
    for name, variable in BASE_URLS.items():
        if name in providers and env.get(variable):
            provider, own = providers[name], known[name]
            limits = {each: getattr(provider, each) for each in PROVIDER_LIMITS + PROVIDER_SECONDS}
            found[name] = own.model_copy(update=limits) if provider.base_url == own.base_url else own
    return found


def _tree_layer(cwd: Path, known: Mapping[str, Provider], trust: TrustRegistry) -> Layer | None:
    """The nearest chargehand.toml or [tool.chargehand] at or above the working directory."""
    for folder in _folders(cwd.absolute()):
        if (path := folder / "chargehand.toml").is_file():
            file = read(path)
            return read_layer(file, file.data, (), known, _is_trusted(trust, path))
        if (path := folder / "pyproject.toml").is_file() and "chargehand" in path.read_text("utf-8", "replace"):
            file = read(path)
            tools = file.data.get("tool")
            if isinstance(tools, dict) and isinstance(part := tools.get("chargehand"), dict):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
                return read_layer(file, part, ("tool", "chargehand"), known, _is_trusted(trust, path))  # pyright: ignore[reportUnknownArgumentType]
    return None


def _is_trusted(trust: TrustRegistry, path: Path) -> bool:
    # Both the directory of a link and its target must be trusted.
    return trust.is_trusted(path.parent) and trust.is_trusted(path)


def _folders(cwd: Path) -> Iterator[Path]:
    """The directory and its parents up to the one with .git; without a .git, only the directory itself."""
    chain = (cwd, *cwd.parents)
    root = next((n for n, folder in enumerate(chain) if (folder / ".git").exists()), 0)
    yield from chain[: root + 1]
