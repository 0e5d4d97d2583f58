"""What a waiting run waits for."""

from __future__ import annotations

import pytest

from chargehand.trace.page_state import page_state
from chargehand.trace.run_state import fold
from chargehand.trace.waits_for import WaitsFor, waits_for
from tests.trace.sample import Recorder

QUESTION = {"id": "plan", "kind": "plan", "prompt": "Run this plan?"}


@pytest.mark.parametrize(
    ("status", "asks", "provider", "expected"),
    [
        ("running", True, True, None),
        ("complete", False, False, None),
        ("waiting", True, False, "person"),
        ("waiting", True, True, "person"),
        ("waiting", False, True, "provider"),
        ("waiting", False, False, "resume"),
    ],
)
def test_an_open_question_comes_before_a_provider(
    status: str, asks: bool, provider: bool, expected: WaitsFor | None
) -> None:
    """Without both, all is answered and only a resume continues the run."""
    assert waits_for(status, asks=asks, provider=provider) == expected


def test_a_parked_run_waits_for_a_resume_once_all_is_answered() -> None:
    """One that parked without a question waits for a provider."""
    record = Recorder()
    record.start(0, "Ask")
    record.note(1, "question_asked", key="@approve", question=QUESTION)
    record.note(2, "run_ended", status="waiting")
    assert page_state(fold(record.events()))["waits_for"] == "person"
    record.note(3, "question_answered", key="@approve", question="plan", answer="approve")
    assert page_state(fold(record.events()))["waits_for"] == "resume"
    other = Recorder()
    other.start(0, "Ask")
    other.note(1, "run_ended", status="waiting")
    assert page_state(fold(other.events()))["waits_for"] == "provider"
