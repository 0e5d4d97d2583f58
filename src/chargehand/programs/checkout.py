"""A repository -> a checkout for one program, and what the program changed there as a patch.

It is not a `git worktree`: a program that may write to a worktree writes to the repository's own .git, where hooks and
settings are code, and garbage collection there fails on objects that are elsewhere. The checkout is a repository of its
own that borrows the objects of the first, read-only. Changes are found with our own copy of its .git, never with
settings that the program may have left.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from chargehand.process import OutOfTime, ProcessResult, TooMuchOutput, run_process
from chargehand.programs.work_folders import WorkFolder

# Nobody reads a longer patch.
LONGEST_PATCH = 8 << 20
_GIT_S = 120.0
_ALONE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
_OPTIONS = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.attributesFile=/dev/null",
    "-c", "gc.auto=0", "-c", "protocol.allow=never", "-c", "safe.directory=*", "-c", "core.longpaths=true",
)  # fmt: skip


class CheckoutFailed(Exception):
    """There is no checkout, or its changes cannot be told; the message says why and what to do."""


class Repository(NamedTuple):
    """A repository in the material: its objects, and the revision that is checked out."""

    folder: Path
    objects: Path
    base: str
    format: str


async def find_repository(paths: Sequence[str]) -> Repository:
    """The repository of the first material that is in one with a commit."""
    for path in paths:
        folder = await asyncio.to_thread(_folder_of, path)
        found = await _git(["rev-parse", "--show-object-format", "--git-path", "objects", "HEAD"], folder)
        if found.code != 0:
            continue
        format, objects, base = os.fsdecode(found.stdout).splitlines()
        place = await asyncio.to_thread((folder / objects).resolve)
        return Repository(folder, place, base, format)
    raise CheckoutFailed(
        "A worker with `worktree` needs a git repository with a commit in the material: give it with `--with`."
    )


async def current_base(paths: Sequence[str]) -> str | None:
    """The revision that a checkout would use now; None if there is no repository."""
    try:
        return (await find_repository(paths)).base
    except CheckoutFailed:
        return None


def _folder_of(path: str) -> Path:
    return Path(path) if os.path.isdir(path) else Path(path).parent


async def check_out(repository: Repository, folder: WorkFolder) -> None:
    """Put the files of the revision into the work folder, with their own .git, and keep a copy of this .git."""
    made = await _git(["init", "-q", "--template=", f"--object-format={repository.format}", "."], folder.work)
    _check(made, "git init")
    dot_git = folder.work / ".git"
    await asyncio.to_thread(_borrow_objects, repository, dot_git)
    _check(await _git(["checkout", "-q", "--detach", repository.base], folder.work), "git checkout")
    await asyncio.to_thread(shutil.copytree, dot_git, folder.git)


def _borrow_objects(repository: Repository, dot_git: Path) -> None:
    (dot_git / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (dot_git / "objects" / "info" / "alternates").write_bytes(os.fsencode(repository.objects) + b"\n")
    # The commits of a shallow clone have no parents. This file says so.
    if (shallow := repository.objects.parent / "shallow").is_file():
        shutil.copyfile(shallow, dot_git / "shallow")
    settings = "[core]\n\thooksPath = /dev/null\n[user]\n\tname = chargehand\n\temail = chargehand@localhost\n"
    with (dot_git / "config").open("a", encoding="utf-8") as file:
        file.write(f"{settings}[gc]\n\tauto = 0\n[advice]\n\tdetachedHead = false\n")


async def changes_in(folder: WorkFolder, base: str) -> str:
    """The program's changes, committed or not, as a patch for `git apply`; "" when there are none."""
    own = ["--git-dir", str(folder.git), "--work-tree", str(folder.work)]
    # The program's own repository may be broken or forged: it is not read and not part of its changes.
    await asyncio.to_thread(_remove_repository, folder.work / ".git")
    _check(await _git([*own, "add", "-A", "."], folder.work), "git add")
    shown = ["diff", "--cached", "--binary", "--no-ext-diff", "--no-textconv", "--no-color", base]
    try:
        found = await _git([*own, *shown], folder.work, LONGEST_PATCH)
    except TooMuchOutput:
        raise CheckoutFailed(f"The changes are a patch of more than {LONGEST_PATCH >> 20} MB.") from None
    _check(found, "git diff")
    return found.stdout.decode("utf-8", "surrogateescape").encode("utf-8", "replace").decode()


def _remove_repository(dot_git: Path) -> None:
    if dot_git.is_dir() and not dot_git.is_symlink():
        shutil.rmtree(dot_git, ignore_errors=True)
    else:
        dot_git.unlink(missing_ok=True)


async def _git(arguments: Sequence[str], folder: Path, most: int = 1 << 20) -> ProcessResult:
    env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.devnull, **_ALONE}
    try:
        command = ["git", *_OPTIONS, *arguments]
        return await run_process(command, cwd=str(folder), env=env, seconds=_GIT_S, max_output=most)
    except OutOfTime:
        raise CheckoutFailed(f"git {arguments[0]} took longer than {_GIT_S:g} s.") from None
    except OSError as error:
        raise CheckoutFailed(f"git cannot be run: {error.strerror}: install git.") from None


def _check(result: ProcessResult, what: str) -> None:
    if result.code != 0:
        raise CheckoutFailed(f"{what} ended with code {result.code}: {result.last_words}")
