"""Endpoints that order something of a run, whichever process owns it: pause it, stop, restart or tell a task."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from chargehand.runs.send_order import SentOrder
from chargehand.server.begin_runs import Name
from chargehand.server.change_runs import Nothing, continue_run
from chargehand.server.checked_input import Input
from chargehand.server.http_calls import Call
from chargehand.server.read_runs import find_run, json_response
from chargehand.server.refusals import Refusal
from chargehand.values.order import MOST_CHARACTERS

Words = Annotated[str, Field(max_length=MOST_CHARACTERS)]
BY = "http"


class StopTask(Input):
    """Why a task is stopped."""

    reason: Words = ""


class RestartTask(Input):
    """What is different when a task runs again; `model` is a name that is offered here."""

    instruction: Words | None = None
    model: Name | None = None


class TellTask(Input):
    """Words for the worker of a task."""

    text: Words = Field(min_length=1)


async def pause_run(call: Call) -> Response:
    """Let a run begin nothing new, whichever process owns it; `resume` continues it."""
    await call.body(Nothing)
    run = await find_run(call)
    return _sent_response(await _check_verdict(call.server.supervisor.pause(run, by=BY)))


async def stop_task(call: Call) -> Response:
    """End a task of a run for good."""
    body = await call.body(StopTask)
    run, task = await find_run(call), call.path("task")
    stop = call.server.supervisor.steer(run, task, body.reason, stop=True, by=BY)
    return _sent_response(await _check_verdict(stop))


async def restart_task(call: Call) -> Response:
    """Run a task again, with all tasks that depend on it. A run that no process owns continues here."""
    body = await call.body(RestartTask)
    server, run, task = call.server, await find_run(call), call.path("task")
    model = None if body.model is None else server.offered.model(body.model)
    steer = partial(server.supervisor.steer, run, task, restart=True, by=BY)
    sent = await _check_verdict(steer(model=model, instruction=body.instruction))
    if server.source.owner(run) is None:
        await continue_run(server, run, call.caller, partial(server.supervisor.resume, run))
        sent = sent.model_copy(update={"reason": f"Sent. The run continues and runs {task} again."})
    return _sent_response(sent)


async def tell_task(call: Call) -> Response:
    """Give words to the worker of a task before its next model call."""
    body = await call.body(TellTask)
    run, task = await find_run(call), call.path("task")
    return _sent_response(await _check_verdict(call.server.supervisor.steer(run, task, body.text, by=BY)))


async def _check_verdict(sending: Awaitable[SentOrder]) -> SentOrder:
    """The order that was sent, unless it was refused or came too late."""
    sent = await sending
    if sent.verdict in ("refused", "too_late"):
        raise Refusal(422 if sent.verdict == "refused" else 409, sent.reason)
    return sent


def _sent_response(sent: SentOrder) -> Response:
    """200 with an accepted order; 202 with one that has no verdict yet."""
    return json_response(sent.to_json(), 202 if sent.verdict is None else 200)
