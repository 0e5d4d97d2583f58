"""Findings of readers, stored by the content of the file, so that a second review asks models only about changes.

A file counts as read before if these are the same: the lines shown to a reader, the removed lines, the rules for the
file, the prompt of the reader and the models. Commit messages and callers may differ.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic_core import ValidationError, from_json, to_json

from chargehand.record.cache import Cache
from chargehand.values.base import JSON
from chargehand.values.outcome import Finding, Outcome

# Part of every key: raised when the stored form changes.
_FORM = "1"
# The end of a source name, in place of the number of a reader's task.
BEFORE = "before"


@dataclass(frozen=True, slots=True)
class EarlierReadings:
    """Earlier findings in a folder. Those that cannot be read from it are made by a model again."""

    folder: Path
    # The models, which are part of every key.
    models: str
    # Reader -> its prompt.
    prompts: Mapping[str, str]

    def key(self, reader: str, about: Iterable[JSON]) -> str:
        """The key for the parts of one file that one reader gets."""
        packed = json.dumps([_FORM, self.models, reader, self.prompts.get(reader, ""), *about])
        return f"reading/{hashlib.sha256(packed.encode('utf-8', 'surrogatepass')).hexdigest()}"

    def recall(self, keys: Iterable[str]) -> dict[str, list[dict[str, JSON]]]:
        """Key -> the stored findings as JSON."""
        found: dict[str, list[dict[str, JSON]]] = {}
        for key, packed in Cache(self.folder).get(keys).items():
            try:
                found[key] = [Finding.model_validate(each).to_json() for each in from_json(packed)]
            except (ValueError, ValidationError, TypeError):
                continue
        return found


def keep_readings(folder: Path, outcomes: Iterable[Outcome], keys: Mapping[str, Mapping[str, str]]) -> None:
    """Store the findings of tasks by file. `keys` is task -> path -> key. Incomplete tasks are not stored."""
    entries: dict[str, bytes] = {}
    for outcome in outcomes:
        if not outcome.ok or outcome.partial or outcome.gaps:
            continue
        reader = f"{outcome.task.rpartition('-')[0]}-{BEFORE}"
        for path, key in keys.get(outcome.task, {}).items():
            own = [each for each in outcome.findings if (each.path or "").removeprefix("./") == path]
            entries[key] = to_json([each.model_copy(update={"sources": (reader,)}).to_json() for each in own])
    if entries:
        Cache(folder).put(entries)
