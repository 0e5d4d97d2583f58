"""The plan's tasks -> for a finding, the lines of code it is about, and whether the change under review wrote them.

A task that is given code has it in its context: `code` is path -> lines that begin with their number, `changed` is path
-> the first and last lines of what was written (none when whole files are looked at), `removed` is path -> lines taken
out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, cast

from chargehand.values.outcome import Finding
from chargehand.values.plan import Plan

# How many lines are shown before and after a finding, and how many of its own.
AROUND = 8
MOST_LINES = 40
_NUMBERED = re.compile(r"(\d+): ")


@dataclass(frozen=True, slots=True)
class Exhibits:
    """The code a scorer can be shown. Without code in the plan nothing is shown, and no finding is left out."""

    # Path -> number -> the line as the task shows it.
    lines: dict[str, dict[int, str]] = field(default_factory=dict[str, dict[int, str]])
    changed: dict[str, list[tuple[int, int]]] | None = None
    # Path -> the lines that the change took out.
    removed: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, plan: Plan) -> Exhibits:
        lines: dict[str, dict[int, str]] = {}
        removed: dict[str, str] = {}
        changed: dict[str, list[tuple[int, int]]] | None = None
        for task in plan.tasks:
            context = cast("dict[str, Any]", task.context) if isinstance(task.context, dict) else {}
            code: Any = context.get("code")
            if not isinstance(code, dict):
                continue
            for path, text in cast("dict[str, Any]", code).items():
                if path not in lines and isinstance(text, str):
                    lines[path] = _numbered_lines(text)
            removed |= cast("dict[str, str]", context.get("removed") or {})
            written: Any = context.get("changed")
            if isinstance(written, dict):
                known = cast("dict[str, list[list[int]]]", written)
                changed = {**(changed or {}), **{path: [(a, b) for a, b in own] for path, own in known.items()}}
        return cls(lines, changed, removed)

    def rates(self, finding: Finding) -> bool:
        """Whether a rating can count: the code is known, and the change wrote this place."""
        path = _path(finding)
        if not self.lines or path is None:
            return True
        if path not in self.lines:
            return False
        if self.changed is None or finding.line is None:
            return True
        first, last = _extent(finding)
        return any(a <= last and first <= b for a, b in self.changed.get(path, ()))

    def evidence(self, finding: Finding) -> dict[str, str]:
        """What a scorer is shown for a finding: its lines, and the lines that the change took out of the file."""
        shown = {"Code": self.lines_around(finding), "Lines taken out": self.removed.get(_path(finding) or "")}
        return {name: text for name, text in shown.items() if text}

    def lines_around(self, finding: Finding) -> str | None:
        """The lines of a finding and some around them, each with its number; None where there is no code."""
        own = self.lines.get(_path(finding) or "")
        if not own or finding.line is None:
            return None
        first, last = _extent(finding)
        numbers = range(first - AROUND, min(last, first + MOST_LINES) + AROUND + 1)
        return "\n".join(own[number] for number in numbers if number in own) or None


def _numbered_lines(text: str) -> dict[int, str]:
    return {int(found[1]): line for line in text.split("\n") if (found := _NUMBERED.match(line))}


def _path(finding: Finding) -> str | None:
    return None if finding.path is None else finding.path.replace("\\", "/").removeprefix("./")


def _extent(finding: Finding) -> tuple[int, int]:
    line = finding.line or 1
    return line, max(line, finding.end_line or line)
