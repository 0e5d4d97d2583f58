"""A model provider on loopback: all three wire formats over real HTTP, answering as a function says, recording all.

In a test: `async with serve(handler) as server`, or `with serving(handler) as server` for code with a loop of its own.
As a process: `python -m tests.loopback --port 0 --delay-ms 200 --log FILE`; it prints its port on a line of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import IO, Any, Literal


@dataclass(frozen=True)
class Seen:
    """One request as it arrived. `connection` counts from 1; header names are in lower case."""

    number: int
    connection: int
    method: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @cached_property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw) if self.raw else {}

    @property
    def key(self) -> str:
        return self.headers.get("idempotency-key", "")

    @property
    def role(self) -> str:
        return self.headers.get("x-chargehand-role", "")

    @property
    def task(self) -> str:
        return self.headers.get("x-chargehand-task", "")

    @property
    def wire(self) -> Literal["openai", "responses", "anthropic"]:
        path = self.path.partition("?")[0]
        if path.endswith("/responses"):
            return "responses"
        return "anthropic" if path.endswith("/messages") else "openai"

    @property
    def text(self) -> str:
        """All texts of the request, whichever wire format it is in."""
        if self.wire == "responses":
            items = self.body["input"]
            contents = [i.get("content") or i.get("output") or i.get("arguments") for i in items]
        else:
            contents = [self.body.get("system", ""), *(m.get("content") for m in self.body["messages"])]
        return "\n".join(c if isinstance(c, str) else json.dumps(c) for c in contents if c)


@dataclass(frozen=True)
class Answer:
    """What to send back: words in the request's own wire format, or `raw` bytes with `status` as they are.

    `cut` closes the connection after that many bytes of the body; `reset` breaks it without a word; `silent` never
    answers; `drip` is the pause in seconds between the pieces of a stream, or the bytes of a whole body.
    """

    text: str = ""
    tools: tuple[tuple[str, dict[str, Any]], ...] = ()
    stop: str | None = None
    usage: tuple[int, int, int] | None = (12, 7, 5)  # input in all, output, cached
    # What stands under "usage" instead, whatever it is: the provider's own names, or nonsense.
    raw_usage: Any = None
    # A thinking block, an encrypted item of reasoning, or `reasoning_content`.
    thinking: str | None = None
    # What each tool call of chat completions carries in `extra_content`.
    signature: str | None = None
    status: int = 200
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    # Whether it comes as a stream where one is asked for; some servers do not have any.
    streams: bool = True
    delay: float = 0.0
    drip: float = 0.0
    cut: int | None = None
    reset: bool = False
    silent: bool = False
    # The connection is closed after the answer; by a server that speaks HTTP/1.0 that is how the answer ends.
    closes: bool = False
    old: bool = False


Handler = Callable[[Seen], Answer]


def answer_json(value: object, **more: Any) -> Answer:
    """An answer whose text is the value as JSON."""
    return Answer(text=json.dumps(value), **more)


def error(status: int, message: str = "no", *, code: str | None = None, **headers: str) -> Answer:
    """An error as both providers write it; header names are given with underscores."""
    body = {"type": "error", "error": {"type": code or "some_error", "code": code, "message": message}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, raw=json.dumps(body).encode(), headers=named)


class Server:
    """The running server: where it is and what it saw."""

    def __init__(self, handler: Handler, log: IO[str] | None = None) -> None:
        self.handler = handler
        self.requests: list[Seen] = []
        self.count = 0
        self.connections = 0
        self.port = 0
        self.scheme = "http"
        self.log = log
        self.open: set[asyncio.Transport] = set()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def saw(self, request: Seen) -> Answer:
        self.count += 1
        self.requests.append(request)
        if self.log is not None:
            marks = {n.removeprefix("x-chargehand-"): v for n, v in request.headers.items() if n.startswith("x-charge")}
            line = {
                "number": request.number,
                "path": request.path,
                "key": request.key,
                **marks,
                "bytes": len(request.raw),
            }
            self.log.write(json.dumps(line) + "\n")
            self.log.flush()
        return _broken_rule(request) or self.handler(request)


def _broken_rule(request: Seen) -> Answer | None:
    """The error a provider gives for a request it would not take, whatever the answer was to be."""
    if request.wire != "anthropic" or b'"tool_' not in request.raw or request.body.get("tools"):
        return None
    contents = [message["content"] for message in request.body["messages"]]
    if any(block["type"] in ("tool_use", "tool_result") for c in contents if isinstance(c, list) for block in c):
        message = "Requests which include `tool_use` or `tool_result` blocks must define tools"
        return error(400, message, code="invalid_request_error")
    return None


class _Connection(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self.server = server
        self.buffer = bytearray()
        self.head: tuple[str, str, dict[str, str]] | None = None
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.open.add(transport)
        self.server.connections += 1
        self.number = self.server.connections

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.open.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if self.buffer[:1] == b"\x16":  # a TLS hello on a plain port
            self.transport.write(_head(400, {"Content-Length": "0"}))
            self.transport.close()
            return
        if self.head is None:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            first, *lines = self.buffer[:end].decode("latin-1").split("\r\n")
            method, path, _ = first.split(" ", 2)
            pairs = (line.partition(":") for line in lines)
            self.head = (method, path, {name.lower(): value.strip() for name, _, value in pairs})
            del self.buffer[: end + 4]
        size = int(self.head[2].get("content-length", 0))
        if len(self.buffer) < size:
            return
        method, path, headers = self.head
        raw = bytes(self.buffer[:size])
        del self.buffer[:size]
        self.head = None
        seen = Seen(self.server.count + 1, self.number, method, path, headers, raw)
        answer = self.server.saw(seen)
        if answer.silent:
            return
        if answer.delay:
            asyncio.get_running_loop().call_later(answer.delay, self.send, seen, answer)
        else:
            self.send(seen, answer)

    def send(self, seen: Seen, answer: Answer) -> None:
        if self.transport.is_closing():
            return
        if answer.reset:
            # Closed at once with nothing lingering: the other side gets a reset instead of an end.
            linger = struct.pack("ii", 1, 0)
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.transport.abort()
            return
        if answer.old:
            said = b"".join(f"{event}\n\n".encode() for event in events(seen, answer))
            self.transport.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + said)
            self.transport.close()
            return
        if answer.raw is None and answer.streams and seen.body.get("stream"):
            self.stream(seen, answer)
            if answer.closes:
                self.transport.close()
            return
        body = answer.raw if answer.raw is not None else json.dumps(whole(seen, answer)).encode()
        kind = "application/json" if body[:1] == b"{" else "text/html"
        length = {} if "Transfer-Encoding" in answer.headers else {"Content-Length": str(len(body))}
        headers = {"Content-Type": kind, **length, **answer.headers}
        head = _head(answer.status, headers)
        if answer.drip:
            self.drip([head, *(body[i : i + 1] for i in range(len(body)))], answer.drip)
            return
        self.transport.write(head + body[: answer.cut])
        if answer.cut is not None:
            self.transport.close()

    def stream(self, seen: Seen, answer: Answer) -> None:
        headers = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **answer.headers}
        self.transport.write(_head(answer.status, headers))
        pieces = [f"{event}\n\n".encode() for event in events(seen, answer)]
        if answer.cut is not None:
            if data := b"".join(pieces)[: answer.cut]:
                self.transport.write(_chunk(data))
            self.transport.close()
            return
        self.drip([*map(_chunk, pieces), b"0\r\n\r\n"], answer.drip)

    def drip(self, pieces: list[bytes], pause: float) -> None:
        if not pause:
            self.transport.write(b"".join(pieces))
            return
        if pieces and not self.transport.is_closing():
            self.transport.write(pieces[0])
            asyncio.get_running_loop().call_later(pause, self.drip, pieces[1:], pause)


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode("latin-1")


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


# --- what a provider says, in its own words -------------------------------------------------------------------------


def whole(seen: Seen, answer: Answer) -> dict[str, Any]:
    """The answer as one JSON document of the request's wire format."""
    return _WHOLE[seen.wire](seen, answer)


