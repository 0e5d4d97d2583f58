"""One configuration file as a layer of settings: every wrong key named at once, and what needs trust left out."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import urlsplit

from chargehand.errors import UsageError
from chargehand.models.call_options import EFFORTS, HARMLESS, wrong_option
from chargehand.models.provider_settings import WIRES, Provider, openai_wire, wire_named
from chargehand.settings.script_path import OF_TEAM, found_from
from chargehand.settings.settings import RoleModel
from chargehand.settings.toml_file import TomlFile, suggestion
from chargehand.tools.mcp_pins import McpServer
from chargehand.values.base import JSON
from chargehand.values.budget import Budget
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Tier
from chargehand.values.role import Role

# The largest allowed number: JSON represents every number up to it exactly.
MOST = 10**15
TIERS: tuple[Tier, ...] = get_args(Tier)
ROLES: tuple[Role, ...] = get_args(Role)
# Providers without an endpoint.
NOT_SERVED = frozenset({"scripted"})
# What a provider allows: requests and tokens per minute, parallel calls, tokens in one call.
PROVIDER_LIMITS = ("rpm", "tpm", "max_concurrent", "window")
PROVIDER_SECONDS = ("first_event_s", "silence_s")
_PROVIDER_NAME = lazy_regex(r"[A-Za-z][A-Za-z0-9_.-]*")
_MCP_KEYS = frozenset({"command", "args", "env", "url", "key_env", "tools", "timeout"})
_MCP_LISTS = ("args", "env", "tools")
_LINE_AND_COLUMN = lazy_regex(r":(\d+):(\d+): ")
# Without `_`, which separates it from the name of a tool.
_MCP_NAME = lazy_regex(r"[A-Za-z][A-Za-z0-9-]{0,29}")
_KEYS = frozenset(
    {
        "model",
        "team",
        "deadline",
        "max_concurrent",
        "max_tasks",
        "budget",
        "models",
        "providers",
        "serve",
        "temporal",
        "mcp",
        "otel",
    }
)


@plain_class()
class Layer:
    """What one file sets. Only `read_layer` writes it."""

    tiers: dict[Tier, str] = field(default_factory=dict[Tier, str])
    roles: dict[Role, RoleModel] = field(default_factory=dict[Role, RoleModel])
    providers: dict[str, Provider] = field(default_factory=dict[str, Provider])
    budget: Budget = field(default_factory=Budget)
    plain: dict[str, Any] = field(default_factory=dict[str, Any])
    serve: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    temporal: dict[str, Any] = field(default_factory=dict[str, Any])
    mcp: dict[str, McpServer] = field(default_factory=dict[str, McpServer])
    otel: dict[str, Any] = field(default_factory=dict[str, Any])
    warnings: list[str] = field(default_factory=list[str])


class SettingsReader:
    """Takes typed values out of a TOML file and collects what is wrong with it or needs trust."""

    def __init__(self, file: TomlFile, prefix: Sequence[str] = (), *, trusted: bool = True) -> None:
        self.file = file
        self.prefix = tuple(prefix)
        self.trusted = trusted
        self.problems: list[tuple[str, str]] = []
        # One line for each thing that is left out.
        self.ignored: list[str] = []

    def wrong(self, key: Sequence[str], message: str, code: str = "invalid_value") -> None:
        self.problems.append((code, f"{self.file.place((*self.prefix, *key))}: {message}"))

    def ignore(self, key: Sequence[str], why: str) -> None:
        place = self.file.place((*self.prefix, *key))
        self.ignored.append(f"{place}: ignored, {why}; to allow it: chargehand trust {self.file.path.parent.resolve()}")

    def unknown(self, key: Sequence[str], known: Collection[str]) -> None:
        self.wrong(key, f"{'.'.join(key)!r} is not a setting.{suggestion(key[-1], known)}", "unknown_key")

    def table(
        self, data: Mapping[str, Any], key: str, *path: str, known: Collection[str] | None = None
    ) -> dict[str, Any]:
        """The table under a key, empty if there is none. With `known`, each other key in it is a problem."""
        value = data.get(key, {})
        if not isinstance(value, dict):
            self.wrong((*path, key), f"{key!r} is a table: write [{'.'.join((*path, key))}].")
            return {}
        table = cast("dict[str, Any]", value)
        if known is not None:
            for name in sorted(table.keys() - known):
                self.unknown((*path, key, name), known)
        return table

    def text(self, data: Mapping[str, Any], key: str, *path: str) -> str | None:
        value = data.get(key)
        if value is None or (isinstance(value, str) and value.strip()):
            return value
        self.wrong((*path, key), f"{key!r} is text in quotes, not {value!r}.")
        return None

    def number(
        self, data: Mapping[str, Any], key: str, *path: str, whole: bool, least: float | None = None
    ) -> float | None:
        """A number above zero, or at least `least`."""
        value = data.get(key)
        if value is None:
            return None
        kind = "whole number" if whole else "number"
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            self.wrong((*path, key), f"{key!r} is a {kind}, not {value!r}.")
        elif not (value > 0 if least is None else value >= least):
            self.wrong(
                (*path, key), f"{key!r} is {value}: it must be {'over 0' if least is None else f'at least {least:g}'}."
            )
        elif value > MOST:
            self.wrong((*path, key), f"{key!r} must be at most {MOST:g}.")
        else:
            return value
        return None

    def whole(self, data: Mapping[str, Any], key: str, *path: str) -> int | None:
        """A whole number above zero."""
        value = self.number(data, key, *path, whole=True)
        return None if value is None else int(value)

    def models(self, data: Mapping[str, Any]) -> tuple[dict[Tier, str], dict[Role, RoleModel]]:
        """The [models] table: a model per tier, a table per role."""
        tiers: dict[Tier, str] = {}
        roles: dict[Role, RoleModel] = {}
        table = self.table(data, "models")
        for tier in TIERS:
            if (name := self._model(table, tier, "models")) is not None:
                tiers[tier] = name
        for role in ROLES:
            if role in table:
                known = {"model", "temperature", "effort", "options"}
                roles[role] = self._role(self.table(table, role, "models", known=known), role)
        for key in sorted(table.keys() - {*TIERS, *ROLES}):
            self.unknown(("models", key), {*TIERS, *ROLES})
        return tiers, roles

    def budget(self, data: Mapping[str, Any]) -> Budget:
        table = self.table(data, "budget", known={"tokens", "usd"})
        tokens, usd = self.whole(table, "tokens", "budget"), self.number(table, "usd", "budget", whole=False)
        return Budget(tokens=tokens, usd=usd)

    def serve(self, data: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        """The [serve] table: names of models and teams. A file without trust may not change what callers may use."""
        table = self.table(data, "serve")
        if table and not self.trusted:
            self.ignore(("serve",), "[serve] says what callers of the server may use")
            return {}
        for key in sorted(table.keys() - {"models", "teams"}):
            self.unknown(("serve", key), {"models", "teams"})
        return {key: self.texts(table, key, "serve") for key in ("models", "teams") if key in table}

    def temporal(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The [temporal] table: it names a server and the place of records, which needs trust."""
        texts_of = {"address", "namespace", "tls_ca", "tls_cert", "tls_key", "queue", "blobs", "key_env"}
        table, known = self.table(data, "temporal"), {*texts_of, "tls"}
        if table and not self.trusted:
            self.ignore(("temporal",), "[temporal] names a server, and where records are kept")
            return {}
        for key in sorted(table.keys() - known):
            self.unknown(("temporal", key), known)
        if not isinstance(tls := table.get("tls", False), bool):
            self.wrong(("temporal", "tls"), f"'tls' is true or false, not {tls!r}.")
            tls = False
        texts = {key: self.text(table, key, "temporal") for key in sorted(texts_of)}
        return {key: value for key, value in texts.items() if value is not None} | ({"tls": True} if tls else {})

    def otel(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The [otel] table: it names where runs are sent, which needs trust."""
        table, known = self.table(data, "otel"), {"endpoint", "headers_env", "content"}
        if table and not self.trusted:
            self.ignore(("otel",), "[otel] names an address that runs are sent to")
            return {}
        for key in sorted(table.keys() - known):
            self.unknown(("otel", key), known)
        if not isinstance(content := table.get("content", False), bool):
            self.wrong(("otel", "content"), f"'content' is true or false, not {content!r}.")
            content = False
        endpoint = self.text(table, "endpoint", "otel")
        if endpoint is not None and (wrong := problem_with_url(endpoint)):
            self.wrong(("otel", "endpoint"), wrong)
        headers_env = self.text(table, "headers_env", "otel")
        found: dict[str, Any] = {"endpoint": endpoint, "headers_env": headers_env, "content": content or None}
        return {key: value for key, value in found.items() if value is not None}

    def mcp(self, data: Mapping[str, Any]) -> dict[str, McpServer]:
        """The [mcp.NAME] tables: programs to start and addresses to call, so a file without trust names none."""
        table = self.table(data, "mcp")
        if table and not self.trusted:
            self.ignore(("mcp",), "[mcp] names programs and addresses")
            return {}
        found = {name: self._mcp_server(table, name) for name in table}
        return {name: server for name, server in found.items() if server is not None}

    def _mcp_server(self, tables: Mapping[str, Any], name: str) -> McpServer | None:
        path, before = ("mcp", name), len(self.problems)
        table = self.table(tables, name, "mcp", known=_MCP_KEYS)
        if not _MCP_NAME.fullmatch(name):
            self.wrong(path, f"{name!r} cannot name a server: use a letter, then letters, digits and -, at most 30.")
        command, url = self.text(table, "command", *path), self.text(table, "url", *path)
        if (command is None) == (url is None):
            self.wrong(path, "a server has either a command, which is started, or a url, which is called.")
        if url is not None and (wrong := problem_with_url(url)):
            self.wrong((*path, "url"), wrong)
        lists = {key: self.texts(table, key, *path, blank=key == "args") for key in _MCP_LISTS if key in table}
        key_env, seconds = self.text(table, "key_env", *path), self.number(table, "timeout", *path, whole=False)
        if len(self.problems) > before:
            return None
        folder = str(self.file.path.parent.resolve())
        if command is not None and "/" in command:
            command = str(Path(folder, os.path.expanduser(command)))
        found: dict[str, Any] = {"name": name, "command": command, "url": url, "key_env": key_env, **lists}
        found |= {"folder": folder} if command else {}
        return McpServer.model_validate(found if seconds is None else found | {"timeout_s": seconds})

    def texts(self, data: Mapping[str, Any], key: str, *path: str, blank: bool = False) -> tuple[str, ...]:
        value = data.get(key)
        if not isinstance(value, list) or not all(isinstance(each, str) and (blank or each.strip()) for each in value):  # pyright: ignore[reportUnknownVariableType]
            self.wrong((*path, key), f"{key!r} is a list of texts in quotes, not {value!r}.")
            return ()
        return tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    def top_model(self, data: Mapping[str, Any]) -> str | None:
        return self._model(data, "model")

    def _role(self, table: Mapping[str, Any], role: Role) -> RoleModel:
        temperature = self.number(table, "temperature", "models", role, whole=False, least=0)
        if temperature is not None and temperature > 2:
            self.wrong(("models", role, "temperature"), f"'temperature' is {temperature}: it must be at most 2.")
            temperature = None
        effort = self.text(table, "effort", "models", role)
        if effort is not None and effort not in EFFORTS:
            self.wrong(("models", role, "effort"), f"'effort' is one of {', '.join(EFFORTS)}, not {effort!r}.")
            effort = None
        options = self._options(self.table(table, "options", "models", role), role)
        model = self._model(table, "model", "models", role)
        return RoleModel(model=model, temperature=temperature, effort=effort, options=options)

    def _options(self, table: Mapping[str, JSON], role: Role) -> dict[str, JSON]:
        """The options of the role's calls; a file without trust may only set how a model samples and reasons."""
        options: dict[str, JSON] = {}
        for key, value in table.items():
            if wrong := wrong_option(key, value):
                self.wrong(("models", role, "options", key), wrong)
            elif self.trusted or key in HARMLESS:
                options[key] = value
            else:
                self.ignore(("models", role, "options", key), f"the option {key!r} may do more than tune the reply")
        return options

    def _model(self, data: Mapping[str, Any], key: str, *path: str) -> str | None:
        name = self.text(data, key, *path)
        if name is not None and name != OF_TEAM and not all(name.partition(":")):
            self.wrong((*path, key), f"{name!r} is not a model: write 'provider:name', like 'ollama:llama3.1'.")
            return None
        return None if name is None else found_from(name, self.file.path.parent)


def read_layer(
    file: TomlFile, data: Mapping[str, Any], prefix: Sequence[str], known: Mapping[str, Provider], trusted: bool
) -> Layer:
    """The file's settings; `data` is its chargehand part, found under `prefix`."""
    reader, layer = SettingsReader(file, prefix, trusted=trusted), Layer()
    for key in sorted(data.keys() - _KEYS):
        reader.unknown((key,), _KEYS)
    providers = {name: _provider(reader, data, name, known) for name in reader.table(data, "providers")}
    if trusted:
        layer.providers = {name: provider for name, provider in providers.items() if provider is not None}
    elif providers:
        reader.ignore(("providers",), "[providers] names endpoints and keys")
    layer.serve = reader.serve(data)
    layer.temporal = reader.temporal(data)
    layer.mcp = reader.mcp(data)
    layer.otel = reader.otel(data)
    layer.tiers, layer.roles = reader.models(data)
    if (model := reader.top_model(data)) is not None:
        layer.tiers = {**dict.fromkeys(TIERS, model), **layer.tiers}
    mine = {*known, *layer.providers, *NOT_SERVED}
    # The code that reads a model file runs in this process: a file from elsewhere needs trust.
    _drop_unknown_providers(reader, layer, mine if trusted else mine - {"embedded"})
    layer.budget = reader.budget(data)
    layer.plain = {
        "team": _team(reader.text(data, "team"), file.path.parent),
        "deadline_s": reader.number(data, "deadline", whole=False),
        "max_concurrent": reader.number(data, "max_concurrent", whole=True),
        "max_tasks": reader.number(data, "max_tasks", whole=True),
    }
    if reader.problems:
        raise UsageError("\n".join(sorted((message for _, message in reader.problems), key=_place)))
    layer.warnings = reader.ignored
    return layer


def _place(message: str) -> list[int]:
    """Line and column of `file:line:column: message`."""
    found = _LINE_AND_COLUMN.search(message)
    return [int(number) for number in found.groups()] if found else []


def problem_with_url(url: str) -> str | None:
    """What is wrong with an endpoint, or None."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{url!r} is not a URL."
    if parts.username or parts.password:
        return "the URL holds credentials: put the key in an environment variable and name it in key_env."
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"{url!r} is not an http(s) URL."
    return None


def _provider(
    reader: SettingsReader, data: Mapping[str, Any], name: str, known: Mapping[str, Provider]
) -> Provider | None:
    path = ("providers", name)
    keys, before = {"base_url", "wire", "key_env", *PROVIDER_LIMITS, *PROVIDER_SECONDS}, len(reader.problems)
    table = reader.table(reader.table(data, "providers"), name, "providers", known=keys)
    if name in NOT_SERVED or not _PROVIDER_NAME.fullmatch(name):
        reader.wrong(path, f"{name!r} cannot be the name of a provider: choose another.")
    if name == "embedded" and (wrong_keys := table.keys() & {"base_url", "wire", "key_env"}):
        reader.wrong(
            (*path, min(wrong_keys)), "the provider 'embedded' runs in this process: it has no address or key."
        )
    built_in = known.get(name)
    url = reader.text(table, "base_url", *path) or (built_in.base_url if built_in else None)
    if url is None:
        reader.wrong(path, f"the provider {name!r} has no base_url: add one.")
    elif wrong := problem_with_url(url):
        reader.wrong((*path, "base_url"), wrong)
    wire = wire_named(reader.text(table, "wire", *path))
    if wire is None:
        wire = openai_wire(url or "") if name == "openai" else built_in.wire if built_in else "openai_chat"
    if wire not in (None, *WIRES):
        reader.wrong((*path, "wire"), f"'wire' is one of {', '.join(map(repr, WIRES))}, not {wire!r}.")
    key_env = reader.text(table, "key_env", *path)
    if built_in is not None and built_in.key_env and key_env is None and url != built_in.base_url:
        # A key goes only to the endpoint it was configured with.
        reader.wrong(
            (*path, "base_url"),
            f'say which key goes to this endpoint: add key_env = "{built_in.key_env}", or rename it.',
        )
    given = {each: reader.whole(table, each, *path) for each in PROVIDER_LIMITS}
    given |= {each: reader.number(table, each, *path, whole=False) for each in PROVIDER_SECONDS}
    limits = {each: value for each, value in given.items() if value is not None}
    if url is None or len(reader.problems) > before:
        return None
    if built_in is not None and key_env is None:
        return built_in.model_copy(update={"base_url": url, "wire": wire, **limits})
    return Provider.model_validate(
        {"name": name, "base_url": url, "wire": wire, "key_env": key_env, "key_required": key_env is not None, **limits}
    )


def _drop_unknown_providers(reader: SettingsReader, layer: Layer, known: Collection[str]) -> None:
    """A model of an undefined provider is an error; in an untrusted file it is only a warning line."""

    def is_known(name: str | None, path: Sequence[str]) -> bool:
        provider = (name or "").partition(":")[0]
        if name is None or provider in known:
            return True
        if reader.trusted:
            reader.wrong(
                path, f"{provider!r} is not a provider: add [providers.{provider}].{suggestion(provider, known)}"
            )
        else:
            why = "is a file" if provider == "embedded" else "is of a provider that you have not defined"
            reader.ignore(path, f"{name!r} {why}")
        return False

    layer.tiers = {tier: name for tier, name in layer.tiers.items() if is_known(name, ("models", tier))}
    for role, entry in layer.roles.items():
        if not is_known(entry.model, ("models", role, "model")):
            layer.roles[role] = entry.model_copy(update={"model": None})


def _team(name: str | None, folder: Path) -> str | None:
    """A team given as a path is relative to the file that names it."""
    if name is None or not ("/" in name or name.startswith(".")):
        return name
    return str(folder / os.path.expanduser(name))
