"""`embedded:FILE.gguf`: files that cannot be run are named before anything is spent; a small real one in the soak."""

from __future__ import annotations

import asyncio
import os
import struct
from pathlib import Path

import pytest

from chargehand import Supervisor, Team, Worker, tool
from chargehand.errors import ModelError, UsageError
from chargehand.models import embedded
from chargehand.models.gguf import read_head
from chargehand.models.resolve import Models
from chargehand.settings import Settings
from chargehand.values.plan import Plan, Task
from tests.models.asking import WHO, a_call
from tests.real_model import smollm2


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _gguf(path: Path, *, offset: int = 0, data: bytes = b"\0" * 64, version: int = 3) -> Path:
    """A file with a proper head and one tensor that begins at `offset`."""
    strings = struct.pack("<IQ", 8, 2) + _text("a") + _text("b")
    numbers = struct.pack("<IQ", 5, 3) + struct.pack("<3i", 1, 2, 3)
    fields = [
        _text("general.architecture") + struct.pack("<I", 8) + _text("strange"),
        _text("strange.context_length") + struct.pack("<II", 4, 2_048),
        _text("tokens") + struct.pack("<I", 9) + strings,
        _text("scores") + struct.pack("<I", 9) + numbers,
    ]
    tensor = _text("t") + struct.pack("<IQQIQ", 2, 4, 4, 0, offset)
    head = b"GGUF" + struct.pack("<IQQ", version, 1, len(fields)) + b"".join(fields) + tensor
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)
    return path


def test_the_head_of_a_file_is_read(tmp_path: Path) -> None:
    """Its architecture, its window and whether all of its tensors are in it."""
    head = read_head(_gguf(tmp_path / "m.gguf"))
    assert (head.architecture, head.window, head.whole) == ("strange", 2_048, True)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "there is no such file"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.write_bytes(b"<html>"), "is not a GGUF file"),
        (lambda path: path.write_bytes(b""), "is not a GGUF file"),
        (lambda path: _gguf(path, version=9), "GGUF version 9"),
        (lambda path: _gguf(path, offset=1_000), "is not complete"),
        (lambda path: path.write_bytes(_gguf(path).read_bytes()[:60]), "is not complete"),
    ],
)
def test_a_file_that_cannot_be_run_is_named_before_anything_is_sent(tmp_path: Path, make: object, says: str) -> None:
    """Missing, a folder, something else, another version, cut off: what it is, and what to do."""
    path = tmp_path / "m.gguf"
    make(path)  # type: ignore[operator]
    with pytest.raises(UsageError, match=says) as caught:
        Models({}, {}).check(f"embedded:{path}")
    assert str(path) in str(caught.value)


def test_without_the_extra_the_remedy_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that installs it, once there is a file to run."""
    monkeypatch.setattr(embedded, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'chargehand\[embedded\]'"):
        Models({}, {}).check(f"embedded:{_gguf(tmp_path / 'm.gguf')}")
    with pytest.raises(UsageError, match="there is no such file"):
        Models({}, {}).check(f"embedded:{tmp_path / 'absent.gguf'}")


def test_it_costs_nothing_and_has_a_window_and_slots(tmp_path: Path) -> None:
    """Price 0, as many calls at once as slots, the file's window up to what is taken by default."""
    model = f"embedded:{_gguf(tmp_path / 'm.gguf')}"
    models = Models({}, {}, wide=True)

    async def at_once() -> float:
        return models.limits(model).adaptive.most

    price = models.price(model)
    assert price is not None
    assert (price.input, price.output, price.cached) == (0, 0, 0)
    assert models.window(model) == 2_048
    assert asyncio.run(at_once()) == min(4, embedded.physical_cores())


def test_a_model_that_is_not_supported_ends_the_call(tmp_path: Path) -> None:
    """llama.cpp says no: the error names the architecture and the remedies, and closing is quick."""
    pytest.importorskip("xllamacpp")
    model = f"embedded:{_gguf(tmp_path / 'm.gguf')}"

    async def main() -> None:
        models = Models({}, {})
        try:
            for _ in range(2):
                with pytest.raises(ModelError, match="'strange'") as caught:
                    await models.client(model).complete(a_call(model), 10, WHO)
                assert (caught.value.kind, caught.value.transient) == ("bad_request", False)
        finally:
            await models.close()

    asyncio.run(main())


@tool(effect="read")
def population(city: str) -> int:
    """Inhabitants of a city."""
    return {"Oslo": 717_710}.get(city, 0)


@pytest.mark.skipif("CHARGEHAND_SOAK" not in os.environ, reason="a real model: make soak")
def test_a_small_real_model_keeps_every_promise(tmp_path: Path) -> None:
    """Whatever 135 million parameters say: typed ends, bounded repairs, the budget kept, no hang, nothing left."""
    pytest.importorskip("xllamacpp")
    settings = Settings(home=str(tmp_path), model=f"embedded:{smollm2()}")
    team = Team(
        [Worker("clerk", "Looks figures up", tools=[population], max_steps=3), Worker("writer", "Writes prose")]
    )
    tasks = (
        Task(id="t1", worker="clerk", instruction="How many people live in Oslo?", success_criterion="A number."),
        Task(id="t2", worker="writer", instruction="Write one sentence on Oslo.", success_criterion="One sentence."),
        Task(id="t3", worker="writer", instruction="Join both.", success_criterion="Text.", depends_on=("t1", "t2")),
    )
    tokens, deadline = 60_000, 240.0
    calls: dict[str, int] = {}

    async def main() -> object:
        def note(event: object) -> None:
            if getattr(event, "kind", "") == "model_called":
                key = f"{getattr(event, 'task', '')}/{getattr(event, 'attempt', '')}"
                calls[key] = calls.get(key, 0) + 1

        supervisor = Supervisor(team, settings=settings)
        plan = Plan(goal="Describe Oslo.", tasks=tasks)
        return await supervisor.run("Describe Oslo.", plan=plan, tokens=tokens, deadline=deadline, on_event=note)

    report = asyncio.run(main())
    assert report.status in ("complete", "partial", "failed")  # type: ignore[attr-defined]
    assert [outcome.task for outcome in report.outcomes] == ["t1", "t2", "t3"]  # type: ignore[attr-defined]
    for outcome in report.outcomes:  # type: ignore[attr-defined]
        assert outcome.status in ("done", "failed", "escalated", "skipped")
        assert (outcome.error is not None) == (outcome.status == "failed")
    # A worker's steps and the one re-ask; the supervisor's own calls are bounded by its rules.
    assert all(number <= 4 for key, number in calls.items() if key.startswith("t")), calls
    used = report.usage.input_tokens + report.usage.output_tokens  # type: ignore[attr-defined]
    assert used <= tokens + 4_096
    assert report.timing.wall_s < deadline + 30  # type: ignore[attr-defined]
    assert report.usage.usd in (0, None)  # type: ignore[attr-defined]
