"""Models that write an answer slowly, and clients of OpenAI's interface."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from chargehand.models import Attribution
from chargehand.testing import ScriptedModel
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply
from tests.lazy_module import LazyModule
from tests.pace import PATIENCE_S
from tests.server.serving import ANSWERS, CLIENT_TOKEN, Client

openai = LazyModule("openai")
MODEL = "chargehand/default"
REQUEST = "Do both parts of the work"
ASK: Any = [{"role": "user", "content": REQUEST}]
ANSWER = "All is done [a] [b]."


class SlowWriter(ScriptedModel):
    """Writes the first half of each draft, then waits until it is let go."""

    def __init__(self, replies: list[dict[str, Any]] = ANSWERS) -> None:
        super().__init__(replies)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._go = asyncio.Event()

    def let_go(self) -> None:
        """From any thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._go.set)

    async def complete(
        self,
        call: ModelCall,
        max_output: int,
        attribution: Attribution,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        if call.role != "synthesizer" or on_text is None:
            return await super().complete(call, max_output, attribution, on_text)
        self._loop = asyncio.get_running_loop()
        reply = await super().complete(call, max_output, attribution)
        half = reply.text.rfind(" ", 0, len(reply.text) * 2 // 3) + 1
        on_text(reply.text[:half])
        await self._go.wait()
        on_text(reply.text[half:])
        return reply


@contextmanager
def client_of(server: Client, token: str = CLIENT_TOKEN) -> Generator[openai.OpenAI]:
    """The official client, with its own retries."""
    address = f"http://127.0.0.1:{server.port}/v1"
    with openai.OpenAI(base_url=address, api_key=token, timeout=PATIENCE_S) as client:
        yield client
