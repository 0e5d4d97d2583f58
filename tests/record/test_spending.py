"""What calls may have used whose result is not known."""

from __future__ import annotations

import pytest

from chargehand.record.spending import RecordedSpending


@pytest.mark.parametrize(("reserved", "cost"), [(None, None), (0.5, None), (0.0, 0.0)])
def test_the_cost_of_a_lost_call_is_known_only_where_calls_are_free(reserved: float | None, cost: float | None) -> None:
    """A model in the same process costs nothing, whether its call returned or not."""
    spending = RecordedSpending()
    spending.reserved["t1/1/model/1"] = (100, reserved)
    spending.sent.add("t1/1/model/1")
    [call] = spending.in_flight({})
    assert (call.usage.usd, call.usage.calls) == (cost, 1)
