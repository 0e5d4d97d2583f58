"""The verdict on orders about the limits and the models of a run, whichever engine carries it out."""

from __future__ import annotations

from collections.abc import Mapping

from chargehand.errors import UsageError
from chargehand.models.resolve import Models
from chargehand.record.task_list import ACCEPTED, Judgement
from chargehand.values.order import Order


def judge_top_up(order: Order, has: Mapping[str, float | None]) -> Judgement:
    """Whether an order adds to limits that the run has."""
    added = [name for name in has if getattr(order, name) is not None]
    without = [name for name in added if has[name] is None]
    if without or not added:
        what = f"the run has no limit of {', '.join(without)}" if without else "the order adds nothing"
        return Judgement("refused", f"There is nothing to add to: {what}.")
    return ACCEPTED


def judge_model(models: Models, name: str, *, needs_price: bool) -> Judgement:
    """Whether the run may call a model that its team does not name; `needs_price` where it has a budget of money."""
    try:
        models.check(name)
    except UsageError as error:
        return Judgement("refused", str(error))
    if needs_price and models.price(name) is None:
        return Judgement("refused", f"The price of {name} is unknown, and the run has a budget of money.")
    return ACCEPTED
