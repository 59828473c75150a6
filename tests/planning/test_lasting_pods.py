"""Pods that no scheduler bound, and nodes above 100 %, are no reason to move others until they last."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.cluster.watch_events import NodeAdded, PodAdded
from plimsoll.model.kinds.pod import Pod
from plimsoll.planning.planners import LASTS_S
from plimsoll.testing.builders import a_node, a_pod
from rebalancing.scene import Scene, a_policy, status_of, web

LOW = {
    "name": "LowNodeUtilization",
    "args": {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 80}},
}
APART = {"name": "RemovePodsViolatingInterPodAntiAffinity"}
BOUND = [{"type": "PodScheduled", "status": "True"}]
PLANNERS = ["Proven", "Optimal"]


def a_scene() -> Scene:
    """Two nodes of four cores: on the first, three pods of one core each belong to a tenant."""
    scene = Scene()
    scene.gone(web(1, "bad"))
    scene.gone(web(2, "good"))
    scene.tell(
        NodeAdded(a_node("n1", cpu="4")),
        NodeAdded(a_node("n2", cpu="4")),
        *(PodAdded(theirs(scene, number)) for number in (1, 2, 3)),
    )
    return scene


def before(scene: Scene, seconds: float) -> str:
    """A moment so many seconds ago."""
    return (datetime.fromtimestamp(scene.clock.now(), UTC) - timedelta(seconds=seconds)).isoformat()


def theirs(scene: Scene, number: int) -> Pod:
    """A pod of the other tenant."""
    return a_pod(
        f"db-{number}", namespace="theirs", owner="ReplicaSet/db", labels={"app": "db"}, cpu="1", node="n1",
        status=status_of("n1"), metadata={"creationTimestamp": before(scene, 3600)},
    )  # fmt: skip


def intruder(scene: Scene, status: dict[str, Any], *, age_s: float = 1.0, **spec: Any) -> Pod:
    """A pod that a user assigned to the first node, which takes 5 of its 4 cores then."""
    return a_pod(
        "evil", namespace="mine", owner="ReplicaSet/evil", labels={"app": "evil"}, status=status,
        metadata={"creationTimestamp": before(scene, age_s)}, **{"node": "n1", "cpu": "2", **spec},
    )  # fmt: skip


async def moved(scene: Scene, strategy: dict[str, Any], planner: str) -> list[str]:
    """The pods that a run of a policy evicts."""
    policy = a_policy(strategies=[strategy], planner=planner, evictor={"minReplicas": 1})
    async with scene.running(policy):
        await scene.run()
    return scene.evictor.evicted


@pytest.mark.parametrize("planner", PLANNERS)
async def test_a_pod_that_over_commits_its_node_moves_no_others(planner: str) -> None:
    """Neither before its kubelet refuses it, nor if one of its status says that it runs."""
    for status in ({"phase": "Pending"}, status_of("n1"), {"phase": "Pending", "conditions": BOUND}):
        scene = a_scene()
        scene.tell(PodAdded(intruder(scene, status)))

        assert await moved(scene, LOW, planner) == []


@pytest.mark.parametrize("planner", PLANNERS)
async def test_a_node_that_stays_over_committed_is_relieved(planner: str) -> None:
    """After five minutes its kubelet has had the time to refuse the pod."""
    scene = a_scene()
    scene.tell(PodAdded(intruder(scene, {"phase": "Pending"}, age_s=LASTS_S + 1)))

    assert set(await moved(scene, LOW, planner)) & {"db-1", "db-2", "db-3", "evil"}


@pytest.mark.parametrize(
    ("status", "is_seen"),
    [
        pytest.param({"phase": "Pending"}, False, id="assigned-by-a-user"),
        pytest.param({"phase": "Pending", "conditions": BOUND}, True, id="bound-by-a-scheduler"),
        pytest.param({"phase": "Pending", "startTime": "2026-01-01T00:00:00Z"}, True, id="started"),
        pytest.param(status_of("n1"), True, id="running"),
    ],
)
@pytest.mark.parametrize("planner", PLANNERS)
async def test_a_pod_that_no_scheduler_bound_moves_no_others_by_its_anti_affinity(
    status: dict[str, Any], is_seen: bool, planner: str
) -> None:
    """Its node has room for it, so it counts as soon as somebody has checked that."""
    scene = a_scene()
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "db"}},
        "namespaces": ["theirs"],
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    scene.tell(PodAdded(intruder(scene, status, cpu="100m", affinity=affinity)))

    assert bool(await moved(scene, APART, planner)) is is_seen


async def test_planner_upstream_sees_all_pods_as_descheduler_does() -> None:
    scene = a_scene()
    scene.tell(PodAdded(intruder(scene, {"phase": "Pending"})))

    assert await moved(scene, LOW, "Upstream") != []


async def test_pods_that_the_scheduler_has_just_bound_count() -> None:
    """They are assumed on their nodes before the watch shows them there."""
    scene = a_scene()
    waiting = intruder(scene, {"phase": "Pending"}, node="", cpu="900m")
    scene.cache.assume(scene.cache.info(waiting), "n1")

    assert await moved(scene, LOW, "Proven") != []
