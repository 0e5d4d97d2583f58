"""Calls of git about a work tree that run nothing the repository configures."""

from __future__ import annotations

import asyncio
import os
from functools import cache
from pathlib import Path

from chargehand.apps.review.analyzers.git import run
from chargehand.errors import AnalyzerFailed, UsageError

# A repository with more filters than this is not asked about its work tree.
MOST_FILTERS = 200


class GitFailed(UsageError):
    """git could not answer."""


def ask(folder: Path, *args: str, largest: int | None = None, index: str | None = None) -> bytes:
    """The output of git. Raises GitFailed with its message if it fails, or if the output exceeds `largest` bytes."""
    env = _without_filters(folder)
    return _ask(folder, args, env if index is None else {**env, "GIT_INDEX_FILE": index}, largest)


def index(folder: Path) -> str | None:
    """The index of the commit for which a hook runs: `commit -a` has its own. None means the usual index."""
    named = os.environ.get("GIT_INDEX_FILE")
    if not named:
        return None
    own = Path(os.fsdecode(_ask(folder, ("rev-parse", "--absolute-git-dir"), {}, None).removesuffix(b"\n"))).resolve()
    path = (folder / named).resolve()
    return str(path) if path.is_relative_to(own) and path.is_file() else None


def top(folder: Path) -> Path | None:
    """The work tree that contains the folder; None if there is none, or no git.

    A repository may name another work tree: that one has no `.git`, or does not contain the folder, and is not used.
    """
    try:
        said = _ask(folder, ("rev-parse", "--show-toplevel"), {}, None)
    except GitFailed:
        return None
    if not said.strip():
        return None
    found = Path(os.fsdecode(said.removesuffix(b"\n"))).resolve()
    return found if folder.resolve().is_relative_to(found) and os.path.lexists(found / ".git") else None


@cache
def _without_filters(folder: Path) -> dict[str, str]:
    """Settings that empty every filter of the repository: git would run them on files of the work tree.

    They are variables, because the name of a filter may contain any character.
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
    try:
        ended = asyncio.run(run(folder, *args, env=settings))
    except AnalyzerFailed as error:
        raise GitFailed(str(error).removesuffix(".")) from None
    if ended.code:
        raise GitFailed(ended.last_words.removeprefix("fatal: ") or f"git ended with {ended.code}")
    if largest is not None and len(ended.stdout) > largest:
        raise GitFailed(f"it has {len(ended.stdout) / 1e6:,.0f} MB")
    return ended.stdout
