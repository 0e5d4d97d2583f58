"""A call is checked, run where it belongs and always gives a result, unless it is cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import importlib.util
import json
import os
import select
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel

from chargehand.errors import ToolError, UsageError
from chargehand.tools import Tool, ToolContext, call, still_valid, tool
from chargehand.values.effect import ToolResult
from chargehand.values.request import Material
from tests.pace import PATIENCE_S
from tests.tools import shelf

NOTHING = ToolContext()


def run(each: Tool, context: ToolContext = NOTHING, **arguments: Any) -> ToolResult:
    return asyncio.run(call(each, arguments, context))


def failure(result: ToolResult) -> str:
    assert result.error is not None
    assert result.error.kind == "tool"
    return result.error.message


class Town(BaseModel):
    name: str


@dataclass
class Pair:
    left: int
    right: float


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is\n", "as it is\n"),
        (3, "3"),
        (None, "null"),
        ({"a": [1, "ø"]}, '{"a":[1,"ø"]}'),
        (Town(name="Oslo"), '{"name":"Oslo"}'),
        ([Town(name="Oslo")], '[{"name":"Oslo"}]'),
        (Pair(1, 0.5), '{"left":1,"right":0.5}'),
        (Path("a/b"), '"a/b"'),
        (b"bytes \xff", "bytes \ufffd"),
        ("half \ud83d", "half ?"),
        (10**30, "1" + "0" * 30),
        (complex(1, 2), '"1+2j"'),
        (float("nan"), '"NaN"'),
    ],
)
def test_any_value_becomes_text(value: object, text: str) -> None:
    """Strings stay, the rest becomes JSON; nothing that could not be recorded is left."""

    @tool
    def give() -> Any:
        return value

    result = run(give)
    assert result.ok
    assert result.text == text
    assert ToolResult.model_validate_json(result.model_dump_json()) == result


def test_long_text_is_cut_with_a_note() -> None:
    """The model learns how much it did not see."""

    @tool
    def long() -> str:
        return "x" * 50_007

    text, note = run(long).text.split("\n")
    assert text == "x" * 50_000
    assert "7" in note


def test_wrong_arguments_are_told_all_at_once() -> None:
    """One sentence names each field, what is wrong with it, and what the tool takes."""

    @tool
    def town(name: str, size: int, unit: str = "km") -> str:
        raise AssertionError("must not run")

    result = run(town, name=3, sise=4)
    assert result.code == "wrong_arguments"
    message = failure(result)
    assert [name for name in ("name", "size", "sise", "unit") if name not in message] == []


def test_a_sync_tool_runs_in_a_thread_with_the_callers_context() -> None:
    """The loop is not held, and context variables are seen."""
    mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark")

    @tool
    def where() -> str:
        return f"{threading.current_thread() is threading.main_thread()} {mark.get()}"

    async def main() -> ToolResult:
        mark.set("seen")
        return await call(where, {}, NOTHING)

    assert asyncio.run(main()).text == "False seen"


def test_an_async_tool_runs_on_the_loop() -> None:
    """It may await, and sees the loop of its caller."""

    @tool
    async def where() -> bool:
        await asyncio.sleep(0)
        return threading.current_thread() is threading.main_thread()

    assert run(where).text == "true"


def test_many_waiting_sync_tools_do_not_hold_each_other() -> None:
    """Forty tools that wait for each other all run at the same time."""
    barrier = threading.Barrier(40, timeout=PATIENCE_S)

    @tool
    def meet() -> int:
        return barrier.wait()

    async def main() -> list[ToolResult]:
        return await asyncio.gather(*(call(meet, {}, NOTHING) for _ in range(40)))

    assert all(result.ok for result in asyncio.run(main()))


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ToolError("No such town; try Oslo."), "No such town; try Oslo."),
        (ToolError("No such town; try Oslo.", cast("Any", "my_code")), "No such town; try Oslo."),
        (asyncio.CancelledError("by the tool"), "CancelledError: by the tool"),
        (ValueError("bad"), "ValueError: bad"),
        (TimeoutError(), "TimeoutError"),
        (SystemExit(3), "SystemExit: 3"),
        (Mute(), "Mute: (its message cannot be shown: RuntimeError)"),
        (ValueError("half \ud83d"), "ValueError: half ?"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_whatever_a_tool_raises_becomes_a_result(error: BaseException, message: str, kind: str) -> None:
    """Errors are recorded, never raised."""

    def fail() -> str:
        raise error

    async def fail_async() -> str:
        raise error

    result = run(tool(fail if kind == "sync" else fail_async))
    assert failure(result) == message
    assert result.code == "failed"


def test_a_sync_tool_that_raises_keyboard_interrupt_has_failed() -> None:
    """Ctrl-C arrives in the main thread, so it is the tool's own, as when it asks a person who leaves."""

    @tool
    def ask() -> str:
        """Ask a person."""
        raise KeyboardInterrupt

    result = run(ask)
    assert (failure(result), result.code) == ("KeyboardInterrupt", "failed")


