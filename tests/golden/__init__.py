"""The wording of messages, one file a surface: other tests assert codes and values.

A change of wording is a change of these files and of nothing else: `make golden` writes them, the diff shows it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
_HEAD = "Made by `make golden`; do not edit.\n"


def check_wording(surface: str, messages: Mapping[str, str]) -> None:
    """Compare messages, by what leads to each, with the file of their surface."""
    path = HERE / f"{surface}.txt"
    text = _HEAD + "".join(f"\n[{name}]\n{message.rstrip()}\n" for name, message in messages.items())
    if os.environ.get("CHARGEHAND_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"the wording in {path.name} differs: see `make golden`"
