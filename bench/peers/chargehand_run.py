"""The job by chargehand, journal on; a second run in the same folder resumes."""

from __future__ import annotations

import os

import aiohttp  # noqa: F401 -- the others have their client imported when the clock starts

from bench.peers.job import CLERK, MODEL, Incomplete, Job, measure
from chargehand import Supervisor, Team, Worker


async def run(job: Job) -> int:
    os.environ |= {"OPENAI_API_KEY": "loopback", "OPENAI_BASE_URL": job.base}
    team = Team(workers=[Worker("clerk", "Looks figures up", prompt=CLERK)])
    supervisor = Supervisor(team, model=f"openai:{MODEL}", home=job.folder)
    runs = sorted(path.stem for path in job.folder.glob("runs/*.sqlite"))
    if runs:
        report = await supervisor.resume(runs[-1])
    else:
        report = await supervisor.run(
            job.request, max_concurrent=max(job.tasks, 8), max_tasks=max(job.tasks, 8), tokens=1_000_000_000
        )
    done = sum(outcome.ok for outcome in report.outcomes)
    if report.status != "complete":
        gaps = ", ".join(str(gap.task) for gap in report.gaps)
        raise Incomplete(f"{report.status}, gap: {gaps}", done)
    return done


if __name__ == "__main__":
    measure(run)
