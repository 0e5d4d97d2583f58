"""A project's settings for linters -> the names declared as always defined, because a loader adds them to modules."""

from __future__ import annotations

import re
from pathlib import Path

# Settings files of flake8, pylint and ruff. In the first two, a list may continue on indented lines.
FILES = (".flake8", ".pylintrc", "pylintrc", "setup.cfg", "tox.ini", "pyproject.toml", "ruff.toml", ".ruff.toml")
_LARGEST = 200_000
_LIST = re.compile(r"(?m)^[ \t]*(?:additional-)?builtins[ \t]*=[ \t]*(\[[^\]]*\]|[^\n]*(?:\n[ \t]+[^\n=]+)*)")
_NAME = re.compile(r"[A-Za-z_]\w*")


def declared_builtins(root: Path) -> frozenset[str]:
    """All declared names, from all settings files in the root."""
    found: set[str] = set()
    for name in FILES:
        path = root / name
        try:
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST:
                text = path.read_text(encoding="utf-8", errors="replace")
                found.update(name for said in _LIST.findall(text) for name in _NAME.findall(said))
        except OSError:
            continue
    return frozenset(found)
