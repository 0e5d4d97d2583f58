"""The machine becomes what code in the sandbox sees of it: Python, what is installed for it, the system's libraries."""

from __future__ import annotations

import importlib.util
import json
import os
import site
import sys
import sysconfig
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, assert_never

Means: TypeAlias = Literal["bwrap", "unshare", "none"]

INSIDE = Path(__file__).resolve().parent / "in_sandbox"
# The user root's sandbox runs as; `in_sandbox/enter_sandbox.py` has it too, because it imports nothing of ours.
NOBODY = 65534
TOOLS = ("hypothesis", "pytest", "coverage", "black")
# What differs on other machines: the time zone, and the width of the terminal.
ABROAD = {"TZ": "XXX-11:45", "COLUMNS": "61"}
# How much all files in a room may take, in bytes.
SCRATCH = 256 << 20
_SPACES = ("--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
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


def command(folder: Path, means: Means) -> list[str]:
    """What starts run_limited.py, sealed off by those means; `folder` holds the room."""
    runner = [sys.executable, "-I", "-S", "-B", str(INSIDE / "run_limited.py")]
    match means:
        case "none":
            return runner
        case "bwrap":
            return [*_bwrap(folder), *runner]
        case "unshare":
            as_root = os.geteuid() == 0
            spaces = ["unshare", "--user", "--keep-caps" if as_root else "--map-root-user", *_SPACES]
            order = {
                # As root it is `enter` that starts it, and gives it another user.
                "start": spaces if as_root else None,
                "root_outside": as_root,
                "outside": {name: os.readlink(f"/proc/self/ns/{name}") for name in ("user", "mnt", "pid", "net")},
                "root": str(folder / "root"),
                "read_only": [*_visible(), str(folder / "source"), str(folder / "tables")],
                "scratch": str(folder / "scratch"),
                "scratch_size": str(SCRATCH),
                "command": runner,
            }
            enter = [sys.executable, "-I", "-S", "-B", str(INSIDE / "enter_sandbox.py"), json.dumps(order)]
            return enter if as_root else [*spaces, *enter]
        case _:
            assert_never(means)


def start_program(module: str, then: str) -> str:
    """Python source that imports a module of INSIDE, leaves nothing of ours on the path, and continues."""
    path = f"import sys; sys.path.insert(0, {str(INSIDE.parent)!r}); "
    return f"{path}from {INSIDE.name} import {module}; del sys.path[0]; {then}"


def _bwrap(folder: Path) -> list[str]:
    made = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--as-pid-1"]
    for path in [*_visible(), str(folder / "source"), str(folder / "tables")]:
        linked = Path(path).is_symlink()
        made += ["--symlink", str(Path(path).readlink()), path] if linked else ["--ro-bind", path, path]
    made += ["--proc", "/proc", "--dev", "/dev", "--size", str(SCRATCH), "--tmpfs", str(folder / "scratch")]
    return [*made, "--remount-ro", "/", "--chdir", "/", "--"]


@cache
def _visible() -> tuple[str, ...]:
    """All that exists inside in addition to the copy: Python, what is installed for it, the system's libraries."""
    wanted = [
        *_SYSTEM,
        *(f"/etc/{name}" for name in _SETTINGS),
        sys.base_prefix,
        sys.prefix,
        *installed_folders(),
        str(INSIDE),
    ]
    wanted.append(str(Path(sys.executable).resolve().parent.parent))
    found: list[str] = []
    for path in sorted(
        {str(Path(p).absolute()) for p in wanted if Path(p).exists()}, key=lambda p: (len(Path(p).parts), p)
    ):
        if path != "/" and not any(Path(path).is_relative_to(known) for known in found if not Path(known).is_symlink()):
            found.append(path)
    return tuple(found)


@cache
def installed_folders() -> tuple[str, ...]:
    """Folders that packages are installed in, the user's own included where Python looks there."""
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    folders += [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    for name in TOOLS:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            folders.append(str(Path(spec.origin).parent.parent))
    return tuple(dict.fromkeys(folder for folder in folders if Path(folder).is_dir()))


def environment(scratch: Path, paths: Sequence[str]) -> dict[str, str]:
    """Nothing of the caller's environment: it may hold keys."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(scratch / "home"),
        "TMPDIR": str(scratch / "tmp"),
        "LANG": "C.UTF-8",
        "PYTHONPATH": ":".join([*(str(scratch / "project" / path) for path in paths), *installed_folders()]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",
        "PYTHONHASHSEED": "0",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(scratch / "tmp" / "hypothesis"),
        "NO_COLOR": "1",
        "COLUMNS": "120",
    }
