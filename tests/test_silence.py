"""A call without a deadline to a provider that never ends its answer is over in a stated time, retries included."""

from __future__ import annotations

import asyncio

import pytest

from chargehand.engine.local import model_calls as calls
from chargehand.errors import ModelError
from chargehand.models import Attribution
from chargehand.testing import run_virtual
from chargehand.values.effect import ModelCall, ModelResult
from chargehand.values.message import Reply
from tests.cli.terminal import Shell, plan, task
from tests.kernel import FunctionModel, engine, question
from tests.loopback import Answer, serving

ON = {"OPENAI_API_KEY": "key-of-the-test", "ANTHROPIC_API_KEY": "key-of-the-test"}


@pytest.mark.parametrize("model", ["openai:some-model", "anthropic:claude-sonnet-4-5"])
@pytest.mark.parametrize(
    "answer",
    [Answer(silent=True), Answer(raw=b"{" + b" " * 100_000, drip=0.05), Answer(text="x", drip=0.05, delay=0.02)],
    ids=["silent", "drips white space", "drips"],
)
def test_a_run_ends_although_its_provider_never_does(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, model: str, answer: Answer
) -> None:
    """No deadline is given: each call is a timeout that says how long it was waited for, and is not sent again."""
    monkeypatch.setattr(calls, "WHOLE_S", 0.3)
    for name, value in ON.items():
        monkeypatch.setenv(name, value)
    given = shell.write("plan.json", plan(task("t1")))
    with serving(lambda _: answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        got = shell("run", "--plan", given, "--model", model, "--json")
        keys = [seen.key for seen in server.requests]
    assert got.code == 1
    (outcome,) = got.json["outcomes"]
    assert outcome["error"]["kind"] == "timeout"
    assert "did not end its answer within 0.3 s, retries included" in outcome["error"]["message"]
    assert len(keys) == len(set(keys)), "the transport sends none of them again"


def test_the_limit_is_for_the_call_with_its_retries() -> None:
    """Connections that break one after the other do not start it again: ten minutes in all, not for each."""

    async def breaks_late(call: ModelCall, attribution: Attribution) -> Reply:
        await asyncio.sleep(250)
        raise ModelError("connection", "the connection broke")

    async def main() -> ModelResult:
        async with engine(FunctionModel(breaks_late)) as running:
            return await running.perform("t1/1/model/1", question(patience_s=10_000.0))

    result, seconds = run_virtual(main())
    assert result.error is not None
    assert result.error.kind == "timeout"
    assert seconds == pytest.approx(calls.WHOLE_S)
