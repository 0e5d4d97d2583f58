"""A docstring in parts: what a tool does, and what each of its parameters means."""

from __future__ import annotations

import inspect
import re

ARGS = re.compile(r"(?:Args|Arguments|Parameters):\s*")
ENTRY = re.compile(r"(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")


def summary(text: str) -> str:
    """The docstring without its Args section."""
    before, _, after = _sections(text)
    return "\n".join([*before, *after]).strip()


def parameters(text: str) -> dict[str, str]:
    """Parameter name -> description, from the Args section."""
    _, section, _ = _sections(text)
    found: dict[str, str] = {}
    name = ""
    indents = [len(line) - len(line.lstrip()) for line in section if line.strip()]
    for line in (line for line in section if line.strip()):
        entry = ENTRY.fullmatch(line.strip())
        if entry and len(line) - len(line.lstrip()) == min(indents):
            name = entry[1]
            found[name] = entry[2].strip()
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def _sections(text: str) -> tuple[list[str], list[str], list[str]]:
    """The lines before the Args section, in it, and after it."""
    lines = inspect.cleandoc(text).split("\n")
    start = next((at for at, line in enumerate(lines) if ARGS.fullmatch(line)), None)
    if start is None:
        return lines, [], []
    end = next((at for at in range(start + 1, len(lines)) if lines[at][:1].strip()), len(lines))
    return lines[:start], lines[start + 1 : end], lines[end:]
