"""Calls that begin with the same long text -> one of them first, so that the others find it in the provider's cache.

A provider caches the beginning of a prompt when it begins to answer. Calls that are sent at the same moment would each
pay the full price for the text they share.
"""

from __future__ import annotations

import asyncio
import hashlib

from chargehand.engine.local.resources import Resources
from chargehand.values.effect import ModelCall

# A provider caches a shared beginning from this many characters: about 1,024 tokens.
LEAST_SHARED = 4_096
# How long other calls wait at most until the first reply begins: for a slow model a longer wait does not pay.
LONGEST_WAIT_S = 10.0


class FirstCall:
    """The first call with its beginning. `begin` releases the other calls; the end of the call does so too."""

    def __init__(self, begun: asyncio.Future[None]) -> None:
        self._begun = begun

    def begin(self) -> None:
        if not self._begun.done():
            self._begun.set_result(None)


class PromptBeginnings:
    """One per session: which beginnings a provider has seen, or is about to."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._begun: dict[bytes, asyncio.Future[None]] = {}

    async def wait(self, effect: ModelCall) -> FirstCall | None:
        """Return the first call with a long shared beginning at once; later ones wait for it, other calls do not wait.

        No call waits where reading from the cache is not known to cost less.
        """
        name = self._name(effect)
        if name is None:
            return None
        if (begun := self._begun.get(name)) is not None:
            await asyncio.wait([begun], timeout=LONGEST_WAIT_S)
            return None
        begun = self._begun[name] = asyncio.get_running_loop().create_future()
        return FirstCall(begun)

    def _name(self, effect: ModelCall) -> bytes | None:
        for number, message in enumerate(effect.messages[:2]):
            if message.shared >= LEAST_SHARED:
                price = self._resources.price(effect)
                if price is None or price.cached >= price.input:
                    return None
                before = "".join([each.digest for each in effect.messages[:number]])
                parts = (effect.model.encode(), effect.packed_tools, before.encode())
                return hashlib.sha256(b"\n".join((*parts, message.text[: message.shared].encode()))).digest()
        return None
