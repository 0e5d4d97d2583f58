"""The settings of a run's start compared with the current ones: where its keys may go, and which models it calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chargehand.errors import UsageError
from chargehand.models.provider_settings import Provider, built_in
from chargehand.settings.load import BASE_URLS
from chargehand.settings.settings import DEFAULT_TIER, Settings


def check_endpoints(
    run: str, before: Settings, now: Settings, workers_models: Iterable[str], env: Mapping[str, str]
) -> None:
    """Raise UsageError when resuming would send a key to another endpoint than the one it is now configured for."""
    named = {before.model} if before.model else {*before.tiers.values(), *_of_roles(before), *workers_models}
    known = {**built_in(env), **now.providers}.values()
    for name in sorted({model.partition(":")[0] for model in named if model} & before.providers.keys()):
        stored = before.providers[name]
        if stored.key_env is None or not env.get(stored.key_env):
            continue
        ours = {provider.base_url.rstrip("/") for provider in known if provider.key_env == stored.key_env}
        if ours and stored.base_url.rstrip("/") not in ours:
            raise UsageError(_moved_warning(run, stored, " and ".join(sorted(ours))))


def as_before(run: str, before: Settings, now: Settings) -> tuple[Settings, list[str]]:
    """Settings for a rerun: the model forced then, unless one is forced now; and a line if the provider changes."""
    if now.model is None and before.model is not None:
        now = now.model_copy(update={"model": before.model})
    elif now.model is None and not before.has_model:
        now = now.without_model()  # the run had no model: a key that is set now does not change that
    then, here = _providers(before), _providers(now)
    if then == here:
        return now, []
    ours, theirs = _join_names(here), _join_names(then)
    line = f"This run asks models of {ours}; {run} asked models of {theirs}. Name a model to ask another."
    return now, [line]


def _of_roles(settings: Settings) -> set[str]:
    return {role.model for role in settings.roles.values() if role.model}


def _providers(settings: Settings) -> set[str]:
    if not settings.has_model:
        return set()
    return {settings.model_for(role).model.partition(":")[0] for role in DEFAULT_TIER}


def _join_names(names: set[str]) -> str:
    return " and ".join(sorted(names)) or "no provider"


def _moved_warning(run: str, stored: Provider, now: str) -> str:
    variable = BASE_URLS.get(stored.name)
    again = (
        f"export {variable}={stored.base_url}" if variable else f"set base_url of [providers.{stored.name}] to it again"
    )
    return (
        f"{run} was started with {stored.name} at {stored.base_url}, but {stored.key_env} is now for {now}, and a key "
        f"goes only to the endpoint it was configured with. To continue there: {again}. To use the new one: "
        f"chargehand rerun {run}"
    )
