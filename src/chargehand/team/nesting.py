"""Delegates -> what is wrong with how their teams nest: how deep, and what no team sets for one within another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chargehand.team.problems import Where
from chargehand.team.worker import Worker
from chargehand.values.plan import Problem

if TYPE_CHECKING:
    from chargehand.team.team import Team


def nesting_problems(workers: Sequence[Worker], most: int, where: Where = lambda _index, _field: "") -> list[Problem]:
    """Delegates that lead deeper than allowed, and settings of their teams that only the outermost team's hold for."""
    found: list[Problem] = []
    for index, worker in enumerate(workers):
        path = _deepest(worker)
        if len(path) > most:
            names = " -> ".join(path)
            message = f"{where(index, 'team')}teams nest {len(path)} deep and at most {most} are allowed: {names}."
            found.append(Problem(code="depth", message=message))
        for name, settings in _not_held(worker.team).items():
            message = f"{where(index, 'team')}{settings} of the team {name!r} has no effect within another team."
            found.append(Problem(code="no_effect", severity="warning", message=message))
    return found


def _not_held(team: Team | None) -> dict[str, str]:
    """What teams say that holds for a whole run: the outermost team or a flag sets it."""
    if team is None:
        return {}
    said = {"[limits] max_concurrent": team.limits.max_concurrent, "[people] ask": team.ask}
    mine = " and ".join(name for name, value in said.items() if value)
    below = {name: said for inner in team.nested for name, said in _not_held(inner).items()}
    return below | ({team.name: mine} if mine else {})


def _deepest(worker: Worker) -> list[str]:
    """The names of the teams on the longest way down."""
    if worker.team is None:
        return []
    below = [_deepest(each) for each in worker.team.workers]
    return [worker.team.name, *max(below, key=len)]
