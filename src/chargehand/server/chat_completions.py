"""OpenAI's chat completions: a team is a model. A request -> a run that is followed, and its answer in OpenAI's shape.

GET /v1/models · GET /v1/models/ID · POST /v1/chat/completions
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

from pydantic_core import from_json
from starlette.responses import Response, StreamingResponse

from chargehand.server.begin_runs import StartRun, begin_run
from chargehand.server.calls import Call
from chargehand.server.change_runs import stop_run
from chargehand.server.chat_request import DEFAULT, SMALL, TEAM, ChatRequest, Data, read_chat
from chargehand.server.parts import Server
from chargehand.server.read_runs import json_response, read_run
from chargehand.server.refusals import Refusal
from chargehand.server.wait_for_run import is_over_or_asks, wait_for_run
from chargehand.text.escaping import dump_json

# A client that is gone for so long has no use for the answer.
GONE_S = 10.0
COMMENT_S = 10.0
_LONGEST_WAIT_S = 24 * 3600.0
# How an answer is sent where it is streamed.
_PIECE = 400


async def list_models(call: Call) -> Response:
    """The teams that are offered, and the small model."""
    names = await call.server.reading.run(_names, call.server)
    return json_response({"object": "list", "data": [_model(name) for name in names]})


async def get_model(call: Call) -> Response:
    """One of them."""
    name = call.path("name")
    if name not in await call.server.reading.run(_names, call.server):
        raise _unknown(name)
    return json_response(_model(name))


async def complete_chat(call: Call) -> Response:
    """Carry out a run of a team on the last message, or answer a small call at once."""
    server = call.server
    asked = read_chat(await _read_body(call))
    if asked.model not in await server.reading.run(_names, server):
        raise _unknown(asked.model)
    if asked.is_chore:
        return await _answer_at_once(server, asked)
    follow_up = server.conversations.run_of(asked.last_answer)
    before = asked.conversation() if follow_up is None else None
    body = StartRun(
        request=_within_limit(asked.text),
        team=asked.team,
        schema=asked.answer_schema,
        material=[*asked.material, *([before] if before else [])],
        follow_up=follow_up,
    )
    run = await begin_run(server, call.caller, body)
    if asked.streams:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no", "x-chargehand-run": run}
        chunks = _stream(call, asked, run)
        return StreamingResponse(chunks, media_type="text/event-stream", headers=headers)
    return json_response(await _wait_and_answer(call, asked, run))


def _names(server: Server) -> list[str]:
    return [DEFAULT, *(f"{TEAM}{name}" for name in server.offered.teams()), SMALL]


def _model(name: str) -> Data:
    return {"id": name, "object": "model", "created": 0, "owned_by": "chargehand"}


def _unknown(name: str) -> Refusal:
    return Refusal(404, f"There is no model {name[:100]!r}: GET /v1/models lists them.", type="model_not_found")


def _within_limit(text: str) -> str:
    if len(text) > 1_000_000:
        raise Refusal(400, "The last message has more than 1,000,000 characters: attach it as a file.")
    return text


async def _read_body(call: Call) -> Data:
    try:
        given: Any = from_json(await call.read(), allow_inf_nan=False)
    except ValueError as error:
        raise Refusal(400, f"The body is not JSON: {error}.") from None
    if not isinstance(given, dict):
        raise Refusal(400, "The body is not a JSON object.")
    return given  # pyright: ignore[reportUnknownVariableType]


# -- following a run ------------------------------------------------------------------------------------------------


async def _wait_and_answer(call: Call, asked: ChatRequest, run: str) -> Data:
    async def say(line: str) -> None:
        """Nobody listens before the end."""

    waiting = asyncio.ensure_future(wait_for_run(call.server, call.caller, run, _LONGEST_WAIT_S, say, is_over_or_asks))
    try:
        while not waiting.done():
            await asyncio.wait({waiting}, timeout=1.0)
            if not waiting.done() and await call.request.is_disconnected():
                raise Refusal(400, "The client is gone.")
        return _completion(asked, run, await _read_finished_report(call.server, run))
    finally:
        if not waiting.done():
            waiting.cancel()
            _stop_soon(call.server, asked, run)


async def _stream(call: Call, asked: ChatRequest, run: str) -> AsyncGenerator[bytes]:
    """Progress as reasoning, then the answer, then usage; a comment where nothing else was sent for a while."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    server = call.server
    ended = False
    yield _chunk(asked, run, {"role": "assistant", "content": ""})
    waiting = asyncio.ensure_future(wait_for_run(server, call.caller, run, _LONGEST_WAIT_S, lines.put, is_over_or_asks))
    try:
        while not waiting.done() or not lines.empty():
            hearing = asyncio.ensure_future(lines.get())
            await asyncio.wait({waiting, hearing}, timeout=COMMENT_S, return_when="FIRST_COMPLETED")
            if hearing.done():
                yield _chunk(asked, run, {"reasoning_content": f"{hearing.result()}\n"})
            else:
                hearing.cancel()
                if not waiting.done():
                    yield b": waiting\n\n"
        ended = True
        report = await _read_finished_report(server, run)
        answer = report["answer"]
        for at in range(0, len(answer), _PIECE):
            yield _chunk(asked, run, {"content": answer[at : at + _PIECE]})
        yield _chunk(asked, run, {}, finish="stop")
        if asked.with_usage:
            yield _frame({**_head(asked, run, "chat.completion.chunk"), "choices": [], "usage": _usage(report)})
    except Refusal as refusal:
        yield _frame({"error": {"message": refusal.detail, "type": "server_error", "param": None, "code": None}})
    finally:
        waiting.cancel()
        if not ended:
            _stop_soon(server, asked, run)
    yield b"data: [DONE]\n\n"


