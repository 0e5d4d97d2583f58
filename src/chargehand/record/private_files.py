"""Files and folders that only their owner may read."""

from __future__ import annotations

import os
from pathlib import Path

from chargehand.record.storage_errors import storage


def private_file(path: Path) -> int:
    """A new file that only its owner may read, as a file descriptor; FileExistsError if it exists."""
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)


def private_folder(path: Path) -> None:
    """Makes the folder, for its owner only, unless it exists."""
    with storage(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
