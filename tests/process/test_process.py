"""Child processes: limits, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from chargehand.process import OutOfTime, TooMuchOutput, run_process
from tests.pace import PATIENCE_S

Loop = Callable[[], asyncio.AbstractEventLoop]
# The leader ends at once; what it started holds its pipes.
LEAVES_A_CHILD = (
    "import subprocess, sys; "
    "child = subprocess.Popen([sys.executable, '-I', '-c', 'import time; time.sleep(600)']); "
    "open({note!r}, 'w').write(str(child.pid))"
)


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-c", code]


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # Nobody may reap it here: then it is a zombie.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.slow
def test_what_a_process_left_behind_is_killed_at_its_time_limit(tmp_path: Path) -> None:
    """Its leader has ended before: the group is what counts."""
    note = tmp_path / "pid"
    with pytest.raises(OutOfTime):
        asyncio.run(run_process(python(LEAVES_A_CHILD.format(note=str(note))), seconds=3.0))
    until = time.monotonic() + PATIENCE_S
    while not is_gone(int(note.read_text())):
        assert time.monotonic() < until


def test_more_output_than_allowed_stops_a_process() -> None:
    """On either stream; the cap is named."""
    for stream in ("stdout", "stderr"):
        with pytest.raises(TooMuchOutput, match="97 KB"):
            asyncio.run(
                run_process(python(f"import sys\nwhile True: sys.{stream}.write('x' * 1000)"), max_output=10**5)
            )


def test_input_that_is_not_read_is_no_error() -> None:
    """The exit code says how it ended."""
    ended = asyncio.run(run_process(python("raise SystemExit(7)"), stdin=b"x" * 10**6))
    assert ended.code == 7


@pytest.mark.slow
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("stdin", [b"", b"x" * 1_000_000])
def test_a_process_that_ends_without_reading_failed_on_the_other_loop(loop: Loop, stdin: bytes) -> None:
    """Its exit code says why it ended; a pipe that is closed is no error, whatever the loop calls it."""

    async def main() -> list[int]:
        ended = [run_process(["/bin/false"], stdin=stdin) for _ in range(30)]
        return [result.code for result in await asyncio.gather(*ended)]

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(main()) == [1] * 30
