"""Runs an event loop in its own thread, for work that the main loop must not delay.

The election and the probes run there. They get their share of the GIL every few milliseconds, whatever the
main loop computes.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs for the duration of an ``async with`` block."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    async def __aenter__(self) -> Self:
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)

    def call(self, function: Callable[[], object]) -> None:
        """Call a function in the thread's loop soon; any thread may call this."""
        self._loop.call_soon_threadsafe(function)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there; when a cancelled call returns, the coroutine has ended."""
        here = asyncio.get_running_loop()
        ended: asyncio.Future[None] = here.create_future()
        tasks: list[asyncio.Task[T]] = []

        def end() -> None:
            if not ended.done():
                ended.set_result(None)

        def tell(_: object) -> None:
            here.call_soon_threadsafe(end)

        def begin() -> None:
            task = self._loop.create_task(work)
            tasks.append(task)
            task.add_done_callback(tell)

        def cancel() -> None:
            tasks[0].cancel()

        self._loop.call_soon_threadsafe(begin)
        cancelled = False
        while not ended.done():
            try:
                await asyncio.shield(ended)
            except asyncio.CancelledError:
                cancelled = True
                self._loop.call_soon_threadsafe(cancel)
        if cancelled:
            raise asyncio.CancelledError
        return tasks[0].result()

    @asynccontextmanager
    async def entered(self, context: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
        """Enter and exit a context manager there."""
        value = await self.run(_begun(context))
        try:
            yield value
        finally:
            await self.run(_ended(context))


async def _begun(context: AbstractAsyncContextManager[T]) -> T:
    return await context.__aenter__()


async def _ended(context: AbstractAsyncContextManager[Any]) -> None:
    await context.__aexit__(None, None, None)
