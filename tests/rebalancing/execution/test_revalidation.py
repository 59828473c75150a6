"""Moves that are judged again in a thread, while the cluster changes."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from plimsoll.api.v1alpha1.annotations import STOP
from plimsoll.cluster.watch_events import ObjectAdded, PodAdded
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.objects import Namespace  # type: ignore[attr-defined] # known to exist in this test
from plimsoll.planning.moves import Move, workload_of
from plimsoll.rebalancing.execution import revalidation
from plimsoll.rebalancing.moves.events import Revalidated
from plimsoll.rebalancing.moves.instructions import Revalidate
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import InlineComputer
from rebalancing.scene import Scene, a_policy

T = TypeVar("T")


@pytest.fixture(autouse=True)
def _in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revalidation, "MANY_PODS", 0)


class Meanwhile(InlineComputer):
    """Has something happen while a move is judged, once for each of ``events``; keeps the verdicts."""

    def __init__(self, *events: Callable[[], Any]) -> None:
        self.events = list(events)
        self.verdicts: list[Move | Refusal] = []

    async def compute(self, function: Callable[[], T]) -> T:
        """The function's result, of before the event."""
        result = function()
        if isinstance(result, tuple) and isinstance(result[0], Move | Refusal):
            self.verdicts.append(result[0])
            if self.events:
                self.events.pop(0)()
        return result


def a_scene(**kwargs: Any) -> tuple[Scene, Meanwhile]:
    computer = Meanwhile()
    return Scene(computer=computer, **kwargs), computer


def filler(name: str, cpu: str = "100m") -> PodAdded:
    return PodAdded(a_pod(name, node="good", cpu=cpu, status={"phase": "Running"}))


async def test_a_move_is_judged_once_where_nothing_happens() -> None:
    """As on the event loop: recorded, then evicted; no copy of the cluster is kept after the run."""
    scene, computer = a_scene()

    async with scene.running(a_policy()):
        await scene.run()

    assert (scene.evictor.evicted, len(computer.verdicts)) == (["web-1"], 1)
    assert scene.wing.runs.modes.feeder.revalidator._copy is None


async def test_room_that_is_taken_meanwhile_is_not_counted_on() -> None:
    """The verdict is of before; the move is judged again, and its pod stays."""
    scene, computer = a_scene()
    computer.events = [lambda: scene.tell(filler("large", "1000"))]

    async with scene.running(a_policy()):
        await scene.run()

    first, second = computer.verdicts
    assert isinstance(first, Move)
    assert isinstance(second, Refusal)
    assert scene.evictor.evicted == []


async def test_what_happens_elsewhere_does_not_count() -> None:
    """A pod that no node takes yet, for instance."""
    scene, computer = a_scene()
    computer.events = [lambda: scene.tell(PodAdded(a_pod("waits")))]

    async with scene.running(a_policy()):
        await scene.run()

    assert (scene.evictor.evicted, len(computer.verdicts)) == (["web-1"], 1)


async def test_the_last_verdict_is_found_on_the_event_loop() -> None:
    """A target to which pods come all the time does not keep a move from being judged."""
    scene, computer = a_scene()
    computer.events = [lambda number=number: scene.tell(filler(f"f{number}")) for number in range(9)]  # type: ignore[misc] # a default, not an argument

    async with scene.running(a_policy()):
        await scene.run()

    assert (scene.evictor.evicted, len(computer.verdicts)) == (["web-1"], revalidation.ROUNDS)


async def test_the_stop_button_counts_while_a_move_is_judged() -> None:
    """It is no part of the cluster, so the verdict stands; nothing is evicted all the same."""
    scene, computer = a_scene()
    pressed = Namespace(metadata=ObjectMeta(name="plimsoll", annotations={STOP: "true"}))
    computer.events = [lambda: scene.tell(ObjectAdded(pressed))]

    async with scene.running(a_policy()):
        await scene.run()

    assert scene.evictor.evicted == []


async def test_a_policy_that_goes_meanwhile_moves_nothing() -> None:
    """Its move is called off."""
    scene, computer = a_scene()
    computer.events = [lambda: scene.rebalancers.drop("tidy")]

    async with scene.running(a_policy()):
        await scene.run()

    assert scene.evictor.evicted == []


async def test_moves_are_judged_one_at_a_time() -> None:
    """What one reserves, the next one sees, although both are judged in threads."""
    scene, computer = a_scene()
    gate, inside, most = asyncio.Event(), 0, 0
    plain = computer.compute

    async def slow(function: Callable[[], Any]) -> Any:
        nonlocal inside, most
        inside, most = inside + 1, max(most, inside + 1)
        await gate.wait()
        inside -= 1
        return await plain(function)

    revalidator = scene.wing.runs.modes.feeder.revalidator
    async with scene.running(a_policy("Approve")):
        await scene.run()
        (key,) = scene.keeper.known
        state = scene.wing.executor.machine.moves[key]
        order = Revalidate(key, _proposed(scene), state.bundle, 0)
        computer.compute = slow  # type: ignore[method-assign] # replaced for this test
        both = [asyncio.create_task(revalidator.judge(order)) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gate.set()
        answers = await asyncio.gather(*both)

    assert most == 1
    assert {type(each) for each in answers} == {Revalidated}


def _proposed(scene: Scene) -> Move:
    pod = next(each for each in scene.cache.cluster.pods.values() if each.name == "web-1")
    return Move(
        pod=pod,
        strategy="RemovePodsViolatingNodeTaints",
        reason="",
        source="bad",
        target="good",
        gain=None,
        ties=1,
        is_forecast=False,
        workload=workload_of(pod),
    )
