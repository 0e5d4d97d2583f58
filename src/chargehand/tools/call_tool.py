"""A tool and a model's arguments become a ToolResult: checked, run, turned into bounded text.

Async tools run on the loop, sync ones in a thread, isolated ones in a process. Any exception of a tool becomes part of
the result; only cancellation of the call itself is passed on.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import re
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from pydantic_core import to_json

import chargehand
from chargehand.errors import ToolError
from chargehand.text.urls import normal_urls
from chargehand.tools import isolation
from chargehand.tools.definition import Tool
from chargehand.tools.tool_context import Reads, ToolContext
from chargehand.values.effect import ToolResult
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.outcome import Fault

MAX_TEXT = 50_000
# The text of an object that has none of its own.
_ADDRESS = lazy_regex(r"<.* at 0x[0-9a-fA-F]+>", re.DOTALL)
# Where the code of Python and of this package is.
_LIBRARIES = (os.path.dirname(os.__file__) + os.sep, os.path.dirname(chargehand.__file__) + os.sep, "<frozen")


async def call(tool: Tool, arguments: dict[str, Any], context: ToolContext, *, max_text: int = MAX_TEXT) -> ToolResult:
    """The tool's result, or why there is none."""
    context = replace(context, reads=Reads())
    try:
        given = tool.arguments.check(arguments)
    except ToolError as error:
        return _make_failure(error, context)
    if tool.isolated:
        try:
            return await isolation.run(tool, arguments, context, max_text)
        except ToolError as error:
            return _make_failure(error, context)
    if tool.arguments.context is not None:
        given[tool.arguments.context] = context
    if tool.is_async:
        try:
            return _make_result(await tool.fn(**given), context, max_text)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
                raise
            return _make_failure(error, context)
    return await _in_thread(lambda: _run_sync(tool.fn, given, context, max_text))


def _run_sync(fn: Callable[..., Any], given: dict[str, Any], context: ToolContext, max_text: int) -> ToolResult:
    """Call a function with checked arguments in this thread, which is not the main one: Ctrl-C does not arrive here."""
    try:
        return _make_result(fn(**given), context, max_text)
    except BaseException as error:  # noqa: BLE001 -- recorded in the result
        return _make_failure(error, context)


def _is_being_cancelled() -> bool:
    """Whether somebody cancels the call; else its tool awaited something of its own that was cancelled."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def _in_thread(work: Callable[[], ToolResult]) -> ToolResult:
    """Run in a separate daemon thread: if it hangs, it blocks neither other tools nor the end of the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[ToolResult] = loop.create_future()
    scope = contextvars.copy_context()

    def settle(result: ToolResult | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        elif result is not None:
            future.set_result(result)

    def body() -> None:
        result: ToolResult | None = None
        raised: BaseException | None = None
        try:
            result = scope.run(work)
        except BaseException as error:  # noqa: BLE001 -- raised again where the call is awaited
            raised = error
        # When the loop is closed, nothing waits for the result.
        if not loop.is_closed():
            try:
                loop.call_soon_threadsafe(settle, result, raised)
            except RuntimeError:
                return

    threading.Thread(target=body, name="chargehand-tool", daemon=True).start()
    return await future


def _make_result(value: object, context: ToolContext, max_text: int) -> ToolResult:
    text = _cut(_text(value), max_text)
    reads = context.reads
    return ToolResult(text=text, reads=reads.hashes, lines=reads.lines, urls=normal_urls(text))


def _make_failure(error: BaseException, context: ToolContext) -> ToolResult:
    fault = Fault(kind="tool", message=_cut(_text(_describe_error(error)), MAX_TEXT))
    code = error.code if isinstance(error, ToolError) else "failed"
    place = None if isinstance(error, ToolError) else find_place(error)
    return ToolResult(error=fault, code=code, place=place, reads=context.reads.hashes)


def find_place(error: BaseException) -> str | None:
    """Where the code of a tool raised the error, as `file:line`: the last frame that is not in a library."""
    place = None
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not file.startswith(_LIBRARIES) and f"{os.sep}site-packages{os.sep}" not in file:
            place = f"{file}:{step.tb_lineno}"
        step = step.tb_next
    return place


def _describe_error(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception as broken:  # noqa: BLE001 -- the message names its type
        message = f"(its message cannot be shown: {type(broken).__name__})"
    if isinstance(error, ToolError):
        return message
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        # Half a surrogate pair has no UTF-8 form and cannot be recorded.
        return value.encode("utf-8", "replace").decode()
    unreadable: list[str] = []

    def words(part: object) -> str:
        text = str(part)
        if isinstance(part, Coroutine):
            part.close()
            unreadable.append("a coroutine: declare the tool with `async def`, or await it")
        elif _ADDRESS.fullmatch(text):  # it would tell a model nothing
            kind = type(part).__qualname__
            unreadable.append(f"an object of type {kind}: return text, numbers, lists or dictionaries")
        return text

    written = to_json(value, fallback=words, inf_nan_mode="strings", bytes_mode="base64").decode()
    if unreadable:
        raise ToolError(f"The tool returned {unreadable[0]}.")
    return written


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: {len(text) - limit} characters left out]"
