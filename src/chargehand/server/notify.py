"""A run that ended or needs a person -> one start of the program of --notify: no shell, {run, status, url} on stdin."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress

from chargehand.server.log_lines import LogLines

# A program that takes longer is stopped.
LONGEST_S = 60.0


class Notifier:
    """Starts the program. Its failures are logged and have no other effect. Belongs to one event loop."""

    def __init__(self, argv: Sequence[str], url: str, log: LogLines) -> None:
        self._argv = tuple(argv)
        self._url = url
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()

    def notify(self, run: str, status: str) -> None:
        if self._argv:
            task = asyncio.create_task(self._start(run, status), name=f"notify {run}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait for programs under way."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    async def _start(self, run: str, status: str) -> None:
        said = json.dumps({"run": run, "status": status, "url": f"{self._url}runs/{run}"}) + "\n"
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
            )
        except OSError as error:
            self._log.write("notify failed", run=run, error=f"{self._argv[0]}: {error.strerror}")
            return
        try:
            async with asyncio.timeout(LONGEST_S):
                await process.communicate(said.encode())
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            self._log.write("notify failed", run=run, error=f"{self._argv[0]}: stopped after {LONGEST_S:g} s")
        else:
            if process.returncode:
                self._log.write("notify failed", run=run, error=f"{self._argv[0]}: exit code {process.returncode}")
