"""Replies that were made -> a file they are read from again: a measurement of hours can be stopped and continued."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class KeptReplies:
    """By key, one JSON object a line. Without a file nothing is kept."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._known: dict[str, Any] = {}
        if file is not None and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self._known[entry["key"]] = entry["reply"]

    def get(self, key: str) -> Any:
        return self._known.get(key)

    def keep(self, key: str, reply: dict[str, Any]) -> None:
        self._known[key] = reply
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"key": key, "reply": reply}, ensure_ascii=False) + "\n")
