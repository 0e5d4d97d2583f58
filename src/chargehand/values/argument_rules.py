"""Rules for arguments that callers give in Python: a value -> what to give instead, or None if it can be used."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

# Returns words for "give ..."; None for a value that can be used.
Rule: TypeAlias = Callable[[Any], str | None]
LONGEST = 60


def wrong_arguments(arguments: Mapping[str, Any], rules: Mapping[str, Rule]) -> dict[str, str]:
    """Name -> what is wrong with its value and what to give. Names without a rule are not looked at."""
    found = {name: rule(arguments[name]) for name, rule in rules.items() if name in arguments}
    return {name: f"{name} is {show(arguments[name])}: give {wanted}." for name, wanted in found.items() if wanted}


def show(value: object) -> str:
    """A value in a few words: itself if it is short and plain, else what it is."""
    if isinstance(value, type) and not hasattr(value, "__origin__"):
        return f"the class {value.__name__}"
    if inspect.isroutine(value):
        kind = "coroutine function" if is_async(value) else "function"
        return f"the {kind} {getattr(value, '__name__', '')}".rstrip()
    if value is None or isinstance(value, str | int | float) or hasattr(value, "__origin__"):
        text = repr(value)
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def is_async(value: object) -> bool:
    """Whether calling it gives a coroutine, as far as can be seen without calling it."""
    return inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(getattr(value, "__call__", None))  # noqa: B004


def takes(value: Any, count: int) -> bool:
    """Whether it can be called with that many arguments; True where that cannot be seen."""
    try:
        inspect.signature(value).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def optional(rule: Rule) -> Rule:
    """The same for an argument that may be None."""
    return lambda value: None if value is None else rule(value)


def instance_of(wanted: str, *types: type) -> Rule:
    return lambda value: None if isinstance(value, types) else wanted


def one_of(choices: Sequence[str]) -> Rule:
    return lambda value: None if isinstance(value, str) and value in choices else f"one of {', '.join(choices)}"


def number(
    wanted: str, *, whole: bool = False, least: float = -math.inf, most: float = math.inf, above: float = -math.inf
) -> Rule:
    """A finite number; where it is to be a whole one, 1e5 is one too."""

    def check(value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return wanted
        is_within = least <= value <= most and value > above
        return None if is_within and not (whole and value != int(value)) else wanted

    return check


def function(wanted: str, count: int, *, coroutine: bool) -> Rule:
    """A function that takes `count` arguments and is, or is not, a coroutine function."""

    def check(value: Any) -> str | None:
        usable = callable(value) and is_async(value) == coroutine and takes(value, count)
        return None if usable else wanted

    return check


text = instance_of("a str", str)
flag = instance_of("True or False", bool)
path = instance_of("a path", str, os.PathLike)
