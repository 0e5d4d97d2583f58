"""A feed -> server-sent events to one watcher, until it disconnects, does not read, or the server stops."""

from __future__ import annotations

import asyncio

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from chargehand.server.draft_texts import DraftPosition
from chargehand.server.event_feed import Feeds

# A comment this often, so that proxies and browsers know the connection is open.
COMMENT_S = 10.0
# A watcher that takes nothing for this long is dropped.
STUCK_S = 30.0
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class EventStream(Response):
    """The events of a run after a number, then each new one as it is committed."""

    media_type = "text/event-stream"

    def __init__(self, feeds: Feeds, run: str, after: int, newest: int, *, stuck_s: float = STUCK_S) -> None:
        self._feeds = feeds
        self._run = run
        self._after = after
        self._newest = newest
        self._stuck_s = stuck_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await self._put(send, b": chargehand\n\n")
            await self._follow(send, gone)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            pass  # the server closes the connection, because the response has no end
        finally:
            gone.cancel()

    async def _follow(self, send: Send, gone: asyncio.Future[None]) -> None:
        last, written = self._after, DraftPosition()
        async with self._feeds.watch(self._run, self._newest) as feed:
            while not (gone.done() or feed.broken or self._feeds.closed):
                changed = feed.changed
                frames = await self._feeds.read(feed, last)
                drafts = self._feeds.drafts(self._run)
                text = frames.text + (b"" if drafts is None else written.next_frames(drafts))
                if text:
                    last = frames.last
                    await self._put(send, text)
                    continue
                waiting = asyncio.ensure_future(changed.wait())
                try:
                    done, _ = await asyncio.wait({waiting, gone}, timeout=COMMENT_S, return_when="FIRST_COMPLETED")
                finally:
                    waiting.cancel()
                if not done:
                    await self._put(send, b": waiting\n\n")

    async def _put(self, send: Send, text: bytes) -> None:
        async with asyncio.timeout(self._stuck_s):
            await send({"type": "http.response.body", "body": text, "more_body": True})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
