"""Isolates the work of policies: a lock and at most one task of a kind for each policy."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary


class PolicyLocks:
    """One lock for each policy: what it plans, makes and takes back happens one after the other."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, name: str) -> asyncio.Lock:
        """The lock of a policy."""
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        return lock


class PolicyTasks:
    """Tasks by policy; leaving the context cancels them."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Start the work of a policy, unless it is under way."""
        if name not in self._tasks:
            task = asyncio.ensure_future(_run(work))
            self._tasks[name] = task
            task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def __aenter__(self) -> Self:
        """Begin with none."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel what is under way."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def first_of(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait for the first of several; the others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in tasks:
            each.cancel()


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()
