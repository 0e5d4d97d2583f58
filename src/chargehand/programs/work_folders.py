"""The folders that programs of a run work in: made for each run of a program, removed after it or after a crash.

They are below the system's folder for temporary files, and not in the home of runs, which no program may see. Each
run holds a lock there while a process works on it: a folder whose lock is free was left behind.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from chargehand.errors import StorageError

_LOCK = "lock"


class WorkFolder(NamedTuple):
    """One run of a program: `work` is where it begins; it may write there, in `home` and in `tmp`."""

    path: Path

    @property
    def work(self) -> Path:
        return self.path / "work"

    @property
    def home(self) -> Path:
        return self.path / "home"

    @property
    def tmp(self) -> Path:
        return self.path / "tmp"

    @property
    def material(self) -> Path:
        return self.path / "material"

    @property
    def root(self) -> Path:
        """Where the new root is mounted."""
        return self.path / "root"

    @property
    def git(self) -> Path:
        """Our own copy of the checkout's .git, which the program never sees."""
        return self.path / "base.git"

    @property
    def writable(self) -> tuple[Path, ...]:
        return self.work, self.home, self.tmp

    def remove(self) -> None:
        _remove(self.path)


class WorkFolders:
    """The folders of one run in one session."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._folder: Path | None = None
        self._lock: int | None = None
        # Programs begin side by side, each in a thread.
        self._making = threading.Lock()

    def make(self) -> WorkFolder:
        """A new folder; blocking."""
        with self._making:
            around = self._folder or self._open()
        folder = WorkFolder(Path(tempfile.mkdtemp(dir=around, prefix="program-")).resolve())
        for part in (*folder.writable, folder.material, folder.root):
            part.mkdir(mode=0o700)
        return folder

    def _open(self) -> Path:
        top = _top()
        sweep(top)
        folder = top / self._run
        folder.mkdir(mode=0o700, exist_ok=True)
        self._lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._folder = folder
        return folder

    def close(self) -> None:
        """Remove all folders; nothing happens if none was made."""
        if self._folder is not None and self._lock is not None:
            _remove(self._folder)
            os.close(self._lock)
            self._folder = self._lock = None


def sweep(top: Path | None = None) -> None:
    """Remove the folders of runs whose process is gone."""
    with suppress(OSError, StorageError):
        for folder in (top or _top()).iterdir():
            with suppress(OSError):
                lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(folder)
                finally:
                    os.close(lock)


def _top() -> Path:
    """The folder that only this user may access: another user could otherwise have put a link there."""
    top = Path(tempfile.gettempdir()) / f"chargehand-programs-{os.getuid()}"
    try:
        top.mkdir(mode=0o700, exist_ok=True)
        found = top.lstat()
    except OSError as error:
        raise StorageError(f"There is no folder for programs to work in: {top}: {error.strerror}.") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise StorageError(f"{top} is not a folder of yours alone: remove it, or set TMPDIR to another folder.")
    return top


def _remove(folder: Path) -> None:
    """Remove all of it, including files that a program made unreadable. What cannot be removed is left."""

    def allow(function: Callable[..., object], path: str, _: object) -> None:
        with suppress(OSError):
            for each in (os.path.dirname(path), path):
                if not os.path.islink(each):
                    os.chmod(each, 0o700)
            function(path)

    shutil.rmtree(folder, onerror=allow)
    shutil.rmtree(folder, ignore_errors=True)
