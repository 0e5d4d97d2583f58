"""A question in words becomes the passages of the request's documents that fit it best, each with its lines."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Annotated

from chargehand.errors import ToolError
from chargehand.tools import material_files as material
from chargehand.tools import recorded_reads as reading
from chargehand.tools.definition import tool
from chargehand.tools.encoding import decode_text
from chargehand.tools.html_text import by_line
from chargehand.tools.passages import Passage, PassageIndex, passages
from chargehand.tools.tool_context import ToolContext
from chargehand.values.field_schema import Field

MAX_QUERY = 1000
MAX_PASSAGE = 2500
# Indexes are kept for documents of up to this many bytes in total.
MAX_KEPT = 48_000_000
HTML = (".html", ".htm", ".xhtml")


@tool(effect="read")
def search_documents(
    context: ToolContext, query: str, most: Annotated[int, Field(ge=1, le=20)] = 8, pattern: str | None = None
) -> str:
    """Find the passages of the material's documents that fit best, each headed by path:first line-last line.

    It finds words, not meanings: use the words the documents would use. For an exact text use search_files.

    Args:
        query: a question or some words
        most: how many passages
        pattern: only in files that fit, like *.md (in any folder) or NAME/contracts/**
    """
    if not query.strip() or len(query) > MAX_QUERY:
        raise ToolError(f"query must be 1 to {MAX_QUERY} characters.", "wrong_arguments")
    glob = pattern or "**/*"
    found = reading.contents(glob, context)
    # The recorded hash covers everything that was read.
    index = _KEPT.of(context.reads.hashes[f"//text:{glob}"], found)
    ranked = index.rank(query, most)
    _record_lines(ranked, found, context)
    hits = [_passage_text(passage) for passage in ranked]
    nothing = f"No passage of {len(found.files)} documents has any of these words; try others."
    return "\n".join(["\n\n".join(hits) or nothing, *reading.limit_notes(found.notes)])


class _Kept:
    """The newest indexes, for all workers of the process; the oldest is removed first."""

    def __init__(self) -> None:
        self._indexes: dict[str, tuple[int, PassageIndex]] = {}
        # Held while an index is made: two workers that ask at once must not make it twice.
        self._lock = threading.Lock()

    def of(self, digest: str, found: reading.Contents) -> PassageIndex:
        with self._lock:
            if (known := self._indexes.pop(digest, None)) is not None:
                self._indexes[digest] = known
                return known[1]
            index = PassageIndex(_passages(found))
            self._indexes[digest] = (sum(len(data) for _, data in found.files), index)
            while len(self._indexes) > 1 and sum(size for size, _ in self._indexes.values()) > MAX_KEPT:
                del self._indexes[next(iter(self._indexes))]
            return index


_KEPT = _Kept()


def _passages(found: reading.Contents) -> Iterator[Passage]:
    for name, data in found.files:
        text, _ = decode_text(data)
        lines = by_line(text) if name.lower().endswith(HTML) else text.replace("\r\n", "\n").split("\n")
        yield from passages(material.one_line_name(name), lines)


def _record_lines(hits: Sequence[Passage], found: reading.Contents, context: ToolContext) -> None:
    names = {passage.name for passage in hits}
    for name, data in found.files:
        if (shown := material.one_line_name(name)) in names:
            context.record_lines(shown, decode_text(data)[0].removesuffix("\n").count("\n") + 1)


def _passage_text(passage: Passage) -> str:
    text = passage.text if len(passage.text) <= MAX_PASSAGE else passage.text[:MAX_PASSAGE] + "…"
    return f"{passage.name}:{passage.first}-{passage.last}\n{text}"
