"""A request and its plan -> remarks before anything is spent: about material, and when one plain call is enough."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.plan import Plan
from chargehand.values.request import Request
from chargehand.workers.worker_prompt import MOST_MATERIAL

# A longer request contains the text that it mentions.
_LONGEST_REQUEST = 2_000
# How many bytes of a file show whether it is text.
_ENOUGH_BYTES = 8_192
# Not text, but query_data reads them.
_DATA_FILES = frozenset({".parquet", ".sqlite", ".sqlite3", ".db"})
# How many files of a folder are looked at.
_MOST_FILES = 200

# "attached to" and "an attached garage" do not mean a file.
_ATTACHED = lazy_regex(
    r"(?:^|\b(?:the|this|these|my|our|see|find|is|are|was|were|have|i|we|i've|please|as|also|in|look at|read)\s+)"
    r"(?:attached|enclosed|attachments?|enclosures?)\b(?!\s+(?:to|with|by)\b)"
    r"|\b(?:anbei|beigefügte?[mnrs]?|angehängte?[mnrs]?|beiliegende?[mnrs]?|im anhang)\b"
    r"|\b(?:ci-joint[es]{0,2}|adjunt[oa]s?)\b",
    re.IGNORECASE | re.MULTILINE,
)
# Every match contains one of these words. They are looked for first, because compiling the pattern takes a millisecond.
_IN_ATTACHED = ("attach", "enclos", "anbei", "beigefügt", "angehängt", "beiliegend", "anhang", "ci-joint", "adjunt")


def material_warnings(request: Request, *, and_stdin: bool = False) -> tuple[str, ...]:
    """Warnings about files that no tool can read, and about a request that mentions something that was not given.

    With `and_stdin`, standard input is material too.
    """
    return (*(() if and_stdin else _missing_material(request)), *_unreadable_material(request))


def _unreadable_material(request: Request) -> Iterator[str]:
    """Files that were named themselves; in a folder there may be anything."""
    if not request.material:
        return
    from chargehand.tools.encoding import PDF, is_text  # many runs have no material

    for material in request.material:
        path = Path(material.path)
        if not path.is_file() or path.suffix.lower() in _DATA_FILES:
            continue
        try:
            with path.open("rb") as file:
                data = file.read(_ENOUGH_BYTES)
        except OSError as error:
            yield f"{material.name} cannot be read: {error.strerror}. Let this user read it, or leave it out."
            continue
        if not is_text(data):
            what = "a PDF" if data.startswith(PDF) else "not text"
            yield f"{material.name} is {what}: no worker can read it. Convert it to text first."


def _missing_material(request: Request) -> tuple[str, ...]:
    if request.material or len(request.text) > _LONGEST_REQUEST:
        return ()
    text = request.text.lower()
    found = _ATTACHED.search(request.text) if any(part in text for part in _IN_ATTACHED) else None
    if found is None:
        return ()
    said = " ".join(found[0].split())
    return (
        f"The request says {said!r}, but no material was given, so no worker can read it: add --with PATH "
        "(in Python, material=[PATH]).",
    )


def plain_call_hint(plan: Plan, request: Request) -> str | None:
    """Why one plain call is likely as good as this plan; None where there is no reason to think so."""
    reasons: list[str] = []
    if plan.strategy == "single":
        reasons.append("the plan has one task")
    elif plan.strategy == "sequential":
        reasons.append(f"the plan is a chain of {len(plan.tasks)} tasks, so nothing runs in parallel")
    if request.material and (size := material_size(request)) is not None and size <= MOST_MATERIAL:
        reasons.append(f"the material of about {size:,} characters fits into one prompt")
    if not reasons:
        return None
    return f"One plain call may be as good, faster and cheaper (chargehand run --single): {', and '.join(reasons)}."


def has_short_material(request: Request) -> bool:
    """Whether there is material and all of it fits into one prompt."""
    return bool(request.material) and (size := material_size(request)) is not None and size <= MOST_MATERIAL


def material_size(request: Request) -> int | None:
    """Bytes of the material; None where it has too many files to look at, or is longer than any prompt."""
    total = 0
    for material in request.material:
        for number, path in enumerate(_files(Path(material.path))):
            if number >= _MOST_FILES or total > MOST_MATERIAL:
                return None
            total += path.stat().st_size if path.is_file() else 0
    return total


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, _, names in os.walk(path):
        yield from (Path(folder, name) for name in names)
