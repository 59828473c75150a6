"""Carries the requests of a session: the port that HTTP stands behind, and simulations."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import aiohttp
from kubernetes_asyncio import client

#: What a transport raises for no connection, or no answer in time.
NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)


class Transport(Protocol):
    """One way to one API server.

    Attributes:
        address: Of the server, with the path that all paths begin with.
        configuration: For clients with connections of their own (kopf).
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
        """Status and body of one answer; ``gate`` is called right before sending, and may raise.

        Raises:
            NO_ANSWER: No answer came.
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
        """The answers to requests that are sent together, those that came before the connection ended.

        Raises:
            NO_ANSWER: Not even one answer came.
        """

    def watch(
        self, path: str, headers: Mapping[str, str], params: Mapping[str, str], silence_s: float
    ) -> AbstractAsyncContextManager[tuple[int, AsyncIterator[bytes]]]:
        """Status and body of an answer without end; it is given up after ``silence_s`` without a byte.

        Raises:
            NO_ANSWER: No answer came, or it broke off.
        """

    async def close(self) -> None:
        """End it."""
