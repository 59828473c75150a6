"""Stories that use every right of the operator, or every right of a dry run.

The test that plays them decides under which rights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from e2e.gangs import a_core_group, a_gang, core_condition, serves_core_groups, until_phase
from e2e.node_maintenances import maintenance
from e2e.node_maintenances import until_phase as until_maintained
from e2e.polls import eventually
from e2e.scene import POLICIES, Scene
from e2e.served_extenders import Extender, extenders_served, with_extenders
from e2e.speaker import MERGE

if TYPE_CHECKING:
    from e2e.scene import Obj

#: The annotation of a node whose kubelet the development cluster simulates.
KUBELET = "roadstead.test/kubelet"

#: What it uses where the server has composite groups (test_composite_groups.py).
_OF_COMPOSITE_GROUPS = {
    (verb, "scheduling.k8s.io", resource)
    for verb, resource in (
        ("list", "compositepodgroups"),
        ("watch", "compositepodgroups"),
        ("patch", "compositepodgroups/status"),
    )
}
#: What an operator is granted and does not use in these stories; the count of an event that comes again
#: changes after a minute.
LATER = {("patch", "events.k8s.io", "events"), *_OF_COMPOSITE_GROUPS}
#: What it uses of Rollouts and CloneSets where there are any (test_scaled_kinds.py); it always lists them.
OF_OTHER_KINDS = {
    (verb, group, resource)
    for group, plural in (("argoproj.io", "rollouts"), ("apps.kruise.io", "clonesets"))
    for verb, resource in (("get", plural), ("patch", f"{plural}/scale"))
}
LATER_IN_A_DRY_RUN = {*LATER, ("delete", "plimsoll.dev", "evictions")}  # predictions are kept for a while


async def everything(scene: Scene) -> None:
    """Placing, telling why not, preempting, moving, recording, tidying up, choosing volumes, maintenance."""
    high: Obj = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    }
    await scene.make("/apis/scheduling.k8s.io/v1/priorityclasses", high)
    old = await scene.node("old", cpu="1")
    await scene.scheduling()
    await scene.deployment("web", 2)
    await scene.node("new", cpu="1")
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    name = await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints", records={"maxCount": 1}))
    await eventually(lambda: scene.running(app="web"), lambda nodes: len(nodes) == 2 and old not in nodes)
    await scene.until_finished(1)
    await scene.runs(name, 2)
    await scene.speaker.request("DELETE", f"{POLICIES}/{name}")
    await scene.pod("low", cpu="700m")
    await scene.until_bound("low")
    await scene.pod("high", cpu="700m", priorityClassName="high")
    await scene.until_bound("high")
    await claims_that_wait(scene)
    await a_gang(scene, "gang", 2, cpu="10m")
    await until_phase(scene, "gang", "Running")
    if await serves_core_groups(scene):
        await a_core_group(scene, "core", 1)
        await scene.pod("member", cpu="10m", schedulingGroup={"podGroupName": "core"})
        await eventually(lambda: core_condition(scene, "core"), lambda found: found == ("True", "Scheduled"))
    await a_pod_of_an_extender(scene)
    await a_run_by_measurements(scene)
    await an_emptied_node(scene)
    await a_rule(scene)
    await until_maintained(scene, await maintenance(scene, await scene.node("serviced")), "Drained")


async def a_rule(scene: Scene) -> None:
    """The owner of the namespace restricts moves, and reads what her rule holds back."""
    rules = scene.path("rebalancingrules", "/apis/plimsoll.dev/v1alpha1")
    rule = {"metadata": {"name": "slowly"}, "spec": {"maxMovesPerHour": 1000}}
    await scene.make(rules, {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "RebalancingRule", **rule})
    await eventually(
        lambda: scene.speaker.request("GET", f"{rules}/slowly"), lambda found: "status" in found.accepted()
    )


async def a_run_by_measurements(scene: Scene) -> None:
    """The metrics API is asked; the development cluster serves it while a node has a simulated kubelet."""
    node: Obj = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"{scene.name}-measured", "annotations": {KUBELET: "simulated"}},
        "spec": {"unschedulable": True},
    }
    await scene.make("/api/v1/nodes", node)
    measured = {
        "name": "LowNodeUtilization",
        "args": {
            "thresholds": {"cpu": 20},
            "targetThresholds": {"cpu": 50},
            "metricsUtilization": {"source": "KubernetesMetrics"},
        },
    }
    provider = {"source": "KubernetesMetrics"}
    spec = scene.rebalancing(measured, mode="DryRun", metricsProviders=[provider])
    await scene.runs(await scene.policy(spec, "measured"), 1)


async def an_emptied_node(scene: Scene) -> None:
    """Closed, emptied, closed still."""
    apart = await Scene(scene.speaker).begin()
    _, idle = await consolidation(apart)
    await apart.until_finished(2)
    assert "plimsoll.dev/consolidating" in [each["key"] for each in await taints_of(apart, idle)]


async def consolidation(
    scene: Scene, mode: str = "Enforce", siblings: int = 1, price: str = ""
) -> tuple[str, str]:
    """A busy node and a little used one, and a policy that empties it; their names.

    Args:
        scene: Where.
        mode: Of the policy.
        siblings: Pods of one owner on the little used node, next to one of another.
        price: What the little used node says that it costs an hour.
    """
    busy = await scene.node("busy")
    await scene.scheduling()
    labels = {"set": "web"}
    await scene.deployment("db", 1, labels=labels, cpu="1500m")
    await scene.change_node(busy, {"spec": {"unschedulable": True}})
    idle = await scene.node("idle")
    if price:
        await scene.change_node(idle, {"metadata": {"annotations": {"plimsoll.dev/price-per-hour": price}}})
    for name, replicas in (("api", siblings), ("job", 1)):
        await scene.deployment(name, replicas, labels=labels)
    await scene.change_node(busy, {"spec": {"unschedulable": None}})
    asked = scene.rebalancing("ConsolidateNodes", mode=mode, evictor={"minReplicas": 1})
    await scene.policy(asked, "consolidation")
    return busy, idle


async def taints_of(scene: Scene, node: str) -> list[Obj]:
    """The taints of a node."""
    found = (await scene.speaker.request("GET", f"/api/v1/nodes/{node}")).accepted()
    taints: list[Obj] = found["spec"].get("taints", [])
    return taints


async def a_pod_of_an_extender(scene: Scene) -> None:
    """It is read whole, to be shown."""
    with extenders_served() as served:
        extender = Extender(served, scene.name)
        await extender.does(filter={"only": [f"{scene.name}-new"]})
        scheduler, _ = await with_extenders(scene, {"urlPrefix": extender.url, "filterVerb": "filter"})
        await scene.pod("extended", schedulerName=scheduler, cpu="1m")
        await scene.until_bound("extended")


async def claims_that_wait(scene: Scene) -> None:
    """A pod whose claims get a volume that exists, and one that is provisioned; until both are reported."""
    storage, claims = "/apis/storage.k8s.io/v1/storageclasses", scene.path("persistentvolumeclaims")
    document: Obj = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": "example.com/disks",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    await scene.make(storage, document)
    wanted: Obj = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"}
    volume: Obj = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "spec": {**wanted, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/disk"}},
    }
    await scene.make("/api/v1/persistentvolumes", volume)
    available = {"status": {"phase": "Available"}}
    path = "/api/v1/persistentvolumes/disk"
    (await scene.speaker.request("PATCH", f"{path}/status", available, sends=MERGE)).accepted()
    for name, size in (("found", "1Gi"), ("made", "2Gi")):
        claim: Obj = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {**wanted, "resources": {"requests": {"storage": size}}},
        }
        await scene.make(claims, claim)
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("found", "made")]
    await scene.pod("stateful", cpu="10m", volumes=volumes)

    async def told() -> tuple[object, object]:
        kept = (await scene.speaker.request("GET", path)).accepted()["spec"].get("claimRef", {}).get("name")
        meta = (await scene.speaker.request("GET", f"{claims}/made")).accepted()["metadata"]
        return kept, meta.get("annotations", {}).get("volume.kubernetes.io/selected-node")

    await eventually(told, lambda found: found[0] == "found" and found[1])


async def a_prediction(scene: Scene) -> tuple[str, str]:
    """Moves that are planned and recorded, and not made; the names of the policy and of the pods' node."""
    old = await scene.node("old")
    bound: Obj = {"nodeName": old, "schedulerName": "default-scheduler"}
    await scene.deployment("web", 2, **bound)
    await scene.node("new")
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    predicting = scene.rebalancing("RemovePodsViolatingNodeTaints", mode="DryRun", records={"maxCount": 1})
    predicting["scope"]["otherSchedulers"] = ["default-scheduler"]
    name = await scene.policy(predicting)
    await scene.until_finished(1)
    await scene.runs(
        name, 4
    )  # some seconds: the lease is renewed, and records above their number are deleted
    assert await scene.running(app="web") == [old, old]
    await a_run_by_measurements(scene)
    return name, old


async def a_surge(scene: Scene) -> None:
    """Replicas move by a rollout, and by one replica more; neither becomes ready, so both are taken back."""
    await a_stranded_service(scene, {"progressDeadlineSeconds": 5}, readies_pods=False, several=2)
    records = await scene.until_finished(2)
    told = sorted(record["status"]["message"].rpartition("; ")[2] for record in records)
    assert told[0] == "the Deployment wants as many replicas again as before"
    assert told[1].endswith(" stays")


async def a_stranded_service(
    scene: Scene, rollout: Obj | None = None, *, readies_pods: bool = True, several: int = 0
) -> tuple[str, str]:
    """One replica on a node that has come to be broken, another node, and a policy that surges.

    With ``several`` there is a service of so many replicas as well.
    """
    old = await scene.node("old")
    await scene.scheduling()
    await scene.deployment("web", 1, rollout=rollout)
    if several:
        await scene.deployment("several", several, rollout=rollout)
    await scene.node("new", readies_pods=readies_pods)
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    name = await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints", surge=True))
    return name, old
