"""The outcomes and the synthesis of a run that has ended -> its status: complete, partial or failed."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from chargehand.synthesizer import Synthesis
from chargehand.synthesizer.synthesis import keeps_open
from chargehand.values.outcome import Outcome
from chargehand.values.status_words import RunStatus


def decide_status(outcomes: Mapping[str, Outcome], filled: Collection[str], synthesis: Synthesis) -> RunStatus:
    """complete only with evidence for all of it: every task done or replaced (`filled`), no gap, nothing cited in vain,
    and an answer that cites what it rests on and accounts for every result.
    """
    if not any(outcome.ok for outcome in outcomes.values()):
        return "failed"
    whole = all(outcome.ok or id in filled for id, outcome in outcomes.items())
    rests = synthesis.provenance.accounts_for_all and not keeps_open(synthesis.provenance)
    return "complete" if whole and not synthesis.gaps and rests else "partial"
