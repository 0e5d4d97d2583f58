"""What a provider says it used is checked before it counts: over real HTTP, in both wire formats, streamed and not."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chargehand.engine.local.admission import MOST_FRESH_RESERVATIONS
from chargehand.engine.local.sending import usage_problem
from chargehand.engine.local.shared_ledger import SharedLedger
from chargehand.models import Attribution
from chargehand.values.budget import Budget
from chargehand.values.effect import ModelCall
from chargehand.values.ledger import Grant, Ledger, Wish
from chargehand.values.message import Reply, TokenCount
from tests.cli.terminal import Shell, finished, plan, process, task
from tests.flows import Flow, works
from tests.flows import task as flow_task
from tests.flows import tasks as flow_tasks
from tests.loopback import Answer, Seen, answer_json, serving
from tests.models.asking import BOTH, a_call, ask

HUGE = 10**30
# What stands under "usage" in each wire format, and is not a count of tokens.
NONSENSE: dict[str, tuple[Any, Any]] = {
    "negative input": ({"prompt_tokens": -5000, "completion_tokens": 7}, {"input_tokens": -5000, "output_tokens": 7}),
    "negative output": ({"prompt_tokens": 9, "completion_tokens": -7}, {"input_tokens": 9, "output_tokens": -7}),
    "not a number": (
        {"prompt_tokens": math.nan, "completion_tokens": 7},
        {"input_tokens": math.nan, "output_tokens": 7},
    ),
    "infinite": ({"prompt_tokens": 9, "completion_tokens": math.inf}, {"input_tokens": math.inf, "output_tokens": 7}),
    "half a token": ({"prompt_tokens": 9.5, "completion_tokens": 7}, {"input_tokens": 9.5, "output_tokens": 7}),
    "text": ({"prompt_tokens": "9", "completion_tokens": 7}, {"input_tokens": "many", "output_tokens": 7}),
    "truth": ({"prompt_tokens": True, "completion_tokens": 7}, {"input_tokens": True, "output_tokens": 7}),
    "a list": ([9, 7], [9, 7]),
    "cached below zero": (
        {"prompt_tokens": 9, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": -1}},
        {"input_tokens": 9, "output_tokens": 7, "cache_read_input_tokens": -1},
    ),
    "details that are text": (
        {"prompt_tokens": 9, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": "all"}},
        {"input_tokens": 9, "output_tokens": 7, "cache_creation_input_tokens": "all"},
    ),
}
# Numbers, and yet not of this call.
ABSURD: dict[str, tuple[Any, Any]] = {
    "huge": ({"prompt_tokens": HUGE, "completion_tokens": 7}, {"input_tokens": HUGE, "output_tokens": 7}),
    "far too much": ({"prompt_tokens": 9, "completion_tokens": 90_000}, {"input_tokens": 90_000, "output_tokens": 7}),
    "zero": ({"prompt_tokens": 0, "completion_tokens": 0}, {"input_tokens": 0, "output_tokens": 0}),
    "no output": ({"prompt_tokens": 9, "completion_tokens": 0}, {"input_tokens": 9, "output_tokens": 0}),
    "more cached than sent": (
        {"prompt_tokens": 9, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 10}},
        {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0},
    ),
}


def answers(raw_usage: Any = None, usage: tuple[int, int, int] | None = (300, 20, 0)) -> Any:
    """A provider whose workers and synthesizer do their work, and say so much of what it took."""

    def answer(seen: Seen) -> Answer:
        if seen.role == "synthesizer":
            said = {"answer": "All is well [t1, t2].", "confidence": 80}
            return answer_json(said, raw_usage=raw_usage, usage=usage)
        words = f"Words about {seen.task}, and a few more of them."
        said = {"summary": words, "output": {"text": words}, "claims": [], "findings": [], "confidence": 80}
        return answer_json(said, raw_usage=raw_usage, usage=usage)

    return answer


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def point_at(url: str) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)

    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-the-test")
    return point_at


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("name", NONSENSE)
def test_a_reply_is_kept_when_its_usage_is_nonsense(model: str, name: str) -> None:
    """The text comes, whole or streamed; the usage is unknown, and what is wrong with it is said."""
    said = NONSENSE[name][model.startswith("anthropic")]
    for on_text in (None, lambda _: None):
        reply, _ = ask(Answer(text="hi", raw_usage=said), a_call(model), on_text)
        assert (reply.text, reply.usage) == ("hi", None)
        assert "is not a number of tokens" in reply.usage_problem


@pytest.mark.parametrize("model", BOTH)
def test_whole_floats_are_numbers_of_tokens(model: str) -> None:
    """Some servers write 9.0."""
    said = {"prompt_tokens": 9.0, "completion_tokens": 7.0, "input_tokens": 9.0, "output_tokens": 7.0}
    reply, _ = ask(Answer(text="hi", raw_usage=said), a_call(model))
    assert reply.usage == TokenCount(input_tokens=9, output_tokens=7)


@pytest.mark.slow
@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("name", [*NONSENSE, *ABSURD])
def test_usage_that_cannot_be_so_counts_as_what_was_set_aside(shell: Shell, keys: Any, model: str, name: str) -> None:
    """The run is complete; each call settles at its reservation, marked estimated; one warning says so."""
    said = (NONSENSE | ABSURD)[name][model.startswith("anthropic")]
    given = shell.write("plan.json", plan(task("t1"), task("t2")))
    with serving(answers(said)) as server:
        keys(server.url)
        got = shell("run", "--plan", given, "--model", model, "--json")
    assert got.code == 0, got.err
    events = [json.loads(line) for line in shell("trace", "last", "--format", "jsonl").out.splitlines()]
    reserved = {e["key"]: e["tokens"] for e in events if e["kind"] == "budget_reserved"}
    settled = [e for e in events if e["kind"] == "budget_settled"]
    assert {data["key"]: data["tokens"] for data in settled} == reserved
    assert all(data["estimated"] for data in settled)
    warnings = [e["message"] for e in events if e["kind"] == "warning"]
    assert len([message for message in warnings if "is not believed" in message]) == 1
    usage = got.json["usage"]
    assert usage["input_tokens"] + usage["output_tokens"] == sum(reserved.values())
    assert usage["usd"] is None
    assert any(f"{sum(reserved.values()):,} tokens (estimated)" in n for n in got.json["notes"])


@pytest.mark.parametrize("model", BOTH)
def test_a_provider_that_never_says_what_it_used_is_estimated(shell: Shell, keys: Any, model: str) -> None:
    """No usage at all: the calls count as much as was set aside for them, and the report says so."""
    given = shell.write("plan.json", plan(task("t1"), task("t2")))
    with serving(answers(usage=None)) as server:
        keys(server.url)
        got = shell("run", "--plan", given, "--model", model, "--json")
    assert got.code == 0, got.err
    assert got.json["usage"]["output_tokens"] > 0
    assert any("tokens (estimated)" in note for note in got.json["notes"])


@pytest.mark.slow
def test_forty_tasks_of_negative_usage_do_not_freeze_the_process(tmp_path: Path) -> None:
    """They used to make what is held back negative, so that one call reserved and gave back for ever."""
    given = tmp_path / "plan.json"
    given.write_text(json.dumps(plan(*(task(f"t{n}") for n in range(1, 41)))))
    said = {"prompt_tokens": -5000, "completion_tokens": -5000}
    with serving(answers(said)) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "key-of-the-test"}
        args = ("run", "--plan", given, "--model", "openai:some-model", "--tokens", 3000, "--json")
        child = process(*args, home=tmp_path / "home", env=env)
        try:
            got = finished(child)
        finally:
            child.kill()
    assert got.code in (1, 3), got.err
    assert got.json["usage"]["input_tokens"] > 0


def test_a_reservation_that_is_always_too_small_is_renewed_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the ledger says, a call is sent or denied in the end."""
    looks: list[str] = []

    def outgrown(_: SharedLedger, site: Any, __: str) -> bool:
        looks.append(site.key)
        return True

    monkeypatch.setattr(SharedLedger, "outgrown", outgrown)
    flow = Flow(works, flow_tasks(flow_task("a")))
    assert flow.run().status == "complete"
    assert looks.count("a/1/model/1") == MOST_FRESH_RESERVATIONS


