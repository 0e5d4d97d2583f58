"""Places in a run: keys, and the paths of tasks in keys. Both are texts on the record and are parsed only here.

t3/2/model/4         task t3, attempt 2, fourth model call
t3/1/t1/2/model/1    task t1 of the team that does attempt 1 of t3, its own attempt 2
t3/1/@plan/1         that team's planner
@plan/1              the planner of the run itself
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

# The question whether the plan of a run may run.
PLAN_QUESTION = "@plan/approve"
# The words that follow an attempt in a key, each with a number after it. They are not tasks of a nested team.
_NUMBERED = frozenset(
    {"analysis", "ask", "model", "recovery", "refine", "reroute", "score", "select", "split", "stated", "tool"}
)  # fmt: skip
_MEMBER = re.compile(r"b\d+")
# What follows a task in a key: an attempt, or a step that is done once for all attempts.
_AFTER_A_TASK = re.compile(r"\d+|ask|once")
# About the number of tasks in a wide plan: each call asks for their paths.
_KEPT = 16_384


class Key(NamedTuple):
    """The place of an effect, a decision or a question. Keys of the supervisor itself have no task and no attempt."""

    text: str
    task: str | None
    attempt: int | None

    @staticmethod
    def parse(text: str) -> Key:
        """Keys of the supervisor itself start with `@`."""
        if text[:1] == "@":
            return Key(text, None, None)
        parts = text.split("/")
        at, last = 0, len(parts) - 1
        attempt: int | None = None
        while last > at and parts[at + 1].isdigit():
            inner = at + 2
            if last <= inner or not _is_task(parts[inner]) or not _AFTER_A_TASK.fullmatch(parts[inner + 1]):
                attempt = int(parts[at + 1])
                break
            at = inner
        return Key(text, "/".join(parts[: at + 1]) if at else parts[0], attempt)

    @property
    def path(self) -> TaskPath | None:
        return None if self.task is None else TaskPath.parse(self.task)

    @property
    def within(self) -> str:
        """The attempt whose team owns the task, such as `t3/1`; empty for a task of the run's own team."""
        return "" if self.task is None else TaskPath.parse(self.task).within

    def __str__(self) -> str:
        return self.text


class TaskPath(NamedTuple):
    """A task and the tasks it is nested in."""

    text: str
    # The tasks and attempts it is in, the nearest first.
    around: tuple[tuple[str, int], ...]
    # The task and the tasks it is in.
    lineage: tuple[str, ...]
    # The task, the tasks it is in, and the tasks that any of them is a part of.
    wholes: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> TaskPath:
        return _parse_path(text)

    @property
    def whole(self) -> str:
        """The task of the run's own plan: this task, or the one that it is a part of or nested in."""
        return self.wholes[-1]

    @property
    def within(self) -> str:
        """The attempt whose team owns the task, such as `t3/1`; empty for a task of the run's own team."""
        return f"{self.around[0][0]}/{self.around[0][1]}" if self.around else ""

    def __str__(self) -> str:
        return self.text


def within(scope: str, task: str) -> str:
    """The path of a task of the team that does the attempt `scope`, such as `t3/1`."""
    name, slash, rest = task.partition("/")
    # An id that could be taken for something else in a key is marked; no id starts with a dot.
    return f"{scope}/{name if _is_task(name) else f'.{name}'}{slash}{rest}"


@lru_cache(_KEPT)
def _parse_path(text: str) -> TaskPath:
    around: list[tuple[str, int]] = []
    task = text
    while True:
        outer, _, attempt = task.rpartition("/")[0].rpartition("/")
        if not outer or not attempt.isdigit():
            break
        task = outer
        around.append((task, int(attempt)))
    lineage = (text, *(each for each, _ in around))
    wholes = dict.fromkeys(name for each in lineage for name in (each, each.partition(".s.")[0]))
    return TaskPath(text, tuple(around), lineage, tuple(wholes))


def _is_task(part: str) -> bool:
    return part not in _NUMBERED and not part.startswith("@") and not _MEMBER.fullmatch(part)
