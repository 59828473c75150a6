"""Protections of a policy's evictor, seen through a run with the default planner."""

from typing import Any

import pytest

from plimsoll.cluster.watch_events import PodAdded
from plimsoll.testing.builders import a_pod
from rebalancing.scene import POLICY, Scene, a_policy, status_of

CRITICAL = 2_000_000_000


async def fate(evictor: dict[str, Any], priority: int = CRITICAL, planner: str = "Proven") -> Any:
    """Why the pod of a priority stays, "" when it is evicted."""
    scene = Scene()
    for number in (1, 2):
        node = ("bad", "good")[number - 1]
        scene.tell(
            PodAdded(
                a_pod(
                    f"dns-{number}",
                    node=node,
                    owner="ReplicaSet/dns",
                    cpu="100m",
                    priority=priority,
                    status=status_of(node),
                )
            )
        )
    async with scene.running(a_policy(planner=planner, evictor=evictor)):
        await scene.run()
    if "dns-1" in scene.evictor.evicted:
        return ""
    return next(
        each["reason"]
        for each in scene.statuses.statuses[POLICY]["counts"]["refused"]
        if each["reason"] != "OutOfScope"
    )


DISABLED = {"podProtections": {"defaultDisabled": ["SystemCriticalPods"]}}


@pytest.mark.parametrize("planner", ["Proven", "Optimal", "Upstream"])
@pytest.mark.parametrize(("evictor", "why"), [({}, "SystemCriticalPods"), (DISABLED, "")])
async def test_system_critical_pods_go_once_their_protection_is_disabled(
    evictor: dict[str, Any], why: str, planner: str
) -> None:
    """And only then."""
    assert await fate(evictor, planner=planner) == why


@pytest.mark.parametrize(
    ("planner", "why"), [("Proven", "PriorityThreshold"), ("Optimal", "PriorityThreshold"), ("Upstream", "")]
)
async def test_a_threshold_that_is_given_stands_by_itself(planner: str, why: str) -> None:
    """Descheduler drops it together with the protection."""
    given = {**DISABLED, "priorityThreshold": {"value": 1000}}

    assert await fate(given, planner=planner) == why
    assert await fate(given, priority=999, planner=planner) == ""
