"""The outcome of a plan of one task -> the answer, unchanged and without a synthesis, if nothing else is asked for."""

from __future__ import annotations

from chargehand.models.model_size import is_small
from chargehand.synthesizer import plain_report as plain
from chargehand.synthesizer.placeholder import is_placeholder
from chargehand.synthesizer.synthesis import Synthesis, Validate
from chargehand.text.json_schema import violations
from chargehand.values.outcome import Outcome
from chargehand.values.report import Gap, Provenance
from chargehand.values.request import Request
from chargehand.workers.plain_result import NONE_CONFIRMED

UNCONFIRMED = "The material may not state this answer of a small model: code or the model itself did not find it there."


def is_as_asked(outcome: Outcome, request: Request, validate: Validate | None) -> bool:
    """Whether the output is the typed answer that the request wants, if it wants one."""
    schema = request.answer_schema
    if schema is not None and (not outcome.ok or violations(outcome.output, schema)):
        return False
    return validate is None or validate(outcome.output) is None


def is_empty_form(outcome: Outcome) -> bool:
    """Whether the text of the result is a placeholder. A result of findings alone has no text, so it is not."""
    text = plain.text_of(outcome)
    return bool(text.strip()) and is_placeholder(text)


def _is_unconfirmed(outcome: Outcome, request: Request) -> bool:
    """Whether a small model answers from material and code finds none of it there.

    Larger models conclude and compute what no line states; a small model more often invents it.
    """
    if outcome.gaps or not request.material or not isinstance(outcome.output, str) or outcome.confidence is None:
        return False
    models = outcome.usage.models
    return bool(models) and all(map(is_small, models)) and outcome.confidence <= NONE_CONFIRMED


def answer_with(outcome: Outcome, request: Request) -> Synthesis:
    """The result as the answer; each paragraph cites the task."""
    answer = plain.text_of(outcome)
    partial = Gap(task=outcome.task, reason=outcome.summary, impact="The answer is a partial result.")
    gaps = () if outcome.ok else (partial,)
    if outcome.ok and _is_unconfirmed(outcome, request):
        gaps = (Gap(task=outcome.task, reason=UNCONFIRMED, impact="It may be wrong: compare it with the material."),)
    cites = {str(n): (outcome.task,) for n, _ in enumerate(plain.paragraphs(answer), 1)}
    return Synthesis(
        answer=answer,
        gaps=gaps,
        confidence=outcome.confidence,
        provenance=Provenance(citations=cites),
        data=outcome.output if request.answer_schema is not None else None,
    )
