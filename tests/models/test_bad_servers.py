"""Servers that do not do what the protocol says: a run ends in time and says why, or takes what can be taken."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from chargehand.models.resolve import Models
from chargehand.values.budget import Budget
from tests.cli.terminal import Shell, plan, task
from tests.kernel import FunctionModel, after, engine
from tests.loopback import Answer, Seen, answer_json, events, serve, serving, whole
from tests.models.asking import OPENAI, WHO, a_call, environment
from tests.pace import PATIENCE_S

RESULT = {"summary": "Looked up.", "output": "Forty-two units.", "claims": [], "findings": [], "confidence": 80}
GOOD = answer_json(RESULT)
BOTH = ["openai:some-model", "anthropic:claude-sonnet-4-5"]
# The third is on the Responses wire.
EVERY = [*BOTH, "openai:gpt-5.5"]
JSON_TYPE = {"Content-Type": "application/json"}
EVENTS_TYPE = {"Content-Type": "text/event-stream"}


def _run(shell: Shell, patch: pytest.MonkeyPatch, model: str, handler: Callable[[Seen], Answer]) -> Any:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        patch.setenv(variable, "key-of-the-test")
    given = shell.write("plan.json", plan(task("t1")))
    with serving(handler) as server:
        patch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        patch.setenv("ANTHROPIC_BASE_URL", server.url)
        return shell("run", "--plan", given, "--model", model, "--json")


def _as(path: str, seen: Seen) -> Seen:
    """The request as if it had been sent to another endpoint."""
    return Seen(seen.number, seen.connection, seen.method, path, seen.headers, seen.raw)


def _other(seen: Seen) -> str:
    return "/v1/chat/completions" if seen.wire == "anthropic" else "/v1/messages"


def _whole_of_another_wire(seen: Seen) -> Answer:
    return Answer(raw=json.dumps(whole(_as(_other(seen), seen), GOOD)).encode())


def _events_of_another_wire(seen: Seen) -> Answer:
    said = "".join(f"{event}\n\n" for event in events(_as(_other(seen), seen), GOOD))
    return Answer(raw=said.encode(), headers=EVENTS_TYPE)


FAILING: dict[str, tuple[Callable[[Seen], Answer], str]] = {
    "another wire": (_whole_of_another_wire, "contract"),
    "a web page": (lambda _: Answer(raw=b"<!doctype html><p>Sign in to go on</p>"), "contract overloaded"),
    "events of another wire": (_events_of_another_wire, "connection overloaded"),
    "plain text that claims gzip": (
        lambda seen: Answer(
            raw=json.dumps(whole(seen, GOOD)).encode(), headers={**JSON_TYPE, "Content-Encoding": "gzip"}
        ),
        "contract",
    ),
    "JSON nested 10,000 deep": (lambda _: Answer(raw=b'{"a":' * 10_000 + b"1" + b"}" * 10_000), "contract"),
    "an event nested 10,000 deep": (
        lambda _: Answer(raw=b"data: " + b"[" * 10_000 + b"]" * 10_000 + b"\n\n", headers=EVENTS_TYPE),
        "contract",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("model", EVERY)
@pytest.mark.parametrize("name", FAILING)
def test_what_cannot_be_read_fails_the_task_and_is_a_gap(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, model: str, name: str
) -> None:
    """Without a deadline: exit code 1, one kind of error, and the gap names the task."""
    monkeypatch.setattr("chargehand.engine.local.retry_rule.PAUSES_S", (0.01,) * 4)
    handler, kinds = FAILING[name]
    got = _run(shell, monkeypatch, model, handler)
    assert got.code == 1
    (outcome,) = got.json["outcomes"]
    assert (outcome["status"], outcome["error"]["kind"] in kinds.split()) == ("failed", True), outcome
    assert [gap["task"] for gap in got.json["gaps"]] == ["t1"]
    assert "Traceback" not in got.err


def _fenced(_: Seen) -> Answer:
    return Answer(text=f"Here it is:\n```json\n{json.dumps(RESULT)}\n```\n")


def _mark_before_the_body(seen: Seen) -> Answer:
    return Answer(raw=b"\xef\xbb\xbf" + json.dumps(whole(seen, GOOD)).encode(), headers=JSON_TYPE)


def _mark_before_the_events(seen: Seen) -> Answer:
    said = "".join(f"{event}\n\n" for event in events(seen, GOOD))
    return Answer(raw=b"\xef\xbb\xbf" + said.encode(), headers=EVENTS_TYPE)


def _carriage_returns(seen: Seen) -> Answer:
    said = "".join(f"{event}\n\n" for event in events(seen, GOOD)).replace("\n", "\r\n")
    return Answer(raw=said.encode(), headers=EVENTS_TYPE)


def _events_called_something_else(seen: Seen) -> Answer:
    said = "".join(f"{event}\n\n" for event in events(seen, GOOD))
    return Answer(raw=f"\n: hello\n\n{said}".encode(), headers={"Content-Type": "application/json"})


TOLERATED: dict[str, Callable[[Seen], Answer]] = {
    "HTTP/1.0": lambda _: answer_json(RESULT, old=True),
    "a connection closed after each response": lambda _: answer_json(RESULT, closes=True),
    "a reply that is not streamed": lambda seen: Answer(raw=json.dumps(whole(seen, GOOD)).encode()),
    "a byte order mark before the body": _mark_before_the_body,
    "a byte order mark before the events": _mark_before_the_events,
    "carriage returns": _carriage_returns,
    "a stream that says it is JSON": _events_called_something_else,
    "a lone surrogate": lambda _: Answer(text=json.dumps({**RESULT, "output": "Forty-two \ud83d units."})),
    "a NUL": lambda _: answer_json({**RESULT, "output": "Forty-two\0 units."}),
    "a fence around JSON": _fenced,
}


@pytest.mark.slow
@pytest.mark.parametrize("model", EVERY)
@pytest.mark.parametrize("name", TOLERATED)
def test_what_is_harmless_is_taken(shell: Shell, monkeypatch: pytest.MonkeyPatch, model: str, name: str) -> None:
    """The task is done and its result is there."""
    got = _run(shell, monkeypatch, model, TOLERATED[name])
    assert got.code == 0, got.err
    (outcome,) = got.json["outcomes"]
    assert outcome["status"] == "done"
    assert outcome["output"].startswith("Forty-two")


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("model", BOTH)
def test_tool_calls_that_share_an_id_are_told_apart(model: str, streamed: bool) -> None:
    """A result names its call by the id, so a repeated one gets a number."""
    asked = Answer(tools=(("add", {"a": 1}), ("add", {"a": 2}), ("add", {"a": 3})))

    def handler(seen: Seen) -> Answer:
        said = "".join(f"{event}\n\n" for event in events(seen, asked)) if streamed else json.dumps(whole(seen, asked))
        for number in range(3):
            said = said.replace(f'"call_{number}"', '"same"').replace(f'"toolu_{number}"', '"same"')
        return Answer(raw=said.encode(), headers=EVENTS_TYPE if streamed else JSON_TYPE)

    async def main() -> list[tuple[str, Any]]:
        async with serve(handler) as server:
            models = Models({}, environment(server.url))
            reply = await models.client(model).complete(a_call(model), 10, WHO)
            await models.close()
            return [(call.id, call.arguments) for call in reply.tool_calls]

    assert asyncio.run(main()) == [("same", {"a": 1}), ("same_1", {"a": 2}), ("same_2", {"a": 3})]


def test_five_hundred_streams_cancelled_at_once_leave_nothing() -> None:
    """No task, no socket, and the server sees every connection end."""
    begun = 500

    async def main() -> tuple[int, int, int, int]:
        heard: list[int] = []
        all_begun = asyncio.Event()

        def hear(number: int) -> Callable[[str], None]:
            def hear(_text: str) -> None:
                if number not in seen:
                    seen.add(number)
                    heard.append(number)
                    if len(heard) == begun:
                        all_begun.set()

            return hear

        seen: set[int] = set()
        async with serve(lambda _: Answer(text="words that never end", drip=3600.0)) as server:
            models = Models({}, environment(server.url))
            client = models.client(OPENAI)
            tasks, files = len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))
            calls = [asyncio.create_task(client.complete(a_call(OPENAI), 10, WHO, hear(n))) for n in range(begun)]
            async with asyncio.timeout(PATIENCE_S):
                await all_begun.wait()
                for call in calls:
                    call.cancel()
                ended = await asyncio.gather(*calls, return_exceptions=True)
                assert all(isinstance(each, asyncio.CancelledError) for each in ended)
                while server.open:  # noqa: ASYNC110 -- the server's side of each connection hears of it in its own time
                    await asyncio.sleep(0)
            left = len(asyncio.all_tasks()) - tasks
            sockets = len(os.listdir("/proc/self/fd")) - files
            await models.close()
            return left, sockets, len(server.open), server.connections

    assert asyncio.run(main()) == (0, 0, 0, begun)


@pytest.mark.slow
def test_five_hundred_calls_of_a_run_cancelled_at_once_give_their_slots_back() -> None:
    """The run's slots and the provider's permits are free: as many calls again begin, and the budget is not held."""
    begun = 500

    async def main() -> None:
        arrived, all_arrived = 0, asyncio.Event()

        def never_ending(_: Seen) -> Answer:
            nonlocal arrived
            arrived += 1
            if arrived % begun == 0:
                all_arrived.set()
            return Answer(text="words that never end", drip=3600.0)

        async with serve(never_ending) as server:
            models = Models({}, environment(server.url), wide=True)
            inputs = {"models": models, "max_concurrent": begun, "budget": Budget(tokens=10_000_000)}
            async with engine(FunctionModel(after(0)), **inputs) as local:
                for attempt in (1, 2):
                    calls = [
                        asyncio.create_task(local.perform(f"t{n}/{attempt}/model/1", a_call(OPENAI)))
                        for n in range(begun)
                    ]
                    async with asyncio.timeout(PATIENCE_S):
                        await all_arrived.wait()
                    all_arrived.clear()
                    assert models.limits(OPENAI).in_flight == begun
                    for call in calls:
                        call.cancel()
                    await asyncio.gather(*calls, return_exceptions=True)
                    assert (models.limits(OPENAI).in_flight, local.ledger.reserved_tokens) == (0, 0)
            await models.close()

    asyncio.run(main())
