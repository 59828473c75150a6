"""The timer calls every function at its deadline, in order, and survives those that raise."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.testing.fakes import FakeClock, RememberingObserver, settled
from plimsoll.timing.timer import STALE_ENTRIES, Timer


class Scene:
    """A running timer; ``called`` holds what was called and when, in seconds from the start."""

    def __init__(self) -> None:
        self.clock, self.observer = FakeClock(), RememberingObserver()
        self.timer = Timer(self.clock, self.observer)
        self.called: list[Any] = []
        self.began = self.clock.monotonic()

    def at(self, due_s: int, name: str, key: Any = None) -> None:
        def call() -> None:
            self.called.append((name, self.clock.monotonic() - self.began))

        self.timer.set(key or name, self.began + due_s, call)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Any]:
        task = asyncio.ensure_future(self.timer.run())
        await settled()
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def scene() -> AsyncIterator[Any]:
    async with Scene().running() as running:
        yield running


async def test_functions_are_called_at_their_deadlines(scene: Scene) -> None:
    """Whatever the order in which they were set."""
    scene.at(5, "later")
    scene.at(2, "sooner")
    await scene.clock.advance(1.9)
    assert scene.called == []

    await scene.clock.advance(10)

    assert scene.called == [("sooner", 2.0), ("later", 5.0)]
    assert len(scene.timer) == 0


async def test_a_deadline_set_while_it_sleeps_for_a_later_one_is_kept(scene: Scene) -> None:
    """The task is woken and sleeps until the earlier one."""
    scene.at(60, "later")
    await scene.clock.advance(1)
    scene.at(3, "sooner")

    await scene.clock.advance(5)

    assert scene.called == [("sooner", 3.0)]


async def test_functions_of_one_deadline_are_called_in_the_order_in_which_they_were_set(scene: Scene) -> None:
    """First set, first called."""
    for name in "cab":
        scene.at(1, name)

    await scene.clock.advance(1)

    assert [name for name, _ in scene.called] == ["c", "a", "b"]


async def test_a_key_has_one_deadline(scene: Scene) -> None:
    """Setting it again replaces it, to later and to earlier; ``cancel`` ends it."""
    scene.at(1, "first", key="k")
    scene.at(4, "second", key="k")
    scene.at(9, "third", key="other")
    scene.at(2, "fourth", key="other")
    scene.at(3, "cancelled")
    scene.timer.cancel("cancelled")
    scene.timer.cancel("never set")

    await scene.clock.advance(20)

    assert scene.called == [("fourth", 2.0), ("second", 4.0)]
    assert scene.timer.next_due() is None


async def test_a_deadline_that_is_over_is_called_immediately(scene: Scene) -> None:
    """Without waiting for the clock to move."""
    scene.at(-1, "over")
    await settled()

    assert scene.called == [("over", 0.0)]


async def test_a_function_that_raises_harms_no_other(scene: Scene) -> None:
    """It is reported with its key."""

    def broken() -> None:
        raise RuntimeError("no")

    scene.timer.set("broken", scene.began + 1, broken)
    scene.at(1, "whole")

    await scene.clock.advance(1)

    assert scene.called == [("whole", 1.0)]
    assert scene.observer.failures == [("deadline of broken", "RuntimeError('no')")]


async def test_a_function_may_set_its_own_next_deadline(scene: Scene) -> None:
    """Even one that is over: other tasks run between two calls."""
    calls = []

    def again() -> None:
        calls.append(scene.clock.monotonic() - scene.began)
        if len(calls) < 3:
            scene.timer.set("again", scene.began + 1, again)

    scene.timer.set("again", scene.began + 1, again)
    await scene.clock.advance(1)

    assert calls == [1.0, 1.0, 1.0]


def test_cancelled_deadlines_do_not_pile_up() -> None:
    """A key that is set again and again leaves a bounded heap."""
    scene = Scene()
    for number in range(10 * STALE_ENTRIES):
        scene.at(number, "k")

    assert len(scene.timer._heap) <= STALE_ENTRIES + 3
    assert "k" in scene.timer


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("set"), st.integers(0, 4), st.integers(0, 20)),
            st.tuples(st.just("cancel"), st.integers(0, 4), st.just(0)),
            st.tuples(st.just("advance"), st.just(0), st.integers(0, 5)),
        ),
        max_size=30,
    )
)
def test_it_calls_what_a_table_of_deadlines_would(steps: list[tuple[str, int, int]]) -> None:
    """Against the plain rule: at each moment everything due is called, each key once."""

    async def play() -> None:
        expected, deadlines, now = [], {}, 0
        async with Scene().running() as scene:
            for what, key, number in steps:
                if what == "set":
                    scene.at(now + number, f"k{key}")
                    deadlines[key] = now + number
                elif what == "cancel":
                    scene.timer.cancel(f"k{key}")
                    deadlines.pop(key, None)
                if what == "advance" or number == 0:
                    await scene.clock.advance(number if what == "advance" else 0)
                    now += number if what == "advance" else 0
                    expected += sorted((due, f"k{key}") for key, due in deadlines.items() if due <= now)
                    deadlines = {key: due for key, due in deadlines.items() if due > now}
            assert sorted(expected) == sorted((int(due), name) for name, due in scene.called)
            assert [due for _, due in scene.called] == sorted(due for _, due in scene.called)

    asyncio.run(play())
