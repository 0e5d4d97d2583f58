"""What testgen does as analyses: candidates for one function, one verified file, coverage before and after.

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

from chargehand.analyzers import PYTHON, Analysis, Analyzer, Scope

if TYPE_CHECKING:
    from chargehand.outcome import Finding
    from chargehand.testgen.ghostwrite import Job
    from chargehand.value import JSON

NOTE = "They state what the code did when they were written, which need not be what it should do."
_MODEL_TEST = 60


@cache
def version() -> str:
    """Everything installed counts, because the code under test uses it, and how tests are made of it."""
    parts = [sys.version, *sorted(f"{each.name}={each.version}" for each in metadata.distributions())]
    ours = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.rglob("*.py"))]
    return hashlib.sha256("\0".join([*parts, *ours]).encode()).hexdigest()


async def candidates(scope: Scope) -> Analysis:
    """Test source for one function."""
    from chargehand.testgen.ghostwrite import Job, ghostwrite
    from chargehand.testgen.sandbox import room

    job = Job.model_validate(scope.options["job"])
    with room(scope.root, scope.options["means"]) as sealed:
        written = await ghostwrite(sealed, job, scope.options["paths"])
    name = f"{job.module}.{job.name}"
    said = f"No tests for {name}: {written.why}." if not written.source else f"Tests of {name} were written."
    output = {"target": name, "tests": written.source, "why": written.why}
    return Analysis(findings=written.findings, notes=(said,), output=output)


async def file(scope: Scope) -> Analysis:
    """One file from the sources of a module's functions, with what passed three runs."""
    from chargehand.testgen.assemble import assemble
    from chargehand.testgen.ghostwrite import Job
    from chargehand.testgen.sandbox import room
    from chargehand.testgen.verify import verify

    module: str = scope.options["module"]
    jobs = {id: Job.model_validate(job) for id, job in scope.options["jobs"].items()}
    sources = {id: text for id, result in scope.options.get("inputs", {}).items() if (text := _tests_in(result))}
    whole = assemble(module, list(sources.values()), NOTE)
    with room(scope.root, scope.options["means"]) as sealed:
        verified = await verify(sealed, whole, scope.options["paths"])
    findings = [_failure(name, why, sources, jobs) for name, why in verified.failures.items()]
    named = f"test_{module.replace('.', '_')}.py"
    said = f"{verified.tests} tests of {module} passed three times, {len(verified.failures)} were left out."
    output = {"module": module, "file": named, "source": verified.source, "tests": verified.tests}
    return Analysis(tuple(findings), (said,), output | {"left_out": dict(verified.failures)})


async def coverage(scope: Scope) -> Analysis:
    """How much of the code the tests ran before and run now; what gets no tests is passed on for the report."""
    from chargehand.testgen.measure import measure
    from chargehand.testgen.sandbox import room

    options = scope.options
    made = [source_of(result) for result in options.get("inputs", {}).values()]
    files = dict(each for each in made if each is not None)
    with room(scope.root, options["means"]) as sealed:
        found = await measure(sealed, options["modules"], options["tests"], files, options["paths"])
    said = f"Coverage of {found.statements:,} statements: {found.before:g} % before, {found.after:g} % after."
    output = {"coverage": found.to_json(), "skipped": options["skipped"], "tested": options["tested"]}
    return Analysis(notes=tuple(filter(None, (said, found.note))), output=output)


def _tests_in(result: JSON) -> str:
    """The source in a worker's result, if it is Python."""
    text = str(cast("dict[str, JSON]", result).get("tests") or "") if isinstance(result, dict) else ""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return ""
    return text


def _failure(name: str, why: str, sources: Mapping[str, str], jobs: Mapping[str, Job]) -> Finding:
    """A test that failed is a suspected bug of the function it was written for."""
    from chargehand.outcome import Finding
    from chargehand.testgen.ghostwrite import CATEGORY

    # A name that was taken was numbered.
    plain = name.rstrip("0123456789").rstrip("_")
    id = next((id for id, text in sources.items() if f"def {name}(" in text or f"def {plain}(" in text), None)
    job = jobs.get(id or "") or next(iter(jobs.values()))
    return Finding(
        severity="warning",
        category=CATEGORY,
        path=job.path,
        line=job.line,
        end_line=job.end_line,
        message=f"{name or 'The test file'} failed and was left out: {why}",
        suggestion="Either the code or the test is wrong about this input.",
        confidence=_MODEL_TEST,
        sources=("testgen",),
    )


def _generator(name: str, run: Callable[[Scope], Awaitable[Analysis]]) -> Analyzer:
    return Analyzer(name, "tests", PYTHON, per_file=False, version=version, run=run)


GENERATORS: Mapping[str, Analyzer] = {
    each.name: each
    for each in (
        _generator("testgen-candidates", candidates),
        _generator("testgen-file", file),
        _generator("testgen-coverage", coverage),
    )
}


def source_of(output: JSON) -> tuple[str, str] | None:
    """Name and text of the file a module's task made, if it made one."""
    fields = cast("dict[str, JSON]", output) if isinstance(output, dict) else {}
    return (str(fields["file"]), str(fields["source"])) if fields.get("source") else None
