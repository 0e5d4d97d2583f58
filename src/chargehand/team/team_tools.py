"""A team folder's own tools.py -> tools: imported only from a trusted folder, with the hash of the file."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import NamedTuple

from chargehand.errors import UsageError
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.tools import Tool
from chargehand.values.base import JSON


class TeamCode(NamedTuple):
    """The tools of a folder; `warning` is the reason why its file was not loaded, `remedy` how to allow it."""

    tools: Mapping[str, Tool] = MappingProxyType({})
    path: str | None = None
    hash: str | None = None
    warning: str | None = None
    remedy: str = ""


def shipped_home() -> Path:
    """The folder of the teams that come with chargehand; their code is trusted like the package."""
    return Path(__file__).resolve().parents[1] / "teams"


def read_code(folder: Path, trust: TrustRegistry | None, label: str = "tools.py") -> TeamCode:
    """The folder's tools; nothing is imported from a folder without trust."""
    path = folder / "tools.py"
    if not path.is_file():
        return TeamCode()
    if not is_trusted(path, trust):
        remedy = f"to allow its tools: chargehand trust {folder.resolve()}"
        return TeamCode(warning=f"{label}: not loaded, {folder} is not trusted", remedy=remedy)
    real = path.resolve()
    try:
        source = real.read_bytes()
    except OSError as error:
        raise UsageError(f"{label} cannot be read: {error.strerror}.") from None
    digest = hashlib.sha256(source).hexdigest()
    return TeamCode(_tools(_module(real, source, digest, label)), str(real), digest)


def stored_tools(team: Mapping[str, JSON], trust: TrustRegistry | None) -> tuple[dict[str, Tool], list[str]]:
    """The own tools of a stored team and of its inner teams, from their current files, and a line for each change."""
    tools, warnings = _load_stored(team, trust)
    if (pinned := team.get("mcp")) and trust is not None:
        from chargehand.tools.mcp_pins import McpPins
        from chargehand.tools.pinned_tools import restore_tools

        restored, lost = restore_tools(pinned, McpPins(trust.home, trust.also))
        tools, warnings = {**restored, **tools}, [*warnings, *lost]
    for worker in team["workers"]:
        if worker.get("team"):
            inner, lines = stored_tools(worker["team"], trust)
            tools, warnings = {**inner, **tools}, [*warnings, *lines]
    return tools, warnings


def _load_stored(team: Mapping[str, JSON], trust: TrustRegistry | None) -> tuple[dict[str, Tool], list[str]]:
    path: str | None = team.get("tools_path")
    if path is None:
        return {}, []
    code = read_code(Path(path).parent, trust, label=path)
    if code.warning:
        return {}, [f"{code.warning}; {code.remedy}"]
    if code.hash is None:
        return {}, [f"{path} is gone: the team {team.get('name')!r} had its tools there when the run started."]
    held = _held_tools(team)
    tools = {name: tool for name, tool in code.tools.items() if name in held}
    if code.hash != team.get("tools_hash"):
        return tools, [f"{path} has changed since the run started: its tools may behave differently."]
    return tools, []


def _held_tools(team: Mapping[str, JSON]) -> set[str]:
    """The tools that a stored team itself uses. Others in its file may have the name of another team's tool."""
    making: dict[str, JSON] = team.get("factory") or {}
    held = [name for worker in team["workers"] for name in (*worker["tools"], worker.get("check"))]
    return {*held, *making.get("tools", ())}


def is_trusted(path: Path, trust: TrustRegistry | None) -> bool:
    """Whether a file of a team folder may do what needs trust."""
    if path.resolve().is_relative_to(shipped_home()):
        return True
    # Both the folder and the file: a link must not carry trust from one to the other.
    return trust is not None and trust.is_trusted(path.parent) and trust.is_trusted(path)


def _module(path: Path, source: bytes, digest: str, label: str) -> ModuleType:
    # Named by content: the same code is one module in a process, changed code is another.
    name = f"chargehand_team_tools_{digest[:16]}"
    if (known := sys.modules.get(name)) is not None and known.__file__ == str(path):
        return known
    module = ModuleType(name)
    module.__file__ = str(path)
    # Registered before it runs: annotations are looked up through sys.modules.
    sys.modules[name] = module
    try:
        # What was hashed is what runs: the bytes, not a second read of the file.
        exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UsageError(
            f"{label}:{_line(error, path)}: cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return module


def _tools(module: ModuleType) -> dict[str, Tool]:
    return {value.name: value for value in vars(module).values() if isinstance(value, Tool)}


def _line(error: BaseException, path: Path) -> int:
    if isinstance(error, SyntaxError):
        return error.lineno or 1
    line, at = 1, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == str(path):
            line = at.tb_lineno
        at = at.tb_next
    return line
