"""A model call that failed -> whether the same call is sent again, and after how long.

What happens when it is not, or fails once more, is for the ladder in `dispatcher/recovery.py`.
"""

from __future__ import annotations

import random

from chargehand.errors import ModelError

TRANSPORT_RETRIES = 4
# The same where a page or nothing came instead of a reply: more often than a short fault of a gateway it is an address
# at which there is no model server.
RETRIES_AFTER_PAGE = 1
FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 30.0


def may_retry(error: ModelError, retries: int) -> bool:
    """`retries`: how often it was sent again before."""
    most = RETRIES_AFTER_PAGE if error.kind == "contract" else TRANSPORT_RETRIES
    return error.transient and retries < most


def backoff(error: ModelError, retries: int, chance: random.Random) -> float:
    """Full jitter below a doubling ceiling, or what the provider asked for and a little."""
    if error.retry_after is not None:
        return error.retry_after + chance.uniform(0, 0.1)
    return chance.uniform(0, min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2**retries))
