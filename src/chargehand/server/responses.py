"""OpenAI's responses: a request -> a run that is followed or left to itself, and its answer in OpenAI's shape.

POST /v1/responses · GET /v1/responses/ID · POST /v1/responses/ID/cancel
POST /v1/conversations · GET /v1/conversations/ID

A response is a run: `resp_RUN`. A response with `background` is returned at once, and can be read again by its id.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.responses import Response, StreamingResponse

from chargehand.server.change_runs import stop_run
from chargehand.server.client_runs import may_use
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
    read_answer,
    read_object,
    read_request,
    wait_for_answer,
)
from chargehand.server.http_calls import Call
from chargehand.server.kept_responses import describe_conversation
from chargehand.server.model_request import Data, ModelRequest, read_response_request
from chargehand.server.read_runs import json_response, read_run
from chargehand.server.refusals import Refusal
from chargehand.server.response_shapes import ResponseStatus, StreamEvents, describe_response

# Fields of the body that are returned unchanged with the response.
_ECHOED = ("instructions", "max_output_tokens", "metadata", "user", "text")
_SMALL = "small"


async def create_response(call: Call) -> Response:
    """Carry out a run of a team on the last message; with `background` without waiting for it."""
    asked, body = await read_request(call, read_response_request)
    server, caller = call.server, call.caller
    previous, conversation = body.get("previous_response_id"), _conversation_id(body.get("conversation"))
    if previous is not None and conversation is not None:
        raise Refusal(400, "Give previous_response_id or conversation, not both.", param="conversation")
    kept = _data_to_keep(asked, body, previous, conversation)
    if asked.is_chore:
        return await _answer_at_once(call, asked, kept)
    follow_up: str | None = None
    if previous is not None:
        follow_up, _ = await _find(call, previous, "previous_response_id")
    elif conversation is not None:
        follow_up = (await server.reading.run(server.responses.conversation, conversation, caller))["run"]
    run = await begin_asked_run(server, caller, asked, follow_up)
    await server.reading.run(server.responses.keep, run, kept)
    if conversation is not None:
        await server.reading.run(server.responses.continue_conversation, conversation, caller, run)
    if asked.streams:
        headers = {**STREAM_HEADERS, "x-chargehand-run": run}
        return StreamingResponse(_stream(call, asked, run, kept), media_type="text/event-stream", headers=headers)
    if asked.background:
        return json_response(describe_response(run, kept, "queued"))
    try:
        report = await wait_for_answer(call, asked, run)
    except Refusal as refusal:
        return json_response(describe_response(run, kept, "failed", error=refusal))
    return json_response(describe_response(run, kept, "completed", report))


async def get_response(call: Call) -> Response:
    """A response as it is now."""
    if call.request.query_params.get("stream") == "true":
        raise Refusal(400, "A stream cannot be taken up again: ask without stream until status is completed.")
    run, kept = await _find(call, call.path("id"))
    return json_response(await _describe_now(call, run, kept))


async def cancel_response(call: Call) -> Response:
    """Stop the run of a response. One that has its answer keeps it."""
    run, kept = await _find(call, call.path("id"))
    now = await _describe_now(call, run, kept)
    if now["status"] in ("queued", "in_progress"):
        await stop_run(call.server, run)
        now = await _describe_now(call, run, kept)
    return json_response(now)


async def create_conversation(call: Call) -> Response:
    """A conversation, in which each response follows up on the one before."""
    body = read_object(await call.read() or b"{}")
    if body.get("items"):
        raise Refusal(400, "A conversation begins empty here: send earlier messages as input.", param="items")
    server = call.server
    metadata = _metadata(body.get("metadata"))
    return json_response(await server.reading.run(server.responses.make_conversation, call.caller, metadata))


async def get_conversation(call: Call) -> Response:
    """A conversation."""
    server, id = call.server, call.path("id")
    kept = await server.reading.run(server.responses.conversation, id, call.caller)
    return json_response(describe_conversation(id, kept))


# -- parts -----------------------------------------------------------------------------------------------------------


async def _find(call: Call, id: Any, param: str | None = None) -> tuple[str, Data]:
    """The run of a response of this caller, and how it was asked for. Raises Refusal for any other id."""
    server = call.server
    found = await server.reading.run(server.responses.find, id)
    if found is None or not await server.reading.run(may_use, server.home, found[0], call.caller):
        code = "response_not_found" if param is None else "previous_response_not_found"
        said = f"There is no response {str(id)[:100]!r}: give the id of one that you were sent."
        raise Refusal(404 if param is None else 400, said, type=code, param=param)
    return found


async def _describe_now(call: Call, run: str, kept: Data) -> Data:
    server = call.server
    status = (await read_run(server, run))["status"]
    match status:
        case "complete" | "partial":
            return describe_response(run, kept, "completed", await read_answer(server, run))
        case "failed":
            try:
                await read_answer(server, run)
            except Refusal as refusal:
                return describe_response(run, kept, "failed", error=refusal)
            raise AssertionError("A failed run has no answer.")
        case "cancelled":
            return describe_response(run, kept, "cancelled")
        case _:
            # Also a run that waits for a person or a provider, or that the next server continues.
            going: ResponseStatus = "in_progress" if await server.feeds.last_event(run) else "queued"
            return describe_response(run, kept, going)


async def _stream(call: Call, asked: ModelRequest, run: str, kept: Data) -> AsyncGenerator[bytes]:
    """Progress as reasoning, the answer as it is written, then the whole response."""
    events = StreamEvents(run)
    begun = describe_response(run, kept, "in_progress")
    yield events.response("created", begun) + events.response("in_progress", begun)
    try:
        async with aclosing(follow_answer(call.server, call.caller, asked, run)) as steps:
            async for step in steps:
                match step:
                    case ProgressLine(line):
                        yield b"".join(events.add_progress(line))
                    case AnswerPiece(text):
                        yield b"".join(events.add_text(text))
                    case DraftWithdrawn():
                        yield b"".join(events.close_item("incomplete"))
                    case NothingNew():
                        yield b": waiting\n\n"
                    case AnswerGiven(report):
                        yield b"".join(events.close_item())
                        yield events.response("completed", describe_response(run, kept, "completed", report))
    except Refusal as refusal:
        yield b"".join(events.close_item("incomplete"))
        yield events.response("failed", describe_response(run, kept, "failed", error=refusal))


async def _answer_at_once(call: Call, asked: ModelRequest, kept: Data) -> Response:
    report = await ask_small_model(call.server, asked)
    whole = describe_response(_SMALL, kept, "completed", report)
    if not asked.streams:
        return json_response(whole)
    events = StreamEvents(_SMALL)
    frames = [events.response("created", describe_response(_SMALL, kept, "in_progress"))]
    frames += [*events.add_text(report["answer"]), *events.close_item(), events.response("completed", whole)]
    return Response(b"".join(frames), media_type="text/event-stream")


def _data_to_keep(asked: ModelRequest, body: Data, previous: Any, conversation: str | None) -> Data:
    """How a response was asked for, as it is given back with it."""
    return {
        "created_at": int(time.time()),
        "model": asked.model,
        "background": asked.background,
        "previous_response_id": previous if isinstance(previous, str) else None,
        "conversation": None if conversation is None else {"id": conversation},
        **{name: body.get(name) for name in _ECHOED},
        "metadata": _metadata(body.get("metadata")),
        "text": body.get("text") or {"format": {"type": "text"}},
    }


def _metadata(given: Any) -> Data:
    if given is None:
        return {}
    if not isinstance(given, dict) or len(str(given)) > 16_000:  # pyright: ignore[reportUnknownArgumentType]
        raise Refusal(400, "metadata is not an object of at most 16,000 characters.", param="metadata")
    return given  # pyright: ignore[reportUnknownVariableType]


def _conversation_id(given: Any) -> str | None:
    """The id, as text or as an object with it."""
    id: Any = given.get("id") if isinstance(given, dict) else given  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if id is not None and not isinstance(id, str):
        raise Refusal(400, "conversation is not an id.", param="conversation")
    return id
