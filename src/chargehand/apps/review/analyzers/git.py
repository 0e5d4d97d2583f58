"""A git command -> its output. Everything that a repository can make git run is switched off.

A command that looks at the working tree needs every filter emptied first (`review/work_tree.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from chargehand.apps.review.analyzers import tool_process
from chargehand.apps.review.analyzers.source_files import MAX_BYTES
from chargehand.errors import AnalyzerFailed
from chargehand.process import ProcessResult

OFF = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.pager=cat"),
    *("-c", "core.sshCommand=false"),
    *("-c", "core.askPass=true"),
    *("-c", "diff.external="),
    *("-c", "log.showSignature=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "color.ui=false"),
    # Settings that may name other files: git would read an endless file forever.
    *("-c", "diff.orderFile=/dev/null"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "mailmap.file=/dev/null"),
    *("-c", "core.quotePath=false"),
)
ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
}
# For every command that shows or compares content.
PLAIN = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
SECONDS = 60.0
# So many of the largest files that are read are less than the most that git may print.
FILES_AT_ONCE = 25


async def ask(root: Path, *arguments: str) -> str | None:
    """The output of git; None if git fails (no repository, unknown revision or path)."""
    answer = await ask_bytes(root, *arguments)
    return None if answer is None else answer.decode("utf-8", "surrogateescape")


async def ask_bytes(root: Path, *arguments: str, stdin: bytes = b"") -> bytes | None:
    """The same as bytes, for content of any encoding."""
    ended = await run(root, *arguments, stdin=stdin)
    if ended.code < 0:
        raise AnalyzerFailed(f"git {arguments[0]} was ended by signal {-ended.code}.")
    return ended.stdout if ended.code == 0 else None


async def run(root: Path, *arguments: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> ProcessResult:
    """Run git in a folder. Only the folder decides which repository is used, also inside a hook."""
    command = ["git", "--no-pager", *OFF, "-C", str(root), *arguments]
    env = {**ENVIRONMENT, **(env or {})}
    return await tool_process.run(command, tool="git", env=env, stdin=stdin, seconds=SECONDS)


async def read_files(root: Path, commit: str, paths: Sequence[str]) -> dict[str, bytes]:
    """Path -> its content in a commit, without files that are not there or too large. One git reads many files."""
    found: dict[str, bytes] = {}
    for start in range(0, len(paths), FILES_AT_ONCE):
        listed = await ask(root, "ls-tree", "-z", "-l", commit, "--", *paths[start : start + FILES_AT_ONCE])
        ids: dict[str, str] = {}
        for row in (listed or "").split("\0")[:-1]:
            about, _, path = row.partition("\t")
            _, _, id, size = about.split()
            # Folders and submodules have no size, nor has an object that is missing in a partial clone.
            if size.isdigit() and int(size) <= MAX_BYTES:
                ids[path] = id
        if ids:
            batch = await ask_bytes(root, "cat-file", "--batch", stdin="\n".join([*ids.values(), ""]).encode())
            found |= zip(ids, _contents(batch or b""), strict=False)
    return {path: found[path] for path in paths if path in found}


def _contents(batch: bytes) -> Iterator[bytes]:
    """The contents in the output of `cat-file --batch`, each after a line with its size."""
    start = 0
    while (end := batch.find(b"\n", start)) >= 0:
        size = int(batch[start:end].split()[-1])
        yield batch[end + 1 : end + 1 + size]
        start = end + size + 2


async def blame(root: Path, *arguments: str) -> str | None:
    """The output of `git blame`; None also if a setting of the repository makes it read something that is not a file.

    That setting is a list, which options cannot empty.
    """
    named = await ask(root, "config", "--null", "--type=path", "--get-all", "blame.ignoreRevsFile")
    paths = [root / name for name in (named or "").split("\0") if name]
    if any(path.exists() and not path.is_file() for path in paths):
        return None
    return await ask(root, "blame", *arguments)


async def is_repository(root: Path) -> bool:
    return (await ask(root, "rev-parse", "--is-inside-work-tree") or "").strip() == "true"


async def commit(root: Path, revision: str) -> str | None:
    """The id of a commit by any of its names; None if there is none. A name is never read as an option."""
    found = await ask(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return found.strip() if found else None