@pytest.mark.parametrize(("tokens", "usd"), [(-5000, -1.0), (-1, math.nan), (-(10**30), math.inf), (-3, -math.inf)])
def test_the_ledger_gives_nothing_back_for_less_than_nothing(tokens: int, usd: float) -> None:
    """Spent and held back never fall, whatever is settled."""
    ledger = Ledger(Budget(tokens=10_000, usd=1.0))
    granted = ledger.reserve(Wish("a", 100, 1_000, (1e-6, 1e-5), echo=True))
    assert isinstance(granted, Grant)
    ledger.settle("a", tokens, usd, written=tokens)
    assert (ledger.spent_tokens, ledger.spent_usd) == (1_100, granted.reservation.usd)
    assert (ledger.held_back, ledger.reserved_tokens) == (0, 0)
    ledger.charge(tokens, usd)
    assert (ledger.spent_tokens, ledger.spent_usd) == (1_100, granted.reservation.usd)


@pytest.mark.parametrize(
    ("count", "window", "believed"),
    [
        (TokenCount(input_tokens=100, output_tokens=1_000), None, True),
        (TokenCount(input_tokens=1_200, output_tokens=1_000), None, True),
        (TokenCount(input_tokens=1_201, output_tokens=1_000), None, False),
        (TokenCount(input_tokens=1_200, output_tokens=1_000), 2_000, False),
        (TokenCount(input_tokens=100, output_tokens=1_000), 1_000, True),
        (TokenCount(input_tokens=100, output_tokens=1_000, cached_tokens=101), None, False),
    ],
)
def test_usage_is_believed_up_to_twice_the_estimate_and_to_the_window(
    count: TokenCount, window: int | None, believed: bool
) -> None:
    """1,100 tokens are the most it was estimated to use; a window smaller than that was wrong before."""
    assert (usage_problem(Reply(text="x", usage=count), 1_100, window) == "") is believed


