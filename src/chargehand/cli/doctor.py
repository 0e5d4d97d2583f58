"""`doctor`: this machine and its settings become a list of checks, each problem with its remedy."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from chargehand.cli.shared_options import Command, screen

if TYPE_CHECKING:
    from chargehand.models.provider_settings import Provider
    from chargehand.settings import Settings

# Where the text of a check begins.
COLUMN = 20
LITTLE_ROOM = 200_000_000
SERVER_ERROR = 500
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")
_CAS = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
# Extra -> the modules that it installs, and what needs them.
EXTRAS = {
    "review": (("bandit", "ruff"), "`review`"),
    "testgen": (("coverage", "hypothesis", "pytest"), "`testgen`"),
    "data": (("duckdb",), "SQL in tools"),
    "fast": (("uvloop",), "a faster event loop"),
    "serve": (("starlette", "uvicorn"), "`serve`"),
    "mcp": (("mcp",), "`mcp`"),
    "embedded": (("xllamacpp",), "models in this process"),
    "temporal": (("cryptography", "obstore", "temporalio"), "several machines"),
}
# Extras that `all` does not install.
_APART = {"embedded", "temporal"}
_MARKS = {"ok": "ok      ", "note": "note    ", "problem": "PROBLEM "}


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One check. A note does not stop chargehand from working."""

    name: str
    state: Literal["ok", "note", "problem"]
    detail: str


