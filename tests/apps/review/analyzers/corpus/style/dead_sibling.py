"""Uses a private helper of the file beside it."""

from style.dead_fine import _shared_with_sibling


def answer() -> int:
    return _shared_with_sibling()
