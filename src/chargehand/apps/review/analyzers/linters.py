"""Installed linters of other languages, as hits: a table of commands, and of functions that read their JSON.

None of them runs code of the project or reads its settings: they are started at the root of the file system. A linter
inside the reviewed tree is part of the reviewed code, and is not started.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chargehand.apps.review.analyzers import suppression, tool_process
from chargehand.apps.review.analyzers.hit import Hit, Hits
from chargehand.apps.review.analyzers.language_names import language
from chargehand.apps.review.analyzers.source_files import SourceReader

if TYPE_CHECKING:
    from chargehand.apps.review.analyzers.lens import Lens
    from chargehand.engine.analyzer_port import Scope

# The most files of one call: their names must fit on a command line.
AT_ONCE = 200
# Confidence by level, if a linter gives nothing finer: errors are shown, the rest only with `--all`.
LEVELS = {"error": 86, "warning": 70}
UNSURE = 50
# The option that says that the user trusts the folder, so that linters may run code of the project.
TRUSTED = "trusted"
# Rules with more confidence than their level.
SURE = {"SC2115": 90, "SC2068": 85, "SC2069": 85}


@dataclass(frozen=True, slots=True)
class Linter:
    program: str
    languages: frozenset[str]
    arguments: tuple[str, ...]
    # Its output -> the file name as given to it, and the hit.
    read: Callable[[Any], Iterator[tuple[str, Hit]]]


async def analyze(scope: Scope, lens: Lens) -> Hits:
    reader = SourceReader(scope.root)
    hits: list[Hit] = []
    for linter in LINTERS:
        paths = [path for path in scope.files if language(path, scope.root) in linter.languages and reader.fits(path)]
        program = find_program(linter.program, scope.root) if paths else None
        for start in range(0, len(paths) if program else 0, AT_ONCE):
            hits += await _check(linter, str(program), scope.root, paths[start : start + AT_ONCE], reader)
    return Hits(tuple(hits), unchecked=reader.unchecked_files())


def installed_languages(root: Path) -> frozenset[str]:
    """The languages for which a linter is installed."""
    return frozenset(name for each in LINTERS if find_program(each.program, root) for name in each.languages)


def find_program(name: str, root: Path) -> str | None:
    found = shutil.which(name)
    if found is None or not os.path.isabs(found):
        return None
    return None if Path(found).resolve().is_relative_to(root.resolve()) else found


def program_versions() -> str:
    """A text that changes when a linter is installed, replaced or removed."""
    found = (shutil.which(name) for name in (*(each.program for each in LINTERS), "eslint", "cargo", "go"))
    return " ".join(f"{path}:{os.stat(path).st_mtime_ns}" for path in found if path)


async def _check(linter: Linter, program: str, root: Path, paths: list[str], reader: SourceReader) -> list[Hit]:
    names = {str(root / path): path for path in paths}
    ended = await tool_process.run([program, *linter.arguments, *names], tool=linter.program)
    try:
        found = list(linter.read(json.loads(ended.stdout)))
    except (ValueError, LookupError, TypeError, AttributeError):
        for path in paths:
            reader.count_unchecked(f"{linter.program} gave no result", path)
        return []
    by_path: dict[str, list[Hit]] = {}
    for file, hit in found:
        if path := names.get(file) or names.get(f"/{file}"):
            by_path.setdefault(path, []).append(replace(hit, path=path))
    judged: list[Hit] = []
    for path, own in by_path.items():
        source = reader.read(path)
        judged += suppression.drop_silenced(own, source.lines if source else [])
    return judged


def _read_shellcheck(data: Any) -> Iterator[tuple[str, Hit]]:
    for row in data["comments"]:
        code = f"SC{row['code']}"
        yield (
            row["file"],
            Hit(
                f"shellcheck:{code}",
                "",
                row["line"],
                row["message"],
                end_line=row["endLine"],
                confidence=SURE.get(code) or LEVELS.get(row["level"], UNSURE),
                column=row["column"],
                end_column=row["endColumn"],
            ),
        )


def _read_hadolint(data: Any) -> Iterator[tuple[str, Hit]]:
    for row in data:
        worth = LEVELS.get(row["level"], UNSURE)
        yield row["file"], Hit(f"hadolint:{row['code']}", "", row["line"], row["message"], confidence=worth)


def _read_biome(data: Any) -> Iterator[tuple[str, Hit]]:
    for row in data["diagnostics"]:
        group, _, rule = str(row["category"]).removeprefix("lint/").partition("/")
        is_mistake = row["severity"] == "error" and group in ("correctness", "suspicious", "security")
        place = row["location"]
        yield (
            place["path"],
            Hit(
                f"biome:{rule or group}",
                "",
                place["start"]["line"],
                row["message"],
                end_line=place["end"]["line"],
                confidence=LEVELS["error"] if is_mistake else UNSURE,
                column=place["start"]["column"],
                end_column=place["end"]["column"],
            ),
        )


LINTERS: tuple[Linter, ...] = (
    Linter("shellcheck", frozenset({"Shell"}), ("--norc", "-f", "json1", "--"), _read_shellcheck),
    Linter("hadolint", frozenset({"Docker"}), ("--no-fail", "-f", "json", "--"), _read_hadolint),
    Linter(
        "biome",
        frozenset({"JavaScript", "TypeScript"}),
        ("lint", "--reporter=json", "--max-diagnostics=none", "--no-errors-on-unmatched", "--"),
        _read_biome,
    ),
)
