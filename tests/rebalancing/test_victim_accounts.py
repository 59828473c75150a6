"""Victims of preemption bear the policy's name on record, and count in none of its rebalancing's accounts."""

from datetime import UTC, datetime

import pytest

from plimsoll.records.record import PREEMPTION
from rebalancing.scene import POLICY, Scene, a_policy

MOVES = "RemovePodsViolatingNodeTaints"


def a_record(number: int, strategy: str, *phases: str, before: float = 10.0, scene: Scene) -> None:
    """A finished record of another workload: the phases it went through, the last one so many seconds ago."""
    moment = datetime.fromtimestamp(scene.clock.now() - before, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    pod = f"other-{number}"
    scene.on_record(
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "Eviction",
            "metadata": {"namespace": "default", "name": f"{pod}-abc", "creationTimestamp": moment},
            "spec": {
                "pod": {"namespace": "default", "name": pod, "uid": f"uid-{pod}"},
                "owner": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": pod, "uid": f"uid-of-{pod}"},
                "policy": POLICY,
                "strategy": strategy,
                "mode": "Enforce",
                "reason": "for a test",
                "fromNode": "bad",
            },
            "status": {
                "phase": phases[-1],
                "transitions": [{"phase": each, "time": moment} for each in phases],
            },
        }
    )


@pytest.mark.parametrize(("strategy", "evicted"), [(PREEMPTION, ["web-1"]), (MOVES, [])])
async def test_victims_use_up_nothing_of_the_minute(strategy: str, evicted: list[str]) -> None:
    """Ten a minute are allowed; ten victims leave all of them, ten moves none."""
    scene = Scene()
    for number in range(10):
        a_record(number, strategy, "Planned", "Evicting", "Evicted", "Settled", scene=scene)

    async with scene.running(a_policy(limits={"perMinute": 10})):
        await scene.run()

    assert scene.evictor.evicted == evicted


@pytest.mark.parametrize(("strategy", "resting"), [(PREEMPTION, True), (MOVES, False)])
async def test_a_victim_that_has_left_ends_no_rest(strategy: str, resting: bool) -> None:
    """Five moves came back, then something settled: only a move of the policy says that moves work again."""
    scene = Scene()
    for number in range(5):
        a_record(number, MOVES, "Returned", before=60 - number, scene=scene)
    a_record(9, strategy, "Planned", "Evicting", "Evicted", "Settled", before=5, scene=scene)

    async with scene.running(a_policy(limits={"perMinute": 100})):
        await scene.run()

    assert ("Resting" in scene.rebalancers.troubles(POLICY)) is resting
    assert scene.evictor.evicted == ([] if resting else ["web-1"])
