"""Isolates the work of policies from each other: one lock for each."""

import asyncio
from collections.abc import Coroutine
from typing import Any
from weakref import WeakValueDictionary


class PolicyLocks:
    """One lock for each policy: its planning, creation and undoing are serialised."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, name: str) -> asyncio.Lock:
        """The lock of a policy."""
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        return lock


async def first_of(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait for the first of several coroutines; the others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in tasks:
            each.cancel()
