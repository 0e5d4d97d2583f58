"""`scripted:FILE` and `embedded:FILE` with absolute paths, so that a run can be resumed in another folder.

`scripted` alone is the script of the team: it becomes `scripted:FILE` as soon as the team is known.
"""

from __future__ import annotations

from pathlib import Path

# The name of the model without a file.
OF_TEAM = "scripted"
# Providers whose models are files.
FILES = frozenset({OF_TEAM, "embedded"})
# Its file, in the team's folder.
SCRIPT = "script.json"


def found_from(model: str, folder: Path) -> str:
    """The model with the path of its file made absolute, relative to the given folder; other models unchanged."""
    provider, colon, name = model.partition(":")
    if provider not in FILES or not name:
        return model
    return f"{provider}{colon}{folder.absolute() / Path(name).expanduser()}"
