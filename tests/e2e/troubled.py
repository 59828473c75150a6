"""Troubled starts: pods placed so that a strategy has something to mend."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from e2e.measures import PREFERRED, REQUIRED
from e2e.polls import eventually
from e2e.speaker import STRATEGIC

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from e2e.scene import Obj, Scene

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
GPU = "example.com/gpu"
GONE: Obj = {"key": "gone", "effect": "NoSchedule"}


async def place(scene: Scene, app: str, on: Mapping[str, int], **spec: Any) -> None:
    """Pods of one ReplicaSet, so many on each node: they are made first, and then adopted.

    Args:
        scene: Where.
        app: Name of the ReplicaSet, and label of its pods.
        on: How many on which node, by the name that the test gave it.
        **spec: Further fields of the pods' spec.
    """
    labels, template = {"app": app}, scene.pod_spec(**{"terminationGracePeriodSeconds": 0, **spec})
    for node, count in on.items():
        for number in range(count):
            document = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{app}-{node}-{number}", "labels": labels},
                "spec": {**template, "nodeName": f"{scene.name}-{node}"},
            }
            await scene.make(scene.path("pods"), document)
    await scene.make(
        scene.path("replicasets", "/apis/apps/v1"),
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": app},
            "spec": {
                "replicas": sum(on.values()),
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": template},
            },
        },
    )

    async def adopted() -> int:
        return sum(
            bool(pod["metadata"].get("ownerReferences"))
            for pod in await scene.pods(app=app)
            if pod["status"].get("phase") == "Running"
        )

    await eventually(adopted, lambda count: count == sum(on.values()))


async def nodes(scene: Scene, *names: str, **options: Any) -> None:
    """Add nodes that are alike."""
    await asyncio.gather(*(scene.node(name, **options) for name in names))


async def tell(scene: Scene, pod: Obj, **status: Any) -> None:
    """Change a pod's status as its kubelet would."""
    path = scene.path(f"pods/{pod['metadata']['name']}/status")
    (await scene.speaker.request("PATCH", path, {"status": status}, sends=STRATEGIC)).accepted()


async def label(scene: Scene, pod: Obj, **labels: str) -> None:
    """Put labels on a pod."""
    path = scene.path(f"pods/{pod['metadata']['name']}")
    change = {"metadata": {"labels": labels}}
    (await scene.speaker.request("PATCH", path, change, sends=STRATEGIC)).accepted()


async def crowded(scene: Scene) -> None:
    """Three pods of one owner on one of three nodes."""
    await nodes(scene, "a", "b", "c")
    await place(scene, "web", {"a": 3})


async def broken_node(scene: Scene) -> None:
    """A node gets a taint that two of its three pods tolerate; one of the others has a taint of its own."""
    await nodes(scene, "old", "new")
    await scene.node("apart", taints=[{"key": "apart", "effect": "NoSchedule"}])
    await place(scene, "web", {"old": 1, "new": 1})
    await place(scene, "hardy", {"old": 2}, tolerations=[{"key": "gone", "operator": "Exists"}])
    await scene.change_node(f"{scene.name}-old", {"spec": {"taints": [GONE]}})


async def lost_label(scene: Scene) -> None:
    """A node loses the label that a pod on it requires; one of the others never had it."""
    await nodes(scene, "old", "new", "third", labels={"disk": "ssd"})
    await scene.node("other", labels={"disk": "hdd"})
    terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
    await place(
        scene,
        "web",
        {"old": 1, "new": 1},
        affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}},
    )
    await scene.change_node(f"{scene.name}-old", {"metadata": {"labels": {"disk": "hdd"}}})


def prefers(**weights: int) -> Obj:
    """The affinity of a pod to nodes with certain kinds of disk."""
    return {
        "nodeAffinity": {
            PREFERRED: [
                {
                    "weight": weight,
                    "preference": {
                        "matchExpressions": [{"key": "disk", "operator": "In", "values": [value]}]
                    },
                }
                for value, weight in weights.items()
            ]
        }
    }


async def better_node(scene: Scene) -> None:
    """A node with what two pods prefer comes after they were placed."""
    await scene.node("old", labels={"disk": "hdd"})
    await scene.node("new", labels={"disk": "ssd"})
    await place(scene, "web", {"old": 2}, affinity=prefers(ssd=100))


async def best_node(scene: Scene) -> None:
    """Two pods on a node that they do not care for; one that they like and one that they prefer."""
    await scene.node("old", labels={"disk": "hdd"})
    await scene.node("good", labels={"disk": "sas"})
    await scene.node("best", labels={"disk": "ssd"})
    await place(scene, "web", {"old": 2}, affinity=prefers(sas=90, ssd=100))


async def too_close(scene: Scene) -> None:
    """Three pods that must not be near one another, two of them on one node."""
    await nodes(scene, "a", "b", "c")
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOSTNAME}
    await place(scene, "web", {"a": 2, "b": 1}, affinity={"podAntiAffinity": {REQUIRED: [term]}})


def spread(when: str) -> list[Obj]:
    """One constraint over zones."""
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": when}
    return [{**rule, "labelSelector": {"matchLabels": {"app": "web"}}}]


