"""Tests the events on pods whose scheduler name no scheduler serves."""

from typing import Any

import pytest

from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated
from plimsoll.model.kinds.pod import Pod
from plimsoll.policies.scheduler_names import PATIENCE_S
from plimsoll.ports.events import EventNote
from plimsoll.scheduling.orphaned_pods import LOOK_S, OrphanedPods
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import FakeClock, FakeRecorder, RememberingObserver
from plimsoll.timing.signal import Signal


class Desk:
    """Somebody who looks for orphans."""

    def __init__(self, **claimed: Any) -> None:
        self.clock, self.recorder = FakeClock(), FakeRecorder()
        self.claimed = {"plimsoll": ("main", ""), **claimed}
        self.conditions = Signal()
        self.orphans = OrphanedPods(self.recorder, self.clock, RememberingObserver(), self.conditions)

    @property
    def changes(self) -> int:
        """How often the policies that are meant have changed."""
        return self.conditions.count

    async def after(self, seconds: float = PATIENCE_S) -> list[EventNote]:
        """Look after so many seconds."""
        await self.clock.advance(seconds)
        self.orphans.look(self.claimed)
        return self.recorder.notes

    def add(self, name: str, scheduler: str, **more: Any) -> Pod:
        """A pod appears."""
        pod = a_pod(name, schedulerName=scheduler, **more)
        self.orphans.observe(PodAdded(pod))
        return pod


async def test_a_typo_is_reported_once_on_the_pod_and_on_the_policy() -> None:
    """With the name that is meant."""
    desk = Desk()
    desk.add("lost", "plimsol")

    assert await desk.after(PATIENCE_S - 1) == []
    (note,) = await desk.after(1)
    assert (note.regarding["name"], note.reason, note.is_warning) == ("lost", "FailedScheduling", True)
    assert note.text == (
        'no scheduler is known that serves schedulerName "plimsol": no SchedulingPolicy has it,'
        ' and no pod with it was ever placed; did you mean "plimsoll"?'
    )
    for _ in range(100):
        assert len(await desk.after(LOOK_S)) == 1
    kind, (reason, sentence) = next(iter(desk.orphans.advice("main").items()))
    assert (kind, reason) == ("PodsOrphaned", "SchedulerNameUnknown")
    assert '1 pending with schedulerName "plimsol", such as default/lost' in sentence
    assert desk.changes == 1


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_a_pod_that_comes_back_has_its_event_again(times: int) -> None:
    """Whatever was known of it goes with it; in between it has no second event."""
    desk = Desk()
    for turn in range(1, times + 1):
        pod = desk.add("lost", "plimsol")
        assert len(await desk.after()) == turn
        assert len(await desk.after(LOOK_S)) == turn
        desk.orphans.observe(PodDeleted(pod))


async def test_it_is_over_when_the_pods_are_gone() -> None:
    """The policy's condition says so."""
    desk = Desk()
    pod = desk.add("lost", "plimsol")
    await desk.after()
    desk.orphans.observe(PodDeleted(pod))
    await desk.after(LOOK_S)

    assert desk.orphans.advice("main") == {}
    assert desk.changes == 2


@pytest.mark.parametrize(
    ("scheduler", "more"),
    [
        pytest.param("plimsoll", {}, id="a policy serves it"),
        pytest.param("default-scheduler", {}, id="the default scheduler"),
        pytest.param("x", {"schedulingGates": [{"name": "wait"}]}, id="gated"),
        pytest.param("x", {"status": {"phase": "Succeeded"}}, id="ended"),
        pytest.param(
            "x",
            {
                "status": {
                    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
                }
            },
            id="another scheduler has tried",
        ),
    ],
)
async def test_pods_that_wait_for_something_else_are_left_alone(scheduler: str, more: dict[str, Any]) -> None:
    """There is nothing to say of them."""
    desk = Desk()
    desk.add("some", scheduler, **more)

    assert await desk.after() == []


async def test_a_name_that_has_placed_pods_is_served() -> None:
    """By another scheduler, whichever that is."""
    desk = Desk()
    waiting = desk.add("waiting", "volcano")
    desk.add("placed", "volcano", node="n0")
    assert await desk.after() == []

    desk.orphans.observe(PodUpdated(waiting, waiting))
    assert await desk.after() == []


async def test_a_name_that_we_served_is_served_no_longer() -> None:
    """What was seen of it was ours."""
    desk = Desk(mine=("mine", ""))
    desk.add("placed", "mine", node="n0")
    assert await desk.after() == []
    del desk.claimed["mine"]
    desk.add("waiting", "mine")

    assert len(await desk.after()) == 1


async def test_a_policy_that_does_not_serve_its_name_says_why() -> None:
    """It is suspended."""
    desk = Desk(batch=("nightly", "spec.suspend is true"))
    desk.add("waiting", "batch")

    (note,) = await desk.after()
    assert note.text == (
        'SchedulingPolicy nightly has schedulerName "batch" and does not serve it: spec.suspend is true'
    )


async def test_many_orphans_get_their_events_little_by_little() -> None:
    """A Job with a typo is no storm."""
    desk = Desk()
    for number in range(250):
        desk.add(f"lost-{number}", "plimsol")

    assert [len(await desk.after(seconds)) for seconds in (PATIENCE_S, LOOK_S, LOOK_S, LOOK_S)] == [
        100,
        200,
        250,
        250,
    ]
