"""Outcomes of the smaller tasks that took a task's place -> the task's one outcome."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from chargehand.errors import ErrorKind
from chargehand.trace.number_text import several
from chargehand.values.outcome import Claim, Contradiction, Evidence, Finding, Outcome, failed
from chargehand.values.plan import Task


def join_parts(task: Task, parts: list[Outcome]) -> Outcome:
    """Done only when all of them are; else failed, with the results so far as a partial result."""
    good = [part for part in parts if part.ok]
    output = {part.task: part.output for part in good}
    if len(good) < len(parts):
        missing = ", ".join(f"{part.task} ({part.summary})" for part in parts if not part.ok)
        kinds: list[ErrorKind] = [part.error.kind for part in parts if part.error]
        message = f"Split into {several(len(parts), 'task')}. Not done: {missing}"
        kind: ErrorKind = kinds[0] if kinds else "contract"
        result = failed(task.id, task.worker, kind, message, output=output or None)
        known = {"claims": _claims(task, good), "findings": _findings(task, good), "contradictions": _at_odds(good)}
        return result.model_copy(update=known)
    stated = [part.confidence for part in good if part.confidence is not None]
    return Outcome(
        task=task.id,
        status="done",
        worker=task.worker,
        summary=" ".join(part.summary for part in good),
        output=output,
        claims=_claims(task, good),
        findings=_findings(task, good),
        confidence=min(stated) if stated else None,
        partial=any(part.partial for part in good),
        gaps=tuple(gap.model_copy(update={"task": task.id}) for part in good for gap in part.gaps),
        contradictions=_at_odds(good),
        evidence=Evidence.total(good),
    )


# The parts belong to their task: their sources are cited under its id. Outside, one part is not a source of another.


def _claims(task: Task, parts: list[Outcome]) -> tuple[Claim, ...]:
    ids = {part.task for part in parts}
    return tuple(c.model_copy(update={"sources": _outside(task, c.sources, ids)}) for p in parts for c in p.claims)


def _at_odds(parts: list[Outcome]) -> tuple[Contradiction, ...]:
    return tuple(each for part in parts for each in part.contradictions)


def _findings(task: Task, parts: list[Outcome]) -> tuple[Finding, ...]:
    ids = {part.task for part in parts}
    return tuple(f.model_copy(update={"sources": _outside(task, f.sources, ids)}) for p in parts for f in p.findings)


def _outside(task: Task, sources: Iterable[str], ids: Collection[str]) -> tuple[str, ...]:
    return task.id, *(source for source in sources if source not in ids)
