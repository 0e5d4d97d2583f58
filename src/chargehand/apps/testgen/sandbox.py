"""Commands and a folder become results: the commands run in a temporary copy, isolated and within limits.

Inside there is no network, nothing of the machine but Python and the system's libraries, read-only, and one scratch
folder of limited size that holds the copy, HOME and TMP. bubblewrap makes the room, or unshare and our own `enter`.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from chargehand.apps.testgen.in_sandbox.run_limited import LONGEST_WAIT
from chargehand.apps.testgen.project_copy import snapshot
from chargehand.apps.testgen.sandbox_command import INSIDE, TOOLS, command, environment
from chargehand.errors import StorageError, UsageError
from chargehand.process import OutOfTime, TooMuchOutput, run_process
from chargehand.process.namespaces import Means, give_to_nobody, order_of_preference
from chargehand.record.home import default_path
from chargehand.record.private_files import private_folder

if TYPE_CHECKING:
    from collections.abc import Generator

Stopped: TypeAlias = Literal["time", "call", "memory", "processes", "output"]

INSTALL = "pip install 'chargehand[testgen]'"
MEGABYTE = 1 << 20
_PROBE_S = 20
_TABLES_S = 120
# Seconds to set up the sandbox and the copy on a busy machine.
_AROUND_S = 300


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What one command may use; `processes` includes threads; `seconds` does not include waiting for a processor."""

    seconds: int = 60
    memory: int = 1024 * MEGABYTE
    file: int = 64 * MEGABYTE
    processes: int = 64
    output: int = 8 * MEGABYTE


@dataclass(frozen=True, slots=True)
class Step:
    """One command, run in the copy; `result` is a file it leaves, relative to the scratch folder around the copy."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    result: str | None = None
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended: with a code, or stopped at a limit. `result` is the file it left.

    `seconds` include the time `waited` for a processor.
    """

    code: int | None
    stopped: Stopped | None
    stdout: str
    stderr: str
    result: str | None
    seconds: float
    waited: float = 0.0


@dataclass(frozen=True, slots=True)
class Room:
    """A folder on the real disk with a snapshot of the project; each run of commands gets a copy of its own."""

    folder: Path
    means: Means

    @property
    def source(self) -> Path:
        return self.folder / "source"

    @property
    def scratch(self) -> Path:
        """Where the commands run: on a separate disk in memory; without a sandbox, in a folder for each run."""
        return self.folder / "scratch"

    async def run(
        self,
        steps: Sequence[Step],
        files: Mapping[str, str] | None = None,
        limits: SandboxLimits | None = None,
        paths: Sequence[str] = (),
        *,
        go_on: bool = True,
    ) -> list[CommandResult]:
        """Run the commands one after the other. `files` are written first; `paths` of the copy are on the import path.

        Without `go_on`, a command that was stopped at a limit is the last one.
        """
        sealed = self.means != "none"
        scratch = self.scratch if sealed else Path(tempfile.mkdtemp(dir=self.folder, prefix="run-"))
        order: dict[str, Any] = {
            "source": str(self.source),
            "tables": str(self.folder / "tables"),
            "scratch": str(scratch),
            "files": dict(files or {}),
            "env": environment(scratch, paths),
            "limits": asdict(limits or SandboxLimits()),
            "steps": [_step(step) for step in steps],
            "go_on": go_on,
        }
        longest = sum(step.seconds or order["limits"]["seconds"] for step in steps) * LONGEST_WAIT + _AROUND_S
        try:
            return await self._run_order(order, longest)
        except OutOfTime:
            raise SandboxBroken(f"The sandbox gave no answer within {longest} s") from None
        except TooMuchOutput as much:
            raise SandboxBroken(f"The sandbox gave an answer of more than {much}") from None
        finally:
            if not sealed:
                shutil.rmtree(scratch, ignore_errors=True)

    async def _run_order(self, order: Mapping[str, Any], longest: float) -> list[CommandResult]:
        started = command(self.folder, self.means)
        ended = await run_process(started, stdin=json.dumps(order).encode(), seconds=longest)
        try:
            # Paths are relative to the project: the place of the copy does not matter.
            text = ended.stdout.decode().replace(f"{order['scratch']}/project/", "")
            reported: list[dict[str, Any]] = json.loads(text)["steps"]
        except ValueError:
            said = f": {ended.last_words}" if ended.last_words else ""
            raise SandboxBroken(f"The sandbox ended with code {ended.code}{said}") from None
        return [CommandResult(**each) for each in reported]


