"""A glob becomes a test of names with bounded cost: `*`, `?`, `[...]` within a part, `**` for any number of parts.

One `{a,b}` matches either.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

from chargehand.errors import ToolError
from chargehand.values.lazy_regex import lazy_regex

MAX_LENGTH = 300
CHOICE = lazy_regex(r"([^{}]*)\{([^{}/]*,[^{}/]*)\}([^{}]*)")


def compile_glob(glob: str) -> Callable[[str, str], bool]:
    """A test of a file by its path in its folder or by its whole name; a glob without `/` tests the last part."""
    if len(glob) > MAX_LENGTH:
        raise ToolError(f"The pattern is over {MAX_LENGTH} characters; use one like **/*.py.", "wrong_arguments")
    if choice := CHOICE.fullmatch(glob):
        tests = [_one(f"{choice[1]}{each}{choice[3]}") for each in choice[2].split(",")]
        return lambda path, name: any(test(path, name) for test in tests)
    return _one(glob)


def _one(glob: str) -> Callable[[str, str], bool]:
    parts = [part for part in glob.split("/") if part not in ("", ".")]
    if "/" not in glob.rstrip("/"):
        parts = ["**", *parts]
    # Several `**` in a row mean the same as one.
    parts = [part for at, part in enumerate(parts) if part != "**" or at == 0 or parts[at - 1] != "**"]
    tests = [None if part == "**" else re.compile(fnmatch.translate(part)) for part in parts]
    return lambda path, name: _fits(tests, path.split("/")) or _fits(tests, name.split("/"))


def _fits(tests: Sequence[re.Pattern[str] | None], parts: Sequence[str]) -> bool:
    """Whether all parts are used up by all tests; None matches any number of parts."""
    # reached[i]: the tests before i fit the parts seen so far.
    reached = [True] + [False] * len(tests)
    for at, test in enumerate(tests):
        reached[at + 1] = reached[at] and test is None
    for part in parts:
        after = [False] * (len(tests) + 1)
        for at, test in enumerate(tests):
            if test is None:
                after[at] = after[at] or reached[at]
                after[at + 1] = after[at]
            elif reached[at] and test.match(part):
                after[at + 1] = True
        reached = after
    return reached[-1]
