"""OpenAI's chat completions: a team is a model. A request -> a run that is followed, and its answer in OpenAI's shape.

POST /v1/chat/completions
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import Response, StreamingResponse

from chargehand.server.follow_answer import (
    STREAM_HEADERS,
    AnswerGiven,
    AnswerPiece,
    DraftWithdrawn,
    NothingNew,
    ProgressLine,
    ask_small_model,
    begin_asked_run,
    follow_answer,
    read_request,
    wait_for_answer,
    withdrawal,
)
from chargehand.server.http_calls import Call
from chargehand.server.model_request import Data, ModelRequest, read_chat
from chargehand.server.read_runs import json_response
from chargehand.server.refusals import Refusal, openai_error
from chargehand.text.escaping import dump_json


async def complete_chat(call: Call) -> Response:
    """Carry out a run of a team on the last message, or answer a small call at once."""
    asked, _ = await read_request(call, read_chat)
    if asked.is_chore:
        return await _answer_at_once(call, asked)
    run = await begin_asked_run(call.server, call.caller, asked)
    if asked.streams:
        headers = {**STREAM_HEADERS, "x-chargehand-run": run}
        return StreamingResponse(_stream(call, asked, run), media_type="text/event-stream", headers=headers)
    return json_response(_completion(asked, run, await wait_for_answer(call, asked, run)))


async def _stream(call: Call, asked: ModelRequest, run: str) -> AsyncGenerator[bytes]:
    """Progress as reasoning, the answer as it is written, then usage; a comment after a while without output."""
    yield _chunk(asked, run, {"role": "assistant", "content": ""})
    try:
        async with aclosing(follow_answer(call.server, call.caller, asked, run)) as steps:
            async for step in steps:
                match step:
                    case ProgressLine(line):
                        yield _chunk(asked, run, {"reasoning_content": f"{line}\n"})
                    case AnswerPiece(text):
                        yield _chunk(asked, run, {"content": text})
                    case DraftWithdrawn():
                        yield _chunk(asked, run, {"content": withdrawal()})
                    case NothingNew():
                        yield b": waiting\n\n"
                    case AnswerGiven(report):
                        yield _chunk(asked, run, {}, finish="stop")
                        if asked.with_usage:
                            yield _usage_chunk(asked, run, report)
    except Refusal as refusal:
        yield _frame({"error": openai_error(refusal)})
    yield b"data: [DONE]\n\n"


async def _answer_at_once(call: Call, asked: ModelRequest) -> Response:
    report = await ask_small_model(call.server, asked)
    if not asked.streams:
        return json_response(_completion(asked, "small", report))
    frames = [_chunk(asked, "small", {"role": "assistant", "content": report["answer"]})]
    frames.append(_chunk(asked, "small", {}, finish="stop"))
    if asked.with_usage:
        frames.append(_usage_chunk(asked, "small", report))
    return Response(b"".join([*frames, b"data: [DONE]\n\n"]), media_type="text/event-stream")


# -- OpenAI's shapes ------------------------------------------------------------------------------------------------


def _head(asked: ModelRequest, run: str, kind: str) -> Data:
    return {"id": f"chatcmpl-{run}", "object": kind, "created": int(time.time()), "model": asked.model}


def _completion(asked: ModelRequest, run: str, report: Data) -> Data:
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


def _usage_chunk(asked: ModelRequest, run: str, report: Data) -> bytes:
    return _frame({**_head(asked, run, "chat.completion.chunk"), "choices": [], "usage": _usage(report)})


def _chunk(asked: ModelRequest, run: str, delta: Data, *, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return _frame({**_head(asked, run, "chat.completion.chunk"), "choices": [choice]})


def _frame(data: Data) -> bytes:
    return f"data: {dump_json(data)}\n\n".encode()
