"""`scripted:FILE` and `embedded:FILE` as they are found from anywhere, so that a run can be resumed in another folder.

`scripted` alone is the script that a team brings: it becomes `scripted:FILE` as soon as the team is known.
"""

from __future__ import annotations

from pathlib import Path

# The model that is named so, without a file.
OF_TEAM = "scripted"
# Providers whose models are files.
FILES = frozenset({OF_TEAM, "embedded"})
# Its file, in the team's folder.
SCRIPT = "script.json"


def found_from(model: str, folder: Path) -> str:
    """The model with the path of its file made absolute, from the folder it was named in; others as they are."""
    provider, colon, name = model.partition(":")
    if provider not in FILES or not name:
        return model
    return f"{provider}{colon}{folder.absolute() / Path(name).expanduser()}"
