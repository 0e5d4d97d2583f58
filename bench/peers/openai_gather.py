"""The job by the openai package: AsyncOpenAI and `gather`, as its documentation shows it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from openai import AsyncOpenAI

from bench.peers.job import CLERK, MODEL, Job, headers, measure


async def run(job: Job) -> int:
    async with AsyncOpenAI(base_url=job.base, api_key="loopback") as client:

        async def ask(role: str, text: str, task: str = "") -> Any:
            reply = await client.chat.completions.create(
                model=MODEL,
                messages=[{"role": "system", "content": CLERK}, {"role": "user", "content": text}],
                extra_headers=headers(role, task),
            )
            return json.loads(reply.choices[0].message.content or "")

        plan = await ask("planner", job.request)
        results = await asyncio.gather(*(ask("worker", task["instruction"], task["id"]) for task in plan["tasks"]))
        await ask("synthesizer", "\n".join(result["summary"] for result in results))
        return len(results)


if __name__ == "__main__":
    measure(run)
