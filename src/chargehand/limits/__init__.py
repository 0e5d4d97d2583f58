"""Limits on when effects may start: slots of a run; rate, concurrency and breaker of a provider."""

from __future__ import annotations

from chargehand.limits.breaker import Breaker, BreakerChange, State, Ticket
from chargehand.limits.calls_per_minute import Bucket, Rate
from chargehand.limits.concurrency_after_429 import Adaptive
from chargehand.limits.provider_limits import CallResult, Permit, ProviderLimits, ProviderRegistry, Refused
from chargehand.limits.run_concurrency import Gate

__all__ = [
    "Adaptive",
    "Breaker",
    "BreakerChange",
    "Bucket",
    "CallResult",
    "Gate",
    "Permit",
    "ProviderLimits",
    "ProviderRegistry",
    "Rate",
    "Refused",
    "State",
    "Ticket",
]
