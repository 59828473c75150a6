"""A body for aiohttp that passes the gate of a write as it is sent."""

from collections.abc import Callable

import aiohttp
from aiohttp.abc import AbstractStreamWriter


class GatedBody(aiohttp.BytesPayload):
    """A body that passes the gate as it is sent: without its body a request is incomplete."""

    def __init__(self, content: bytes, gate: Callable[[], None]) -> None:
        super().__init__(content, content_type="application/json")
        self._gate = gate

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Write the body."""
        self._gate()
        await super().write_with_length(writer, content_length)
