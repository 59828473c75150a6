"""Port that carries the requests of a session; HTTP and simulations implement it."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import aiohttp
from kubernetes_asyncio import client

#: Exceptions of a transport for a failed connection, or a missing or late response.
NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)


class Transport(Protocol):
    """Carries requests to one API server.

    Attributes:
        address: The server's address, including the prefix of all paths.
        configuration: The configuration for clients with their own connections (kopf).
        pipelines: Whether ``exchanges`` sends several requests together.
    """

    address: str
    configuration: client.Configuration
    pipelines: bool

    async def exchange(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        *,
        params: Mapping[str, str] | None,
        timeout_s: float,
        gate: Callable[[], None],
    ) -> tuple[int, bytes]:
        """Status and body of one response; ``gate`` is called right before sending, and may raise.

        Raises:
            NO_ANSWER: No response arrived.
        """

    async def exchanges(
        self,
        method: str,
        writes: Sequence[tuple[str, bytes]],
        headers: Mapping[str, str],
        *,
        timeout_s: float,
        gate: Callable[[], None],
    ) -> list[tuple[int, bytes]]:
        """The responses to requests that are sent together; those before its end if the connection ends.

        Raises:
            NO_ANSWER: No response arrived at all.
        """

    def watch(
        self, path: str, headers: Mapping[str, str], params: Mapping[str, str], silence_s: float
    ) -> AbstractAsyncContextManager[tuple[int, AsyncIterator[bytes]]]:
        """Status and body of a streamed response; it is aborted after ``silence_s`` without a byte.

        Raises:
            NO_ANSWER: No response arrived, or it broke off.
        """

    async def close(self) -> None:
        """Close the transport."""
