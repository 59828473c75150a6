"""Preemption: notifications, victims, their order, and failures."""

import asyncio
from typing import Any

import pytest

from engine.toys import ALL
from plimsoll.cluster.cache import Cache
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Nomination, Registry
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.scheduling.leaving_victims import LeavingVictims
from plimsoll.scheduling.preemption import Preemption
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.testing.builders import a_pod, the_info
from plimsoll.testing.fakes import FakeClock, FakePreemptor, FakeRecorder, RememberingObserver, settled

PROFILE = build_profile(ProfileConfig("s"), Registry(ALL), [Enabled("Fifo"), Enabled("Binds")])
HIGH = the_info(a_pod("high", priority=10, schedulerName="s"))


class Stage:
    def __init__(self, *answers: Any, waiting: Any = ()) -> None:
        self.preemptor, self.recorder = FakePreemptor(*answers), FakeRecorder()
        self.observer = RememberingObserver()
        self.waiting = {f"uid-default-{name}" for name in waiting}
        self.called_off: list[Any] = []
        queue = SchedulingQueue(lambda pod, at: (-pod.priority, at))
        leaving = LeavingVictims(queue, Cache(), FakeClock())
        self.preemption = Preemption(self.preemptor, self.recorder, self.observer, self._call_off, leaving)

    def _call_off(self, uid: str, plugin: str, reason: str) -> bool:
        if uid not in self.waiting:
            return False
        self.called_off.append((uid, plugin, reason))
        return True

    async def make_room(self, *victims: str, outranked: Any = ()) -> bool:
        return await self.preemption.make_room(
            HIGH,
            Nomination(
                node="n1",
                victims=tuple(the_info(a_pod(name, node="n1")) for name in victims),
                outranked=tuple(the_info(a_pod(name)) for name in outranked),
            ),
            PROFILE,
            lambda: True,
        )


async def test_victims_are_deleted_and_told_by_whom() -> None:
    """The event names the preemptor as the related object."""
    stage = Stage()

    assert await stage.make_room("a", "b", outranked=["c"])

    assert stage.preemptor.victims == ["a", "b"]
    assert stage.preemptor.cleared == ["c"]
    (first, _) = stage.recorder.notes
    assert (first.reason, first.action, first.reporter) == ("Preempted", "Preempting", "s")
    assert first.text == "Preempted by pod uid-default-high on node n1"
    assert (first.regarding["name"], first.related["name"]) == ("a", "high")  # type: ignore[index] # known to exist in this test


async def test_the_last_victim_goes_last() -> None:
    """All others concurrently; the pod is free to be tried again when the last is on its way."""
    stage = Stage()
    held = asyncio.Event()

    async def wait(victim: Pod) -> None:
        if victim.name == "a":
            await held.wait()

    stage.preemptor.before = wait
    task = asyncio.ensure_future(stage.make_room("a", "b", "c"))
    await settled()
    assert stage.preemptor.victims == ["b"]
    held.set()
    assert await task
    assert stage.preemptor.victims == ["b", "a", "c"]


async def test_a_victim_that_is_not_bound_yet_is_called_off() -> None:
    """No API call is needed."""
    stage = Stage(waiting=["a"])

    assert await stage.make_room("a", "b")

    assert await Stage(waiting=["a"]).make_room("a")
    assert stage.called_off == [("uid-default-a", "", "preempted")]
    assert stage.preemptor.victims == ["b"]
    assert stage.recorder.said("Preempted")[0].endswith("on node n1 (in kube-scheduler memory).")


@pytest.mark.parametrize("verdict", [WriteOutcome.GONE, WriteOutcome.CONFLICT])
async def test_a_victim_that_is_gone_has_made_room(verdict: WriteOutcome) -> None:
    """Or is another pod by now: it is not deleted, and not told."""
    stage = Stage(WriteResult(verdict, "not found"))

    assert await stage.make_room("a")
    assert stage.recorder.notes == []


@pytest.mark.parametrize(
    "verdict", [WriteOutcome.BUSY, WriteOutcome.UNKNOWN, WriteOutcome.REFUSED, WriteOutcome.FENCED]
)
async def test_a_victim_that_could_not_be_removed_means_trying_again(verdict: WriteOutcome) -> None:
    """The last victim stays until the others are sent, so that a retry finds the room incomplete."""
    stage = Stage(WriteResult(verdict, "later"))

    assert not await stage.make_room("a", "b")

    assert stage.preemptor.victims == []
    assert stage.recorder.notes == []
    told = [("preempting default/a", "later")]
    assert stage.observer.failures == ([] if verdict is WriteOutcome.FENCED else told)


async def test_the_last_victim_stays_when_one_of_the_others_could_not_be_removed() -> None:
    """However many of them could be."""
    stage = Stage()

    async def broken(victim: Pod) -> None:
        if victim.name == "a":
            raise ValueError("as asked")

    stage.preemptor.before = broken
    assert not await stage.make_room("a", "b", "c")
    assert stage.preemptor.victims == ["b"]


async def test_a_preemptor_that_breaks_means_trying_again() -> None:
    """Whatever it raised."""
    stage = Stage()

    async def broken(victim: Pod) -> None:
        raise ValueError("as asked")

    stage.preemptor.before = broken
    assert not await stage.make_room("a")
