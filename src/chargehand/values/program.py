"""A program as a worker, as data: what is started, what it may see and use, and how its result is checked."""

from __future__ import annotations

from typing import Literal

from chargehand.values.base import Field, Value
from chargehand.values.message import ToolEffect

Preset = Literal["claude", "codex"]
SandboxRule = Literal["auto", "required", "off"]
# How long a program may run where neither its worker nor its task says.
DEFAULT_SECONDS = 1_800.0


class Program(Value):
    """Variables of the environment and files of the home are named here; what is in them is never on the record."""

    # Arguments, without a shell. Of a preset: its program and what is added to the arguments it is started with.
    command: tuple[str, ...]
    preset: Preset | None = None
    # Whether it works in a checkout of its own of the repository in the material; its changes are then the output.
    worktree: bool = False
    # Arguments of a command that has to succeed in the same folder afterwards.
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
