"""The compressed body of a response becomes bytes, chunk by chunk, and never more bytes than requested."""

from __future__ import annotations

import zlib

GZIP = b"\x1f"


class Unpacker:
    """Decompresses zlib data; a gzip body may have several parts. Without `bits` the body is not compressed."""

    def __init__(self, bits: int | None) -> None:
        self._bits = bits
        self._member = None if bits is None else zlib.decompressobj(bits)
        self._begun = False

    @property
    def ended(self) -> bool:
        """Whether the body may end here: it is empty so far, or every part is complete."""
        return self._member is None or self._member.eof or not self._begun

    def unpack(self, chunk: bytes, most: int) -> bytes:
        """The bytes that the chunk adds, at most `most`; the rest is lost. zlib.error when it is not compressed."""
        if self._bits is None or self._member is None:
            return chunk
        data = b""
        while chunk and len(data) < most:
            if self._member.eof:
                if not chunk.startswith(GZIP):
                    # Padding after the last part, which gzip itself ignores.
                    break
                self._member = zlib.decompressobj(self._bits)
            self._begun = True
            data += self._member.decompress(chunk, most - len(data))
            chunk = self._member.unused_data
        return data
