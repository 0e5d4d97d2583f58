"""A file of a team folder -> its bytes, or an OSError with the reason. Pipes, devices and huge files are not read."""

from __future__ import annotations

import errno
from pathlib import Path

LARGEST = 10_000_000


def contents(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a file")
    if path.stat().st_size > LARGEST:
        raise OSError(errno.EFBIG, f"it has more than {LARGEST // 10**6} MB")
    return path.read_bytes()
