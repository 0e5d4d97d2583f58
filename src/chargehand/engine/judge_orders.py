"""The verdict on orders about the limits and the models of a run, whichever engine carries it out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chargehand.errors import UsageError
from chargehand.models.resolve import Models
from chargehand.record.task_list import ACCEPTED, Judgement
from chargehand.values.order import Order


def judge_top_up(order: Order, has: Mapping[str, float | None]) -> Judgement:
    """Whether an order adds to limits that the run has."""
    if not order.raised:
        return Judgement("refused", "The order adds nothing: name a limit to add to.")
    missing = missing_limits(order.raised, has)
    return Judgement("refused", missing) if missing else ACCEPTED


def missing_limits(added: Iterable[str], has: Mapping[str, float | None]) -> str:
    """The sentence about limits that are added to and that the run does not have; "" if it has all of them."""
    missing = [_LIMITS[name] for name in added if has[name] is None]
    return f"The run has {' and '.join(missing)}, so there is nothing to add to." if missing else ""


_LIMITS = {"tokens": "no limit of tokens", "usd": "no limit of money", "deadline": "no deadline"}


def judge_model(models: Models, name: str, *, needs_price: bool) -> Judgement:
    """Whether the run may call a model that its team does not name; `needs_price` where it has a budget of money."""
    try:
        models.check(name)
    except UsageError as error:
        return Judgement("refused", str(error))
    if needs_price and models.price(name) is None:
        return Judgement("refused", f"The price of {name} is unknown, and the run has a budget of money.")
    return ACCEPTED
