"""Server-sent events: nothing missing, nothing twice, and nobody who does not read keeps anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from chargehand.events import Event, Warned
from chargehand.record.home import Home
from chargehand.server import event_feed
from chargehand.server.event_feed import Feeds
from chargehand.server.event_stream import EventStream
from chargehand.server.reading_threads import ReadingThreads
from chargehand.text.redaction import Redactor
from tests.server.serving import Client

STREAM = "/api/v1/runs/{}/stream"


def test_a_stream_has_every_event_once(client: Client, run: str, home: Path) -> None:
    """`id` is the number of the event, and the data is the event."""
    last = Home(home).last_event(run)
    with client.stream(STREAM.format(run)) as events:
        found = list(islice(events, last))
    assert [int(event["id"]) for event in found] == list(range(1, last + 1))
    assert json.loads(found[-1]["data"])["kind"] == "run_ended"


def test_a_stream_continues_after_the_last_event_id(client: Client, run: str, home: Path) -> None:
    """As a browser that lost its connection asks for it."""
    last = Home(home).last_event(run)
    with client.stream(STREAM.format(run), last_event_id=str(last - 2)) as events:
        assert [int(event["id"]) for event in islice(events, 2)] == [last - 1, last]


@pytest.mark.parametrize("given", ["99999", "-1", "x", "9" * 400, "1.5", "²"])
def test_a_last_event_id_that_cannot_be_is_a_problem(client: Client, run: str, given: str) -> None:
    """In the future, or not a number: a browser stops asking then."""
    answer = client.get(STREAM.format(run), last_event_id=given.encode().decode("latin-1"))
    assert (answer.status, answer.headers["content-type"]) == (422, "application/problem+json")


@pytest.mark.slow
def test_many_watchers_get_events_as_they_are_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """50 watchers from different places in one run that grows, while a feed keeps next to nothing: all get all."""
    monkeypatch.setattr(event_feed, "KEPT_BYTES", 2_000)
    monkeypatch.setattr(event_feed, "POLL_S", 0.01)
    asyncio.run(_watch_a_growing_run(Home(tmp_path), watchers=50, events=400))


async def _watch_a_growing_run(home: Home, watchers: int, events: int) -> None:
    reading = ReadingThreads()
    feeds = Feeds(home, Redactor(), reading)
    journal = home.create("grows")
    await journal.append([_event(n) for n in range(1, 21)], {})
    seen = [_Watcher(until=events) for _ in range(watchers)]
    newest = await feeds.last_event("grows")
    work = [
        asyncio.create_task(EventStream(feeds, "grows", after=n % 20, newest=newest)({}, each.receive, each.send))
        for n, each in enumerate(seen)
    ]
    for number in range(21, events + 1):
        # As of a run of this server, and as of one of another process.
        journal.on_commit = feeds.on_commit if number % 5 else None
        await journal.append([_event(number)], {})
    await asyncio.gather(*(each.done.wait() for each in seen))
    await feeds.close()
    await asyncio.gather(*work)
    journal.close()
    reading.close()
    for n, each in enumerate(seen):
        assert each.ids == list(range(n % 20 + 1, events + 1))


def test_a_watcher_that_does_not_read_is_dropped(tmp_path: Path) -> None:
    """It is not waited for longer than the limit, and its answer is left without an end."""
    asyncio.run(_never_read(Home(tmp_path)))


async def _never_read(home: Home) -> None:
    reading = ReadingThreads()
    feeds = Feeds(home, Redactor(), reading)
    journal = home.create("grows")
    await journal.append([_event(1)], {})
    stuck = _Watcher(stuck=True)
    await EventStream(feeds, "grows", after=0, newest=1, stuck_s=0.05)({}, stuck.receive, stuck.send)
    await feeds.close()
    journal.close()
    reading.close()
    assert stuck.ended is False
    assert feeds.watchers == 0


class _Watcher:
    """Takes what is sent, or nothing of it but the head."""

    def __init__(self, *, until: int = 0, stuck: bool = False) -> None:
        self._stuck = stuck
        self._until = until
        self.ids: list[int] = []
        self.ended = False
        # Set when it has the event it waits for.
        self.done = asyncio.Event()

    async def receive(self) -> Any:
        await asyncio.get_running_loop().create_future()

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.body":
            if self._stuck:
                await asyncio.get_running_loop().create_future()
            self.ids += list(_ids(message["body"]))
            self.ended = not message["more_body"]
            if self.ids and self.ids[-1] >= self._until:
                self.done.set()


def _ids(body: bytes) -> Iterator[int]:
    return (int(line.removeprefix(b"id: ")) for line in body.splitlines() if line.startswith(b"id: "))


def _event(number: int) -> Event:
    return Event("grows", number, float(number), None, None, Warned(message=f"Number {number} " + "x" * 100))
