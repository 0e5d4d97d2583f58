"""The result of the only task as the answer: when it is as good as confirmed, and when it is not."""

from __future__ import annotations

import pytest

from chargehand.synthesizer.only_result import UNCONFIRMED, answer_with
from chargehand.values.outcome import Usage, done
from chargehand.values.request import Material, Request
from tests.kernel import MODEL, SMALL_MODEL

ABOUT_A_FILE = Request(text="How many?", material=(Material(name="a.md", path="/a.md"),))


@pytest.mark.parametrize(
    ("request_", "model", "confidence", "gaps"),
    [
        (ABOUT_A_FILE, SMALL_MODEL, 50, [UNCONFIRMED]),
        (ABOUT_A_FILE, SMALL_MODEL, 90, []),
        (ABOUT_A_FILE, MODEL, 50, []),
        (Request(text="How many?"), SMALL_MODEL, 50, []),
    ],
)
def test_what_a_small_model_made_up_about_material_was_complete(
    request_: Request, model: str, confidence: int, gaps: list[str]
) -> None:
    """Code finds none of its words in the material: the answer is given, and said to be unconfirmed."""
    outcome = done("t1", "ann", summary="212.", output="It is 212.", confidence=confidence)
    outcome = outcome.model_copy(update={"usage": Usage(models=(model,))})
    made = answer_with(outcome, request_)
    assert made.answer == "It is 212."
    assert [gap.reason for gap in made.gaps] == gaps
