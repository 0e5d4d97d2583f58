"""A command becomes its output: own process group, time limit, output cap, an environment without surprises."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chargehand.errors import AnalyzerFailed

SECONDS = 300.0
# How long what was killed may take to be gone.
GONE_S = 2.0
MAX_OUTPUT = 64 * 1024 * 1024
# What a tool may know of where it runs. No PYTHON*, GIT_*, RUFF_* or LD_* variable gets through.
KEPT = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a process ended and what it wrote."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def last_words(self) -> str:
        """The last line it wrote to stderr."""
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip()[:300] if lines else ""


async def run(
    command: Sequence[str],
    *,
    tool: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
    max_output: int = MAX_OUTPUT,
) -> ProcessResult:
    """Run a command to its end outside the reviewed tree. AnalyzerFailed past its limits; killed when cancelled."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            # Not the reviewed tree: a tool may load code or configuration from where it stands.
            cwd=os.sep,
            env={**environment(), **(env or {})},
        )
    except OSError as error:
        raise AnalyzerFailed(f"{tool} could not be started: {error.strerror or error}.") from error
    try:
        async with asyncio.timeout(seconds):
            return await _communicate(process, stdin, tool, max_output)
    except TimeoutError:
        raise AnalyzerFailed(f"{tool} was stopped after {seconds:g} s; review fewer files at once.") from None
    finally:
        if process.returncode is None:
            _kill_group(process.pid)
            # A killed process ends at once; a second cancellation must not leave it unreaped.
            await asyncio.shield(_over(process))


def environment() -> dict[str, str]:
    """The variables a tool gets."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**kept, "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}


async def _communicate(process: asyncio.subprocess.Process, stdin: bytes, tool: str, max_output: int) -> ProcessResult:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_feed(process.stdin, stdin))
            out = group.create_task(_read(process.stdout, max_output))
            err = group.create_task(_read(process.stderr, max_output))
    except* _TooMuch:
        message = f"{tool} wrote more than {max_output // 1024} KB; review fewer files at once."
        raise AnalyzerFailed(message) from None
    return ProcessResult(await process.wait(), out.result(), err.result())


class _TooMuch(Exception):
    """More output than the cap."""


async def _feed(pipe: asyncio.StreamWriter, data: bytes) -> None:
    try:
        pipe.write(data)
        await pipe.drain()
    except (BrokenPipeError, ConnectionResetError):
        # It ended without reading; its exit code says why.
        return
    finally:
        pipe.close()


async def _read(pipe: asyncio.StreamReader, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := await pipe.read(65536):
        size += len(part)
        if size > limit:
            raise _TooMuch
        parts.append(part)
    return b"".join(parts)


async def _over(process: asyncio.subprocess.Process) -> None:
    """Until the process is gone, and all that it started: they hold the other ends of its pipes.

    The pipes are read to their ends meanwhile: one that is full and unread would keep the end from being noticed.
    """
    try:
        async with asyncio.timeout(GONE_S), asyncio.TaskGroup() as group:
            for pipe in (process.stdout, process.stderr):
                assert pipe is not None
                group.create_task(_drain(pipe))
            group.create_task(process.wait())
    except TimeoutError:
        return  # one of them has left the group: it is not ours to end


async def _drain(pipe: asyncio.StreamReader) -> None:
    while await pipe.read(65536):
        continue


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
