"""Orders to a run: what a person wants of it while it runs, or when it is resumed.

pause, continue    begin nothing new; begin again
stop               end a task for good
"""

from __future__ import annotations

import os
import time
from typing import Literal

from chargehand.values.base import Value
from chargehand.values.field_schema import Field

# A reader refuses orders of a later version: it cannot know what they mean.
VERSION = 1
OrderKind = Literal["pause", "continue", "stop"]
Verdict = Literal["accepted", "refused", "too_late"]
MOST_CHARACTERS = 100_000

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80


class Order(Value):
    """One order, as it is in the mailbox of a run."""

    version: int = VERSION
    # A ULID: orders are taken in the order of their ids.
    id: str = Field(pattern=r"^[0-9A-HJKMNP-TV-Z]{26}$")
    order: OrderKind
    task: str | None = Field(default=None, min_length=1, max_length=400)
    # The way it was sent, such as `command`, `python` or `http`.
    by: str = Field(default="python", max_length=200)
    sent_at: float
    # Why a task is stopped.
    text: str = Field(default="", max_length=MOST_CHARACTERS)

    @property
    def key(self) -> str:
        """Under which key it is on the record."""
        return control_key(self.id)

    @property
    def details(self) -> dict[str, object]:
        """What it says apart from the kind, the task and the sender."""
        return {"text": self.text} if self.text else {}


def control_key(id: str) -> str:
    return f"@control/{id}"


class _OrderIds:
    """ULIDs: each larger than all that this process has made before."""

    _last = 0

    def __next__(self) -> str:
        made = (int(time.time() * 1000) << _RANDOM_BITS) | int.from_bytes(os.urandom(_RANDOM_BITS // 8))
        self._last = max(made, self._last + 1)
        return "".join(_LETTERS[(self._last >> shift) & 31] for shift in range(125, -5, -5))


_IDS = _OrderIds()


def new_order(kind: OrderKind, *, by: str = "python", **fields: object) -> Order:
    """An order of this moment."""
    return Order.model_validate({"id": next(_IDS), "order": kind, "by": by, "sent_at": time.time(), **fields})
