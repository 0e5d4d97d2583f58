"""Linters that run code of the checked project, as hits: eslint, clippy and go vet.

They load its settings, its plugins or its macros. So they are started only if the folder is trusted and the machine can
isolate them: without a network, with the project read-only, and with their own temporary folders.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from chargehand.apps.review.analyzers import suppression, tool_process
from chargehand.apps.review.analyzers.hit import Hit, Hits
from chargehand.apps.review.analyzers.language_names import language
from chargehand.apps.review.analyzers.linters import LEVELS, TRUSTED
from chargehand.apps.review.analyzers.source_files import SourceReader
from chargehand.errors import AnalyzerFailed
from chargehand.process.namespaces import (
    SYSTEM,
    SYSTEM_SETTINGS,
    Enclosure,
    enter_command,
    existing_paths,
    give_to_nobody,
)
from chargehand.programs.program_environment import find_means

if TYPE_CHECKING:
    from chargehand.apps.review.analyzers.lens import Lens
    from chargehand.engine.analyzer_port import Scope
    from chargehand.process.namespaces import Means

# Folders that programs of Node, Rust and Go need to start.
TOOLCHAINS = ("/opt", "/usr/local", "~/.cargo", "~/.rustup", "~/go/pkg", "~/.nvm", "~/.volta")


@dataclass(frozen=True, slots=True)
class ProjectLinter:
    name: str
    # The first word is the program.
    command: tuple[str, ...]
    languages: frozenset[str]
    # A file that makes its folder a project of this kind.
    marker: str
    # Its output -> the file name in that output, and the hit.
    read: Callable[[str], Iterator[tuple[str, Hit]]]
    # Variables for its build folders -> the folder for each.
    folders: Mapping[str, str] = field(default_factory=dict[str, str])
    # Whether it takes the files as arguments; else it checks the whole project.
    takes_files: bool = False
    # Whether it gets a copy of the project, because it writes into it.
    copied: bool = False


async def analyze(scope: Scope, lens: Lens) -> Hits:
    reader = SourceReader(scope.root)
    hits: list[Hit] = []
    notes: list[str] = []
    for linter in LINTERS:
        paths = [path for path in scope.files if language(path, scope.root) in linter.languages and reader.fits(path)]
        for folder, own in projects_of(scope.root, paths, linter).items():
            program = _program(linter, scope.root / folder)
            if program is None:
                continue
            if not scope.options.get(TRUSTED):
                said = f"{linter.name} runs code of the project: trust the folder to have it look (chargehand trust)."
            elif (means := await find_means(network=False)) == "none":
                said = f"{linter.name} runs code of the project, and this machine has no sandbox: it did not look."
            else:
                hits += await _check(linter, program, scope.root / folder, own, reader, means)
                continue
            notes.append(said)
    return Hits(tuple(hits), tuple(dict.fromkeys(notes)), reader.unchecked_files())


def checked_languages(root: Path) -> frozenset[str]:
    """The languages that are checked in a trusted folder."""
    found = (each for each in LINTERS if (root / each.marker).is_file() and _program(each, root))
    return frozenset(name for each in found for name in each.languages)


def projects_of(root: Path, paths: list[str], linter: ProjectLinter) -> dict[str, list[str]]:
    """Folder with the marker -> the files below it. It is the nearest folder, or the outermost if a copy is made."""
    found: dict[str, list[str]] = {}
    for path in paths:
        folders = [each for each in PurePosixPath(path).parents if (root / each / linter.marker).is_file()]
        if folders:
            found.setdefault(str(folders[-1 if linter.copied else 0]), []).append(path)
    return found


def _program(linter: ProjectLinter, project: Path) -> str | None:
    """The program of the project if it has one, else the program of the machine."""
    own = project / "node_modules" / ".bin" / linter.command[0]
    return str(own) if own.exists() else shutil.which(linter.command[0])


async def _check(
    linter: ProjectLinter, program: str, project: Path, paths: list[str], reader: SourceReader, means: Means
) -> list[Hit]:
    with tempfile.TemporaryDirectory(prefix="chargehand-review-") as room:
        place = await asyncio.to_thread(_prepare, linter, project, Path(room))
        seen, env = await asyncio.to_thread(_enclose, linter, program, place, reader.root, Path(room))
        started = _words(linter, program, project, place, [reader.root / path for path in paths])
        command = enter_command(started, means, seen)
        try:
            ended = await tool_process.run(command, tool=linter.name, env=env)
            found = list(linter.read((ended.stdout + b"\n" + ended.stderr).decode("utf-8", "replace")))
            failed = ended.code not in (0, 1) and not found
        except (AnalyzerFailed, ValueError, LookupError, TypeError, AttributeError):
            found, failed = [], True
    if failed:
        for path in paths:
            reader.count_unchecked(f"{linter.name} gave no result", path)
        return []
    return list(_of_files(found, paths, project, place, reader))


def _words(linter: ProjectLinter, program: str, project: Path, place: Path, files: list[Path]) -> list[str]:
    """The program and its arguments, with paths as the linter sees them."""
    own = program.startswith(f"{project}{os.sep}")
    first = os.path.join(place, os.path.relpath(program, project)) if own else program
    names = [os.path.relpath(file, project) for file in files] if linter.takes_files else []
    return [first, *linter.command[1:], *names]


def _prepare(linter: ProjectLinter, project: Path, room: Path) -> Path:
    """Make the folders for the linter and return where it sees the project: in place, or a copy."""
    room, place = room.resolve(), project.resolve()
    work = room / "work"
    for folder in (work, room / "root", *(work / each for each in linter.folders.values())):
        folder.mkdir(parents=True)
    as_root = os.geteuid() == 0
    # If this process is root, the linter runs as a user who cannot read files that only root may read.
    if linter.copied or (as_root and not place.stat().st_mode & 0o001):
        shutil.copytree(place, work / "project", symlinks=True, ignore=shutil.ignore_patterns(".git", "target"))
        place = work / "project"
    if as_root:
        give_to_nobody(work, room / "root")
    room.chmod(0o755)
    return place


def _enclose(
    linter: ProjectLinter, program: str, place: Path, root: Path, room: Path
) -> tuple[Enclosure, dict[str, str]]:
    """What the linter can see, and its variables."""
    room = room.resolve()
    work = room / "work"
    tools = [os.path.dirname(program), os.path.dirname(os.path.realpath(program))]
    homes = [os.path.expanduser(each) for each in TOOLCHAINS]
    seen = Enclosure(
        root=room / "root",
        read_only=existing_paths([*SYSTEM, *SYSTEM_SETTINGS, *tools, *homes, str(root.resolve())]),
        writable=[str(work)],
        folder=str(place),
        reaps=True,
    )
    env = {variable: str(work / each) for variable, each in linter.folders.items()}
    return seen, {**env, "HOME": str(work), "TMPDIR": str(work), **_toolchain_homes()}


def _of_files(
    found: list[tuple[str, Hit]], paths: list[str], project: Path, place: Path, reader: SourceReader
) -> Iterator[Hit]:
    """The hits in the files of the review, without silenced ones; `place` is where the linter saw the files."""
    root, project = reader.root.resolve(), project.resolve()
    by_path: dict[str, list[Hit]] = {}
    for file, hit in found:
        full = project / os.path.relpath(os.path.join(place, file), place)
        path = os.path.relpath(os.path.normpath(full), root).replace(os.sep, "/")
        if path in paths:
            by_path.setdefault(path, []).append(replace(hit, path=path))
    for path, own in by_path.items():
        source = reader.read(path)
        yield from suppression.drop_silenced(own, source.lines if source else [])


def _toolchain_homes() -> dict[str, str]:
    """Variables for the homes of toolchains, because HOME differs inside."""
    homes = {"CARGO_HOME": "~/.cargo", "RUSTUP_HOME": "~/.rustup", "GOMODCACHE": "~/go/pkg/mod"}
    return {name: path for name, home in homes.items() if os.path.isdir(path := os.path.expanduser(home))}


def _read_eslint(text: str) -> Iterator[tuple[str, Hit]]:
    rows, _ = json.JSONDecoder().raw_decode(text, text.index("["))
    for row in rows:
        for said in row["messages"]:
            rule = "parse" if said.get("fatal") else str(said.get("ruleId") or "unknown").rpartition("/")[2]
            worth = LEVELS["error"] if said["severity"] == 2 else LEVELS["warning"]
            yield row["filePath"], _hit(f"eslint:{rule}", said, worth, "line", "endLine", "column", "endColumn")


def _read_clippy(text: str) -> Iterator[tuple[str, Hit]]:
    for line in text.splitlines():
        row: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
        said: dict[str, Any] = row.get("message") or {}
        places = [span for span in said.get("spans", ()) if span["is_primary"]]
        if row.get("reason") == "compiler-message" and places:
            code: dict[str, Any] = said.get("code") or {}
            rule = str(code.get("code") or "rustc").removeprefix("clippy::")
            place = places[0] | {"message": said["message"]}
            worth = LEVELS.get(said["level"], LEVELS["warning"])
            lines = ("line_start", "line_end", "column_start", "column_end")
            yield place["file_name"], _hit(f"clippy:{rule}", place, worth, *lines)


def _read_vet(text: str) -> Iterator[tuple[str, Hit]]:
    """Objects one after the other, with lines of comment between them."""
    rest = "\n".join(line for line in text.splitlines() if not line.startswith("#")).strip()
    decoder = json.JSONDecoder()
    while rest.startswith("{"):
        packages, end = decoder.raw_decode(rest)
        rest = rest[end:].strip()
        for analyzers in packages.values():
            for rule, rows in analyzers.items():
                for row in rows:
                    file, line, column = row["posn"].rsplit(":", 2)
                    at = {"line": int(line), "column": int(column), "message": row["message"]}
                    yield file, _hit(f"vet:{rule}", at, LEVELS["error"], "line", "end", "column", "end")


def _hit(rule: str, said: Mapping[str, Any], worth: int, *names: str) -> Hit:
    line, end, column, end_column = (said.get(name) for name in names)
    hit = Hit(rule, "", int(line or 1), str(said["message"]), confidence=worth)
    return replace(hit, end_line=end, column=column, end_column=end_column)


LINTERS: tuple[ProjectLinter, ...] = (
    ProjectLinter(
        "eslint",
        ("eslint", "--format", "json", "--no-color", "--"),
        frozenset({"JavaScript", "TypeScript"}),
        "package.json",
        _read_eslint,
        takes_files=True,
    ),
    ProjectLinter(
        "clippy",
        ("cargo", "clippy", "--quiet", "--offline", "--all-targets", "--message-format", "json"),
        frozenset({"Rust"}),
        "Cargo.toml",
        _read_clippy,
        folders={"CARGO_TARGET_DIR": "target"},
        copied=True,
    ),
    ProjectLinter(
        "go vet",
        ("go", "vet", "-json", "./..."),
        frozenset({"Go"}),
        "go.mod",
        _read_vet,
        folders={"GOCACHE": "cache", "GOPATH": "go"},
    ),
)
