"""A command and what it may see of the machine -> the command that starts it in namespaces of its own.

bubblewrap makes the namespaces, or unshare and our own `enter_namespaces.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, assert_never

Means: TypeAlias = Literal["bwrap", "unshare", "none"]

# The user that root's sandbox runs as. `enter_namespaces.py` repeats it, because it imports no module of chargehand.
NOBODY = 65534
ENTER = Path(__file__).resolve().parent / "enter_namespaces.py"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
_SETTINGS = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "passwd",
    "group",
    "nsswitch.conf",
    "alternatives",
)
SYSTEM_SETTINGS = tuple(f"/etc/{name}" for name in _SETTINGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosure:
    """All that exists for a command. `root` is an empty folder for the new root."""

    root: Path
    read_only: Sequence[str] = ()
    writable: Sequence[str] = ()
    # Real path -> where it is seen instead, read-only.
    shown_at: Mapping[str, str] = field(default_factory=dict[str, str])
    # Folder -> how many bytes it may hold, in memory.
    scratch: Mapping[str, int] = field(default_factory=dict[str, int])
    network: bool = False
    # The working folder of the command; None means the root.
    folder: str | None = None
    # Whether a process that adopts orphans starts the command. Otherwise the command is the first process itself.
    reaps: bool = False


def order_of_preference() -> tuple[Literal["bwrap", "unshare"], ...]:
    """As root, unshare comes first: only then does the code run as another user."""
    return ("unshare", "bwrap") if os.geteuid() == 0 else ("bwrap", "unshare")


def enter_command(command: Sequence[str], means: Means, seen: Enclosure) -> list[str]:
    """The command line that starts the command, isolated by those means."""
    match means:
        case "none":
            return [*command]
        case "bwrap":
            return [*_bwrap(seen), *command]
        case "unshare":
            return _unshare(command, seen)
        case _:
            assert_never(means)


def existing_paths(wanted: Sequence[str]) -> tuple[str, ...]:
    """The paths that exist, without those inside others; outer paths come first."""
    found: list[str] = []
    known = {str(Path(path).absolute()) for path in wanted if Path(path).exists()}
    for path in sorted(known, key=lambda p: (len(Path(p).parts), p)):
        if path != "/" and not any(Path(path).is_relative_to(each) for each in found if not Path(each).is_symlink()):
            found.append(path)
    return tuple(found)


def die_with_caller(command: Sequence[str]) -> list[str]:
    """The command, started so that the kernel kills it when its parent process is gone, if the system supports it."""
    return ["setpriv", "--pdeathsig", "KILL", "--", *command] if shutil.which("setpriv") else [*command]


def give_to_nobody(*folders: Path) -> None:
    """Give root's folders to the user inside the sandbox: files that only their owner may read stay readable."""
    for top in folders:
        for folder, folders_in_it, files in os.walk(top):
            for name in (".", *folders_in_it, *files):
                os.chown(Path(folder, name), NOBODY, NOBODY, follow_symlinks=False)


def _unshare(command: Sequence[str], seen: Enclosure) -> list[str]:
    as_root = os.geteuid() == 0
    # A command may refuse to work as root, and otherwise it would be mapped to root.
    user = [] if as_root else ["--map-current-user"] if seen.reaps else ["--map-root-user"]
    spaces = ["--mount", *([] if seen.network else ["--net"]), "--ipc", "--uts", "--pid", "--fork", "--kill-child"]
    keeps = ["--keep-caps"] if as_root or seen.reaps else []
    start = ["unshare", "--user", *user, *keeps, *spaces]
    names = ("user", "mnt", "pid", *(() if seen.network else ("net",)))
    order = {
        # As root, `enter` starts unshare and gives the command another user.
        "start": start if as_root else None,
        "root_outside": as_root,
        "outside": {name: os.readlink(f"/proc/self/ns/{name}") for name in names},
        "root": str(seen.root),
        "read_only": list(seen.read_only),
        "writable": list(seen.writable),
        "shown_at": list(seen.shown_at.items()),
        "scratch": {folder: str(size) for folder, size in seen.scratch.items()},
        "folder": seen.folder,
        "reaps": seen.reaps,
        "command": list(command),
    }
    enter = [sys.executable, "-I", "-S", "-B", str(ENTER), json.dumps(order)]
    return enter if as_root else [*start, *enter]


# The most shared memory of the processes, in bytes.
_SHARED = 16 << 20


def _bwrap(seen: Enclosure) -> list[str]:
    made = [
        "bwrap",
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]
    made += [] if seen.reaps else ["--as-pid-1"]
    made += ["--share-net"] if seen.network else []
    for path in seen.read_only:
        linked = Path(path).is_symlink()
        made += ["--symlink", str(Path(path).readlink()), path] if linked else ["--ro-bind", path, path]
    shared = "/dev/shm"  # noqa: S108 -- inside, where nobody else is
    # bubblewrap's own /dev can be written to without a limit.
    made += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--size", str(_SHARED), "--tmpfs", shared]
    made += ["--remount-ro", "/dev"]
    for folder in seen.writable:
        made += ["--bind", folder, folder]
    for source, at in seen.shown_at.items():
        made += ["--ro-bind", source, at]
    for folder, size in seen.scratch.items():
        made += ["--size", str(size), "--tmpfs", folder]
    return [*made, "--remount-ro", "/", "--chdir", seen.folder or "/", "--"]