async def _read_finished_report(server: Server, run: str) -> Data:
    """The report of a run that came to an answer; a Refusal says why there is none."""
    report = await read_run(server, run)
    if report["status"] in ("complete", "partial"):
        data = report.get("data")
        report["answer"] = dump_json(data) if data is not None else _with_gaps(report)
        server.conversations.keep(report["answer"], run)
        return report
    if report["questions"]:
        asks = "; ".join(str(each["prompt"]).partition("\n")[0][:200] for each in report["questions"])
        raise Refusal(409, f"Run {run} asks a person and waits: {asks} Answer on the page or in a terminal.")
    why = report.get("error") or report.get("answer") or report["status"]
    raise Refusal(503, f"Run {run} ended without an answer: {report['status']}: {str(why)[:500]}")


def _with_gaps(report: Data) -> str:
    answer = str(report["answer"])
    if report["status"] == "complete" or not report["gaps"]:
        return answer
    gaps = "\n".join(f"- {gap['reason']}" for gap in report["gaps"])
    return f"{answer}\n\nNot answered:\n{gaps}"


def _stop_soon(server: Server, asked: ChatRequest, run: str) -> None:
    """Stop a run that nobody waits for any more."""
    if asked.background:
        return

    async def stop() -> None:
        await asyncio.sleep(GONE_S)
        with suppress(Exception):
            await stop_run(server, run)

    task = asyncio.create_task(stop(), name=f"stop {run}")
    server.conversations.stopping.add(task)
    task.add_done_callback(server.conversations.stopping.discard)


async def _answer_at_once(server: Server, asked: ChatRequest) -> Response:
    """One call of the small model, on no record."""
    reply = await server.supervisor.ask_small_model(asked.spoken, asked.max_output or 1_000)
    report: Data = {
        "answer": reply.text,
        "usage": {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens}
        if reply.usage
        else {},
    }
    if not asked.streams:
        return json_response(_completion(asked, "small", report))
    frames = [_chunk(asked, "small", {"role": "assistant", "content": reply.text})]
    frames.append(_chunk(asked, "small", {}, finish="stop"))
    if asked.with_usage:
        frames.append(
            _frame({**_head(asked, "small", "chat.completion.chunk"), "choices": [], "usage": _usage(report)})
        )
    return Response(b"".join([*frames, b"data: [DONE]\n\n"]), media_type="text/event-stream")


# -- OpenAI's shapes ------------------------------------------------------------------------------------------------


def _head(asked: ChatRequest, run: str, kind: str) -> Data:
    return {"id": f"chatcmpl-{run}", "object": kind, "created": int(time.time()), "model": asked.model}


def _completion(asked: ChatRequest, run: str, report: Data) -> Data:
    message = {"role": "assistant", "content": report["answer"], "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {**_head(asked, run, "chat.completion"), "choices": [choice], "usage": _usage(report)}


def _usage(report: Data) -> Data:
    used: Data = report.get("usage") or {}
    read, written = used.get("input_tokens") or 0, used.get("output_tokens") or 0
    cached = {"cached_tokens": used.get("cached_tokens") or 0}
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": cached,
    }


def _chunk(asked: ChatRequest, run: str, delta: Data, *, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return _frame({**_head(asked, run, "chat.completion.chunk"), "choices": [choice]})


def _frame(data: Data) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
