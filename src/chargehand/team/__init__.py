"""A team as data: workers with their tools, limits and examples, made in Python or read from a folder."""

from __future__ import annotations

from chargehand.team.routes import RouteExample, RouteRule
from chargehand.team.team import Team
from chargehand.team.team_folder import folder_of, load, shipped_teams
from chargehand.team.team_sections import Example, Scrutiny
from chargehand.team.team_tools import stored_tools
from chargehand.team.worker import Worker

__all__ = [
    "Example",
    "RouteExample",
    "RouteRule",
    "Scrutiny",
    "Team",
    "Worker",
    "folder_of",
    "load",
    "shipped_teams",
    "stored_tools",
]
