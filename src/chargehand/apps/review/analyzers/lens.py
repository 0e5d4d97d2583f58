"""What an analyzer or a reader looks for."""

from __future__ import annotations

from typing import Literal

Lens = Literal["security", "bugs", "performance", "style", "history", "comments", "tests", "shape"]
