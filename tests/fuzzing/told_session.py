"""ToldTransport answers the requests of a real Session with the bytes of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from kubernetes_asyncio import client

from plimsoll.kube.session.credentials import Credentials, Loaded
from plimsoll.kube.session.session import Session

T = TypeVar("T")


class ToldTransport:
    """Answers with the bytes of a test.

    Args:
        answer: Status and body, by method and path.
        watched: The parts of a watch; none is one without end.
    """

    address = "http://told"
    pipelines = False

    def __init__(
        self,
        answer: Callable[[str, str], tuple[int, bytes]],
        watched: Callable[[], Sequence[bytes] | None] = lambda: None,
    ) -> None:
        self.configuration = client.Configuration(host=self.address)
        self._answer = answer
        self._watched = watched

    async def exchange(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str], **_: Any
    ) -> tuple[int, bytes]:
        """What is said."""
        return self._answer(method, path)

    async def exchanges(self, method: str, writes: Sequence[tuple[str, bytes]], *_: Any, **__: Any) -> Any:
        """Never called."""
        raise NotImplementedError

    @asynccontextmanager
    async def watch(self, *_: Any) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """The parts, then the end."""

        async def parts() -> AsyncIterator[bytes]:
            said = self._watched()
            if said is None:
                await asyncio.get_running_loop().create_future()
            for each in said or ():
                yield each

        yield 200, parts()

    async def close(self) -> None:
        """Nothing is open."""


def a_session(transport: ToldTransport) -> Session:
    """A session of the product over it."""
    loaded = Loaded(transport.configuration)

    async def load() -> Loaded:
        return loaded

    return Session(transport, Credentials(loaded, load, lambda: 0.0, lambda: 0.0), lambda: 0.0)


class Loops:
    """One event loop for many attempts; a new one after an attempt that broke."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, attempt: Coroutine[Any, Any, T]) -> T:
        """What the coroutine returns."""
        loop = self._loop = self._loop or asyncio.new_event_loop()
        try:
            return loop.run_until_complete(attempt)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End what is left."""
        loop, self._loop = self._loop, None
        if loop is not None:
            for task in asyncio.all_tasks(loop):
                task.cancel()
                loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            loop.close()


LOOPS = Loops()
