"""A project becomes a plan: a task for each function without tests, one for each module's file, one for coverage.

No model makes this plan, and nothing is run to make it. It is validated and run like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chargehand.apps.testgen.discover import UntestedFunction, find_targets
from chargehand.apps.testgen.ghostwrite import GhostwriteJob
from chargehand.apps.testgen.names import imports
from chargehand.apps.testgen.places_of_tests import SuitePlace, place_for
from chargehand.apps.testgen.project import Module, Project, Skip
from chargehand.apps.testgen.project_copy import digest
from chargehand.apps.testgen.safety import Reach
from chargehand.apps.testgen.tested_functions import gather
from chargehand.apps.testgen.writing import default_folder
from chargehand.process.namespaces import Means
from chargehand.trace.number_text import several
from chargehand.values.base import JSON
from chargehand.values.plan import Plan, SynthesisSpec, Task

# More functions than this are left for the next run: all of them would take hours.
MOST_TARGETS = 400
# Characters of a module that a model is shown.
MOST_SOURCE = 24_000
# The analysis of a change, even of an empty one, is never cached: the tests that are written have just been run.
_FRESH: dict[str, JSON] = {"changed": {}}


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found by reading: functions to test, those left out with the reason, and how many have tests."""

    project: Project
    targets: tuple[UntestedFunction, ...]
    raises: Mapping[str, tuple[str, ...]]
    skipped: tuple[Skip, ...]
    tested: int
    evidence: str


def survey(project: Project) -> Survey:
    """Which functions get tests. Code is read, never run."""
    evidence = gather(project)
    found, tested = find_targets(project, evidence)
    reach = Reach(project.modules)
    targets: list[UntestedFunction] = []
    skipped = list(project.skipped)
    for target in found:
        if (danger := reach.danger(target.full_name)) is not None:
            skipped.append(Skip(target.path, target.full_name, target.line, str(danger)))
        elif len(targets) == MOST_TARGETS:
            why = f"more than {MOST_TARGETS} functions: name a smaller path, or run it again once these have tests"
            skipped.append(Skip(target.path, target.full_name, target.line, why))
        else:
            targets.append(target)
    raises = {target.full_name: tuple(reach.raises(target.full_name)) for target in targets}
    return Survey(project, tuple(targets), raises, tuple(skipped), tested, evidence.source)


def make_testgen_plan(found: Survey, means: Means, *, model: bool, place: SuitePlace | None = None) -> Plan:
    """The plan. `model`: a model writes tests of each function as well, checked by the same runs; all go to `place`."""
    project = found.project
    needs = _needs(project.modules)
    where = (place or place_of(found)).to_json()
    # A function may depend on any file of the project, so cached results are valid only for exactly the same files.
    common: dict[str, JSON] = {"means": means, "paths": list(project.import_roots)}
    known_for: dict[str, JSON] = {"snapshot": digest(project.root)}
    by_name = {module.name: module for module in project.modules}
    tasks: list[Task] = []
    files: list[Task] = []
    for name in dict.fromkeys(target.module for target in found.targets):
        jobs: dict[str, JSON] = {}
        modelled: dict[str, JSON] = {}
        looked_at = {"root": str(project.root), "files": needs[name]}
        found_marks = marks(by_name[name])
        for number, target in enumerate(found.targets, 1):
            if target.module != name:
                continue
            job = _job(target, found.raises[target.full_name], found_marks).to_json()
            if not target.awaits:
                jobs[f"t{number}"] = job
                tasks.append(
                    _ghostwriter_task(f"t{number}", target, looked_at | {"options": common | known_for | {"job": job}})
                )
            if model:
                jobs[f"m{number}"] = job
                modelled[f"m{number}"] = True
                tasks.append(_tester_task(f"m{number}", target, by_name[name]))
        if jobs:
            options = common | {"module": name, "jobs": jobs, "modelled": modelled, "place": where}
            file = _file(f"f{len(files) + 1}", name, jobs, looked_at | _FRESH | {"options": options})
            files.append(file)
            # Before the functions of the next module, so that a file is checked as soon as its tests are written.
            tasks.append(file)
    wanted = [module.path for module in project.modules if module.name in project.wanted]
    options = common | {"modules": wanted, "tests": list(project.tests), "tested": found.tested}
    options |= {"place": where, "skipped": [_skip_to_json(skip) for skip in _all_skipped(found, model)]}
    looked_at = {"root": str(project.root), "files": [*wanted, *project.tests]}
    last = _coverage(files, looked_at | _FRESH | {"options": options})
    some = several(len(found.targets), "function")
    goal = f"Write tests for {some} of {project.root.name} that {'has' if len(found.targets) == 1 else 'have'} none"
    # The last task depends on all others. Its result is selected: code words the answer better than a model.
    return Plan(goal=goal, tasks=(*tasks, last), synthesis=SynthesisSpec(mode="select"), team="testgen")


