"""Slots in flight: each is given to one holder, and a waiter for one comes before a waiter for several."""

import asyncio
from collections.abc import Callable

import pytest

from plimsoll.testing.fakes import settled
from plimsoll.timing.slots import Slots


async def test_who_waits_for_one_slot_comes_before_who_waits_for_several() -> None:
    """The slot is handed over; the other waits on."""
    slots = Slots(0)
    several = asyncio.create_task(slots.until_free(2))
    one = asyncio.create_task(slots.acquire())
    await settled()

    slots.release()
    await settled()

    assert (one.done(), several.done(), slots.are_taken) == (True, False, True)
    slots.release()
    slots.release()
    await settled()
    assert (several.done(), slots.are_taken) == (True, False)


async def test_one_free_slot_is_enough_after_a_moment() -> None:
    """The others may take long: what is free is used, though it is not what was wished for."""
    slots = Slots(0)
    several = asyncio.create_task(slots.until_free(4))
    await settled()

    slots.release()
    await several

    assert not slots.are_taken


@pytest.mark.parametrize("end", ["enough", "called off"])
async def test_the_patience_of_one_wait_ends_no_later_one(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first wait ended before its moment was over; the second has a moment of its own."""
    loop, later = asyncio.get_running_loop(), list[tuple[asyncio.Handle, Callable[[], None]]]()

    def call_later(_: float, call: Callable[[], None]) -> asyncio.Handle:
        later.append((asyncio.Handle(call, (), loop), call))
        return later[-1][0]

    monkeypatch.setattr(loop, "call_later", call_later)
    slots = Slots(0)
    waits = []
    for _ in range(2):
        waits.append(asyncio.create_task(slots.until_free(2)))
        await settled()
        slots.release()
        if len(waits) == 1:
            if end == "enough":
                slots.release()
                slots.take()
            else:
                waits[0].cancel()
            await settled()
            slots.take()

    (first, end_first), (second, end_second) = later
    if not first.cancelled():
        end_first()
    await settled()
    assert (waits[0].done(), waits[1].done(), second.cancelled()) == (True, False, False)
    end_second()
    await waits[1]
    assert second.cancelled()


async def test_a_slot_of_a_cancelled_waiter_is_handed_on() -> None:
    """Cancelled before it was its turn, or at the very moment: the next one has the slot."""
    slots = Slots(1)
    await slots.acquire()
    early, late, last = (asyncio.create_task(slots.acquire()) for _ in range(3))
    await settled()

    early.cancel()
    await settled()
    slots.release()
    late.cancel()
    await settled()

    assert last.done()
    assert not last.cancelled()
    assert slots.are_taken
    slots.release()
    async with slots:
        assert slots.are_taken
    assert not slots.are_taken


@pytest.mark.parametrize("is_handed", [False, True])
async def test_a_wait_that_is_called_off_passes_on_what_it_was_handed_and_nothing_else(
    is_handed: bool,
) -> None:
    """A slot more would let too many in; one less would be lost."""
    slots = Slots(0)
    one = asyncio.create_task(slots.acquire())
    await settled()
    if is_handed:
        slots.release()

    one.cancel()
    await asyncio.gather(one, return_exceptions=True)

    assert slots.are_taken is not is_handed
