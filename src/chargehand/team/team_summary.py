"""A team's name or folder -> its workers and problems as JSON; a folder -> the teams that are in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from chargehand.errors import InvalidTeam
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.team import load

# Where a project keeps teams: folders with a team.toml, and agent files.
TEAM_FILES = ("team.toml", "*/team.toml", "teams/*/team.toml")
AGENT_FOLDERS = (".claude/agents",)


def team_folders(root: Path) -> list[Path]:
    """The folders of the teams in a folder, by name."""
    listed = {file.parent for pattern in TEAM_FILES for file in root.glob(pattern)}
    listed |= {root / name for name in AGENT_FOLDERS if any((root / name).glob("*.md"))}
    return sorted(listed)


def describe_team(ref: str, source: Literal["shipped", "folder"], trust: TrustRegistry) -> dict[str, Any]:
    """The team as `teams --json` lists it; one that cannot be loaded has problems and no name."""
    try:
        team = load(ref if source == "shipped" else Path(ref), trust)
    except InvalidTeam as error:
        problems = [str(error)]
        return {"ref": ref, "source": source, "name": None, "description": "", "workers": [], "problems": problems}
    workers = [
        {
            "name": worker.name,
            "description": worker.description,
            "tools": list(worker.tool_names),
            "kind": worker.kind,
            **({"team": worker.team.name} if worker.team else {}),
            **({"pool": worker.pool} if worker.pool else {}),
            **({"web": True} if worker.web else {}),
        }
        for worker in team.workers
    ]
    return {
        "ref": ref,
        "source": source,
        "name": team.name,
        "description": team.description,
        "workers": workers,
        "problems": [problem.message for problem in team.problems()],
    }
