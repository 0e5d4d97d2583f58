"""The bytes of a text in whatever encoding become text: UTF-8, UTF-16 and UTF-32 with a mark, else Windows-1252."""

from __future__ import annotations

import codecs

# The longer marks first: the one of UTF-16 begins the one of UTF-32.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def text_of(data: bytes) -> str | None:
    """The text; None when the data is binary. No byte is lost: what Windows-1252 lacks is read as Latin-1."""
    for mark, name in MARKS:
        if data.startswith(mark):
            return data.decode(name, "replace")
    if b"\0" in data[:8192]:
        return None
    for name in ("utf-8-sig", "cp1252"):
        try:
            return data.decode(name)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")
