"""Answers that are being written: every watcher gets all of the text, and no part of a secret."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from chargehand.events import DraftDiscarded, Event, EventBody, ModelCalled, ModelReplied, Warned
from chargehand.record.home import Home
from chargehand.server.draft_texts import DraftPosition, RunDrafts
from chargehand.server.event_feed import Feeds
from chargehand.server.event_stream import EventStream
from chargehand.server.reading_threads import ReadingThreads
from chargehand.text.redaction import Redactor
from tests.pace import PATIENCE_S

KEY = "@synthesis/1"
SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


def _event(body: EventBody) -> Event:
    return Event("r", 1, 0.0, None, None, body)


def _called(key: str = KEY) -> Event:
    given: dict[str, Any] = {"fingerprint": "f", "model": "m", "messages": [], "max_output": 1, "send": 1}
    return _event(ModelCalled(key=key, role="synthesizer", **given))


def _sent(position: DraftPosition, run: RunDrafts) -> list[dict[str, Any]]:
    frames = position.next_frames(run).decode().split("\n\n")[:-1]
    assert all(frame.startswith("event: draft\ndata: ") for frame in frames)
    return [json.loads(frame.partition("data: ")[2]) for frame in frames]


def test_a_watcher_gets_the_text_so_far_and_then_what_is_added() -> None:
    """With the key of the call, from an offset on; one who comes later gets the whole text first."""
    run, early, late = RunDrafts(Redactor()), DraftPosition(), DraftPosition()
    run.on_event(_called())
    run.on_draft(1, "Oslo is larger ")
    assert _sent(early, run) == [{"key": KEY, "offset": 0, "text": "Oslo is larger "}]
    run.on_draft(1, "than Ber")
    assert _sent(early, run) == [{"key": KEY, "offset": 15, "delta": "than "}]
    assert _sent(early, run) == []
    assert _sent(late, run) == [{"key": KEY, "offset": 0, "text": "Oslo is larger than "}]


def test_a_text_that_is_begun_again_is_sent_from_its_beginning() -> None:
    """The model may start its answer over within one call."""
    run, position = RunDrafts(Redactor()), DraftPosition()
    run.on_event(_called())
    run.on_draft(1, "First try ")
    _sent(position, run)
    run.on_draft(2, "Second try ")
    assert _sent(position, run) == [{"key": KEY, "offset": 0, "text": "Second try "}]


def test_a_draft_ends_with_its_reply_or_when_it_is_discarded() -> None:
    """From then on nobody is sent any of it."""
    for end in (ModelReplied(key=KEY, fingerprint="f", result={}), DraftDiscarded(reason="It cites nothing.")):
        run = RunDrafts(Redactor())
        run.on_event(_called())
        run.on_draft(1, "Some text ")
        run.on_event(_event(end))
        assert _sent(DraftPosition(), run) == []


def test_no_part_of_a_secret_is_sent() -> None:
    """A word is held back until it is whole, so that it can be recognised."""
    run, position = RunDrafts(Redactor([SECRET])), DraftPosition()
    run.on_event(_called())
    sent = ""
    for letter in f"The key is {SECRET} as I said ":
        run.on_draft(1, letter)
        sent += "".join(each.get("text", "") + each.get("delta", "") for each in _sent(position, run))
    assert sent.startswith("The key is ")
    assert sent.endswith("as I said ")
    assert SECRET[:12] not in sent


def test_a_stream_carries_drafts_without_an_id(tmp_path: Path) -> None:
    """Between the events of the run, as the text grows."""
    frames = asyncio.run(_watch_drafts(Home(tmp_path)))
    assert b'event: draft\ndata: {"key": "@synthesis/1", "offset": 0, "text": "All is "}\n\n' in frames
    assert b'event: draft\ndata: {"key": "@synthesis/1", "offset": 7, "delta": "well "}\n\n' in frames


async def _watch_drafts(home: Home) -> bytes:
    reading = ReadingThreads()
    feeds = Feeds(home, Redactor(), reading)
    journal = home.create("r")
    await journal.append([_event(Warned(message="It begins."))], {})
    got, arrived = bytearray(), asyncio.Event()

    async def send(message: Any) -> None:
        got.extend(message.get("body", b""))
        arrived.set()

    async def receive() -> Any:
        await asyncio.get_running_loop().create_future()

    async def until(text: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while text not in got:
                arrived.clear()
                await arrived.wait()

    with feeds.writing("r") as drafts:
        watching = asyncio.create_task(EventStream(feeds, "r", 0, 1)({}, receive, send))
        await until(b"It begins.")
        drafts.on_event(_called())
        drafts.on_draft(1, "All is ")
        await until(b"All is ")
        drafts.on_draft(1, "well ")
        await until(b"well ")
    await feeds.close()
    await watching
    journal.close()
    reading.close()
    return bytes(got)
