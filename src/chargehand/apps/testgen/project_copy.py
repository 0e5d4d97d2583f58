"""A project's folder becomes a copy that can be run, without large files, secrets and files made by tools."""

from __future__ import annotations

import hashlib
import os
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
    "node_modules",
    "__pycache__",
    ".tox",
    ".nox",
    ".*_cache",
)
_MOST_BYTES_COPIED = 128 * MEGABYTE


def snapshot(project: Path, target: Path) -> None:
    """A copy with only what is needed to run the code. Links stay links."""
    shutil.copytree(project, target, symlinks=True, ignore=_Filter(project))


def digest(project: Path) -> str:
    """A hash of everything a snapshot would hold, by name and content. UsageError if it is too much to copy."""
    whole, left_out = hashlib.sha256(), _Filter(project)
    for folder, folders, names in os.walk(project):
        ignored = left_out(folder, [*folders, *names])
        folders[:] = sorted(name for name in folders if name not in ignored)
        for name in sorted({*names, *folders} - ignored):
            path = Path(folder, name)
            if path.is_symlink():
                content = os.fsencode(path.readlink())
            elif path.is_dir():
                content = b"a folder"
            else:
                content = _content(path)
            for part in (os.fsencode(path.relative_to(project)), content):
                whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise UsageError(f"{path} cannot be read, so the project cannot be copied: {error.strerror}.") from None


class _Filter:
    """Names what is left out of each folder, and counts the rest."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._seen = 0

    def __call__(self, folder: str, names: list[str]) -> set[str]:
        ignored = shutil.ignore_patterns(*_LEFT_OUT)(folder, names)
        for name in names:
            path = Path(folder, name)
            if name in ignored or path.is_symlink():
                continue
            if path.is_dir():
                # A virtual environment with any name.
                if (path / "pyvenv.cfg").exists():
                    ignored.add(name)
            elif not path.is_file():
                ignored.add(name)  # a socket, a pipe
            elif (size := path.stat().st_size) > _MOST_BYTES_COPIED // 8 and path.suffix != ".py":
                ignored.add(name)
            else:
                self._seen += size
        if self._seen > _MOST_BYTES_COPIED:
            raise UsageError(
                f"{self._project} holds more than {_MOST_BYTES_COPIED // MEGABYTE} MB to copy: name a smaller folder."
            )
        return ignored
