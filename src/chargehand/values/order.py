"""Orders to a run: what a person wants of it while it runs, or when it is resumed.

pause, continue    begin nothing new; begin again
stop               end a task for good
restart            run a task again, with all tasks that depend on it
answer             answer a question of the run
top_up             more tokens, money or time
tell               give words to the worker of a task, before its next model call
"""

from __future__ import annotations

import os
import time
from typing import Literal, NamedTuple

from chargehand.values.base import Value
from chargehand.values.field_schema import Field

# A reader refuses orders of a later version: it cannot know what they mean.
VERSION = 1
OrderKind = Literal["pause", "continue", "stop", "restart", "tell", "answer", "top_up"]
Verdict = Literal["accepted", "refused", "too_late"]
# An answer may be an edited plan.
MOST_CHARACTERS = 1_000_000

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
    # Why a task is stopped, the words to its worker, the instruction that it is restarted with, or an answer.
    text: str = Field(default="", max_length=MOST_CHARACTERS)
    # The model that a task is restarted with.
    model: str | None = Field(default=None, min_length=1, max_length=400)
    # What is added to the limits of the run; the deadline is in seconds from now.
    tokens: int | None = Field(default=None, gt=0, le=10**15)
    usd: float | None = Field(default=None, gt=0, le=10**15)
    deadline: float | None = Field(default=None, gt=0, le=10**15)
    # The id of the question that is answered.
    question: str | None = Field(default=None, max_length=1_000)

    @property
    def key(self) -> str:
        """The key of the order on the record."""
        return control_key(self.id)

    @property
    def raised(self) -> list[str]:
        """The names of the limits that it adds to."""
        return [name for name in ("tokens", "usd", "deadline") if getattr(self, name) is not None]

    @property
    def details(self) -> dict[str, object]:
        """The content of the order apart from the kind, the task and the sender."""
        # The answer is on the record by itself.
        said: dict[str, object] = {
            "text": None if self.order == "answer" else self.text,
            "model": self.model,
            "question": self.question,
            "tokens": self.tokens,
            "usd": self.usd,
            "deadline": self.deadline,
        }
        return {name: value for name, value in said.items() if value}


def control_key(id: str) -> str:
    return f"@control/{id}"


class Restart(NamedTuple):
    """A task that a person has restarted; the instruction and the model are None where they stay as they are."""

    task: str
    instruction: str | None = None
    model: str | None = None


class _OrderIds:
    """Makes ULIDs, each larger than all earlier ones of this process."""

    _last = 0

    def __next__(self) -> str:
        made = (int(time.time() * 1000) << _RANDOM_BITS) | int.from_bytes(os.urandom(_RANDOM_BITS // 8))
        self._last = max(made, self._last + 1)
        return "".join(_LETTERS[(self._last >> shift) & 31] for shift in range(125, -5, -5))


_IDS = _OrderIds()


def new_order(kind: OrderKind, *, by: str = "python", **fields: object) -> Order:
    """A new order with the current time."""
    return Order.model_validate({"id": next(_IDS), "order": kind, "by": by, "sent_at": time.time(), **fields})
