"""The yardstick: the same requests with aiohttp and `gather`, recording nothing. Prints one line of JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import aiohttp

from bench.measure import measured
from bench.provider import MODEL
from chargehand.tools import BUILTIN
from chargehand.workers.worker_answer import answer_schema
from chargehand.workers.worker_prompt import ESCALATE, system_prompt

# What a worker's call carries besides its messages, as chargehand sends it: the same bytes for both sides.
EXTRAS: dict[str, Any] = {
    "tools": [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in (BUILTIN["calculate"].spec, ESCALATE)
    ],
    "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": answer_schema(None)}},
}


async def call(
    session: aiohttp.ClientSession, url: str, role: str, task: str, messages: list[dict[str, Any]], **extras: Any
) -> Any:
    body = json.dumps({"model": MODEL, "messages": messages, "max_tokens": 4096, **extras}).encode()
    headers = {"Content-Type": "application/json", "X-Chargehand-Role": role, "X-Chargehand-Task": task}
    async with session.post(url, data=body, headers=headers) as response:
        reply = json.loads(await response.read())
    return reply["choices"][0]["message"]


async def worker(session: aiohttp.ClientSession, url: str, task: dict[str, Any], prompt: str) -> str:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": prompt},
        {"role": "user", "content": task["instruction"]},
    ]
    while True:
        message = await call(session, url, "worker", task["id"], messages, **EXTRAS)
        if not message.get("tool_calls"):
            return json.loads(message["content"])["summary"]
        messages.append(message)
        for request in message["tool_calls"]:
            total = sum(map(int, json.loads(request["function"]["arguments"])["expression"].split("+")))
            messages.append({"role": "tool", "tool_call_id": request["id"], "content": str(total)})


async def main(base: str, kind: str, tasks: int) -> None:
    url = f"{base}/chat/completions"
    prompt = system_prompt("clerk", "", "You are a clerk." + (" Use two tools." if kind == "tools" else ""))
    with measured(tasks):
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            first = await call(session, url, "planner", "", [{"role": "user", "content": f"fan of {tasks}"}])
            plan = json.loads(first["content"])
            results = await asyncio.gather(*(worker(session, url, task, prompt) for task in plan["tasks"]))
            last = await call(session, url, "synthesizer", "", [{"role": "user", "content": "\n".join(results)}])
            assert "42" in json.loads(last["content"])["answer"]


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
