"""Files of cases -> a Suite, or one InvalidSuite with every problem, its file and its line."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic_core import ValidationError

from chargehand.errors import UsageError
from chargehand.evaluation.case import KINDS, SHAPES, Case, Kind, RoutingCase, RunCase, SynthesisCase, WorkerCase
from chargehand.settings.toml_file import suggestion
from chargehand.team import Team
from chargehand.text.plan_json import parse
from chargehand.values.outcome import Outcome
from chargehand.values.plan import Plan, Problem, errors_in

LARGEST = 50_000_000
MOST_TOLD = 50
# The kind of a case without `kind` follows from its fields: the first field in this list that it has.
_TELLING: tuple[tuple[str, Kind], ...] = (
    ("primary", "routing"),
    ("outcomes", "synthesis"),
    ("worker", "worker"),
    ("expect", "run"),
    ("plan", "plan"),
)


class InvalidSuite(UsageError):
    """The suite has problems."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Placed:
    """A case with its place in a file and the files given to it. `digest` changes with any of them."""

    case: Case
    id: str
    file: str
    line: int
    material: tuple[Path, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    cases: tuple[Placed, ...]
    # The same for all suites in one folder, independent of their content.
    place: str

    @property
    def hash(self) -> str:
        """A hash that changes with any case and with the files of any case."""
        return _digest([placed.digest for placed in self.cases])[:16]


def files_of(suite: Path) -> list[Path]:
    """The files of a suite: itself, or all in the `evals` of a team's folder."""
    if suite.is_file():
        return [suite]
    found = sorted(suite.glob("evals/*.jsonl"))
    if not found:
        raise InvalidSuite(f"{suite} has no evals: write cases, one JSON object a line, into {suite}/evals/NAME.jsonl.")
    return found


def read_suite(name: str, files: Sequence[Path], teams: Mapping[str, Team], folder: Path | None) -> Suite:
    """The cases of all files. `teams` are all teams to try; `folder` is the folder of the suite's team."""
    reading = _Reading(teams, folder)
    for file in files:
        reading.read(file)
    if not reading.problems and not reading.cases:
        reading.wrong("empty_suite", f"{name}:1: there is no case in it: write one JSON object a line.")
    if reading.problems:
        lines = "".join(f"\n  {problem.message}" for problem in reading.problems[:MOST_TOLD])
        left = len(reading.problems) - MOST_TOLD
        more = f"\n  and {left:,} more" if left > 0 else ""
        raise InvalidSuite(f"The suite {name} cannot be run:{lines}{more}", reading.problems)
    return Suite(name, tuple(reading.cases), _digest(str(files[0].resolve().parent))[:16])


@dataclass(slots=True)
class _Reading:
    """Cases and problems found so far."""

    teams: Mapping[str, Team]
    folder: Path | None
    cases: list[Placed] = field(default_factory=list[Placed])
    problems: list[Problem] = field(default_factory=list[Problem])
    # Id -> where it was first used.
    ids: dict[str, str] = field(default_factory=dict[str, str])

    def wrong(self, code: str, message: str) -> None:
        self.problems.append(Problem(code=code, message=message))

    def read(self, file: Path) -> None:
        label = _label(file, self.folder)
        try:
            if file.stat().st_size > LARGEST:
                return self.wrong("too_large", f"{label}:1: more than {LARGEST // 10**6} MB of cases are not read.")
            data = file.read_bytes()
        except OSError as error:
            return self.wrong("unreadable", f"{label}:1: it cannot be read: {error.strerror}.")
        for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
            if line.strip():
                self._line(line, file, label, number)

    def _line(self, line: bytes, file: Path, label: str, number: int) -> None:
        where = f"{label}:{number}"
        try:
            fields = _object(line)
            case = _case(fields)
        except _Wrong as error:
            for code, message in error.found:
                self.wrong(code, f"{where}{message}" if message.startswith(":") else f"{where}: {message}")
            return
        for code, message in _problems(case, [*self.teams.values()]):
            self.wrong(code, f"{where}: {message}")
        material = self._material(case, file, where)
        digest = _digest([case.model_dump(mode="json", exclude={"id", "note"}), [_content(path) for path in material]])
        id = case.id or f"{case.kind}-{digest[:8]}"
        if id in self.ids:
            same = f"{id!r} is also the id of" if case.id else "the case is the same as"
            remedy = "give it another id" if case.id else "remove one of them"
            self.wrong("duplicate_id", f"{where}: {same} {self.ids[id]}: {remedy}.")
        self.ids.setdefault(id, where)
        self.cases.append(Placed(case, id, label, number, material, digest))

    def _material(self, case: Case, file: Path, where: str) -> tuple[Path, ...]:
        found: list[Path] = []
        named = () if isinstance(case, RoutingCase | SynthesisCase) else case.material
        for name in named:
            bases = [file.parent, *([] if self.folder is None else [self.folder])]
            path = next((base / name for base in bases if (base / name).exists()), None)
            if path is None:
                places = " nor in ".join(str(base) for base in bases)
                self.wrong("no_material", f"{where}: there is no {name!r} in {places}: `with` names files that exist.")
            else:
                found.append(path)
        return tuple(found)


class _Wrong(Exception):
    """What is wrong with a line: codes and messages; one that starts with a colon names its column."""

    def __init__(self, *found: tuple[str, str]) -> None:
        super().__init__(found)
        self.found = found


def _object(line: bytes) -> dict[str, Any]:
    try:
        text = line.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError as error:
        raise _Wrong(("invalid_encoding", f":{error.start + 1}: not UTF-8 text: save the file as UTF-8.")) from None
    try:
        data: object = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise _Wrong(("invalid_json", f":{error.colno}: not JSON: {error.msg}.")) from None
    except (RecursionError, ValueError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise _Wrong(("invalid_json", f"not JSON that can be used: {why}.")) from None
    if not isinstance(data, dict):
        raise _Wrong(
            ("invalid_case", 'a case is an object, such as {"kind": "routing", "request": "...", "primary": "..."}.')
        )
    return cast("dict[str, Any]", data)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise ValueError(f"{digits} is larger than any number it could be compared with")
    return number


def _case(fields: dict[str, Any]) -> Case:
    kind = fields.get("kind", next((kind for key, kind in _TELLING if key in fields), None))
    if kind is None:
        raise _Wrong(("unknown_kind", f'the case has no kind: write "kind" as one of {", ".join(KINDS)}.'))
    if kind not in KINDS:
        raise _Wrong(("unknown_kind", f"there is no kind of case {kind!r}.{suggestion(str(kind), KINDS)}"))
    shape = SHAPES[kind]
    if isinstance(outcomes := fields.get("outcomes"), list):
        fields = fields | {"outcomes": [_outcome(each, fields) for each in cast("list[Any]", outcomes)]}
    try:
        return shape.model_validate(fields)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise _Wrong(
            *(("invalid_case", _describe_error(shape, cast("dict[str, Any]", each))) for each in found)
        ) from None


def _outcome(given: Any, case: Mapping[str, Any]) -> Any:
    """An outcome; if it names no worker, with the worker of its task."""
    if not isinstance(given, dict):
        return given
    fields = cast("dict[str, Any]", given)
    if "worker" in fields or "task" not in fields:
        return fields
    try:
        plan = parse(case.get("plan"))
    except UsageError:
        return {"worker": "", **fields}
    return {"worker": next((task.worker for task in plan.tasks if task.id == fields["task"]), ""), **fields}


def _describe_error(shape: type[Case], error: dict[str, Any]) -> str:
    place = ".".join(str(part) for part in error["loc"])
    match error["type"]:
        case "extra_forbidden":
            known = [info.alias or name for name, info in shape.model_fields.items()] if len(error["loc"]) == 1 else []
            return f"{place!r} is not a key of a case.{suggestion(place, known) if known else ''}"
        case "missing":
            return f"{place!r} is missing."
        case _:
            return f"{f'{place}: ' if place else ''}{error['msg'].removeprefix('Value error, ')}."


def _problems(case: Case, teams: Iterable[Team]) -> Iterator[tuple[str, str]]:
    """What is wrong with a case that has the right shape."""
    for team in teams:
        for key, name in _named_workers(case):
            if name not in team.names:
                message = f"{key!r} names the worker {name!r}, which the team {team.name!r} does not have."
                yield "unknown_worker", message + suggestion(name, team.names)
    plan = None if isinstance(case, RoutingCase | WorkerCase) else case.plan
    if plan is not None:
        found = [each for team in teams for each in errors_in(plan.problems(team.names, factory=team.factory))]
        yield from dict.fromkeys((problem.code, f"'plan': {problem.message}") for problem in found)
    if isinstance(case, SynthesisCase):
        yield from _outcome_problems(case.plan, case.outcomes)
    if isinstance(case, SynthesisCase | RunCase) and plan is not None:
        ids = {task.id for task in plan.tasks}
        wanted = {*case.expect.cites, *(case.expect.gaps.tasks if case.expect.gaps else ())}
        for task in sorted(wanted - ids):
            yield "unknown_task", f"'expect' names the task {task!r}, which is not in the plan."


def _named_workers(case: Case) -> Iterator[tuple[str, str]]:
    """Pairs of a key and the worker named there."""
    if isinstance(case, RoutingCase):
        yield from case.workers()
    elif isinstance(case, WorkerCase):
        yield "worker", case.worker


def _outcome_problems(plan: Plan, outcomes: Sequence[Outcome]) -> Iterator[tuple[str, str]]:
    ids = [task.id for task in plan.tasks]
    given = [outcome.task for outcome in outcomes]
    for task in dict.fromkeys(ids):
        if given.count(task) != 1:
            yield "outcomes", f"'outcomes' has {given.count(task)} for the task {task!r}: give exactly one."
    for task in dict.fromkeys(given):
        if task not in ids:
            yield "outcomes", f"'outcomes' has one for the task {task!r}, which is not in the plan."


def _label(file: Path, folder: Path | None) -> str:
    if folder is not None and file.is_relative_to(folder):
        return file.relative_to(folder).as_posix()
    return str(file)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _content(path: Path) -> list[str]:
    """The hash of a file, or of every file in a folder."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return [f"{each.relative_to(path).as_posix()} {_hash(each)}" for each in files]


def _hash(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return "unreadable"
