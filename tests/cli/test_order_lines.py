"""Orders that came too late, as `show` names them."""

from __future__ import annotations

from typing import Any

from chargehand.cli.order_lines import MOST, LateOrders
from tests.events import make_event


def _control(task: str, order: str, verdict: str, text: str = "") -> dict[str, Any]:
    value = {"text": text} if text else None
    return {"task": task, "key": "@control/1", "order": order, "by": "b", "sent_at": 1.0, "verdict": verdict} | (
        {"value": value} if value else {}
    )


def _found(*controls: dict[str, Any]) -> list[str]:
    late = LateOrders()
    for seq, control in enumerate(controls, 1):
        late.take(make_event("control", control.pop("task"), None, seq=seq, at=1.0, **control))
    return late.describe()


def test_only_what_came_too_late_is_named() -> None:
    """With the task and the words; orders that were taken or refused had a verdict that their sender saw."""
    accepted, refused = _control("t1", "tell", "accepted", "Use euros."), _control("t9", "tell", "refused", "Yes.")
    [words, stop] = _found(
        accepted, refused, _control("t2", "tell", "too_late", "Go."), _control("t3", "stop", "too_late")
    )
    assert "t2" in words
    assert '"Go."' in words
    assert "stop t3" in stop


def test_a_restart_of_the_task_ends_it() -> None:
    """What was said before that is of no interest any more."""
    assert _found(_control("t1", "tell", "too_late", "Go."), _control("t1", "restart", "accepted")) == []


def test_many_late_orders_are_counted() -> None:
    """The first ones are named."""
    lines = _found(*(_control(f"t{number}", "stop", "too_late") for number in range(MOST + 3)))
    assert len(lines) == MOST + 1
    assert "3 more" in lines[-1]
