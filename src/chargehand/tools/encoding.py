"""Bytes of an unknown encoding become text: UTF-8, UTF-16 and UTF-32 with a mark, else Windows-1252."""

from __future__ import annotations

import codecs

# The longer marks come first: the mark of UTF-32 begins with the mark of UTF-16.
MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
# The text of a PDF is compressed, even where its beginning looks like text.
PDF = b"%PDF-"


def is_text(data: bytes) -> bool:
    """Whether the data is text."""
    marked = any(data.startswith(mark) for mark, _ in MARKS)
    return marked or (b"\0" not in data[:8192] and not data.startswith(PDF))


def text_of(data: bytes) -> str | None:
    """The text; None when the data is binary. No byte is lost: what Windows-1252 lacks is read as Latin-1."""
    return decode_text(data)[0] if is_text(data) else None


def decode_text(data: bytes) -> tuple[str, str]:
    """The text with the name of its encoding, which is empty for UTF-8."""
    for mark, name in MARKS:
        if data.startswith(mark):
            return data.decode(name, "replace"), name
    for name, label in (("utf-8-sig", ""), ("cp1252", "Windows-1252")):
        try:
            return data.decode(name), label
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1"), "Latin-1"
