"""A project's folder becomes a copy that can be run: without what is large, secret, made by tools."""

from __future__ import annotations

import shutil
from pathlib import Path

from chargehand.errors import UsageError

MEGABYTE = 1 << 20
_LEFT_OUT = (
    ".env*",
    ".git",
    ".hg",
    ".svn",
    ".venv",
    "venv",
    "env",
    "node_modules",
    "__pycache__",
    ".tox",
    ".nox",
    ".*_cache",
)
_MOST_BYTES_COPIED = 128 * MEGABYTE


def snapshot(project: Path, target: Path) -> None:
    """A copy without what is not needed to run the code; links are kept as links."""
    seen = 0

    def left_out(folder: str, names: list[str]) -> set[str]:
        nonlocal seen
        ignored = shutil.ignore_patterns(*_LEFT_OUT)(folder, names)
        for name in names:
            path = Path(folder, name)
            if name in ignored or path.is_symlink():
                continue
            if path.is_dir():
                # A virtual environment under whatever name.
                if (path / "pyvenv.cfg").exists():
                    ignored.add(name)
            elif not path.is_file():
                ignored.add(name)  # a socket, a pipe
            elif (size := path.stat().st_size) > _MOST_BYTES_COPIED // 8 and path.suffix != ".py":
                ignored.add(name)
            else:
                seen += size
        if seen > _MOST_BYTES_COPIED:
            raise UsageError(
                f"{project} holds more than {_MOST_BYTES_COPIED // MEGABYTE} MB to copy: name a smaller folder."
            )
        return ignored

    shutil.copytree(project, target, symlinks=True, ignore=left_out)
