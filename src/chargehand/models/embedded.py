"""A model file as a model: llama.cpp in this process, started at the first call and stopped when it is closed.

It listens on loopback only and accepts one key, which is made at its start and known only to this process. The wire
format and transport are those of any other server.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chargehand.errors import ModelError, UsageError
from chargehand.models import Attribution
from chargehand.models.gguf import read_head
from chargehand.models.http_model import HttpModel
from chargehand.models.openai_chat import OpenAIChat
from chargehand.models.profiles import Profile
from chargehand.models.provider_errors import Endpoint
from chargehand.models.transport import Transport

if TYPE_CHECKING:
    from chargehand.values.effect import ModelCall
    from chargehand.values.message import Reply

# A model may allow more tokens, but the memory for them is taken when the server starts.
USUAL_WINDOW = 8_192
MOST_SLOTS = 4
_INSTALL = "pip install 'chargehand[embedded]'"


def usual_slots() -> int:
    """How many calls are answered at once."""
    return min(MOST_SLOTS, physical_cores())


def usual_window(path: Path) -> int:
    """How many tokens one call may hold."""
    return min(read_head(path).window or USUAL_WINDOW, USUAL_WINDOW)


def physical_cores() -> int:
    """The cores this process may use; a core with several threads counts once."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    mine = os.sched_getaffinity(0)
    places = {_siblings(number) for number in mine}
    return max(1, len(places))


def _siblings(number: int) -> str:
    try:
        return Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list").read_text()
    except OSError:
        return str(number)


class EmbeddedModel:
    """Answers for one file."""

    def __init__(self, path: Path, window: int | None = None, slots: int | None = None) -> None:
        """UsageError when the file cannot be a model, or when the package that runs it is not installed."""
        if not read_head(path).whole:
            raise UsageError(f"embedded:{path} is not complete: download it again.")
        if find_spec("xllamacpp") is None:
            raise UsageError(f"embedded:{path} needs xllamacpp: {_INSTALL}")
        self._path = path
        self._window = window or usual_window(path)
        self._slots = slots or usual_slots()
        self._transport = Transport({})
        self._server: Any = None
        self._client: asyncio.Future[HttpModel] | None = None

    async def complete(
        self,
        call: ModelCall,
        max_output: int,
        attribution: Attribution,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        client = await self._client_of_server()
        return await client.complete(call, max_output, attribution, on_text)

    async def close(self) -> None:
        await self._transport.close()
        starting, self._client = self._client, None
        if starting is not None:
            await asyncio.wait([starting])
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(_stop, [server])

    async def _client_of_server(self) -> HttpModel:
        """The client of the running server. The first call starts it; calls that are cancelled do not stop it."""
        if self._client is None:
            self._client = asyncio.ensure_future(self._start())
        return await asyncio.shield(self._client)

    async def _start(self) -> HttpModel:
        key = secrets.token_urlsafe(32)
        try:
            self._server = await asyncio.to_thread(self._serve, key)
        except RuntimeError:
            raise ModelError("bad_request", self._why_not()) from None
        url = f"{self._server.listening_address}/v1/chat/completions"
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        self._transport.prepare(url)
        endpoint = Endpoint("embedded", url, headers, key)
        return HttpModel(endpoint, OpenAIChat(Profile("embedded", grammar=True)), self._transport)

    def _serve(self, key: str) -> Any:
        # Written in Cython, without types.
        xllamacpp: Any = import_module("xllamacpp")
        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.api_keys = [key]
        # No page in a browser may read an answer, and the server has no page of its own.
        params.cors_origins = ""
        params.cors_credentials = False
        params.ui = False
        params.endpoint_slots = False
        params.n_parallel = self._slots
        params.n_ctx = self._window * self._slots
        for threads in (params.cpuparams, params.cpuparams_batch):
            threads.n_threads = physical_cores()
            # Waiting threads do not poll: these cores have other work.
            threads.poll = 0
        params.warmup = False
        params.verbosity = -1
        return xllamacpp.Server(params)

    def _why_not(self) -> str:
        architecture, installed = read_head(self._path).architecture, version("xllamacpp")
        return (
            f"embedded:{self._path} could not be loaded. It is {architecture!r}: if xllamacpp {installed} "
            "does not have it, install a newer one. If memory is short, lower `window` in [providers.embedded] "
            f"({self._slots} times {self._window:,} tokens now). Else the file is damaged: download it again"
        )


def _stop(servers: list[Any]) -> None:
    """The server stops when its last reference is gone."""
    servers.clear()