def test_a_tool_whose_own_job_was_cancelled_has_failed() -> None:
    """Nobody cancelled the call: it has a result like any other, and the task of the run continues."""

    @tool
    async def wait_for_job() -> str:
        """Wait for a job."""
        job = asyncio.ensure_future(asyncio.Event().wait())
        job.cancel()
        await job
        return "never"

    result = run(wait_for_job)
    assert (failure(result), result.code) == ("CancelledError", "failed")


def test_an_exception_of_a_tool_has_its_place_in_the_users_code() -> None:
    """The line of the tool, not that of a library below it; a ToolError is meant, and has none."""

    @tool
    def parse(text: str) -> Any:
        return json.loads(text)

    @tool
    def refuse() -> str:
        raise ToolError("no")

    line = parse.fn.__code__.co_firstlineno + 2
    assert run(parse, text="{").place == f"{__file__}:{line}"
    assert run(refuse).place is None


def test_stop_iteration_in_a_thread_becomes_a_result() -> None:
    """The one exception a future cannot carry is told like any other."""

    @tool
    def first() -> int:
        return next(iter(list[int]()))

    assert failure(run(first)) == "StopIteration"


async def _later() -> int:
    return 1


@pytest.mark.parametrize(
    ("make", "said"), [(object, "type object"), (lambda: {"a": [object()]}, "type object"), (_later, "async def")]
)
def test_a_result_without_a_text_is_an_error(make: Callable[[], object], said: str) -> None:
    """An address in memory tells a model nothing, and a coroutine that nobody awaits has done nothing."""

    @tool
    def give() -> Any:
        return make()

    assert said in failure(run(give))


def test_a_result_that_refers_to_itself_is_an_error() -> None:
    """A value without end has no JSON form."""

    @tool
    def loop() -> Any:
        value: list[Any] = []
        value.append(value)
        return value

    assert failure(run(loop))


