"""The packed body of a response becomes bytes, chunk by chunk and never more than is asked for."""

from __future__ import annotations

import zlib

GZIP = b"\x1f"


class Unpacker:
    """Unpacks what zlib packed; a gzip body may be several, one after the other. Without `bits` nothing is packed."""

    def __init__(self, bits: int | None) -> None:
        self._bits = bits
        self._member = None if bits is None else zlib.decompressobj(bits)
        self._begun = False

    @property
    def ended(self) -> bool:
        """Whether the body may end here: nothing came, or every part is complete."""
        return self._member is None or self._member.eof or not self._begun

    def unpack(self, chunk: bytes, most: int) -> bytes:
        """What the chunk adds, at most `most` bytes of it; the rest is lost. zlib.error when it is not packed."""
        if self._bits is None or self._member is None:
            return chunk
        data = b""
        while chunk and len(data) < most:
            if self._member.eof:
                if not chunk.startswith(GZIP):
                    # Filling after the last part, as gzip itself ignores it.
                    break
                self._member = zlib.decompressobj(self._bits)
            self._begun = True
            data += self._member.decompress(chunk, most - len(data))
            chunk = self._member.unused_data
        return data
