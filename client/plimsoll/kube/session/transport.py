"""Port that carries the requests of a session; HTTP and simulations implement it."""

import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from kubernetes_asyncio import client


def no_answer() -> tuple[type[Exception], ...]:
    """Exceptions of a transport for a failed connection, or a missing or late response.

    aiohttp's are among them once a transport has imported it.
    """
    errors = sys.modules.get("aiohttp.client_exceptions")
    return (TimeoutError, OSError) if errors is None else (errors.ClientError, TimeoutError, OSError)


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
            no_answer: No response arrived.
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
            no_answer: No response arrived at all.
        """

    def watch(
        self, path: str, headers: Mapping[str, str], params: Mapping[str, str], silence_s: float
    ) -> AbstractAsyncContextManager[tuple[int, AsyncIterator[bytes]]]:
        """Status and body of a streamed response; it is aborted after ``silence_s`` without a byte.

        Raises:
            no_answer: No response arrived, or it broke off.
        """

    async def close(self) -> None:
        """Close the transport."""
