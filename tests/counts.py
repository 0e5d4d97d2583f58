"""How often tests repeat themselves: a part in `make check` and `make test`, all of it in `make soak`."""

from __future__ import annotations

import os

SOAK = os.environ.get("CHARGEHAND_SOAK") == "1"
# Where every place of a long record is tried: all of them, or each tenth.
STEP = 1 if SOAK else 10


def count(full: int) -> int:
    """The full number in a soak, else a tenth of it and at least one."""
    return full if SOAK else max(1, full // 10)


def examples(full: int) -> int:
    """How many examples hypothesis makes up: the full number in a soak, else a quarter of it and at least 15."""
    return full if SOAK else max(15, full // 4)