@click.command(cls=Command)
@click.option(
    "--online", is_flag=True, help="Also call the configured models, a few small calls each, and say what they can do."
)
@click.option("--json", "as_json", is_flag=True, help="Print {ok, checks} as one JSON document.")
def doctor(online: bool, as_json: bool) -> int:
    """Check whether chargehand works here. Without --online nothing is sent anywhere; keys are never shown.

    Exit code 1 when there is a problem.
    """
    from chargehand.cli.screen import fit

    checks = list(_checks(online))
    ok = all(check.state != "problem" for check in checks)
    out = screen()
    if as_json:
        out.document({"ok": ok, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            detail = out.redactor.text(check.detail).replace("\n", f"\n{' ' * COLUMN}")
            out.put(fit(f"{_MARKS[check.state]} {check.name:<10} {detail}", sys.stdout, below=COLUMN))
    return 0 if ok else 1


def _checks(online: bool) -> Iterator[DoctorCheck]:
    from chargehand import __version__
    from chargehand.errors import ChargehandError
    from chargehand.record.home import default_path
    from chargehand.settings import load_settings

    yield DoctorCheck("chargehand", "ok", __version__)
    yield DoctorCheck("python", "ok", f"{platform.python_version()} on {platform.system()} ({sys.executable})")
    yield DoctorCheck("sqlite", "ok", sqlite3.sqlite_version)
    try:
        yield from _home(default_path(os.environ).absolute())
    except ChargehandError as error:
        yield DoctorCheck("home", "problem", error.with_command)
        return
    yield _environment("proxy", _PROXIES, "none set")
    yield _environment("ca", _CAS, "the system's own")
    try:
        settings, warnings = load_settings(os.environ, Path.cwd(), {})
    except ChargehandError as error:
        yield DoctorCheck("settings", "problem", error.with_command)
        return
    yield from (DoctorCheck("settings", "note", warning) for warning in warnings)
    yield from _models(settings)
    yield _extras()
    yield from _trust(settings.home)
    yield from _web(settings)
    if online:
        yield from _reach(settings)


def _home(path: Path) -> Iterator[DoctorCheck]:
    there = next(each for each in (path, *path.parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        yield DoctorCheck("home", "problem", f"{path} cannot be written: set CHARGEHAND_HOME to a folder that can")
        return
    yield DoctorCheck("home", "ok", f"{path}{'' if path.exists() else ' (made at the first run)'}")
    free = shutil.disk_usage(there).free
    state = "problem" if free < LITTLE_ROOM else "ok"
    yield DoctorCheck("disk", state, f"{free / 1e9:,.1f} GB free{': make room' if state == 'problem' else ''}")


def _environment(name: str, variables: tuple[str, ...], otherwise: str) -> DoctorCheck:
    named = [variable for variable in variables if os.environ.get(variable)]
    return DoctorCheck(name, "ok", ", ".join(named) or otherwise)


def _models(settings: Settings) -> Iterator[DoctorCheck]:
    from chargehand.errors import ChargehandError
    from chargehand.models.resolve import Models
    from chargehand.settings import OF_TEAM

    named = [p.key_env for p in settings.providers.values() if p.key_env and os.environ.get(p.key_env, "").strip()]
    yield DoctorCheck("keys", "ok" if named else "note", ", ".join(named) or "none set")
    try:
        chosen = _used_models(settings)
        models = Models(settings.providers, os.environ)
        for name in chosen:
            if name != OF_TEAM:  # the script comes with the team of a run
                models.check(name)
    except ChargehandError as error:
        yield DoctorCheck("models", "problem", error.with_command)
        return
    yield DoctorCheck("models", "ok", ", ".join(chosen))


def _used_models(settings: Settings) -> list[str]:
    """The models of all roles and tiers, each once, as `models` lists them."""
    from chargehand.settings.settings_file import ROLES, TIERS

    of_roles = [settings.model_for(role).model for role in ROLES]
    return list(dict.fromkeys([*of_roles, *(settings.model_for("worker", tier).model for tier in TIERS)]))


def _extras() -> DoctorCheck:
    """The parts of chargehand that are not installed, and how to install them; those apart from `all` are optional."""
    from importlib.util import find_spec

    missing = [name for name, (modules, _) in EXTRAS.items() if not all(map(find_spec, modules))]
    if not missing:
        return DoctorCheck("extras", "ok", "all installed")
    of_all = [name for name in EXTRAS if name not in _APART]
    lacking, apart = [name for name in missing if name in of_all], [name for name in missing if name in _APART]
    lines = [f"not installed: {_name_extras(lacking)}" if lacking else "all of chargehand[all] installed"]
    if apart:
        lines.append(f"optional, not part of [all]: {_name_extras(apart)}")
    if lacking:
        lines.append(f"pip install 'chargehand[{'all' if lacking == of_all else ','.join(lacking)}]'")
    return DoctorCheck("extras", "note" if lacking else "ok", "\n".join(lines))


def _name_extras(names: Sequence[str]) -> str:
    return ", ".join(f"{name} ({EXTRAS[name][1]})" for name in names)


def _trust(home: str) -> Iterator[DoctorCheck]:
    from chargehand.errors import ChargehandError
    from chargehand.record.trusted_folders import TrustRegistry

    try:
        trusted = TrustRegistry(home).directories()
    except ChargehandError as error:
        yield DoctorCheck("trust", "problem", error.with_command)
        return
    yield DoctorCheck("trust", "ok", ", ".join(trusted) or "no folder is trusted")


def _web(settings: Settings) -> Iterator[DoctorCheck]:
    """The workers that may use the web with `run --web`, and their tools."""
    from chargehand.errors import ChargehandError
    from chargehand.record.trusted_folders import TrustRegistry
    from chargehand.team import load
    from chargehand.tools import BUILTIN

    try:
        team = load(settings.team, TrustRegistry(settings.home))
    except ChargehandError as error:
        yield DoctorCheck("team", "problem", error.with_command)
        return
    search = BUILTIN["web_search"]
    lacking = search.lacks() if search.lacks else None
    tools = f"fetch_page; web_search needs {lacking}" if lacking else "web_search, fetch_page"
    names = ", ".join(team.web_workers)
    detail = f"no worker of the team {team.name} may use it"
    if names:
        detail = f"with run --web, {names} of the team {team.name} may use {tools}"
    yield DoctorCheck("web", "ok", detail)


def _reach(settings: Settings) -> Iterator[DoctorCheck]:
    import asyncio

    from chargehand.errors import ChargehandError

    try:
        chosen = _used_models(settings)
    except ChargehandError:
        return
    names = {model.partition(":")[0] for model in chosen}
    if not names & settings.providers.keys():
        yield DoctorCheck("online", "ok", f"{', '.join(chosen)}: a script, there is nothing to reach")
    for name in sorted(names & settings.providers.keys()):
        if name == "embedded":
            yield DoctorCheck("online", "ok", "embedded runs in this process, there is nothing to reach")
            continue
        yield asyncio.run(_answers(settings, settings.providers[name]))
    for model in chosen:
        if model.partition(":")[0] in settings.providers:
            yield from asyncio.run(_try_out(settings, model))


async def _try_out(settings: Settings, model: str) -> list[DoctorCheck]:
    """The abilities of the model, tested with a few small calls."""
    from chargehand.errors import ChargehandError
    from chargehand.models.probe import probe
    from chargehand.models.resolve import Models

    models = Models(settings.providers, os.environ)
    found: list[DoctorCheck] = []
    try:
        async for ability in probe(models, model):
            state = "ok" if ability.well else "note"
            found.append(DoctorCheck(ability.name, state, f"{model}: {ability.says}"))
    except ChargehandError as error:
        found.append(DoctorCheck("probe", "problem", f"{model}: {error}"))
    finally:
        await models.close()
    return found


async def _answers(settings: Settings, provider: Provider) -> DoctorCheck:
    """Whether the server of the provider can be reached. No key is sent; models are tried afterwards."""
    from chargehand.errors import ChargehandError
    from chargehand.models.provider_errors import Endpoint
    from chargehand.models.resolve import Models

    models = Models(settings.providers, os.environ)
    try:
        status, _ = await models.transport.get(Endpoint(provider.name, provider.base_url, {}))
    except ChargehandError as error:
        return DoctorCheck("online", "problem", error.with_command)
    finally:
        await models.close()
    if status >= SERVER_ERROR:
        why = f"{provider.name} answers with {status} at {provider.base_url}: it has trouble, try again later"
        return DoctorCheck("online", "problem", why)
    return DoctorCheck("online", "ok", f"{provider.name} can be reached at {provider.base_url}")
