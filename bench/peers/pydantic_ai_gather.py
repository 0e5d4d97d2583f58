"""The job by pydantic-ai: three agents, the workers' runs with `gather`."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from bench.peers.job import CLERK, MODEL, Job, headers, measure


async def run(job: Job) -> int:
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=job.base, api_key="loopback"))
    agents = {role: Agent(model, instructions=CLERK) for role in ("planner", "worker", "synthesizer")}

    async def ask(role: str, text: str, task: str = "") -> Any:
        result = await agents[role].run(text, model_settings={"extra_headers": headers(role, task)})
        return json.loads(result.output)

    plan = await ask("planner", job.request)
    results = await asyncio.gather(*(ask("worker", task["instruction"], task["id"]) for task in plan["tasks"]))
    await ask("synthesizer", "\n".join(result["summary"] for result in results))
    return len(results)


if __name__ == "__main__":
    measure(run)