def events(seen: Seen, answer: Answer) -> list[str]:
    """The answer as the lines of server-sent events."""
    return _EVENTS[seen.wire](seen, answer)


def _pieces(text: str) -> list[str]:
    size = max(5, len(text) // 2_000)
    return [text[i : i + size] for i in range(0, len(text), size)]


def _whole_openai(seen: Seen, answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
    if answer.tools:
        message["tool_calls"] = [
            {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)},
             **_signed(answer)}
            for i, (name, arguments) in enumerate(answer.tools)
        ]  # fmt: skip
    if answer.thinking is not None:
        message["reasoning_content"] = answer.thinking
    finish = answer.stop or ("tool_calls" if answer.tools else "stop")
    document: dict[str, Any] = {
        "id": f"chatcmpl-{seen.number}",
        "object": "chat.completion",
        "created": 1,
        "model": seen.body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
    }
    if answer.usage or answer.raw_usage is not None:
        document["usage"] = _usage_openai(answer)
    return document


def _signed(answer: Answer) -> dict[str, Any]:
    return {} if answer.signature is None else {"extra_content": {"google": {"thought_signature": answer.signature}}}


def _usage_openai(answer: Answer) -> Any:
    if answer.raw_usage is not None:
        return answer.raw_usage
    input, output, cached = answer.usage or (0, 0, 0)
    details = {"cached_tokens": cached}
    total = input + output
    return {
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": total, "prompt_tokens_details": details,
    }  # fmt: skip