class SandboxBroken(Exception):
    """The sandbox itself failed, not what ran in it."""


@contextmanager
def room(project: Path, means: Means) -> Generator[Room]:
    """A temporary folder with a snapshot of the project, removed at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="chargehand-testgen-") as name:
        folder = Path(name).resolve()
        (folder / "scratch").mkdir()
        (folder / "root").mkdir()
        snapshot(project, folder / "source")
        (folder / "tables").mkdir()
        if _tables.cache_info().currsize and (made := _tables() / "unicode_data").is_dir():
            shutil.copytree(made, folder / "tables" / "unicode_data")
        if os.geteuid() == 0 and means == "unshare":
            give_to_nobody(folder / "source", folder / "tables")
        yield Room(folder, means)


async def find_means(*, unsafe: bool = False) -> Means:
    """How code can be isolated on this machine, found by trying. Raises UsageError if it cannot, unless `unsafe`."""
    if absent := [name for name in TOOLS if importlib.util.find_spec(name) is None]:
        raise UsageError(f"testgen needs {', '.join(absent)}: {INSTALL}")
    await asyncio.to_thread(_tables)
    reasons: list[str] = []
    for means in order_of_preference():
        if shutil.which(means) is None:
            reasons.append(f"{means} is not installed")
        elif (why := await _try_means(means)) is None:
            return means
        else:
            reasons.append(f"{means}: {why}")
    if unsafe:
        return "none"
    raise UsageError(
        f"testgen runs code only in a sandbox and this machine gives none ({'; '.join(reasons)}): install bubblewrap, "
        "allow user namespaces, or take the risk with --unsafe-run (in Python, unsafe_run=True)."
    )


async def _try_means(means: Means) -> str | None:
    """None when a program in the sandbox can reach neither disk, network nor the kernel's settings, else why not."""
    with tempfile.TemporaryDirectory(prefix="chargehand-testgen-") as empty, room(Path(empty), means) as tried:
        outside = Path(empty, "outside")
        step = Step((sys.executable, "-S", str(INSIDE / "try_escape.py"), str(outside)))
        try:
            (ended,) = await tried.run([step], limits=SandboxLimits(seconds=_PROBE_S))
        except SandboxBroken as broken:
            return str(broken)
        if ended.code != 0:
            return f"a trial ended with {ended.stopped or ended.code} {ended.stderr.strip()[-200:]}".rstrip()
        return f"it does not keep code from {ended.stdout.splitlines()[0]}" if ended.stdout.strip() else None


@cache
def _tables() -> Path:
    """hypothesis' tables of characters, which take seconds to make: made by its own code, kept in the home.

    Every room is lent a copy. Where there are none, since they cannot be kept or made so, each room makes its own.
    """
    name = f"hypothesis-{version('hypothesis')}-{unicodedata.unidata_version}"
    try:
        folder = default_path(os.environ) / "cache" / name
        private_folder(folder)
    except (StorageError, UsageError):
        folder = Path(tempfile.mkdtemp(prefix="chargehand-testgen-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if not (folder / "unicode_data").is_dir():
        code = "from hypothesis.internal import charmap as c; c.charmap(); c.intervals_from_codec('utf-8')"
        with tempfile.TemporaryDirectory(prefix="chargehand-testgen-") as made:
            env = environment(Path(made), ()) | {"HYPOTHESIS_STORAGE_DIRECTORY": made}
            try:
                command = [sys.executable, "-c", code]
                subprocess.run(command, env=env, capture_output=True, timeout=_TABLES_S, check=False)
            except subprocess.TimeoutExpired:
                return folder
            # Complete or absent, also if two processes make them at once.
            with suppress(OSError):
                shutil.copytree(Path(made, "unicode_data"), whole := folder / f"new-{os.getpid()}")
                whole.rename(folder / "unicode_data")
    return folder


def _step(step: Step) -> dict[str, Any]:
    own = {} if step.seconds is None else {"seconds": step.seconds}
    return {"command": list(step.command), "env": dict(step.env), "result": step.result, "limits": own}
