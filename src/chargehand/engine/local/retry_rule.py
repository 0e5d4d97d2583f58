"""A model call that failed -> whether the same call is sent again, and after how long.

The ladder in `dispatcher/recovery.py` decides what happens when it is not sent again or fails again.
"""

from __future__ import annotations

import random

from chargehand.errors import ModelError

TRANSPORT_RETRIES = 4
# The same when a web page or nothing arrived instead of a reply. The usual cause is an address without a model server;
# a short fault of a gateway is rarer.
RETRIES_AFTER_PAGE = 1
# The longest pause before each retry. Together they outlast the restart of a server and most of a minute's rate limit:
# when the last retry fails too, the task is not tried again by the same worker.
PAUSES_S = (0.5, 4.0, 16.0, 40.0)


def may_retry(error: ModelError, retries: int) -> bool:
    """`retries`: how often it was sent again before."""
    most = RETRIES_AFTER_PAGE if error.kind == "contract" else TRANSPORT_RETRIES
    return error.transient and retries < most


def backoff(error: ModelError, retries: int, chance: random.Random, patience_s: float) -> float:
    """A little more than the provider asked for, or a random time between half of the longest pause and all of it.

    No pause is longer than a third of the patience with this provider.
    """
    if error.retry_after is not None:
        return error.retry_after + chance.uniform(0, 0.1)
    longest = min(PAUSES_S[retries], patience_s / 3)
    return chance.uniform(longest / 2, longest)
