"""A request in OpenAI's shape -> a run, and its steps until there is an answer.

The answer is sent while it is written. A first draft may not become the answer: it can be sent back, or be written
again after tasks were added. Then `DraftWithdrawn` comes before the final answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic_core import from_json

from chargehand.server.access import Caller
from chargehand.server.begin_runs import StartRun, begin_run
from chargehand.server.change_runs import stop_run
from chargehand.server.draft_texts import RunDrafts
from chargehand.server.http_calls import Call
from chargehand.server.model_request import Data, ModelRequest
from chargehand.server.openai_models import check_model
from chargehand.server.read_runs import read_run
from chargehand.server.refusals import Refusal
from chargehand.server.shared_state import Server
from chargehand.server.wait_for_run import is_over_or_asks, wait_for_run
from chargehand.text.escaping import dump_json

# A client that is gone for this long does not need the answer.
GONE_S = 10.0
COMMENT_S = 10.0
_LONGEST_WAIT_S = 24 * 3600.0
# Official clients repeat a call after these answers, unless this header forbids it.
_ONCE = {"x-should-retry": "false"}
STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """A line about the run."""

    line: str


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """The next part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class NothingNew:
    """Nothing happened for a while."""


@dataclass(frozen=True, slots=True)
class DraftWithdrawn:
    """The pieces so far are not the answer. The whole answer comes next."""


@dataclass(frozen=True, slots=True)
class AnswerGiven:
    """The end: the report of the run, with its `answer` as sent to the client."""

    report: Data


AnswerStep: TypeAlias = ProgressLine | AnswerPiece | NothingNew | DraftWithdrawn | AnswerGiven


async def read_request(call: Call, read: Callable[[Data], ModelRequest]) -> tuple[ModelRequest, Data]:
    """What a client asks for, and the body it came in. A long history is read in a thread."""
    text = await call.read()
    body, asked = await call.server.reading.run(_read_body, text, read)
    await check_model(call.server, asked.model)
    return asked, body


def _read_body(text: bytes, read: Callable[[Data], ModelRequest]) -> tuple[Data, ModelRequest]:
    body = read_object(text)
    return body, read(body)


def read_object(text: bytes) -> Data:
    """The JSON object in a body."""
    try:
        given: Any = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise Refusal(400, f"The body is not JSON: {error}.") from None
    if not isinstance(given, dict):
        raise Refusal(400, "The body is not a JSON object.")
    return given  # pyright: ignore[reportUnknownVariableType]


async def begin_asked_run(server: Server, caller: Caller, asked: ModelRequest, follow_up: str | None = None) -> str:
    """The run that was asked for; it follows up on the one that is named, or that gave the last answer."""
    follow_up = follow_up or server.conversations.run_of(asked.last_answer)
    before = asked.conversation() if follow_up is None else None
    body = StartRun(
        request=asked.text,
        team=asked.team,
        schema=asked.answer_schema,
        material=[*asked.material, *([before] if before else [])],
        follow_up=follow_up,
    )
    return await begin_run(server, caller, body)


async def wait_for_answer(call: Call, asked: ModelRequest, run: str) -> Data:
    """The report of a run, once it has an answer; a Refusal says why there is none."""

    async def say(line: str) -> None:
        """Does nothing: the client gets no progress."""

    waiting = asyncio.ensure_future(wait_for_run(call.server, call.caller, run, _LONGEST_WAIT_S, say, is_over_or_asks))
    try:
        while not waiting.done():
            await asyncio.wait({waiting}, timeout=1.0)
            if not waiting.done() and await call.request.is_disconnected():
                raise Refusal(400, "The client is gone.")
        return await read_answer(call.server, run)
    finally:
        if not waiting.done():
            waiting.cancel()
            _stop_soon(call.server, asked, run)