async def uneven_zones(scene: Scene) -> None:
    """Four pods in one zone and none in the other."""
    await nodes(scene, "x1", "x2", labels={ZONE: "x"})
    await scene.node("y", labels={ZONE: "y"})
    await place(scene, "web", {"x1": 2, "x2": 2}, topologySpreadConstraints=spread("DoNotSchedule"))


async def uneven_zones_softly(scene: Scene) -> None:
    """Four pods in one zone, whose other node is the one that they prefer; the other zone is busy."""
    await scene.node("x1", labels={ZONE: "x", "disk": "hdd"})
    await scene.node("x2", labels={ZONE: "x", "disk": "ssd"})
    await scene.node("y", labels={ZONE: "y", "disk": "hdd"})
    await place(scene, "busy", {"y": 2}, cpu="1500m")
    await place(
        scene,
        "web",
        {"x1": 4},
        affinity=prefers(ssd=100),
        topologySpreadConstraints=spread("ScheduleAnyway"),
    )


async def overused(scene: Scene) -> None:
    """One node at 80 %, one at 40 %, one empty."""
    await nodes(scene, "full", "middle", "idle")
    await place(scene, "web", {"full": 2, "middle": 1}, cpu="800m")
    await place(scene, "api", {"full": 2, "middle": 1}, cpu="800m")


async def underused(scene: Scene) -> None:
    """Two nodes at 15 % and 5 %, an empty one, and a busy one with room for all."""
    await nodes(scene, "busy", "small", "tiny", "empty")
    await place(scene, "db", {"busy": 2}, cpu="1")
    await place(scene, "web", {"small": 2}, cpu="300m")
    await place(scene, "api", {"tiny": 2})


async def little_used(scene: Scene) -> None:
    """A busy node, a little used one, and an empty one."""
    await nodes(scene, "busy", "little", "empty")
    await place(scene, "db", {"busy": 2}, cpu="1100m")
    await place(scene, "web", {"little": 2})


def on_nodes(*names: str) -> Callable[[Scene], Awaitable[None]]:
    """Starts with old pods on the first of the nodes."""

    async def old_pods(scene: Scene) -> None:
        await nodes(scene, *names)
        await place(scene, "web", {names[0]: 2})
        await place(scene, "api", {names[0]: 2})
        for pod in await scene.pods(app="web"):
            await label(scene, pod, age="old")
        await asyncio.sleep(1)  # until they are older than the policy's limit

    return old_pods


def crashing(*names: str) -> Callable[[Scene], Awaitable[None]]:
    """Starts with two pods on the first of the nodes, one of which was restarted again and again."""

    async def restarted(scene: Scene) -> None:
        await nodes(scene, *names)
        await place(scene, "web", {names[0]: 2})
        for pod, count in zip(await scene.pods(app="web"), (2, 200), strict=True):
            (status,) = pod["status"]["containerStatuses"]
            await tell(scene, pod, containerStatuses=[{**status, "restartCount": count}])

    return restarted


async def with_a_failed_pod(scene: Scene) -> None:
    """One of two pods fails; its owner has made another one already."""
    await nodes(scene, "a", "b")
    await place(scene, "web", {"a": 2})
    pod = (await scene.pods(app="web"))[0]
    await tell(scene, pod, phase="Failed", reason="Evicted")
    await scene.until_running(2, app="web")


async def fragmented(scene: Scene) -> None:
    """One GPU of four is used on each of two nodes."""
    await nodes(scene, "a", "b", allocatable={GPU: "4"})
    for app, node in (("web", "a"), ("api", "b")):
        requests = {"cpu": "100m", GPU: "1"}
        containers = [
            {"name": "app", "image": "pause", "resources": {"requests": requests, "limits": {GPU: "1"}}}
        ]
        await place(scene, app, {node: 1}, containers=containers)


async def no_room(scene: Scene) -> None:
    """A pod waits for 700m cpu where 400m and 500m are free."""
    await scene.node("old", cpu="1")
    await scene.node("new", cpu="500m")
    await place(scene, "small", {"old": 2}, cpu="300m")
    await scene.pod("big", cpu="700m")
    await eventually(lambda: scene.condition("big"), lambda one: one.get("reason") == "Unschedulable")


async def no_compaction(scene: Scene) -> None:
    """Nodes at 18 % and at 4 % and an empty one; the only busy node takes none of their pods."""
    await nodes(scene, "small", "tiny", "empty")
    await scene.node("busy")
    await place(scene, "db", {"busy": 2}, cpu="1", tolerations=[{"operator": "Exists"}])
    await place(scene, "web", {"small": 2}, cpu="360m")
    await place(scene, "api", {"tiny": 2}, cpu="80m")
    await scene.change_node(f"{scene.name}-busy", {"spec": {"taints": [GONE]}})


async def no_relief(scene: Scene) -> None:
    """One node at 90 %, others at 85 % and 70 %; the idle one has a taint that no pod tolerates."""
    await nodes(scene, "full", "fuller", "filled")
    await scene.node("idle", taints=[GONE])
    await place(scene, "web", {"full": 9}, cpu="400m")
    await place(scene, "api", {"fuller": 5}, cpu="680m")
    await place(scene, "db", {"filled": 2}, cpu="1400m")