def test_cancelling_a_sync_tool_returns_at_once() -> None:
    """The thread that hangs is left behind; the caller and the end of the loop do not wait for it."""
    entered, release = threading.Event(), threading.Event()

    @tool
    def hang() -> str:
        entered.set()
        release.wait(60)
        return "late"

    async def main() -> None:
        task = asyncio.create_task(call(hang, {}, NOTHING))
        await asyncio.to_thread(entered.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert not release.is_set()
    release.set()


def test_cancelling_an_async_tool_goes_through() -> None:
    """CancelledError is never turned into a result."""
    entered = asyncio.Event()

    @tool
    async def hang() -> str:
        entered.set()
        await asyncio.Event().wait()
        return "late"

    async def main() -> None:
        task = asyncio.create_task(call(hang, {}, NOTHING))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_an_isolated_tool_answers_from_its_own_process() -> None:
    """Its result comes back, what it prints does not mix with it, and its process is another one."""
    assert run(shelf.double, number="21").text == "42"
    assert int(run(shelf.own_pid).text) != os.getpid()


def test_an_isolated_tool_fails_as_others_do() -> None:
    """Wrong arguments, refusals and a crash are results."""
    assert run(shelf.double, number="x").code == "wrong_arguments"
    refused = run(shelf.refuse, why="not today")
    assert (refused.code, failure(refused)) == ("not_found", "not today")
    crashed = run(shelf.crash)
    assert crashed.code == "failed"
    assert "7" in failure(crashed)


def test_an_isolated_tool_gets_the_context_and_its_reads_come_back() -> None:
    """Material goes over to the process, hashes come back."""
    result = run(shelf.note, ToolContext(material=(Material(name="docs", path="x"),)))
    assert result.text == "docs"
    assert list(result.reads) == ["memo"]


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches processes by descriptor")
@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_cancelling_an_isolated_tool_kills_its_processes(tmp_path: Path, how: str) -> None:
    """The child is gone when the cancelled call returns, and what it had started dies with it."""
    pipe = tmp_path / "pids"
    os.mkfifo(pipe)

    async def main() -> None:
        task = asyncio.create_task(call(shelf.hang, {"pipe": str(pipe)}, NOTHING))
        child, grandchild = map(int, (await asyncio.to_thread(pipe.read_text)).split())
        os.kill(child, 0)
        watched = os.pidfd_open(grandchild)
        if how == "cancel":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await task
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)
        # A process descriptor is readable once the process has ended.
        assert select.select([watched], [], [], 30)[0] == [watched]
        os.close(watched)

    asyncio.run(main())


def test_an_isolated_tool_that_cannot_be_imported_is_a_usage_error() -> None:
    """A name that leads to another function is found at the first call, before any process starts."""
    made = Tool("hidden", "", lambda: "other", isolated=True)
    with pytest.raises(UsageError, match="hidden"):
        run(made)


def test_an_isolated_tool_of_a_module_loaded_from_a_file_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module outside of the import path, as a team's tools are, is loaded from its file in the child too."""
    function = "@tool(isolated=True)\ndef greet(name: str) -> str:\n    return 'hi ' + name\n"
    source = f"from chargehand.tools import tool\n\n{function}"
    (tmp_path / "tools.py").write_text(source)
    spec = importlib.util.spec_from_file_location("team_of_the_test", tmp_path / "tools.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    assert run(module.greet, name="Ada").text == "hi Ada"


def test_reads_are_hashed_per_call_and_can_be_checked(tmp_path: Path) -> None:
    """Each result holds its own reads; they are valid until the file changes."""
    (tmp_path / "a.txt").write_text("one")
    context = ToolContext(material=(Material(name="docs", path=str(tmp_path)),))

    @tool(effect="read")
    def peek(name: str, context: ToolContext) -> str:
        data = (tmp_path / name).read_bytes()
        context.record_read(f"docs/{name}", data)
        return data.decode()

    first, second = run(peek, context, name="a.txt"), run(peek, context, name="a.txt")
    assert first.reads == second.reads == {"docs/a.txt": first.reads["docs/a.txt"]}
    assert context.reads.hashes == {}
    assert still_valid(first.reads, context)
    (tmp_path / "a.txt").write_text("two")
    assert not still_valid(first.reads, context)
    (tmp_path / "a.txt").unlink()
    assert not still_valid(first.reads, context)


def test_what_cannot_be_read_again_is_not_valid(tmp_path: Path) -> None:
    """A read of something that is neither material nor in the folder is done again; no reads are always valid."""
    (tmp_path / "memo").write_text("hello")
    result = run(shelf.note, ToolContext(material=(Material(name="docs", path="x"),)))
    assert not still_valid(result.reads, NOTHING)
    assert still_valid(result.reads, ToolContext(folder=tmp_path))
    assert still_valid({}, NOTHING)