def _events_openai(seen: Seen, answer: Answer) -> list[str]:
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": seen.body["model"]}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    chunks = [chunk({"role": "assistant", "content": ""})]
    chunks += [chunk({"reasoning_content": piece}) for piece in _pieces(answer.thinking or "")]
    chunks += [chunk({"content": piece}) for piece in _pieces(answer.text)]
    for i, (name, arguments) in enumerate(answer.tools):
        call = {"index": i, "id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": ""}}
        chunks.append(chunk({"tool_calls": [{**call, **_signed(answer)}]}))
        chunks += [
            chunk({"tool_calls": [{"index": i, "function": {"arguments": piece}}]})
            for piece in _pieces(json.dumps(arguments))
        ]
    chunks.append(chunk({}, answer.stop or ("tool_calls" if answer.tools else "stop")))
    wanted = seen.body.get("stream_options", {}).get("include_usage")
    if wanted and (answer.usage or answer.raw_usage is not None):
        chunks.append({**base, "choices": [], "usage": _usage_openai(answer)})
    return [*(f"data: {json.dumps(c)}" for c in chunks), "data: [DONE]"]


def _output(seen: Seen, answer: Answer) -> list[dict[str, Any]]:
    """The items of a response; no two responses of a server share an id."""
    mark = f"{seen.number}"
    items: list[dict[str, Any]] = []
    if answer.thinking is not None:
        secret = f"{answer.thinking} (encrypted {mark})"
        items.append({"id": f"rs_{mark}", "type": "reasoning", "summary": [], "encrypted_content": secret})
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        message = {"id": f"msg_{mark}", "type": "message", "role": "assistant", "status": "completed"}
        items.append({**message, "content": [part]})
    items += [
        {"id": f"fc_{mark}_{i}", "type": "function_call", "call_id": f"call_{mark}_{i}", **_tool_name(name),
         "arguments": json.dumps(arguments), "status": "completed"}
        for i, (name, arguments) in enumerate(answer.tools)
    ]  # fmt: skip
    return items


def _tool_name(name: str) -> dict[str, str]:
    """Responses has tools in namespaces: NAMESPACE/NAME."""
    space, _, own = name.rpartition("/")
    return {"name": own, "namespace": space} if space else {"name": own}


_INCOMPLETE = ("max_output_tokens", "content_filter")


def _whole_responses(seen: Seen, answer: Answer) -> dict[str, Any]:
    cut = answer.stop in _INCOMPLETE
    document: dict[str, Any] = {
        "id": f"resp_{seen.number}",
        "object": "response",
        "created_at": 1,
        "model": seen.body["model"],
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": answer.stop} if cut else None,
        "error": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "tool_choice": seen.body.get("tool_choice", "auto"),
        "tools": seen.body.get("tools", []),
        "output": _output(seen, answer),
    }
    if answer.raw_usage is not None:
        document["usage"] = answer.raw_usage
    elif answer.usage:
        input, output, cached = answer.usage
        reasoned = min(3, output) if answer.thinking is not None else 0
        document["usage"] = {
            "input_tokens": input, "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
            "output_tokens": output, "output_tokens_details": {"reasoning_tokens": reasoned},
            "total_tokens": input + output,
        }  # fmt: skip
    return document


def _events_responses(seen: Seen, answer: Answer) -> list[str]:
    document = _whole_responses(seen, answer)
    begun = {**document, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    sent: list[dict[str, Any]] = [
        {"type": f"response.{state}", "response": begun} for state in ("created", "in_progress")
    ]
    for index, item in enumerate(document["output"]):
        sent += _item_events(index, item)
    sent.append({"type": f"response.{document['status']}", "response": document})
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(sent)]
    return [f"event: {e['type']}\ndata: {json.dumps(e)}" for e in numbered]


