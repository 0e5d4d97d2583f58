"""A command -> its output: own process group, time limit, output cap; processes it started are killed with it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

__all__ = [
    "MAX_OUTPUT",
    "OnLine",
    "OutOfTime",
    "ProcessResult",
    "ProcessStopped",
    "TooMuchOutput",
    "kill_group",
    "run_process",
]

# More than any result needs: a child that writes without end must not fill the memory.
MAX_OUTPUT = 256 * 1024 * 1024
OnLine: TypeAlias = Callable[[bytes], None] | None
# How long killed processes may take to end.
GONE_S = 2.0


class ProcessStopped(Exception):
    """The process was killed at a limit."""


class OutOfTime(ProcessStopped):
    """It ran for longer than it may."""


class TooMuchOutput(ProcessStopped):
    """It wrote more than it may."""


class ProcessResult(NamedTuple):
    """How a process ended and what it wrote. A negative code is the signal that ended it."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def last_words(self) -> str:
        """The last line it wrote to stderr."""
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip()[:300] if lines else ""


async def run_process(
    command: Sequence[str],
    *,
    stdin: bytes = b"",
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float | None = None,
    max_output: int = MAX_OUTPUT,
    on_line: OnLine = None,
    on_error_line: OnLine = None,
) -> ProcessResult:
    """Run a command to its end. ProcessStopped past its limits, OSError if it cannot be started.

    Past a limit, and when cancelled, its whole process group is killed and waited for. `max_output` is for each stream.
    `on_line` gets each line of stdout as it is written, `on_error_line` each of stderr.
    """
    process = await _start(command, cwd, env)
    try:
        async with asyncio.timeout(seconds):
            return await _communicate(process, stdin, max_output, (on_line, on_error_line))
    except BaseException as error:
        # The leader may have ended while processes it started still hold its pipes.
        kill_group(process.pid)
        # A killed process ends at once; a second cancellation must not leave it unreaped.
        await asyncio.shield(_over(process))
        if isinstance(error, TimeoutError):
            raise OutOfTime(f"{seconds:g} s") from None
        raise


async def _start(command: Sequence[str], cwd: str | None, env: Mapping[str, str] | None) -> asyncio.subprocess.Process:
    """The process with its pipes. A start that is cancelled half-way would leave pipes open, so it is waited for."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            cwd=cwd,
            env=env,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait({starting})
        if starting.exception() is None:
            kill_group(starting.result().pid)
            await asyncio.shield(_over(starting.result()))
        raise


def kill_group(leader: int) -> None:
    """Kill a process that leads a group, and the whole group; nothing happens if they have ended."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


async def _communicate(
    process: asyncio.subprocess.Process, stdin: bytes, max_output: int, on_lines: tuple[OnLine, OnLine]
) -> ProcessResult:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_feed(process.stdin, stdin))
            out = group.create_task(_read(process.stdout, max_output, on_lines[0]))
            err = group.create_task(_read(process.stderr, max_output, on_lines[1]))
    except* TooMuchOutput:
        raise TooMuchOutput(f"{max_output // 1024} KB") from None
    return ProcessResult(await process.wait(), out.result(), err.result())


async def _feed(pipe: asyncio.StreamWriter, data: bytes) -> None:
    try:
        if data:
            pipe.write(data)
            await pipe.drain()
    except (BrokenPipeError, ConnectionResetError):
        # It ended without reading; its exit code says why.
        return
    except RuntimeError:
        # uvloop's exception for the same.
        if not pipe.is_closing():
            raise
    finally:
        pipe.close()


async def _read(pipe: asyncio.StreamReader, limit: int, on_line: OnLine) -> bytes:
    parts: list[bytes] = []
    line: list[bytes] = []
    size = 0
    while part := await pipe.read(65536):
        size += len(part)
        if size > limit:
            raise TooMuchOutput
        parts.append(part)
        if on_line is not None:
            *ended, rest = part.split(b"\n")
            for each in ended:
                on_line(b"".join([*line, each]))
                line.clear()
            line.append(rest)
    return b"".join(parts)


async def _over(process: asyncio.subprocess.Process) -> None:
    """Wait until the process and all that it started have ended: they hold the other ends of its pipes.

    The pipes are read to their ends meanwhile: with a full, unread pipe the end would not be noticed.
    """
    try:
        async with asyncio.timeout(GONE_S), asyncio.TaskGroup() as group:
            for pipe in (process.stdout, process.stderr):
                assert pipe is not None
                group.create_task(_drain(pipe))
            group.create_task(process.wait())
    except TimeoutError:
        return  # one of them left the group and is not ours to kill


async def _drain(pipe: asyncio.StreamReader) -> None:
    while await pipe.read(65536):
        continue
