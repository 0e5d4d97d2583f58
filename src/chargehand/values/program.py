"""A program as a worker, as data: what is started, what it may see and use, and how its result is checked."""

from __future__ import annotations

from typing import Literal

from chargehand.values.base import Field, Value
from chargehand.values.message import ToolEffect

Preset = Literal["claude", "codex"]
SandboxRule = Literal["auto", "required", "off"]
# How long a program may run if neither its worker nor its task sets a limit.
DEFAULT_SECONDS = 1_800.0


class Program(Value):
    """Environment variables and files of the home are named here; their content is never on the record."""

    # Arguments, without a shell. For a preset: its program, and arguments added to those of the preset.
    command: tuple[str, ...]
    preset: Preset | None = None
    # Whether it works in its own checkout of the repository in the material; the output is then its changes.
    worktree: bool = False
    # A command, as arguments, that must succeed in the same folder afterwards.
    verify: tuple[str, ...] = ()
    effect: ToolEffect = "once"
    env: tuple[str, ...] = ()
    # Paths below the home of the user that are copied into the home it sees.
    home_files: tuple[str, ...] = ()
    # Further paths that it may read.
    visible: tuple[str, ...] = ()
    network: bool = False
    sandbox: SandboxRule = "auto"
    timeout_s: float = Field(default=DEFAULT_SECONDS, gt=0)