def place_of(found: Survey, folder: Path | None = None) -> SuitePlace:
    """The place of the tests: `folder`, or the project's own place for them."""
    modules = list(dict.fromkeys(target.module for target in found.targets))
    return place_for(found.project, folder or default_folder(found.project.root), modules)


def without_tasks(found: Survey, *, model: bool) -> bool:
    """Whether there is nothing to do."""
    return not any(model or not target.awaits for target in found.targets)


def _all_skipped(found: Survey, model: bool) -> list[Skip]:
    special = [target for target in found.targets if target.awaits and not model]
    why = "it is a coroutine, which needs a model"
    return [*found.skipped, *(Skip(t.path, t.full_name, t.line, why) for t in special)]


def _skip_to_json(skip: Skip) -> dict[str, JSON]:
    return {"path": skip.path, "line": skip.line, "name": skip.name, "why": skip.why}


def _job(target: UntestedFunction, raises: Sequence[str], marks: tuple[str, ...]) -> GhostwriteJob:
    return GhostwriteJob(
        module=target.module,
        name=target.name,
        kind=target.kind,
        path=target.path,
        line=target.line,
        end_line=target.end_line,
        raises=tuple(raises),
        marks=marks,
    )


def _ghostwriter_task(id: str, target: UntestedFunction, context: JSON) -> Task:
    return Task(
        id=id,
        worker="ghostwriter",
        instruction=f"Try {target.full_name} in the sandbox and write tests of what it does.",
        context=context,
        success_criterion="There are tests, or it is said why there are none.",
    )


def _tester_task(id: str, target: UntestedFunction, module: Module) -> Task:
    source = module.source if len(module.source) <= MOST_SOURCE else target.source[:MOST_SOURCE]
    return Task(
        id=id,
        worker="tester",
        instruction=f"Write pytest tests of {target.full_name}: the happy path, edge cases and one expected exception.",
        context={"target": target.full_name, "module": target.module, "path": target.path, "source": source},
        success_criterion="The tests import the target, and all of them pass three times in any order.",
    )


def _file(id: str, module: str, jobs: Mapping[str, JSON], context: JSON) -> Task:
    return Task(
        id=id,
        worker="verifier",
        instruction=f"Put the tests of {module} into one file and run it three times.",
        context=context,
        success_criterion="Every test in the file passed three times, in different orders.",
        depends_on=tuple(jobs),
        on_dependency_failure="proceed",
    )


def _coverage(files: Sequence[Task], context: JSON) -> Task:
    return Task(
        id="coverage",
        worker="surveyor",
        instruction="Measure how much of the code the tests run, before and after.",
        context=context,
        success_criterion="There is a figure for before and one for after.",
        depends_on=tuple(task.id for task in files),
        on_dependency_failure="proceed",
    )


def marks(module: Module) -> tuple[str, ...]:
    """Short strings without letters in the module's code, such as separators: useful as inputs."""
    import ast

    found = {
        node.value for node in ast.walk(module.tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    # Half a character could be neither recorded nor put into a file.
    usable = (text for text in found if 0 < len(text) <= 3 and text == text.encode("utf-8", "replace").decode())
    return tuple(sorted(text for text in usable if not any(c.isalnum() or c.isspace() for c in text)))[:2]


def _needs(modules: Sequence[Module]) -> dict[str, list[str]]:
    """Module -> the files its behaviour depends on: its own, and those of its direct and indirect imports."""
    known = {module.name: module for module in modules}
    direct: dict[str, list[str]] = {}
    for module in modules:
        package = module.path.endswith("__init__.py")
        used = [module.name, *imports([module.tree], module.name, package=package).values()]
        direct[module.name] = [part for name in used for part in _prefixes(name) if part in known]
    found: dict[str, list[str]] = {}
    for name in known:
        reached = [name]
        for at in reached:  # grows while it is walked
            reached += [other for other in dict.fromkeys(direct[at]) if other not in reached]
        found[name] = sorted(known[other].path for other in reached)
    return found


def _prefixes(name: str) -> list[str]:
    """`a.b.c` -> a, a.b, a.b.c: importing the last runs all of them."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
