"""One run of a program -> its result: folder, checkout, sandbox, limits, output and changes, verification."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from chargehand.process import OutOfTime, ProcessResult, TooMuchOutput, run_process
from chargehand.process.namespaces import Means, die_with_caller, enter_command, give_to_nobody
from chargehand.programs.checkout import CheckoutFailed, Repository, changes_in, check_out, find_repository
from chargehand.programs.presets import LONGEST_PROGRESS, AgentStream, arguments_of, last_lines, plain_progress
from chargehand.programs.program_environment import (
    enclosure_of,
    environment_of,
    find_means,
    kill_marked,
    limit_processes,
    secrets_in,
)
from chargehand.programs.work_folders import WorkFolder, WorkFolders
from chargehand.values.effect import ProgramResult, ProgramRun
from chargehand.values.outcome import ErrorKind, Fault
from chargehand.values.program import Program

# The most bytes that a program may print, and the most of a preset's stream.
MOST_PRINTED = 8 << 20
MOST_STREAMED = 128 << 20
OnProgress = Callable[[str], None]
REDACTED = "[redacted]"


@dataclass(frozen=True, slots=True)
class ProgramSurroundings:
    """The surroundings of a run's programs: its folders, its material by name, and the home that no program may see."""

    folders: WorkFolders
    material: Mapping[str, str]
    hidden: Path | None
    # Gets messages for people, such as that there is no sandbox here.
    warn: Callable[[str], None]


class _Failed(Exception):
    """An expected failure: it becomes the error of the result."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind


async def run_program(effect: ProgramRun, around: ProgramSurroundings, on_progress: OnProgress) -> ProgramResult:
    """The result, including any error. Only cancellation is passed on, and it leaves nothing running."""
    folder = await asyncio.to_thread(around.folders.make)
    try:
        run = _Run(effect.program, folder, around, on_progress)
        return await run.to_its_end(effect.given)
    except (_Failed, CheckoutFailed) as error:
        kind = error.kind if isinstance(error, _Failed) else "tool"
        return ProgramResult(error=Fault(kind=kind, message=str(error)))
    finally:
        await asyncio.shield(asyncio.to_thread(folder.remove))


class _Run:
    def __init__(
        self, program: Program, folder: WorkFolder, around: ProgramSurroundings, on_progress: OnProgress
    ) -> None:
        self.program = program
        self.folder = folder
        self.around = around
        self.environment = environment_of(program, folder, os.environ)
        self.secrets = secrets_in(self.environment)
        self.repository: Repository | None = None
        self.means: Means = "none"
        self._on_progress = on_progress

    async def to_its_end(self, given: str) -> ProgramResult:
        await self._prepare()
        stream = None if self.program.preset is None else AgentStream(self.program.preset, self._progress)
        ended = await self._start(arguments_of(self.program, enclosed=self.means != "none"), given, stream)
        printed = self._words(ended.stdout)
        text = printed if stream is None else self._hide(stream.text)
        result = ProgramResult(text=text, used=stream.used if stream else None)
        wrong = stream.error if stream else ""
        if ended.code != 0 or wrong:
            said = self._hide(wrong) or last_lines(self._words(ended.stderr) or text)
            what = f"{self._name} ended with code {ended.code}" if ended.code else f"{self._name} failed"
            return await self._with_changes(
                result, Fault(kind="tool", message=f"{what}: {said or 'it printed nothing'}")
            )
        if "\0" in text:
            return result.model_copy(update={"text": "", "error": Fault(kind="contract", message=self._binary)})
        if not self.program.verify:
            return await self._with_changes(result)
        checked = await self._start(list(self.program.verify), "", None)
        if checked.code == 0:
            return await self._with_changes(result)
        shown = last_lines(self._words(checked.stdout) + self._words(checked.stderr))
        return await self._with_changes(result.model_copy(update={"unverified": shown or f"code {checked.code}"}))

    async def _prepare(self) -> None:
        program, folder = self.program, self.folder
        if program.worktree:
            self.repository = await find_repository(list(self.around.material.values()))
            await check_out(self.repository, folder)
        if program.sandbox != "off":
            self.means = await find_means(network=program.network)
        if self.means == "none":
            if program.sandbox == "required":
                raise _Failed("tool", "This system gives programs no sandbox, and this one requires it: see doctor.")
            if program.sandbox == "auto":
                self.around.warn(
                    f"This system gives programs no sandbox: {self._name} can read your files. Install bubblewrap, or "
                    "set `sandbox: required`."
                )
        await asyncio.to_thread(self._furnish)

    def _furnish(self) -> None:
        folder = self.folder
        for name in self.program.home_files:
            source, target = Path.home() / name, folder.home / name
            if ".." in target.parts:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            elif source.is_file():
                shutil.copyfile(source, target)
        if self.means == "none":
            for name, path in self.around.material.items():
                with suppress(OSError):
                    (folder.material / name).symlink_to(os.path.realpath(path))
        elif self.means == "unshare" and os.geteuid() == 0:
            give_to_nobody(*folder.writable)

    async def _start(self, arguments: list[str], given: str, stream: AgentStream | None) -> ProcessResult:
        executable = shutil.which(arguments[0])
        if executable is None:
            raise _Failed("tool", f"There is no program {arguments[0]!r} here: install it, or correct `command`.")
        command = [executable, *arguments[1:]]
        if self.means != "none":
            executables = [
                found for each in (command, self.program.verify) if each and (found := shutil.which(each[0]))
            ]
            borrowed = [str(self.repository.objects)] if self.repository else []
            around = self.around
            seen = enclosure_of(self.program, executables, self.folder, around.material, borrowed, around.hidden)
            command = enter_command(limit_processes(command), self.means, seen)
        try:
            return await run_process(
                die_with_caller(command),
                stdin=given.encode("utf-8", "replace"),
                cwd=str(self.folder.work),
                env=self.environment,
                seconds=self.program.timeout_s,
                max_output=MOST_STREAMED if stream else MOST_PRINTED,
                on_line=stream.feed if stream else None,
                on_error_line=None if stream else self._hear,
            )
        except OutOfTime:
            raise _Failed("timeout", f"{arguments[0]} ran for longer than {self.program.timeout_s:g} s.") from None
        except TooMuchOutput as much:
            raise _Failed("tool", f"{arguments[0]} printed more than {much} and was stopped.") from None
        except OSError as error:
            raise _Failed("tool", f"{arguments[0]} cannot be started: {error.strerror}.") from None
        finally:
            if self.means == "none":
                kill_marked(self.folder)

    async def _with_changes(self, result: ProgramResult, error: Fault | None = None) -> ProgramResult:
        base = self.repository.base if self.repository else ""
        diff = self._hide(await changes_in(self.folder, base)) if base else ""
        return result.model_copy(update={"diff": diff, "base": base, "error": error})

    @property
    def _name(self) -> str:
        return os.path.basename(self.program.command[0])

    @property
    def _binary(self) -> str:
        return f"{self._name} printed binary data: an answer is JSON or text."

    def _hear(self, line: bytes) -> None:
        if words := plain_progress(line):
            self._progress(words)

    def _progress(self, words: str) -> None:
        self._on_progress(self._hide(words)[:LONGEST_PROGRESS])

    def _words(self, printed: bytes) -> str:
        return self._hide(printed.decode("utf-8", "replace"))

    def _hide(self, text: str) -> str:
        """The text without the secrets that the program got: they must not be on the record."""
        for secret in self.secrets:
            text = text.replace(secret, REDACTED)
        return text