async def follow_answer(server: Server, caller: Caller, asked: ModelRequest, run: str) -> AsyncGenerator[AnswerStep]:
    """The steps of a run until its end. Raises Refusal without an answer. If closed early, it stops the run soon."""
    lines = _Lines()
    written = _Written()
    waiting = asyncio.ensure_future(wait_for_run(server, caller, run, _LONGEST_WAIT_S, lines.add, is_over_or_asks))
    ended = False
    try:
        async with server.feeds.watch(run, await server.feeds.last_event(run)) as feed:
            while True:
                over, changed = waiting.done(), feed.changed
                said = lines.take()
                for line in said:
                    yield ProgressLine(line)
                # A typed answer is given whole: half of it is not JSON.
                if asked.answer_schema is None and (text := written.take_new(server.feeds.drafts(run))):
                    said.append(text)
                    yield AnswerPiece(text)
                if over:
                    break
                if not said and not await _wait_for_any(waiting, changed, lines):
                    yield NothingNew()
        waiting.result()
        ended = True
        report = await read_answer(server, run)
        rest = written.rest_of(report["answer"])
        if rest is None:
            yield DraftWithdrawn()
            # The client sends all of it back when the conversation continues.
            server.conversations.keep(written.text + withdrawal() + report["answer"], run)
        if text := report["answer"] if rest is None else rest:
            yield AnswerPiece(text)
        yield AnswerGiven(report)
    finally:
        waiting.cancel()
        if not ended:
            _stop_soon(server, asked, run)


def withdrawal() -> str:
    """The text between a withdrawn draft and the answer, where both are sent as one text."""
    return "\n\n---\n\n*The text above was a draft and does not hold. The answer:*\n\n"


class _Lines:
    """Lines about a run that were not sent yet."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.came = asyncio.Event()

    async def add(self, line: str) -> None:
        self._lines.append(line)
        self.came.set()

    def take(self) -> list[str]:
        taken, self._lines = self._lines, []
        self.came.clear()
        return taken


async def _wait_for_any(waiting: asyncio.Future[Any], changed: asyncio.Event, lines: _Lines) -> bool:
    """Whether anything happened before a comment is due."""
    others = [asyncio.ensure_future(event.wait()) for event in (changed, lines.came)]
    try:
        done, _ = await asyncio.wait({waiting, *others}, timeout=COMMENT_S, return_when="FIRST_COMPLETED")
    finally:
        for other in others:
            other.cancel()
    return bool(done)


@dataclass(slots=True)
class _Written:
    """The part of the answer sent so far, without white space at its ends."""

    text: str = ""

    def take_new(self, drafts: RunDrafts | None) -> str:
        """What the newest draft adds; "" if the draft does not begin with the text sent so far."""
        newest = None if drafts is None else next(reversed(drafts.drafts.values()), None)
        shown = "" if newest is None else newest.shown.strip()
        if not shown.startswith(self.text):
            return ""
        new, self.text = shown[len(self.text) :], shown
        return new

    def rest_of(self, answer: str) -> str | None:
        """The rest of the answer to send; None if the answer does not begin with the text sent so far."""
        return answer[len(self.text) :] if answer.startswith(self.text) else None


async def read_answer(server: Server, run: str) -> Data:
    """The report of a run that came to an answer; a Refusal says why there is none."""
    report = await read_run(server, run)
    if report["status"] in ("complete", "partial"):
        data = report.get("data")
        report["answer"] = dump_json(data) if data is not None else _with_gaps(report)
        server.conversations.keep(report["answer"], run)
        return report
    if report["questions"]:
        asks = "; ".join(str(each["prompt"]).partition("\n")[0][:200] for each in report["questions"])
        raise Refusal(
            409, f"Run {run} asks a person and waits: {asks} Answer on the page or in a terminal.", headers=_ONCE
        )
    why = report.get("error") or report.get("answer") or report["status"]
    said = f"Run {run} ended without an answer: {report['status']}: {str(why)[:500]}"
    raise Refusal(503, said, headers=_ONCE)


def _with_gaps(report: Data) -> str:
    answer = str(report["answer"]).strip()
    if report["status"] == "complete" or not report["gaps"]:
        return answer
    gaps = "\n".join(f"- {gap['reason']}" for gap in report["gaps"])
    return f"{answer}\n\nNot answered:\n{gaps}"


def _stop_soon(server: Server, asked: ModelRequest, run: str) -> None:
    """Stop a run that nobody waits for any more."""
    if asked.background or server.feeds.closed:
        return

    async def stop() -> None:
        await asyncio.sleep(GONE_S)
        with suppress(Exception):
            await stop_run(server, run)

    task = asyncio.create_task(stop(), name=f"stop {run}")
    server.conversations.stopping.add(task)
    task.add_done_callback(server.conversations.stopping.discard)


async def ask_small_model(server: Server, asked: ModelRequest) -> Data:
    """One call of the small model, on no record, in the shape of a report."""
    reply = await server.supervisor.ask_small_model(asked.spoken, asked.max_output or 1_000)
    used = reply.usage
    usage = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens} if used else {}
    return {"answer": reply.text, "usage": usage}