def _item_events(index: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    where = {"output_index": index, "item_id": item["id"]}
    opened, between = {**item, "status": "in_progress"}, []
    match item["type"]:
        case "message":
            part = item["content"][0]
            at = {**where, "content_index": 0}
            opened["content"] = []
            between = [
                {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
                *(
                    {"type": "response.output_text.delta", **at, "delta": p, "logprobs": []}
                    for p in _pieces(part["text"])
                ),
                {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []},
                {"type": "response.content_part.done", **at, "part": part},
            ]
        case "function_call":
            opened["arguments"] = ""
            pieces = _pieces(item["arguments"])
            name = "response.function_call_arguments"
            between = [
                *({"type": f"{name}.delta", **where, "delta": piece} for piece in pieces),
                {"type": f"{name}.done", **where, "name": item["name"], "arguments": item["arguments"]},
            ]
        case _:
            # What is encrypted is complete only when the item is.
            opened["encrypted_content"] = "incomplete"
    return [
        {"type": "response.output_item.added", "output_index": index, "item": opened},
        *between,
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _blocks(answer: Answer) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answer.thinking is not None:
        blocks.append({"type": "thinking", "thinking": answer.thinking, "signature": "sig=="})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    blocks += [
        {"type": "tool_use", "id": f"toolu_{i}", "name": name, "input": arguments}
        for i, (name, arguments) in enumerate(answer.tools)
    ]
    return blocks


def _whole_anthropic(seen: Seen, answer: Answer) -> dict[str, Any]:
    return {
        "id": f"msg_{seen.number}",
        "type": "message",
        "role": "assistant",
        "model": seen.body["model"],
        "content": _blocks(answer),
        "stop_reason": answer.stop or ("tool_use" if answer.tools else "end_turn"),
        "stop_sequence": None,
        "usage": _usage_anthropic(answer),
    }


def _usage_anthropic(answer: Answer) -> Any:
    if answer.raw_usage is not None:
        return answer.raw_usage
    input, output, cached = answer.usage or (0, 0, 0)
    written = min(1, input - cached)
    return {
        "input_tokens": input - cached - written, "output_tokens": output,
        "cache_read_input_tokens": cached, "cache_creation_input_tokens": written,
    }  # fmt: skip


def _events_anthropic(seen: Seen, answer: Answer) -> list[str]:
    document = _whole_anthropic(seen, answer)
    usage = document["usage"]
    whole = isinstance(usage, dict)
    begun = {**usage, "output_tokens": 1} if whole else usage
    opening = {**document, "content": [], "stop_reason": None, "usage": begun}
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": opening}, {"type": "ping"}]
    for index, block in enumerate(document["content"]):
        sent += _block_events(index, block)
    ending = {"stop_reason": document["stop_reason"], "stop_sequence": None}
    closing = {"output_tokens": usage["output_tokens"]} if whole and "output_tokens" in usage else {}
    sent.append({"type": "message_delta", "delta": ending, "usage": closing})
    sent.append({"type": "message_stop"})
    return [f"event: {e['type']}\ndata: {json.dumps(e)}" for e in sent]


def _block_events(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    match block["type"]:
        case "text":
            empty = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        case "thinking":
            empty = {**block, "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case _:
            empty = {**block, "input": {}}
            pieces = _pieces(json.dumps(block["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


# --- running it -----------------------------------------------------------------------------------------------------


def ok(_: Seen) -> Answer:
    """The handler that always says ok."""
    return Answer(text="ok")


_WHOLE = {"openai": _whole_openai, "responses": _whole_responses, "anthropic": _whole_anthropic}
_EVENTS = {"openai": _events_openai, "responses": _events_responses, "anthropic": _events_anthropic}


@asynccontextmanager
async def serve(
    handler: Handler = ok, *, port: int = 0, tls: ssl.SSLContext | None = None, log: IO[str] | None = None
) -> AsyncIterator[Server]:
    """Serve in this loop until the block ends."""
    server = Server(handler, log)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: _Connection(server), "127.0.0.1", port, ssl=tls, backlog=4096)
    server.port = listening.sockets[0].getsockname()[1]
    server.scheme = "https" if tls else "http"
    try:
        yield server
    finally:
        listening.close()
        for transport in list(server.open):
            transport.abort()
        await asyncio.sleep(0)


@contextmanager
def serving(handler: Handler = ok, *, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Serve in a thread with a loop of its own until the block ends."""
    started: list[Server] = []
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def main() -> None:
        async with serve(handler, tls=tls) as server:
            started.append(server)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    assert ready.wait(60)
    try:
        yield started[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()


def _named(name: str) -> Handler:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


async def _main(arguments: argparse.Namespace, log: IO[str] | None) -> None:
    inner: Handler = _named(arguments.handler) if arguments.handler else lambda _: Answer(text=arguments.text)

    def handler(seen: Seen) -> Answer:
        answer = inner(seen)
        return answer if answer.delay else replace(answer, delay=arguments.delay_ms / 1000)

    async with serve(handler, port=arguments.port, log=log) as server:
        print(server.port, flush=True)
        # A server whose starter is gone would stay for ever.
        parent = os.getppid()
        while os.getppid() == parent:
            await asyncio.sleep(1)
            server.requests.clear()


def main() -> None:
    parser = argparse.ArgumentParser(description="A model provider on loopback; prints its port.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--text", default="ok", help="what every answer says")
    parser.add_argument("--handler", help="MODULE:FUNCTION that makes the answers instead")
    parser.add_argument("--log", help="file that gets one line of JSON for each request, before it is answered")
    arguments = parser.parse_args()
    with open(arguments.log or os.devnull, "a", encoding="utf-8") as log:
        asyncio.run(_main(arguments, log if arguments.log else None))


if __name__ == "__main__":
    main()
