"""Text and JSON on their way out: characters that a terminal obeys, or that reorder a line, become visible escapes.

Every exit uses these two functions: text for people through `show_controls`, JSON through `dump_json`.
"""

from __future__ import annotations

import json
import re
from typing import Any

# C0 except tab and newline, DEL, C1, the separators of lines and paragraphs, embeddings, overrides and isolates of text
# direction, and surrogates, which no encoding can represent. The marks U+200E, U+200F and U+061C stay: Hebrew and
# Arabic need them, and they reorder no more than a letter of those scripts does.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def show_controls(text: str) -> str:
    r"""The text with each control character spelled as in Python and JSON, `\x1b` or `\u202e`; CR LF becomes LF."""
    return _CONTROL.sub(_spell, text.replace("\r\n", "\n"))


def dump_json(value: Any, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """JSON with each control character as an escape: nothing is lost, and nothing in it is obeyed."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    # Outside its strings, JSON has no control characters except the newlines of the indent, which stay.
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _spell(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
