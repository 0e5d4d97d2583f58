"""Reviewed files -> the number of files of each language without an analyzer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from chargehand.apps.review.analyzers.language_names import language
from chargehand.apps.review.analyzers.linters import installed_languages

# How many languages are counted separately.
_MOST = 20
# Languages whose files are always analysed, whatever is installed.
ANALYSED = frozenset({"Python"})


def count_unanalysed(files: Iterable[str], root: Path, *, trusted: bool = False) -> dict[str, int]:
    """Language -> number of files, most first. Of many languages the rest is `other`. Prose and data ("") come last."""
    counts = Counter(language(path, root) for path in files)
    rest = counts.pop("", 0)
    analysed = ANALYSED | installed_languages(root)
    if trusted:
        from chargehand.apps.review.analyzers.project_linters import checked_languages

        analysed |= checked_languages(root)
    known = [(name, count) for name, count in counts.most_common() if name not in analysed]
    found = dict(known[:_MOST])
    if len(known) > _MOST:
        found["other"] = sum(count for _, count in known[_MOST:])
    return {**found, "": rest} if rest else found


def unanalysed_sentences(counts: Mapping[str, int], *, models: bool) -> list[str]:
    """A sentence for each language that was not analysed. `models`: models have read the code."""
    how = "only read by models and searched as text" if models else "only searched as text"
    found: list[str] = []
    for name, count in counts.items():
        files = "file" if count == 1 else "files"
        found.append(f"{count:,} {name} {files}, {how}." if name else f"{count:,} {files} of prose or data.")
    return found
