"""Outcomes -> what is known before anything is written: merged claims and findings, and where workers disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chargehand.synthesizer.contradictions import ContradictionCandidate, candidates
from chargehand.synthesizer.dedupe import merge_claims, merge_findings
from chargehand.synthesizer.disagreements import Disagreement, disagreements
from chargehand.synthesizer.strip_markdown import one_line
from chargehand.values.outcome import Claim, Finding, Outcome
from chargehand.values.plan import Task


@dataclass(frozen=True, slots=True)
class Reconciled:
    """`candidates` are from before merging; with `rulings` on them they are the disagreements, or are compatible."""

    outcomes: Mapping[str, Outcome]
    claims: tuple[Claim, ...]
    findings: tuple[Finding, ...]
    candidates: tuple[ContradictionCandidate, ...]
    disagreements: tuple[Disagreement, ...]
    compatible: tuple[Disagreement, ...] = ()


def reconcile(outcomes: Mapping[str, Outcome], tasks: Sequence[Task]) -> Reconciled:
    """By code alone: nothing is judged yet, so every disagreement is open."""
    usable = [outcome for outcome in outcomes.values() if outcome.ok or outcome.partial]
    found = candidates(usable, tasks)
    workers = {outcome.task: outcome.worker for outcome in usable}
    return Reconciled(
        outcomes=outcomes,
        claims=merge_claims([_in_words(claim) for outcome in usable for claim in outcome.claims], workers),
        findings=merge_findings([finding for outcome in usable for finding in outcome.findings], workers),
        candidates=found,
        disagreements=disagreements(found, {}),
    )


def _in_words(claim: Claim) -> Claim:
    """The claim without Markdown."""
    words = one_line(claim.statement)
    return claim if words == claim.statement else claim.model_copy(update={"statement": words})
