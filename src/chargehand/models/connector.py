"""aiohttp's connector, without a step of reading a body that has no effect.

Imported with aiohttp, where the first session is made.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from aiohttp import TCPConnector
from aiohttp.client_proto import ResponseHandler


class Connector(TCPConnector):
    """A connector whose connections read a stream of small pieces faster."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)  # pyright: ignore[reportUnknownMemberType] -- of aiohttp's own options
        self._factory = partial(_Connection, loop=self._loop)


class _Connection(ResponseHandler):
    def resume_reading(self, *given: Any, **named: Any) -> None:
        """Continue after a pause.

        aiohttp calls this after each piece of a body, paused or not, and each time asks the parser and the socket. A
        streamed reply has hundreds of pieces. Only after a pause is there anything left in the parser.
        """
        if self._reading_paused:
            super().resume_reading(*given, **named)
