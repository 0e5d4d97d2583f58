"""Access of a call to the machine becomes words. Python itself reports it, whatever function was used.

Reading counts outside the project and installed packages, or if it finds nothing; all other access always counts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_READING = ("open", "os.listdir", "os.scandir")
_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_EVENTS = {
    **dict.fromkeys(_READING, "the machine"),
    **{f"os.{name}": "files" for name in ("chmod", "chown", "link", "mkdir", "remove", "rename", "rmdir", "symlink")},
    **dict.fromkeys(("os.truncate", "os.utime", "shutil.move", "shutil.rmtree"), "files"),
    **{f"os.{name}": "processes" for name in ("exec", "fork", "forkpty", "kill", "killpg", "posix_spawn", "system")},
    **dict.fromkeys(("os.spawn", "pty.spawn", "signal.pthread_kill", "subprocess.Popen"), "processes"),
    **{f"socket.{name}": "the network" for name in ("bind", "connect", "getaddrinfo", "gethostbyname", "sendto")},
    **{f"socket.{name}": "the network" for name in ("gethostbyaddr", "gethostname", "getnameinfo", "sendmsg")},
}


class Reached:
    """Listens while code is tried, and reports each thing once. It lasts as long as the process."""

    def __init__(self, project: Path, report: Callable[[str], None]) -> None:
        self._project = str(project)
        self._home = str(project.parent / "home")
        # The test tools keep tables here.
        self._own = os.environ.get("HYPOTHESIS_STORAGE_DIRECTORY", os.devnull)
        # hypothesis reads every module that is not installed, to find constants to try; ours are in this folder.
        self._readable = tuple(filter(None, (self._project, str(Path(__file__).parent), *sys.path)))
        self._report = report
        self._told: set[str] = set()
        self._listening = False
        sys.addaudithook(self._hear)

    @contextmanager
    def listening(self) -> Generator[None]:
        self._listening = True
        try:
            yield
        finally:
            self._listening = False

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        if not self._listening or event not in _EVENTS:
            return
        what = self._of_file(event, given) if _EVENTS[event] in ("files", "the machine") else _EVENTS[event]
        if what is not None and what not in self._told:
            self._told.add(what)
            self._report(what if ": " in what else f"{what}: {event}")

    def _of_file(self, event: str, given: tuple[Any, ...]) -> str | None:
        try:
            path = os.path.abspath(os.fsdecode(given[0]))
        except (TypeError, ValueError):
            return None  # an open file by its number
        # An import looks for compiled code first, and a time zone in several places.
        if path == os.devnull or path.endswith(".pyc") or "/zoneinfo" in path or _below(path, self._own):
            return None
        shown = path.replace(f"{self._project}/", "").replace(self._home, "~")
        if event not in _READING or (event == "open" and given[2] & _WRITE):
            return f"files: {shown}"
        if not any(_below(path, folder) for folder in self._readable):
            return f"the machine: {shown}"
        return None if event != "open" or os.path.exists(path) else f"a file that is not there: {shown}"


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
