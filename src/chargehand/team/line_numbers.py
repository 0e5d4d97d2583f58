"""Where the parts of a team are written, as the beginning of a message; a team made in Python has no places."""

from __future__ import annotations


class Places:
    """Each method returns `file:line:column: `, or nothing."""

    def worker(self, index: int, field: str) -> str:
        """The place of a worker's field."""
        return ""

    def team(self, *key: str) -> str:
        """The place of a key of team.toml; without a key, its first line."""
        return ""

    def example(self, index: int) -> str:
        """The place of a labelled route."""
        return ""


NO_PLACES = Places()
