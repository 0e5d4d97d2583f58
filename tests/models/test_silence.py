"""A call without a deadline to a provider that never ends its answer is over in a stated time, retries included."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from chargehand.engine.local import call_time
from chargehand.errors import ModelError
from chargehand.models import Attribution, provider_settings
from chargehand.models.provider_settings import Provider
from chargehand.testing import run_virtual
from chargehand.values.effect import ModelCall, ModelResult
from chargehand.values.message import Reply
from tests.cli.terminal import Shell, plan, task
from tests.kernel import FunctionModel, engine, question
from tests.loopback import Answer, Seen, events, serving

ON = {"OPENAI_API_KEY": "key-of-the-test", "ANTHROPIC_API_KEY": "key-of-the-test"}
EVENTS = {"Content-Type": "text/event-stream"}
NOT_BEGUN = "did not begin its answer within 0.3 s, retries included (comments and white space do not count)"
STOPPED = "began its answer and then sent nothing for 0.3 s (comments and white space do not count)"


def _begins_then_comments(seen: Seen) -> Answer:
    """Two events, then comments without end."""
    begun = "".join(f"{each}\n\n" for each in events(seen, Answer(text="some words"))[:2]).encode()
    return Answer(raw=begun + b": still here\n\n" * 10_000, drip=0.0001, headers=EVENTS)


CASES: dict[str, tuple[Callable[[Seen], Answer], str]] = {
    "nothing": (lambda _: Answer(silent=True), NOT_BEGUN),
    "headers alone": (lambda _: Answer(raw=b" ", drip=60.0), NOT_BEGUN),
    "white space": (lambda _: Answer(raw=b" " * 100_000, drip=0.05), NOT_BEGUN),
    "white space in JSON": (lambda _: Answer(raw=b"{" + b" " * 100_000, drip=0.05), NOT_BEGUN),
    "comments": (lambda _: Answer(raw=b": still here\n\n" * 9_000, drip=0.01, headers=EVENTS), NOT_BEGUN),
    "blank lines": (lambda _: Answer(raw=b"\n" * 100_000, drip=0.01, headers=EVENTS), NOT_BEGUN),
    "a slow stream": (lambda _: Answer(text="some words", drip=30.0), STOPPED),
    "an event, then comments": (_begins_then_comments, STOPPED),
}


# What comes before the first event is the same for every wire format.
READ_BY_WIRE = ("comments", "a slow stream", "an event, then comments")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "name"),
    [
        *(("openai:some-model", name) for name in CASES),
        *((model, name) for model in ("anthropic:claude-sonnet-4-5", "openai:gpt-5.5") for name in READ_BY_WIRE),
    ],
)
def test_a_run_ends_although_its_provider_never_does(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, model: str, name: str
) -> None:
    """No deadline is given: each call is a timeout that says how long it was waited for, and is not sent again."""
    answer, message = CASES[name]
    monkeypatch.setattr(provider_settings, "FIRST_EVENT_S", 0.3 if message is NOT_BEGUN else 30.0)
    monkeypatch.setattr(provider_settings, "LOCAL_SILENCE_S", 0.3)
    for variable, value in ON.items():
        monkeypatch.setenv(variable, value)
    given = shell.write("plan.json", plan(task("t1")))
    with serving(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        got = shell("run", "--plan", given, "--model", model, "--json")
        keys = [seen.key for seen in server.requests]
    assert got.code == 1
    (outcome,) = got.json["outcomes"]
    assert outcome["error"]["kind"] == "timeout"
    assert message in outcome["error"]["message"]
    assert len(keys) == len(set(keys)), "the transport sends none of them again"


def _perform(model: Callable[[ModelCall, Callable[[str], None]], object]) -> tuple[ModelResult, float]:
    """The result of one call and the virtual seconds it took; the model gets what hears of its events."""

    class Client(FunctionModel):
        async def complete(
            self,
            call: ModelCall,
            max_output: int,
            attribution: Attribution,
            on_text: Callable[[str], None] | None = None,
        ) -> Reply:
            assert on_text is not None
            return await model(call, on_text)  # pyright: ignore

    async def main() -> ModelResult:
        async with engine(Client(lambda *_: None)) as running:  # pyright: ignore
            return await running.perform("t1/1/model/1", question(patience_s=10_000.0))

    return run_virtual(main())


def _kind(result: ModelResult) -> str | None:
    return result.error.kind if result.error else None


def test_the_limit_is_for_the_call_with_its_retries() -> None:
    """Connections that break one after the other do not start it again: ten minutes in all, not for each."""

    async def breaks_late(_: ModelCall, on_text: Callable[[str], None]) -> Reply:
        await asyncio.sleep(250)
        raise ModelError("connection", "the connection broke")

    result, seconds = _perform(breaks_late)
    assert _kind(result) == "timeout"
    assert seconds == pytest.approx(provider_settings.FIRST_EVENT_S)


def test_a_reply_sent_again_after_it_had_begun_may_take_as_long_to_begin() -> None:
    """A stream that is cut after nine minutes leaves the next one its own ten minutes."""
    tries: list[int] = []

    async def is_cut_once(_: ModelCall, on_text: Callable[[str], None]) -> Reply:
        tries.append(1)
        await asyncio.sleep(550)
        on_text("words")
        if len(tries) == 1:
            raise ModelError("connection", "the connection broke")
        return Reply(text="words")

    result, seconds = _perform(is_cut_once)
    assert result.reply is not None
    assert seconds >= 1100


def test_a_pause_within_a_reply_is_counted_from_its_last_event() -> None:
    """One minute, whatever the first event was allowed to take."""

    async def stops(_: ModelCall, on_text: Callable[[str], None]) -> Reply:
        await asyncio.sleep(100)
        for _number in range(3):
            on_text("words ")
            await asyncio.sleep(40)
        on_text("")
        await asyncio.sleep(10_000)
        return Reply(text="words")

    result, seconds = _perform(stops)
    assert _kind(result) == "timeout"
    assert seconds == pytest.approx(220 + provider_settings.SILENCE_S)


def test_events_without_text_are_not_silence() -> None:
    """A model that writes a tool call for ten minutes is heard, and ends in its own time."""

    async def calls_a_tool(_: ModelCall, on_text: Callable[[str], None]) -> Reply:
        for _number in range(20):
            await asyncio.sleep(50)
            on_text("")
        return Reply(text="done")

    result, seconds = _perform(calls_a_tool)
    assert result.reply is not None
    assert seconds == pytest.approx(1000)


def test_a_reply_that_never_ends_is_given_up_after_an_hour() -> None:
    """However much arrives."""

    async def writes_for_ever(_: ModelCall, on_text: Callable[[str], None]) -> Reply:
        while True:
            await asyncio.sleep(30)
            on_text("and ")

    result, seconds = _perform(writes_for_ever)
    assert _kind(result) == "timeout"
    assert seconds == pytest.approx(call_time.LONGEST_S)


@pytest.mark.parametrize(
    ("base_url", "between"),
    [
        ("https://api.openai.com/v1", 60),
        ("http://localhost:11434/v1", 300),
        ("http://127.0.0.1:8080/v1", 300),
        ("http://[::1]:8080/v1", 300),
        ("http://192.168.1.20:1234/v1", 300),
        ("http://gpu-box:8000/v1", 300),
        ("http://gpu.lan/v1", 300),
        ("https://8.8.8.8/v1", 60),
    ],
)
def test_a_local_server_may_pause_for_longer(base_url: str, between: float) -> None:
    """One minute, five for a server on this machine or network; settings say otherwise."""
    provider = Provider(name="p", base_url=base_url, wire="openai")
    assert provider.silence == (600, between)
    said = provider.model_copy(update={"first_event_s": 5.0, "silence_s": 7.0})
    assert said.silence == (5, 7)
