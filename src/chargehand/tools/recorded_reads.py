"""Everything a call read becomes a hash under a name, and a record of such hashes is checked against the current files.

Apart from plain files there are two kinds of names; no file's name has `//`:
`PATH//list:GLOB` is the list of files under PATH, `//text:GLOB` the contents of all files that fit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from chargehand.errors import ToolError
from chargehand.tools import material_files as material
from chargehand.tools.encoding import is_text
from chargehand.tools.tool_context import ToolContext
from chargehand.values.request import Material

MAX_LISTED = 500
MAX_SEARCHED_FILES = 20_000
MAX_SEARCHED_BYTES = 32_000_000
# The most notes on a search, and the most files named in one note.
MAX_TOLD = 5


class Contents(NamedTuple):
    """Text files with their bytes; `notes` say what was left out and why."""

    files: tuple[tuple[str, bytes], ...]
    notes: tuple[str, ...]


def listing(glob: str, path: str | None, context: ToolContext) -> material.Listing:
    """The files under `path` that fit, on the record; one more than MAX_LISTED when there are more."""
    found = material.files(glob, path, context, MAX_LISTED + 1)
    context.record_hash(f"{path or ''}//list:{glob}", hashlib.sha256(_names(found.names)).hexdigest())
    return found


def contents(glob: str, context: ToolContext) -> Contents:
    """All files that fit with what is in them, on the record."""
    found = _contents(glob, context)
    context.record_hash(f"//text:{glob}", hashlib.sha256(_digest(found)).hexdigest())
    return found


def limit_notes(notes: Sequence[str]) -> list[str]:
    """The first notes as lines of a result, and how many more there are."""
    more = [f"[and {len(notes) - MAX_TOLD} more files were left out]"] if len(notes) > MAX_TOLD else []
    return [f"[{note}]" for note in notes[:MAX_TOLD]] + more


def still_valid(result_reads: Mapping[str, str], context: ToolContext) -> bool:
    """True when everything a call read is as it was: its result can be used again."""
    return all(_hash_now(name, context) == known for name, known in result_reads.items())


def _hash_now(name: str, context: ToolContext) -> str | None:
    """The current hash for a recorded name; None when it can no longer be read."""
    path, _, kind = name.partition("//")
    try:
        if kind.startswith("list:"):
            found = material.files(kind.removeprefix("list:"), path or None, context, MAX_LISTED + 1)
            data = _names(found.names)
        elif kind.startswith("text:"):
            data = _digest(_contents(kind.removeprefix("text:"), context))
        else:
            return material.digest(_anywhere(name, context), material.MAX_DATA)
    except ToolError:
        return None
    return hashlib.sha256(data).hexdigest()


def _anywhere(name: str, context: ToolContext) -> material.FilePlace:
    """A name in the material, else relative to the folder."""
    try:
        return material.locate(name, context)
    except ToolError:
        if context.folder is None:
            raise
        within = ToolContext(material=(Material(name="folder", path=str(context.folder)),))
        return material.locate(f"folder/{name}", within)


def _contents(glob: str, context: ToolContext) -> Contents:
    found = material.files(glob, None, context, MAX_SEARCHED_FILES + 1)
    notes: list[str] = []
    if not found.complete or len(found.names) > MAX_SEARCHED_FILES:
        notes.append("there are more files than can be searched at once; narrow the pattern")
    files: list[tuple[str, bytes]] = []
    others: list[str] = []
    total = 0
    names = found.names[:MAX_SEARCHED_FILES]
    for at, name in enumerate(names):
        try:
            data = material.read(material.locate(name, context))
        except ToolError as error:
            notes.append(str(error))
            continue
        if not is_text(data):
            # Searches find nothing in pictures and archives, so these files do not count against the limit.
            others.append(name)
            continue
        total += len(data)
        if total > MAX_SEARCHED_BYTES:
            left = f"{len(names) - at} files from {name} on are left out"
            # First, because there may be many notes on single files.
            notes.insert(0, f"stopped after {MAX_SEARCHED_BYTES // 10**6} MB: {left}; narrow the pattern")
            break
        files.append((name, data))
    return Contents(tuple(files), (*_not_searched(others), *notes))


def _not_searched(names: Sequence[str]) -> list[str]:
    """One note for all files that are not text: a folder of pictures must not hide the other notes."""
    if not names:
        return []
    shown = ", ".join(material.one_line_name(name) for name in names[:MAX_TOLD])
    more = f" and {len(names) - MAX_TOLD} more" if len(names) > MAX_TOLD else ""
    return [f"not text, so not searched: {shown}{more}"]


def _names(names: Sequence[str]) -> bytes:
    return "\0".join(names).encode()


def _digest(found: Contents) -> bytes:
    whole = hashlib.sha256()
    for name, data in found.files:
        whole.update(hashlib.sha256(name.encode()).digest() + hashlib.sha256(data).digest())
    return whole.digest()
