"""The semaphore admits by priority, and loses no turn when a waiter is cancelled."""

import asyncio
from asyncio import Task
from typing import Any

from plimsoll.testing.fakes import settled
from plimsoll.timing.priority_semaphore import PrioritySemaphore


class Pods:
    """Pods that take a turn each and keep it until they are let go."""

    def __init__(self, turns: Any) -> None:
        self.turns = turns
        self.running: list[Any] = []
        self.let: dict[Any, Any] = {}

    def start(self, name: str, priority: int = 0) -> Task[Any]:
        self.let[name] = asyncio.Event()

        async def work() -> None:
            async with self.turns.turn(priority):
                self.running.append(name)
                try:
                    await self.let[name].wait()
                finally:
                    self.running.remove(name)

        return asyncio.create_task(work())

    async def end(self, *names: str) -> None:
        for name in names:
            self.let[name].set()
        await settled()


async def test_concurrency_is_bounded_and_the_highest_priority_comes_first() -> None:
    """Among equals the oldest comes first."""
    pods = Pods(PrioritySemaphore(2))
    tasks = [pods.start("a"), pods.start("b"), pods.start("c"), pods.start("d", 5), pods.start("e", 5)]
    await settled()
    order = [list(pods.running)]

    for name in ("a", "b", "d", "e"):
        await pods.end(name)
        order.append(list(pods.running))

    assert order == [["a", "b"], ["b", "d"], ["d", "e"], ["e", "c"], ["c"]]
    await pods.end("c")
    await asyncio.gather(*tasks)


async def test_who_is_called_off_takes_no_turn_along() -> None:
    """Neither while it waits nor at the moment when it is called."""
    pods = Pods(PrioritySemaphore(1))
    first, second, third = pods.start("a"), pods.start("b"), pods.start("c")
    await settled()

    pods.let["a"].set()
    await asyncio.sleep(0)  # a is on its way out ...
    second.cancel()  # ... and b is cancelled in the moment in which it is admitted
    await settled()
    assert pods.running == ["c"]

    fourth = pods.start("d")
    await settled()
    fourth.cancel()
    await pods.end("c")
    last = pods.start("e")
    await settled()

    assert pods.running == ["e"]
    await pods.end("e")
    await asyncio.gather(first, second, third, fourth, last, return_exceptions=True)


async def test_a_waiter_that_is_called_off_lets_no_other_in() -> None:
    """It had no turn to pass on: the next one waits for those that have theirs."""
    pods = Pods(PrioritySemaphore(1))
    first, second, third = pods.start("a"), pods.start("b"), pods.start("c")
    await settled()

    second.cancel()
    await settled()
    assert pods.running == ["a"]

    await pods.end("a")
    assert pods.running == ["c"]
    await pods.end("c")
    await asyncio.gather(first, second, third, return_exceptions=True)
