"""The default limits of a run, used by settings, values and help texts."""

from __future__ import annotations

DEFAULT_TOKENS = 500_000
DEFAULT_CONCURRENCY = 8
DEFAULT_TASKS = 1_000
DEFAULT_WAIT_S = 6 * 3_600.0
