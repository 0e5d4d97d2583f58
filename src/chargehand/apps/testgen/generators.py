"""The analyses of testgen: candidates for one function, one verified file, coverage before and after.

Each reads its order from the analysis' options and runs code in the sandbox alone; importing this imports none of it.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, cast

from chargehand.engine.analyzer_port import Analyzer, AnalyzerResult, Scope
from chargehand.trace.number_text import several

if TYPE_CHECKING:
    from chargehand.apps.testgen.ghostwrite import GhostwriteJob
    from chargehand.values.base import JSON
    from chargehand.values.outcome import Finding

NOTE = "They state what the code did when they were written, which need not be what it should do."
_MODEL_TEST = 60


@cache
def version() -> str:
    """A hash of all installed packages, because the code under test uses them, and of the code that makes tests."""
    parts = [sys.version, *sorted(f"{each.name}={each.version}" for each in metadata.distributions())]
    ours = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.rglob("*.py"))]
    return hashlib.sha256("\0".join([*parts, *ours]).encode()).hexdigest()


async def candidates(scope: Scope) -> AnalyzerResult:
    """Test source for one function."""
    from chargehand.apps.testgen.ghostwrite import GhostwriteJob, ghostwrite
    from chargehand.apps.testgen.sandbox import room

    job = GhostwriteJob.model_validate(scope.options["job"])
    with room(scope.root, scope.options["means"]) as sealed:
        written = await ghostwrite(sealed, job, scope.options["paths"])
    name = f"{job.module}.{job.name}"
    why_not = written.why.rstrip(".")
    said = f"Tests of {name} were written." if written.source else f"No tests for {name}: {why_not}."
    output = {"target": name, "tests": written.source, "why": written.why}
    return AnalyzerResult(findings=written.findings, notes=(said,), output=output)


async def file(scope: Scope) -> AnalyzerResult:
    """One file from the sources of a module's functions, with the tests that detect a mutant and passed three runs."""
    from chargehand.apps.testgen.assemble import assemble, without
    from chargehand.apps.testgen.ghostwrite import GhostwriteJob
    from chargehand.apps.testgen.places_of_tests import SuitePlace
    from chargehand.apps.testgen.sandbox import room
    from chargehand.apps.testgen.try_mutants import MutantScore, try_mutants
    from chargehand.apps.testgen.verify import Verified, verify

    module: str = scope.options["module"]
    place = SuitePlace.model_validate(scope.options["place"])
    jobs = {id: GhostwriteJob.model_validate(job) for id, job in scope.options["jobs"].items()}
    results = {id: _tests_in(result) for id, result in scope.options.get("inputs", {}).items()}
    sources = {id: text for id, (text, why) in results.items() if text and not why}
    # A test that could not be used is not a bug of the code: function -> why.
    unusable = {_target(id, jobs, module): why for id, (_, why) in results.items() if why}
    whole, owners = assemble(module, sources, NOTE)
    named = place.names[module]
    verified, score = Verified("", 0, {}), MutantScore({}, frozenset(), ended=True)
    if whole:
        with room(scope.root, scope.options["means"]) as sealed:
            tests = {id: [name for name, owner in owners.items() if owner == id] for id in sources if id in jobs}
            score = await try_mutants(sealed, whole, tests, jobs, scope.options["paths"])
            whole = without(whole, score.useless)
            verified = await verify(sealed, whole, scope.options["paths"], named, place)
    for name in score.useless:
        unusable.setdefault(_target(owners[name], jobs, module), f"{name} tells no changed version of it from it")
    kept = {_target(id, jobs, module) for name, id in owners.items() if f"def {name}(" in verified.source}
    # A function with at least one offered test does not count as untested.
    unusable = {name: why for name, why in unusable.items() if name not in kept}
    findings: list[Finding] = []
    for name, why in verified.failures.items():
        id = owners.get(name)
        if id is not None and id in jobs and scope.options["modelled"].get(id):
            findings.append(_failure(name, why, jobs[id]))
        else:
            # A test of observed behaviour that does not repeat says nothing about the code.
            unusable[_target(id, jobs, module)] = f"{name or 'its test file'} was left out, it does not stay so: {why}"
    killed = {name: list(each) for name, each in score.by_function.items() if name in kept}
    told, all_of_them = (sum(each[at] for each in killed.values()) for at in (0, 1))
    left_out = len(verified.failures) + len(score.useless)
    verb = "notices" if verified.tests == 1 else "notice"
    said = f"{several(verified.tests, 'test')} of {module} passed three times and {verb} {told} of "
    said += f"{several(all_of_them, 'small change')} to the code; left out: {left_out}."
    output = {"module": module, "file": named, "source": verified.source, "tests": verified.tests, "mutants": killed}
    return AnalyzerResult(
        tuple(findings), (said,), output | {"left_out": dict(verified.failures), "unusable": unusable}
    )


async def coverage(scope: Scope) -> AnalyzerResult:
    """How much of the code the tests ran before and run now; functions without tests are passed on for the report."""
    from chargehand.apps.testgen.measure import measure
    from chargehand.apps.testgen.places_of_tests import SuitePlace
    from chargehand.apps.testgen.sandbox import room
    from chargehand.apps.testgen.try_settings import describe_settings

    options = scope.options
    made = [source_of(result) for result in options.get("inputs", {}).values()]
    files = dict(each for each in made if each is not None)
    with room(scope.root, options["means"]) as sealed:
        place = SuitePlace.model_validate(options["place"])
        found = await measure(sealed, options["modules"], options["tests"], files, options["paths"], place)
    said = f"Coverage of {found.statements:,} statements: {found.before:g} % before, {found.after:g} % after."
    output = {"coverage": found.to_json(), "skipped": options["skipped"], "tested": options["tested"]}
    output |= {"needs": list(place.needs), "settings": describe_settings(place)}
    return AnalyzerResult(notes=tuple(filter(None, (said, found.note))), output=output)


def _tests_in(result: JSON) -> tuple[str, str]:
    """The source in a worker's result, and what is wrong with it."""
    text = str(cast("dict[str, JSON]", result).get("tests") or "") if isinstance(result, dict) else ""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        return text, f"the tests written for it are not Python: {error}"
    return text, ""


def _target(id: str | None, jobs: Mapping[str, GhostwriteJob], module: str) -> str:
    return f"{module}.{jobs[id].name}" if id is not None and id in jobs else module


def _failure(name: str, why: str, job: GhostwriteJob) -> Finding:
    """A failed test that a model wrote is a suspected bug of its function."""
    from chargehand.apps.testgen.ghostwrite import suspected_bug

    advice = "Either the code or the test is wrong about this input."
    return suspected_bug(job, f"{name} failed and was left out: {why}", _MODEL_TEST, advice)


def _generator(name: str, run: Callable[[Scope], Awaitable[AnalyzerResult]]) -> Analyzer:
    return Analyzer(name, "tests", frozenset({"python"}), per_file=False, version=version, run=run)


GENERATORS: Mapping[str, Analyzer] = {
    each.name: each
    for each in (
        _generator("testgen-candidates", candidates),
        _generator("testgen-file", file),
        _generator("testgen-coverage", coverage),
    )
}


def source_of(output: JSON) -> tuple[str, str] | None:
    """Name and text of the file from a module's task, if there is one."""
    fields = cast("dict[str, JSON]", output) if isinstance(output, dict) else {}
    return (str(fields["file"]), str(fields["source"])) if fields.get("source") else None
