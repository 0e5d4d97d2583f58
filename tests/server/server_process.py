"""A server as a process of its own, which can be killed and started again on the same port."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from chargehand.server.run_server import ServeOptions, listen
from chargehand.server.shared_state import Server
from tests.crash.stage import ROOT, clean_environment
from tests.pace import PATIENCE_S
from tests.server.serving import TOKEN, Client


class ServerProcess:
    """`chargehand serve` on a home in a folder, with a scripted model; it may write files of at most `most_bytes`."""

    def __init__(self, folder: Path, script: dict[str, Any], *flags: str, most_bytes: int | None = None) -> None:
        file = folder / "script.json"
        file.write_text(json.dumps(script))
        self.home = folder / "home"
        with listen(ServeOptions(port=0)) as free:
            self.port = free.getsockname()[1]
        self._flags = ["serve", "--port", str(self.port), *flags]
        self._most_bytes = most_bytes
        self._log = folder / "log.txt"
        self.environment = clean_environment(
            CHARGEHAND_HOME=str(self.home),
            CHARGEHAND_MODEL=f"scripted:{file}",
            CHARGEHAND_TOKEN=TOKEN,
            HOME=str(folder),
        )
        self.client = Client(self.port, cast(Server, None))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        before = len(self.log)
        limit = (
            ""
            if self._most_bytes is None
            else f"resource.setrlimit(resource.RLIMIT_FSIZE, ({self._most_bytes},) * 2); "
        )
        command = f"import resource; {limit}from chargehand.cli import main; main({self._flags!r})"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen([sys.executable, "-c", command], env=self.environment, cwd=ROOT, stderr=log)
        until = time.monotonic() + PATIENCE_S
        # It listens before it says so.
        while "Open http" not in self.log[before:]:
            with suppress(subprocess.TimeoutExpired):
                raise AssertionError(f"It ended with {self.process.wait(0.02)}: {self.log}")
            assert time.monotonic() < until, self.log

    @property
    def log(self) -> str:
        """What it has written to its standard error, of all its starts."""
        return self._log.read_text() if self._log.exists() else ""

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def server_process(
    folder: Path, script: dict[str, Any], *flags: str, most_bytes: int | None = None, **environment: str
) -> Iterator[ServerProcess]:
    """A server that has started; killed at the end of the block, if it did not end before."""
    server = ServerProcess(folder, script, *flags, most_bytes=most_bytes)
    server.environment |= environment
    server.start()
    try:
        yield server
    finally:
        if server.process is not None:
            server.process.kill()
            server.process.wait()
