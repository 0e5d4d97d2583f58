"""A Python project becomes tests for what has none: found without running it, tried in a sandbox, run three times.

`await run(path)` is the whole of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chargehand.values.lazy_names import lazy_names

if TYPE_CHECKING:
    from chargehand.apps.testgen.run_testgen import Generated, run

__all__ = ["Generated", "run"]

# Analyzers import this package and need none of them.
__getattr__ = lazy_names(__name__, {"Generated": "run_testgen", "run": "run_testgen"})
