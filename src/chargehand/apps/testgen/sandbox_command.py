"""The machine becomes what code in the sandbox sees: Python, what is installed for it, the system's libraries."""

from __future__ import annotations

import importlib.util
import site
import sys
import sysconfig
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from chargehand.process.namespaces import (
    SYSTEM,
    SYSTEM_SETTINGS,
    Enclosure,
    Means,
    enter_command,
    existing_paths,
)

INSIDE = Path(__file__).resolve().parent / "in_sandbox"
TOOLS = ("hypothesis", "pytest", "coverage", "black")
# Settings that differ between machines: the time zone, and the width of the terminal.
ABROAD = {"TZ": "XXX-11:45", "COLUMNS": "61"}
# The most bytes of all files in the sandbox.
SCRATCH = 256 << 20


def command(folder: Path, means: Means) -> list[str]:
    """The command that starts run_limited.py, isolated by these means; `folder` holds the room."""
    runner = [sys.executable, "-I", "-S", "-B", str(INSIDE / "run_limited.py")]
    seen = Enclosure(
        root=folder / "root",
        read_only=[*_visible(), str(folder / "source"), str(folder / "tables")],
        scratch={str(folder / "scratch"): SCRATCH},
    )
    return enter_command(runner, means, seen)


def start_program(module: str, then: str) -> str:
    """Python source that imports a module of INSIDE, leaves nothing of chargehand on the path, and continues."""
    path = f"import sys; sys.path.insert(0, {str(INSIDE.parent)!r}); "
    return f"{path}from {INSIDE.name} import {module}; del sys.path[0]; {then}"


@cache
def _visible() -> tuple[str, ...]:
    """Everything inside in addition to the copy: Python, what is installed for it, the system's libraries."""
    wanted = [*SYSTEM, *SYSTEM_SETTINGS, sys.base_prefix, sys.prefix, *installed_folders(), str(INSIDE)]
    wanted.append(str(Path(sys.executable).resolve().parent.parent))
    return existing_paths(wanted)


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
    """Variables without those of the caller, which may hold keys."""
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
