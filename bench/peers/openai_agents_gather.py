"""The job by the OpenAI Agents SDK: three agents, the workers' runs with `gather`.

Its tracing is switched off: by default it sends every run to OpenAI. It calls chat completions as the others do; its
own default is the Responses API. It keeps no record of a run. The openai client inside makes two retries of a call.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, RunConfig, Runner, set_tracing_disabled
from openai import AsyncOpenAI

from bench.peers.job import CLERK, MODEL, Job, headers, measure


async def run(job: Job) -> int:
    set_tracing_disabled(True)
    async with AsyncOpenAI(base_url=job.base, api_key="loopback") as client:
        model = OpenAIChatCompletionsModel(MODEL, openai_client=client)
        agents = {role: Agent(role, instructions=CLERK, model=model) for role in ("planner", "worker", "synthesizer")}

        async def ask(role: str, text: str, task: str = "") -> Any:
            config = RunConfig(model_settings=ModelSettings(extra_headers=headers(role, task)))
            result = await Runner.run(agents[role], text, run_config=config)
            return json.loads(result.final_output)

        plan = await ask("planner", job.request)
        results = await asyncio.gather(*(ask("worker", task["instruction"], task["id"]) for task in plan["tasks"]))
        await ask("synthesizer", "\n".join(result["summary"] for result in results))
        return len(results)


if __name__ == "__main__":
    measure(run)
