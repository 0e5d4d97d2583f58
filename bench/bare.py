"""The yardstick: the same requests with `gather`, recording nothing. Prints one line of JSON.

By aiohttp, or with BENCH_TRANSPORT=own by chargehand's own transport and wire format. Replies are streamed like ours;
with BENCH_STREAM=no they come whole.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from pydantic_core import from_json

from bench.measure import measured
from bench.provider import MODEL
from chargehand.models import Attribution
from chargehand.models.openai_chat import OpenAIChat
from chargehand.models.profiles import Profile
from chargehand.models.provider_errors import Endpoint
from chargehand.models.transport import Transport
from chargehand.runs.event_loop import less_collecting
from chargehand.tools import BUILTIN
from chargehand.workers.worker_prompt import ESCALATE, system_prompt

# What a worker's call carries in addition to its messages, as chargehand sends it: the same bytes for both sides.
EXTRAS: dict[str, Any] = {
    "tools": [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in (BUILTIN["calculate"].spec, ESCALATE)
    ],
}


STREAM = os.environ.get("BENCH_STREAM") != "no"
STREAMED: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if STREAM else {}

# Sends a body, gives the message that came back.
Send = Callable[[bytes, str, str], Awaitable[dict[str, Any]]]


async def call(send: Send, role: str, task: str, messages: list[dict[str, Any]], **extras: Any) -> Any:
    body = json.dumps({"model": MODEL, "messages": messages, "max_tokens": 4096, **STREAMED, **extras}).encode()
    return await send(body, role, task)


def by_aiohttp(session: aiohttp.ClientSession, url: str) -> Send:
    async def send(body: bytes, role: str, task: str) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "X-Chargehand-Role": role, "X-Chargehand-Task": task}
        async with session.post(url, data=body, headers=headers) as response:
            if not STREAM:
                return json.loads(await response.read())["choices"][0]["message"]
            message: dict[str, Any] = {"role": "assistant", "content": ""}
            async for line in response.content:
                if line.startswith(b"data: {"):
                    add_delta(message, json.loads(line[6:]))
            return message

    return send


def add_delta(message: dict[str, Any], event: dict[str, Any]) -> None:
    """Add what an event says to the message, as the plainest client would."""
    for choice in event["choices"]:
        delta = choice["delta"]
        message["content"] += delta.get("content") or ""
        for piece in delta.get("tool_calls") or ():
            calls = message.setdefault("tool_calls", [])
            if piece["index"] == len(calls):
                calls.append(piece)
            else:
                calls[piece["index"]]["function"]["arguments"] += piece["function"]["arguments"]


def by_own_transport(transport: Transport, url: str) -> Send:
    endpoint, wire = Endpoint("bench", url, {"Content-Type": "application/json"}), OpenAIChat(Profile("other"))

    async def send(body: bytes, role: str, task: str) -> dict[str, Any]:
        listener = wire.listen()

        def hear(events: list[bytes]) -> None:
            for event in events:
                if event != b"[DONE]":
                    listener.hear(from_json(event))

        whole = await transport.send(endpoint, body, Attribution("bench", task, 1, role, task), hear)
        reply = listener.reply() if whole is None else wire.reply(from_json(whole))
        assert reply is not None
        message: dict[str, Any] = {"role": "assistant", "content": reply.text}
        if reply.tool_calls:
            message["tool_calls"] = [
                {
                    "id": each.id,
                    "type": "function",
                    "function": {"name": each.name, "arguments": each.raw or json.dumps(each.arguments)},
                }
                for each in reply.tool_calls
            ]
        return message

    return send


async def worker(send: Send, task: dict[str, Any], prompt: str) -> str:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": prompt},
        {"role": "user", "content": task["instruction"]},
    ]
    while True:
        message = await call(send, "worker", task["id"], messages, **EXTRAS)
        if not message.get("tool_calls"):
            return json.loads(message["content"])["summary"]
        messages.append(message)
        for request in message["tool_calls"]:
            total = sum(map(int, json.loads(request["function"]["arguments"])["expression"].split("+")))
            messages.append({"role": "tool", "tool_call_id": request["id"], "content": str(total)})


async def main(base: str, kind: str, tasks: int) -> None:
    url = f"{base}/chat/completions"
    prompt = system_prompt("clerk", "", "You are a clerk." + (" Use two tools." if kind == "tools" else ""))
    own = os.environ.get("BENCH_TRANSPORT") == "own"
    with measured(tasks), less_collecting():
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            transport = Transport({})
            send = by_own_transport(transport, url) if own else by_aiohttp(session, url)
            first = await call(send, "planner", "", [{"role": "user", "content": f"fan of {tasks}"}])
            plan = json.loads(first["content"])
            results = await asyncio.gather(*(worker(send, task, prompt) for task in plan["tasks"]))
            last = await call(send, "synthesizer", "", [{"role": "user", "content": "\n".join(results)}])
            assert "42" in json.loads(last["content"])["answer"]
            await transport.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
