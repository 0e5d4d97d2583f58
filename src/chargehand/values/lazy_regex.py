"""Regular expressions that are compiled at first use.

Compiling a large expression takes milliseconds, and most commands use few of the expressions they import. Meant for
modules in which compiling slows the start (`python -m bench --only startup`); elsewhere `re.compile` is fine.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast


class _LazyRegex:
    """Takes the place of the compiled expression. Attributes are kept: each is looked up only once."""

    def __init__(self, expression: str, flags: int) -> None:
        self._expression = expression
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._expression, self._flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found


def lazy_regex(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Like `re.compile`, with the same methods and attributes; an error in the expression is found at first use."""
    return cast("re.Pattern[str]", _LazyRegex(expression, flags))
