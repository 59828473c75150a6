"""Reads the bodies of responses: lines of a watch, JSON objects."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

import orjson


async def lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[list[bytes]]:
    """Complete lines of any length; aiohttp's own readline refuses lines beyond its buffer."""
    pending: list[bytes] = []
    async for chunk in chunks:
        lines, begin = list[bytes](), 0
        while (end := chunk.find(b"\n", begin)) >= 0:  # split compares byte by byte, at a tenth of the speed
            lines.append(chunk[begin:end])  # the only copy of each byte
            begin = end + 1
        if lines:
            if pending:
                lines[0] = b"".join((*pending, lines[0]))
                pending = []
            yield [line for line in lines if line]
        if begin < len(chunk):
            pending.append(chunk[begin:])


def parsed(content: bytes) -> dict[str, Any]:
    """A JSON object; any other content is returned as the message of one."""
    try:
        answer = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {"message": content[:200].decode(errors="replace")}
    return answer if isinstance(answer, dict) else {"message": str(answer)[:200]}
