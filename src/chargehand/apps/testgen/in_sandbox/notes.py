"""What a program in the sandbox reports becomes lines of JSON, each written before the next call is tried."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, TextIO


class Notes:
    """What is reported to the outside, line by line."""

    def __init__(self, path: str) -> None:
        self._file: TextIO = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 -- open until the program ends
        self._pid = os.getpid()

    def add(self, **note: Any) -> None:
        if os.getpid() == self._pid:  # the code may have forked itself
            self._file.write(json.dumps(note) + "\n")
            self._file.flush()


def describe_error(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 -- its type is all there is to say
        text = ""
    return f"{type(error).__name__}: {text}"[:300].rstrip(": ")
