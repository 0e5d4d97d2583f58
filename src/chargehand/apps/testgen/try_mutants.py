"""A test file and its functions become the value of each test: how many mutants of its function it detects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chargehand.apps.testgen.assemble import hide_from_collection
from chargehand.apps.testgen.ghostwrite import GhostwriteJob, notes_of
from chargehand.apps.testgen.sandbox import Room, SandboxLimits
from chargehand.apps.testgen.verify import OWN_SETTINGS, pytest_step

_SECONDS = 120
_NAME = "test_candidate.py"


@dataclass(frozen=True, slots=True)
class MutantScore:
    """Function -> mutants detected and mutants tried; tests that detected none; whether the trial was completed."""

    by_function: Mapping[str, tuple[int, int]]
    useless: frozenset[str]
    ended: bool


async def try_mutants(
    room: Room, source: str, tests: Mapping[str, Sequence[str]], jobs: Mapping[str, GhostwriteJob], paths: Sequence[str]
) -> MutantScore:
    """`tests` has the names of the tests of each job. Tests that fail without a mutant are handled elsewhere."""
    targets: dict[tuple[str, str], dict[str, object]] = {}
    for id, names in tests.items():
        job = jobs[id]
        target = targets.setdefault(
            (job.module, job.name), {"module": job.module, "name": job.name, "line": job.line, "tests": []}
        )
        target["tests"] = [*dict.fromkeys([*_names(target["tests"]), *names])]
    files = {
        **OWN_SETTINGS,
        f"project/{_NAME}": hide_from_collection(source),
        "mutants.json": json.dumps([*targets.values()]),
    }
    (ran,) = await room.run([pytest_step("mutants", "pytest_mutants", _NAME)], files, SandboxLimits(_SECONDS), paths)
    scored = [note for note in notes_of(ran) if "killers" in note]
    useless = frozenset(name for note in scored for name, told in note["killers"].items() if not told)
    by_function = {str(note["target"]): (int(note["killed"]), int(note["mutants"])) for note in scored}
    return MutantScore(by_function, useless, any("ended" in note for note in notes_of(ran)))


def _names(held: object) -> list[str]:
    return [str(each) for each in held] if isinstance(held, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
