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
# The longest pause before each retry. Together they outlast the restart of a server and most of a minute's rate limit:
# when the last retry fails too, the task is not tried again by the same worker.
PAUSES_S = (0.5, 4.0, 16.0, 40.0)


def may_retry(error: ModelError, retries: int) -> bool:
    """`retries`: how often it was sent again before."""
    most = RETRIES_AFTER_PAGE if error.kind == "contract" else TRANSPORT_RETRIES
    return error.transient and retries < most


def backoff(error: ModelError, retries: int, chance: random.Random, patience_s: float) -> float:
    """What the provider asked for and a little, or by chance between half of the longest pause and all of it.

    No pause is longer than a third of the patience with this provider.
    """
    if error.retry_after is not None:
        return error.retry_after + chance.uniform(0, 0.1)
    longest = min(PAUSES_S[retries], patience_s / 3)
    return chance.uniform(longest / 2, longest)
