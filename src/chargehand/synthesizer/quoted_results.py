"""Outcomes and what is known of them -> the quoted parts of the synthesizer's prompt, summarised where too large.

If they are small enough, every result is included in full. Otherwise, or when the plan says `reduce`, a tree of
summaries takes the place of the results. Findings are listed by weight as far as there is room.
"""

from __future__ import annotations

from collections.abc import Sequence

from chargehand.synthesizer import prompt
from chargehand.synthesizer.reconcile import Reconciled
from chargehand.synthesizer.reduce import FAN_IN, Reduction
from chargehand.synthesizer.synthesis import SynthesisContext
from chargehand.values.outcome import Finding

_CLAIMS = "Claims of all results, merged; `sources` name the tasks first"
_FINDINGS = "Findings of all results, merged; `sources` name the tasks first"


async def gather(reconciled: Reconciled, context: SynthesisContext) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parts of the prompt, and notes for the report."""
    whole = prompt.room(context.model)
    room = whole - whole // prompt.LISTS * (
        bool(reconciled.findings) + bool(reconciled.disagreements or reconciled.compatible)
    )
    findings, notes = _findings(reconciled.findings, whole // prompt.LISTS)
    outcomes = reconciled.outcomes
    forced = context.plan.synthesis.mode == "reduce" and len(outcomes) > FAN_IN
    if not forced:
        parts = _in_full(reconciled, context.asked)
        if sum(map(prompt.size, parts)) <= room:
            return (*parts, *findings), notes
    reduction = Reduction(outcomes, room, context)
    summaries = await reduction.run(fan_in=FAN_IN if forced else None)
    return (*summaries, *findings), (*notes, *reduction.notes)


def _in_full(reconciled: Reconciled, asked: dict[str, str]) -> list[str]:
    parts = [
        prompt.section(prompt.heading(outcome), prompt.outcome_as_data(asked[id], outcome))
        for id, outcome in reconciled.outcomes.items()
    ]
    if reconciled.claims:
        parts.append(prompt.section(_CLAIMS, [claim.to_json() for claim in reconciled.claims]))
    return parts


def _findings(findings: Sequence[Finding], room: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The most severe findings as far as there is room, and a note about the others."""
    if not findings:
        return (), ()
    shown: list[object] = []
    for finding in sorted(findings, key=prompt.weight):
        data = finding.model_dump(mode="json", exclude_none=True)
        room -= prompt.size(prompt.section("", data))
        if room < 0 and shown:
            break
        shown.append(data)
    part = (prompt.section(_FINDINGS, shown),)
    if len(shown) == len(findings):
        return part, ()
    return part, (f"The answer was written from the {len(shown):,} gravest of {len(findings):,} findings.",)
