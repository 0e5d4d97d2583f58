"""A team -> the list of its workers that the planner and the router choose from."""

from __future__ import annotations

from collections.abc import Collection

from chargehand.team import Team, Worker


def describe_workers(team: Team, only: Collection[str] = ()) -> str:
    """The workers as the planner and the router read them, a pool as one; or `only` those of these names."""
    if only:
        return "\n".join(_line(worker, worker.name) for worker in team.workers if worker.name in only)
    first_of = {members[0]: pool for pool, members in team.pools().items()}
    chosen = [worker for worker in team.workers if worker.pool is None or worker.name in first_of]
    return "\n".join(_line(worker, first_of.get(worker.name, worker.name)) for worker in chosen)


def _line(worker: Worker, name: str) -> str:
    line = f"- {name}: {worker.description}"
    if worker.tool_names:
        line += f" Tools: {', '.join(worker.tool_names)}."
    if worker.kind == "human":
        line += " A person, who may answer days later: only for what nobody else can do."
    if worker.program is not None and worker.program.worktree:
        line += " A program that works on its own copy of the repository; its result is a patch."
    if worker.team is not None:
        line += f" A team of its own, of {', '.join(worker.team.names)}: give it a whole question, not a step."
    return line
