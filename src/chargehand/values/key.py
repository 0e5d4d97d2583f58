"""Where a run is, as text: keys and the paths of tasks in them.

t3/2/model/4         task t3, attempt 2, fourth model call
t3/1/t1/2/model/1    task t1 of the team that does attempt 1 of t3, its own attempt 2
t3/1/@plan/1         that team's planner
@plan/1              the planner of the run itself
"""

from __future__ import annotations

import re

# What follows an attempt in a key, with a number after it: not to be taken for a task of a nested team.
_NUMBERED = frozenset(
    {"analysis", "ask", "model", "recovery", "refine", "reroute", "score", "select", "split", "tool"}
)  # fmt: skip
_MEMBER = re.compile(r"b\d+")
# What follows a task in a key: an attempt, or what is done once for all attempts.
_AFTER_A_TASK = re.compile(r"\d+|ask|once")


def place(key: str) -> tuple[str | None, int | None]:
    """The task and attempt a key belongs to; keys of the supervisor itself start with `@` and have neither."""
    if key.startswith("@"):
        return None, None
    parts = key.split("/")
    at = 0
    while True:
        attempt = parts[at + 1] if len(parts) > at + 1 else ""
        if not attempt.isdigit():
            return "/".join(parts[: at + 1]), None
        if len(parts) <= at + 3 or not _is_task(parts[at + 2]) or not _AFTER_A_TASK.fullmatch(parts[at + 3]):
            return "/".join(parts[: at + 1]), int(attempt)
        at += 2


def within(scope: str, task: str) -> str:
    """The path of a task of the team that does the attempt `scope`, such as `t3/1`."""
    name, slash, rest = task.partition("/")
    # An id that could be taken for something else in a key is marked; no id starts with a dot.
    return f"{scope}/{name if _is_task(name) else f'.{name}'}{slash}{rest}"


def above(task: str) -> list[tuple[str, int]]:
    """The tasks and attempts a nested task is in, the nearest first."""
    found: list[tuple[str, int]] = []
    while True:
        around, _, rest = task.rpartition("/")[0].rpartition("/")
        if not around or not rest.isdigit():
            return found
        task = around
        found.append((task, int(rest)))


def lineage(task: str) -> list[str]:
    """The task and those it is in."""
    return [task, *(each for each, _ in above(task))]


def wholes(task: str) -> list[str]:
    """The task, those it is in, and those that any of them is a part of."""
    return list(dict.fromkeys(name for each in lineage(task) for name in (each, each.partition(".s.")[0])))


def _is_task(part: str) -> bool:
    return part not in _NUMBERED and not part.startswith("@") and not _MEMBER.fullmatch(part)
