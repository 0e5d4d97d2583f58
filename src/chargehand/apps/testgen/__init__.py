"""A Python project becomes tests for untested functions: found without running them, tried in a sandbox three times.

`await run(path)` does all of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chargehand.values.lazy_names import lazy_names

if TYPE_CHECKING:
    from chargehand.apps.testgen.run_testgen import Generated, run

__all__ = ["Generated", "run"]

# Loaded at first use: analyzers import this package and need none of these names.
__getattr__ = lazy_names(__name__, {"Generated": "run_testgen", "run": "run_testgen"})
