"""Bindings that are posted together: each pod is bound once, or its room is free again."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.cluster.watch_events import NodeUpdated
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult
from plimsoll.scheduling.binding.pipeline import ALONE, BINDINGS, TOGETHER
from plimsoll.testing.builders import a_node
from scheduling.test_loop import Stage, our_pod, stage  # noqa: F401 - the fixture

Start = Callable[..., Any]


@pytest.fixture
async def large(stage: Start) -> Stage:  # noqa: F811 - the fixture
    """A loop with room for hundreds of pods on one node, which waits until the binder may answer."""
    one: Stage = await stage(nodes=1)
    await one.see(NodeUpdated(a_node("n0"), a_node("n0", cpu="900", memory="900Gi", pods=900)))
    return one


def burst(count: int) -> list[Any]:
    """Pods that are there at the same time."""
    return [our_pod(f"p{number}") for number in range(count)]


async def test_pods_that_are_decided_together_are_bound_together(large: Stage) -> None:
    """All but the first ones, which need not wait; each has its event, and nothing is left over."""
    await large.pods(*burst(ALONE + 2 * TOGETHER + 1))

    assert large.binder.together == [TOGETHER, TOGETHER]
    assert len(large.binder.bound) == large.binder.sent == ALONE + 2 * TOGETHER + 1
    assert len(large.recorder.said("Scheduled")) == ALONE + 2 * TOGETHER + 1
    assert (list(large.queue), large.loop.in_flight) == ([], 0)
    assert large.wing.timer.counts["s"]["DefaultBinder", "bind"] == large.binder.sent


async def test_every_slot_is_given_back(large: Stage) -> None:
    """Three times as many pods as there are slots are bound, never more than those simultaneously."""
    most = 0

    async def watch(*_: Any) -> None:
        nonlocal most
        most = max(most, large.loop.in_flight)
        await asyncio.sleep(0)

    large.binder.before = watch
    await large.pods(*burst(3 * BINDINGS))
    async with asyncio.timeout(300):
        while len(large.recorder.said("Scheduled")) < 3 * BINDINGS:  # noqa: ASYNC110 - nothing notifies
            await asyncio.sleep(0)

    assert len(large.binder.bound) == large.binder.sent == 3 * BINDINGS
    assert most == BINDINGS


async def test_what_was_not_bound_with_the_others_goes_on_by_itself(large: Stage) -> None:
    """A lost answer is asked for, a busy server tried again, a conflict gives the room back; none twice."""
    busy = WriteResult(WriteOutcome.BUSY, "busy")
    refused = WriteResult(WriteOutcome.CONFLICT, "not now")
    large.binder.answers = [*([DONE] * ALONE), WriteResult(WriteOutcome.UNKNOWN, "lost"), busy, refused]
    await large.pods(*burst(ALONE + TOGETHER))
    lost, tried, conflicting, bound = (f"default/p{ALONE + number}" for number in range(TOGETHER))

    assert large.binder.together == [TOGETHER]
    assert bound in large.binder.bound
    assert not {lost, tried, conflicting} & large.binder.bound.keys()
    assert f"uid-default-{conflicting[8:]}" not in large.cache.cluster.pods
    assert f"uid-default-{lost[8:]}" in large.cache.assumed

    for _ in range(5):
        await large.clock.advance(1)

    assert len(large.binder.bound) == ALONE + TOGETHER
    # Once each, and once more each of the three.
    assert large.binder.sent == ALONE + TOGETHER + 3


async def test_a_binding_that_happened_though_its_answer_was_lost_is_not_sent_again(large: Stage) -> None:
    """Of those that were sent together as of others."""
    large.binder.before = lambda *_: asyncio.sleep(0)
    large.binder.deaf = ALONE + TOGETHER

    await large.pods(*burst(ALONE + TOGETHER))

    assert len(large.binder.bound) == large.binder.sent == ALONE + TOGETHER
    assert len(large.recorder.said("Scheduled")) == ALONE + TOGETHER


async def test_what_breaks_gives_all_slots_and_rooms_back(large: Stage) -> None:
    """The pods are tried again."""

    async def break_together(*_: Any) -> None:
        if large.binder.together:
            raise RuntimeError("broken")

    large.binder.before = break_together
    await large.pods(*burst(ALONE + TOGETHER))
    assert len(large.binder.bound) == len(large.cache.assumed) == ALONE
    assert large.observer.broken == ["RuntimeError('broken')"]
    assert large.loop.in_flight == 0

    large.binder.before = None
    for _ in range(3):
        await large.clock.advance(1)

    assert len(large.binder.bound) == ALONE + TOGETHER


class Timings(Observer):
    """Records timed calls of plugins."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()

    def plugin_called(self, plugin: str, point: str, failed: bool, seconds: float) -> None:
        self.calls[plugin, point] += 1


async def test_timed_attempts_are_bound_together_with_the_others(
    large: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time of the Bind plugin is the attempt's own: every second attempt is timed here."""
    rolls, timings = itertools.cycle([1, 0]), Timings()
    monkeypatch.setattr(large.wing.timer, "_observer", timings)
    monkeypatch.setattr(large.wing.timer, "_randomness", SimpleNamespace(below=lambda _: next(rolls)))

    await large.pods(*burst(ALONE + 2 * TOGETHER))

    assert large.binder.together == [TOGETHER, TOGETHER]
    assert timings.calls["DefaultBinder", "bind"] == ALONE // 2 + TOGETHER
    assert large.wing.timer.counts["s"]["DefaultBinder", "bind"] == large.binder.sent
