"""Runs the tool of an analyzer and returns its output: outside the reviewed tree, in a fixed environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from chargehand.errors import AnalyzerFailed
from chargehand.process import OutOfTime, ProcessResult, TooMuchOutput, run_process

SECONDS = 300.0
MAX_OUTPUT = 64 * 1024 * 1024
# The variables that a tool gets. PYTHON*, GIT_*, RUFF_* and LD_* are never passed on.
KEPT = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")


async def run(
    command: Sequence[str],
    *,
    tool: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
    max_output: int = MAX_OUTPUT,
) -> ProcessResult:
    """Run a command to its end. Raises AnalyzerFailed if it cannot be started or exceeds its limits."""
    try:
        # Not in the reviewed tree: a tool may load code or configuration from its working directory.
        return await run_process(
            command,
            stdin=stdin,
            cwd=os.sep,
            env={**environment(), **(env or {})},
            seconds=seconds,
            max_output=max_output,
        )
    except OSError as error:
        raise AnalyzerFailed(f"{tool} could not be started: {error.strerror or error}.") from error
    except OutOfTime:
        raise AnalyzerFailed(f"{tool} was stopped after {seconds:g} s; review fewer files at once.") from None
    except TooMuchOutput:
        message = f"{tool} wrote more than {max_output // 1024} KB; review fewer files at once."
        raise AnalyzerFailed(message) from None


def environment() -> dict[str, str]:
    """The variables a tool gets."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**kept, "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
