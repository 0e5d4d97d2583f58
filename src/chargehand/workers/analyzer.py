"""Analyzers as a worker: each of them reads the files that a task names; their findings are the outcome. No model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic_core import ValidationError

from chargehand.engine.port import Engine
from chargehand.engine.run_parallel import run_parallel
from chargehand.trace.number_text import several
from chargehand.values.base import JSON, Field, Value
from chargehand.values.effect import Analysis, AnalysisResult
from chargehand.values.outcome import Gap, Outcome, Usage, done, failed
from chargehand.values.plan import Tier
from chargehand.workers import Assignment, RunTerms

# How many notes of one task are kept; the rest is counted.
MOST_NOTES = 20
# How many files are named in a sentence.
MOST_NAMED = 10


class Brief(Value):
    """The context of an analyzer's task: what to look at."""

    root: str
    files: tuple[str, ...] = Field(min_length=1)
    # Path -> the first and last lines of what changed; None when whole files are looked at.
    changed: dict[str, tuple[tuple[int, int], ...]] | None = None
    base: str | None = None
    options: dict[str, JSON] = Field(default_factory=dict)
    # Those of the worker's analyzers that can look at these files; None is all of them.
    analyzers: tuple[str, ...] | None = None
    # Path -> its numbered lines, and the lines removed from it, for a scorer of the findings.
    code: JSON = None
    removed: JSON = None
    # How a review chooses among its findings: kept here for commands that show the run again.
    review: JSON = None


@dataclass(frozen=True)
class AnalyzerWorker:
    """Runs its analyzers side by side, each an effect of its own. One that fails leaves what the others found."""

    name: str
    analyzers: tuple[str, ...]
    output_schema: dict[str, Any] | None = None
    # There is no larger model to exchange it for.
    tier: Tier = "large"
    check: str | None = None
    # It finds the same however often it looks.
    repeatable: bool = False
    waits_for_person: bool = False

    def bind(self, terms: RunTerms) -> AnalyzerWorker:
        return self

    def model_for(self, tier: Tier | None) -> None:
        return None

    def with_model(self, model: str) -> AnalyzerWorker:
        return self

    async def work(self, assignment: Assignment, engine: Engine) -> Outcome:
        task = assignment.task
        try:
            brief = Brief.model_validate(task.context)
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'context'}: {e['msg']}" for e in error.errors()[:5])
            message = f"The context of {task.id} does not say what to look at: {wrong}."
            return failed(task.id, self.name, "bad_request", message)
        chosen = [name for name in self.analyzers if brief.analyzers is None or name in brief.analyzers]
        results: list[AnalysisResult] = [AnalysisResult()] * len(chosen)

        async def look(number: int, analyzer: str) -> None:
            effect = Analysis(
                worker=self.name,
                analyzer=analyzer,
                root=brief.root,
                files=brief.files,
                changed=brief.changed,
                base=brief.base,
                options=brief.options | _given_results(assignment),
            )
            results[number] = await engine.perform(assignment.key("analysis", number + 1), effect)

        await run_parallel(look(number, analyzer) for number, analyzer in enumerate(chosen))
        # They run in parallel: together they took as long as the slowest of them.
        longest = Usage(
            seconds=max((each.seconds for each in results), default=0.0),
            waiting_s=max((each.waiting_s for each in results), default=0.0),
        )
        assignment.used.append(longest)
        return self._outcome(task.id, chosen, results).model_copy(update={"usage": Usage.total(assignment.used)})

    def _outcome(self, task: str, chosen: Sequence[str], results: Sequence[AnalysisResult]) -> Outcome:
        findings = [finding for result in results for finding in result.findings]
        looked, reused = sum(result.files for result in results), sum(result.reused for result in results)
        notes = list(dict.fromkeys(note for result in results for note in result.notes))
        more = [f"and {len(notes) - MOST_NOTES} notes more"] if len(notes) > MOST_NOTES else []
        # Analyzers that do not know the language of any file of the task did not run.
        lookers = [name for name, result in zip(chosen, results, strict=True) if result.files]
        unchecked = _unchecked_files(chosen, results)
        files = max((result.files for result in results), default=0)
        output = {
            "analyzers": lookers,
            "files": files,
            "looks": looked,
            "reused": reused,
            "notes": [*notes[:MOST_NOTES], *more],
            "unchecked": unchecked,
        }
        found = several(len(findings), "finding") if findings else "No findings"
        where = f"in {several(files, 'file')} by {', '.join(lookers)}"
        summary = f"{found} {where}." if lookers else "There was nothing to look at."
        made = next((result for result in results if result.output is not None), None)
        if made is not None:
            summary, output = " ".join(made.notes), _sign_output(made.output, chosen)
        outcome = done(task, self.name, summary=summary, output=output, findings=findings)
        if unchecked:
            gaps = tuple(gap.model_copy(update={"task": task}) for gap in gaps_of(unchecked))
            outcome = outcome.model_copy(update={"partial": True, "gaps": gaps})
        if not (wrong := [result.error.message for result in results if result.error is not None]):
            return outcome
        message = " ".join(dict.fromkeys(wrong))
        return failed(task, self.name, "analyzer", message, output=output).model_copy(
            update={"findings": outcome.findings}
        )


def gaps_of(unchecked: Mapping[str, Mapping[str, str]]) -> tuple[Gap, ...]:
    """One gap for each reason and the analyzers it stopped. `unchecked` is path -> analyzer -> reason."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for path, reasons in unchecked.items():
        stopped: dict[str, list[str]] = {}
        for analyzer, reason in reasons.items():
            stopped.setdefault(reason, []).append(analyzer)
        for reason, analyzers in stopped.items():
            found.setdefault((reason, tuple(analyzers)), []).append(path)
    return tuple(
        Gap(reason=f"{reason}: {name_files(paths)}.", impact=f"Not looked at by {', '.join(analyzers)}.")
        for (reason, analyzers), paths in found.items()
    )


def name_files(paths: Sequence[str], most: int = MOST_NAMED) -> str:
    """The names of the files; only the first ones if there are many."""
    more = f" and {len(paths) - most:,} more" if len(paths) > most else ""
    return f"{', '.join(paths[:most])}{more}"


def _unchecked_files(chosen: Sequence[str], results: Sequence[AnalysisResult]) -> dict[str, dict[str, str]]:
    """Path -> analyzer -> why it could not check the file."""
    found: dict[str, dict[str, str]] = {}
    for analyzer, result in zip(chosen, results, strict=True):
        for path, reason in result.unchecked.items():
            found.setdefault(path, {})[analyzer] = reason
    return found


def _sign_output(output: JSON, analyzers: Sequence[str]) -> JSON:
    """What an analyzer produced, with the analyzer's name. Its only statements are its findings."""
    return {"analyzers": list(analyzers), **cast(dict[str, JSON], output)} if isinstance(output, dict) else output


def _given_results(assignment: Assignment) -> dict[str, JSON]:
    """The results that the task depends on, as far as they exist; a partial result counts."""
    results = {id: outcome.output for id, outcome in assignment.inputs.items() if outcome.ok or outcome.partial}
    return {"inputs": results} if assignment.task.depends_on else {}
