"""Delegates -> what is wrong with how their teams nest: too deep, or settings that have no effect in an inner team."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chargehand.team.line_numbers import NO_PLACES, Places
from chargehand.team.worker import DelegateTeam, Worker
from chargehand.values.plan import Problem


def nesting_problems(workers: Sequence[Worker], most: int, places: Places = NO_PLACES) -> Iterator[Problem]:
    """Delegates that lead deeper than allowed, and settings of their teams that only the outermost team can set."""
    for index, worker in enumerate(workers):
        place = places.worker(index, "team")
        path = _deepest(worker)
        if len(path) > most:
            names = " -> ".join(path)
            message = f"{place}teams nest {len(path)} deep and at most {most} are allowed: {names}."
            yield Problem(code="depth", message=message)
        for name, settings in _without_effect(worker.team).items():
            message = f"{place}{settings} of the team {name!r} has no effect within another team."
            yield Problem(code="no_effect", severity="warning", message=message)


def _without_effect(team: DelegateTeam | None) -> dict[str, str]:
    """Name of a team -> its settings that are for a whole run, inner teams first."""
    if team is None:
        return {}
    below = {name: settings for each in team.workers for name, settings in _without_effect(each.team).items()}
    return below | ({team.name: " and ".join(team.settings_of_run)} if team.settings_of_run else {})


def _deepest(worker: Worker) -> list[str]:
    """The names of the teams on the longest path down."""
    if worker.team is None:
        return []
    return [worker.team.name, *max(map(_deepest, worker.team.workers), key=len)]
