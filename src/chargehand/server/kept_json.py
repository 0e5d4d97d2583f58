"""JSON objects that survive the server -> files of the home: complete or absent, readable by their owner only."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from chargehand.record.private_files import private_folder
from chargehand.record.storage_errors import storage


def keep_json(path: Path, data: dict[str, Any]) -> None:
    """The whole file or none of it, readable by its owner only."""
    private_folder(path.parent)
    with storage(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump(data, out)
                out.flush()
                os.fsync(out.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def read_kept_json(path: Path) -> dict[str, Any] | None:
    """The stored object; None if there is none or it cannot be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None  # pyright: ignore[reportUnknownVariableType]