def test_an_empty_reply_may_have_no_output() -> None:
    """Nothing written is nothing counted."""
    assert usage_problem(Reply(usage=TokenCount(input_tokens=5)), 1_100, None) == ""


def working(call: ModelCall, who: Attribution, usage: TokenCount) -> Reply:
    """Whoever it is does what it should, and has used so much."""
    said = works(call, who)
    return Reply(text=said if isinstance(said, str) else json.dumps(said), usage=usage)


def test_usage_that_is_so_was_not_believed_after_a_model_had_told_too_little() -> None:
    """Servers with a cache tell the part they read anew; a whole request after that is no more than it looks like."""
    said: dict[str, TokenCount] = {}

    def talk(call: ModelCall, who: Attribution) -> Reply:
        size = sum(len(message.packed) for message in call.messages) // 4
        said[f"{who.task}"] = count = TokenCount(input_tokens=5 if who.task == "a" else size, output_tokens=10)
        return working(call, who, count)

    flow = Flow(talk, flow_tasks(flow_task("a"), flow_task("b", "a", context="Words of it. " * 4_000)))
    assert flow.run().status == "complete"
    assert not [e.data["message"] for e in flow.events if e.kind == "warning"]
    (settled,) = [e.data for e in flow.events if e.kind == "budget_settled" and e.data["key"] == "b/1/model/1"]
    assert (settled["tokens"], settled["estimated"]) == (said["b"].input_tokens + 10, False)


def test_a_resumed_run_forgot_by_how_much_its_earlier_sessions_were_over_their_estimates() -> None:
    """The report states the error of the whole run, not that of its last session."""

    def talk(call: ModelCall, who: Attribution) -> Reply:
        reserved = [e.data["tokens"] for e in flow.events if e.kind == "budget_reserved"]
        return working(call, who, TokenCount(input_tokens=reserved[-1] + 490, output_tokens=10))

    flow = Flow(talk, flow_tasks(flow_task("a"), flow_task("b", "a")))
    assert flow.run(interrupt_at=1.5).status == "interrupted"
    report = flow.run(number=1)
    assert report.status == "complete"
    assert len(flow.model.asked) == 3
    assert "Calls used 1,500 tokens more than was estimated before they were made." in report.notes


def test_a_session_that_was_cut_off_as_it_began_left_a_call_that_nobody_settled() -> None:
    """What is counted for calls in flight at a crash is on the record in the end: its lines add up to the report."""
    flow = Flow(works, flow_tasks(flow_task("a")))
    for number, last in enumerate(("model_called", "run_started")):
        flow.run(number=number)
        kept = max(n for n, event in enumerate(flow.events, 1) if event.kind == last)
        del flow.store.events[kept:]
    report = flow.run(number=2)
    settled = [e.data["tokens"] for e in flow.events if e.kind == "budget_settled"]
    assert report.status == "complete"
    assert (len(settled), sum(settled)) == (2, report.usage.tokens)
