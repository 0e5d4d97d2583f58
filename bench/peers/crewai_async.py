"""The job by CrewAI: a crew that plans, then one of N asynchronous tasks and a task that has their results as context.

Every task has an agent of its own: two asynchronous tasks of one agent raise `Executor is already running`. Its
telemetry, its tracing and its look for a newer version are switched off. It sets no headers for one call: the provider
goes by the text. Its openai client makes two retries of a call. On top of these a call that got 429 is made three times
with 1 and 2 s between, and an agent attempts a task three times: 27 calls for 429, 9 for 500.

By default it stores outputs in the order of the tasks, for `crewai replay`, and a second run begins anew. With
BENCH_CREWAI_CHECKPOINTS it writes its checkpoints, one after each task, and a second run continues from the newest.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}
os.environ |= {"CREWAI_TRACING_ENABLED": "false", "CREWAI_DISABLE_VERSION_CHECK": "true"}

from crewai import LLM, Agent, CheckpointConfig, Crew, Task
from crewai.memory.storage.kickoff_task_outputs_storage import KickoffTaskOutputsSQLiteStorage

from bench.peers.job import CLERK, MODEL, Incomplete, Job, measure

CHECKPOINTS = bool(os.environ.get("BENCH_CREWAI_CHECKPOINTS"))


async def make_crew(job: Job) -> Crew:
    llm = LLM(model=MODEL, base_url=job.base, api_key="loopback")

    def agent(role: str) -> Agent:
        return Agent(role=role, goal="Look figures up", backstory=CLERK, llm=llm)

    planner = agent("planner")
    planning = Task(description=job.request, expected_output="A plan as JSON", agent=planner)
    plan = json.loads((await Crew(agents=[planner], tasks=[planning]).akickoff()).raw)
    clerks = [agent(f"clerk {task['id']}") for task in plan["tasks"]]
    work = [
        Task(
            description=task["instruction"],
            expected_output=task["success_criterion"],
            agent=clerk,
            async_execution=True,
        )
        for task, clerk in zip(plan["tasks"], clerks, strict=True)
    ]
    writer = agent("writer")
    synthesis = Task(description="Write one paragraph.", expected_output="A paragraph", agent=writer, context=work)
    return Crew(agents=[*clerks, writer], tasks=[*work, synthesis])


async def run(job: Job) -> int:
    folder = job.folder / "checkpoints"
    written = sorted(filter(is_whole, folder.rglob("*.json")), key=lambda path: path.stat().st_mtime_ns)
    if written:
        crew = Crew.from_checkpoint(CheckpointConfig(location=str(folder), restore_from=written[-1]))
    else:
        crew = await make_crew(job)
        crew.checkpoint = CheckpointConfig(location=str(folder)) if CHECKPOINTS else None
    try:
        await crew.akickoff()
    except Exception as error:
        stored = len(KickoffTaskOutputsSQLiteStorage().load())
        raise Incomplete(f"raises {type(error).__name__} with {stored} results stored,", count_results(crew)) from error
    return count_results(crew)


def is_whole(checkpoint: Path) -> bool:
    """Whether it was written to its end before the process was killed."""
    try:
        json.loads(checkpoint.read_text())
    except ValueError:
        return False
    return True


def count_results(crew: Crew) -> int:
    """Of the tasks before the synthesis; they are in the objects of the tasks also after an error."""
    return sum(task.output is not None for task in crew.tasks[:-1])


if __name__ == "__main__":
    measure(run)
