"""Questions to git about a work tree, asked so that nothing the repository configures is run."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

from chargehand.analyzers.git import ENVIRONMENT, OFF, SECONDS
from chargehand.errors import UsageError

# A repository with more filters than this is not asked about its work tree.
MOST_FILTERS = 200


class GitFailed(UsageError):
    """git could not answer."""


def ask(folder: Path, *args: str, largest: int | None = None) -> bytes:
    """What git says. GitFailed with its own words when it does not know, or says more than `largest` bytes."""
    return _ask(folder, args, _without_filters(folder), largest)


def top(folder: Path) -> Path | None:
    """The work tree the folder is in; None where there is none, or no git."""
    try:
        said = _ask(folder, ("rev-parse", "--show-toplevel"), {}, None)
    except GitFailed:
        return None
    return Path(os.fsdecode(said.removesuffix(b"\n"))) if said.strip() else None


@cache
def _without_filters(folder: Path) -> dict[str, str]:
    """Settings that empty every filter the repository defines: git would run them on files of the work tree.

    Given as variables, because a filter's name may hold any character.
    """
    try:
        said = _ask(folder, ("config", "--null", "--name-only", "--get-regexp", r"^filter\."), {}, None)
    except GitFailed:
        return {}
    names = sorted({name.rpartition(".")[0] for name in os.fsdecode(said).split("\0") if name})
    if len(names) > MOST_FILTERS:
        raise GitFailed(f"the repository sets {len(names)} filters, which git would run")
    off = {"clean": "", "smudge": "", "process": "", "required": "false"}
    pairs = [(f"{name}.{key}", value) for name in names for key, value in off.items()]
    env = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env


def _ask(folder: Path, args: tuple[str, ...], settings: dict[str, str], largest: int | None) -> bytes:
    # Where the repository is follows from the folder alone, also inside of a hook.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--no-pager", *OFF, "-C", str(folder), *args]
    try:
        process = subprocess.Popen(
            command,
            env={**env, **ENVIRONMENT, **settings, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        hint = "Install it, or review a folder without --diff"
        raise GitFailed(f"git cannot be run: {error.strerror}. {hint}.") from None
    with process:
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise GitFailed(f"git took more than {SECONDS:g} s over this repository") from None
    if process.returncode:
        words = err.decode("utf-8", "replace").strip().splitlines()
        raise GitFailed(words[-1].removeprefix("fatal: ")[:300] if words else f"git ended with {process.returncode}")
    if largest is not None and len(out) > largest:
        raise GitFailed(f"it has {len(out) / 1e6:,.0f} MB")
    return out
