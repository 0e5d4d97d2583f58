"""A draft and a critic -> the draft that goes out, mended a bounded number of times, and what to tell the reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from chargehand.models.supervisor_models import SupervisorModel
from chargehand.synthesizer.critic import Accepted, Critique, NotReviewed, Returned, critique
from chargehand.synthesizer.synthesis import SynthesisContext
from chargehand.synthesizer.writer import Draft, NoDraft, Writer
from chargehand.values.outcome import Outcome


async def review_draft(
    draft: Draft,
    writer: Writer,
    outcomes: Mapping[str, Outcome],
    critic: SupervisorModel,
    rounds: int,
    context: SynthesisContext,
) -> tuple[Draft, tuple[str, ...]]:
    """What goes out was looked at last by the critic, or a note says that it was not."""
    for number in range(1, rounds + 2):
        verdict = await critique(
            context.request, draft.text, outcomes, context.engine, critic, number, context.used, context.mark
        )
        if not isinstance(verdict, Returned) or number > rounds:
            return draft, notes_for_reader(verdict)
        mended = await writer.mend(verdict.problems)
        if isinstance(mended, NoDraft):
            why = f"The critic did not accept the answer, and it was not mended ({mended.fault.message}):"
            return draft, (f"{why} {' '.join(verdict.problems)}",)
        draft = mended
    raise AssertionError("the last round returns")


def notes_for_reader(verdict: Critique) -> tuple[str, ...]:
    """What the reader is told of the last look at an answer."""
    match verdict:
        case Accepted():
            return ()
        case Returned(problems):
            return (f"The critic did not accept the answer: {' '.join(problems)}",)
        case NotReviewed(reason):
            return (f"The answer was not reviewed: {reason}",)
        case _:
            assert_never(verdict)
