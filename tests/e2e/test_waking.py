"""Plugin by event: a pod that a plugin rejected sleeps through what cannot help it, and wakes at what may.

Each case makes a pod wait because of one plugin, tells the operator of a change that this plugin's hints
refuse (the operator has handled it, and no pod entered a queue), then of one that helps: the pod is bound.

Not here: NodeName (a pod that names its node never waits), DynamicResources (nothing helps a pod that it
refused) and NodeDeclaredFeatures (API servers accept such pods behind feature gates only); their
registrations are tested in tests/plugins/test_hints.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from e2e.scene import LABEL
from e2e.waking_stage import Stage, disk, listening, mounting, near

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from e2e.operator_process import Operator
    from e2e.scene import Scene

pytestmark = pytest.mark.e2e

ZONE = "topology.kubernetes.io/zone"


def taint(value: str) -> dict[str, str]:
    return {"key": "dedicated", "value": value, "effect": "NoSchedule"}


async def resources_fit_by_allocatable(stage: Stage) -> None:
    """A node that grows, too little and then enough."""
    node = await stage.set_up(cpu="1")
    await stage.scene.pod("waits", cpu="3")
    await stage.rejected("NodeResourcesFit")
    await stage.sleeps_through("NodeUpdateNodeAllocatable", stage.allocatable(node, cpu="2"))
    await stage.wakes_at("NodeUpdateNodeAllocatable", stage.allocatable(node, cpu="4"))


async def resources_fit_by_new_node(stage: Stage) -> None:
    """A node that is too small, then one that is not."""
    await stage.set_up(cpu="1")
    await stage.scene.pod("waits", cpu="3")
    await stage.rejected("NodeResourcesFit")
    elsewhere = {LABEL: "elsewhere"}  # or NodeAffinity, which may have rejected other nodes, would be glad
    await stage.sleeps_through("NodeAdd", stage.scene.node("b", cpu="1", labels=elsewhere))
    await stage.wakes_at("NodeAdd", stage.scene.node("c", cpu="4"))


async def resources_fit_by_deleted_pod(stage: Stage) -> None:
    """A label of the pod that is in the way, then its deletion."""
    await stage.set_up(cpu="4")
    await stage.running("first", cpu="3")
    await stage.scene.pod("waits", cpu="3")
    await stage.rejected("NodeResourcesFit")
    await stage.sleeps_through("AssignedPodUpdatePodLabel", stage.pod_labels("first", seen="yes"))
    await stage.wakes_at("AssignedPodDelete", stage.delete_pod("first"))


async def unschedulable_by_uncordoned_node(stage: Stage) -> None:
    """A label of the cordoned node, then it is cordoned no longer."""
    node = await stage.set_up()
    await stage.node_spec(node, unschedulable=True)
    await stage.scene.pod("waits")
    await stage.rejected("NodeUnschedulable")
    await stage.sleeps_through("NodeUpdateNodeLabel", stage.node_labels(node, seen="yes"))
    await stage.wakes_at("NodeUpdateNodeTaint", stage.node_spec(node, unschedulable=False))


async def unschedulable_by_toleration(stage: Stage) -> None:
    """A label of the pod, then a toleration."""
    node = await stage.set_up()
    await stage.node_spec(node, unschedulable=True)
    made = await stage.scene.pod("waits")
    await stage.rejected("NodeUnschedulable")
    await stage.sleeps_through("NodeUpdateNodeLabel", stage.node_labels(node, seen="yes"))
    tolerations = [*made["spec"].get("tolerations", ()), {"operator": "Exists"}]
    await stage.wakes_at(
        "UnschedulablePodUpdatePodToleration", stage.pod_spec("waits", tolerations=tolerations)
    )


async def taint_by_node(stage: Stage) -> None:
    """Another taint, then none."""
    node = await stage.set_up(taints=[taint("one")])
    await stage.scene.pod("waits")
    await stage.rejected("TaintToleration")
    await stage.sleeps_through("NodeUpdateNodeTaint", stage.node_spec(node, taints=[taint("other")]))
    await stage.wakes_at("NodeUpdateNodeTaint", stage.node_spec(node, taints=None))


async def taint_by_toleration(stage: Stage) -> None:
    """A label of the node, then a toleration of the pod."""
    node = await stage.set_up(taints=[taint("one")])
    made = await stage.scene.pod("waits")
    await stage.rejected("TaintToleration")
    await stage.sleeps_through("NodeUpdateNodeLabel", stage.node_labels(node, seen="yes"))
    tolerations = [*made["spec"].get("tolerations", ()), {"key": "dedicated", "operator": "Exists"}]
    await stage.wakes_at(
        "UnschedulablePodUpdatePodToleration", stage.pod_spec("waits", tolerations=tolerations)
    )


async def node_affinity_by_label(stage: Stage) -> None:
    """A label with another value, then the right one."""
    node = await stage.set_up()
    await stage.scene.pod("waits", nodeSelector={LABEL: stage.scene.name, "disk": "ssd"})
    await stage.rejected("NodeAffinity")
    await stage.sleeps_through("NodeUpdateNodeLabel", stage.node_labels(node, disk="hdd"))
    await stage.wakes_at("NodeUpdateNodeLabel", stage.node_labels(node, disk="ssd"))


async def node_affinity_by_new_node(stage: Stage) -> None:
    """A node without the label, then one that has it from the beginning."""
    await stage.set_up()
    await stage.scene.pod("waits", nodeSelector={LABEL: stage.scene.name, "disk": "ssd"})
    await stage.rejected("NodeAffinity")
    await stage.sleeps_through("NodeAdd", stage.scene.node("b"))
    await stage.wakes_at("NodeAdd", stage.scene.node("c", labels={"disk": "ssd"}))


async def ports_by_deleted_pod(stage: Stage) -> None:
    """A pod with another port leaves, then the one with that port."""
    await stage.set_up()
    await stage.running("other", containers=listening(19090))
    await stage.running("first", containers=listening(18080))
    await stage.scene.pod("waits", containers=listening(18080))
    await stage.rejected("NodePorts")
    await stage.sleeps_through("AssignedPodDelete", stage.delete_pod("other"))
    await stage.wakes_at("AssignedPodDelete", stage.delete_pod("first"))


async def restrictions_by_deleted_pod(stage: Stage) -> None:
    """A pod with another disk leaves, then the one with that disk."""
    await stage.set_up()
    await stage.running("other", volumes=disk("another"))
    await stage.running("first", volumes=disk("shared"))
    await stage.scene.pod("waits", volumes=disk("shared"))
    await stage.rejected("VolumeRestrictions")
    await stage.sleeps_through("AssignedPodDelete", stage.delete_pod("other"))
    await stage.wakes_at("AssignedPodDelete", stage.delete_pod("first"))


async def restrictions_by_claim(stage: Stage) -> None:
    """Somebody else's claim, then the pod's own."""
    await stage.set_up()
    await stage.scene.pod("waits", volumes=mounting("mine"))
    await stage.rejected("VolumeRestrictions")
    await stage.sleeps_through("PersistentVolumeClaimAdd", stage.volume("theirs"))
    await stage.wakes_at("PersistentVolumeClaimAdd", stage.volume("mine"))


async def volume_limits_by_limit(stage: Stage) -> None:
    """The same limit with a note on it, then a higher one."""
    node = await stage.set_up()
    await stage.limit(node, 1)
    await stage.volume("one")
    await stage.volume("two")
    await stage.running("first", volumes=mounting("one"))
    await stage.scene.pod("waits", volumes=mounting("two"))
    await stage.rejected("NodeVolumeLimits")
    noted = {"metadata": {"annotations": {"seen": "yes"}}}
    await stage.sleeps_through(
        "CSINodeUpdate", stage.patch(f"/apis/storage.k8s.io/v1/csinodes/{node}", noted)
    )
    await stage.wakes_at("CSINodeUpdate", stage.limit(node, 2))


async def volume_limits_by_deleted_pod(stage: Stage) -> None:
    """A pod without volumes leaves, then one with a volume."""
    node = await stage.set_up()
    await stage.limit(node, 1)
    await stage.volume("one")
    await stage.volume("two")
    await stage.running("first", volumes=mounting("one"))
    await stage.running("other")
    await stage.scene.pod("waits", volumes=mounting("two"))
    await stage.rejected("NodeVolumeLimits")
    await stage.sleeps_through("AssignedPodDelete", stage.delete_pod("other"))
    await stage.wakes_at("AssignedPodDelete", stage.delete_pod("first"))


async def volume_binding_by_label(stage: Stage) -> None:
    """Somebody else's claim, then the node comes to where the pod's volume is."""
    node = await stage.set_up(labels={"rack": "one"})
    there = [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["two"]}]}]
    await stage.volume("mine", nodeAffinity={"required": {"nodeSelectorTerms": there}})
    await stage.scene.pod("waits", volumes=mounting("mine"))
    await stage.rejected("VolumeBinding")
    await stage.sleeps_through("PersistentVolumeClaimAdd", stage.claim("theirs"))
    await stage.wakes_at("NodeUpdateNodeLabel", stage.node_labels(node, rack="two"))


async def volume_zone_by_label(stage: Stage) -> None:
    """The volume is noted upon, then the node comes to its zone."""
    node = await stage.set_up(labels={ZONE: "one"})
    volume = await stage.volume("mine", labels={ZONE: "two"})
    await stage.scene.pod("waits", volumes=mounting("mine"))
    await stage.rejected("VolumeZone")
    noted = {"metadata": {"annotations": {"seen": "yes"}}}
    await stage.sleeps_through(
        "PersistentVolumeUpdate", stage.patch(f"/api/v1/persistentvolumes/{volume}", noted)
    )
    moved = {"metadata": {"labels": {ZONE: "two"}}}
    await stage.wakes_at("NodeUpdateNodeLabel", stage.patch(f"/api/v1/nodes/{node}", moved))


def spreading(app: str) -> list[dict[str, object]]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        }
    ]


async def skewed(stage: Stage) -> str:
    """One of two zones holds a pod of the app, the other one takes none; the name of that one's node."""
    await stage.set_up(labels={"zone": "one"})
    await stage.running("first", labels={"app": "web"})
    await stage.running("other")
    full = await stage.scene.node("b", labels={"zone": "two"}, taints=[taint("full")])
    await stage.scene.pod("seer", cpu="1m", nodeName=full)  # the operator has seen the node when it sees this
    await stage.scene.pod("waits", labels={"app": "web"}, topologySpreadConstraints=spreading("web"))
    await stage.rejected("PodTopologySpread")
    return full


async def spread_by_deleted_pod(stage: Stage) -> None:
    """A pod that is not counted leaves, then one that is."""
    await skewed(stage)
    await stage.sleeps_through("AssignedPodDelete", stage.delete_pod("other"))
    await stage.wakes_at("AssignedPodDelete", stage.delete_pod("first"))


async def spread_by_label(stage: Stage) -> None:
    """A node has another label, then none of a zone: the empty zone is no more."""
    full = await skewed(stage)
    await stage.sleeps_through("NodeUpdateNodeLabel", stage.node_labels(full, seen="yes"))
    await stage.wakes_at("NodeUpdateNodeLabel", stage.node_labels(full, zone=None))


async def affinity_by_new_pod(stage: Stage) -> None:
    """A pod of another app comes, then the one that is wanted."""
    await stage.set_up(labels={"zone": "one"})
    await stage.scene.pod("waits", affinity=near("db"))
    await stage.rejected("InterPodAffinity")
    await stage.sleeps_through("AssignedPodAdd", stage.running("other", labels={"app": "web"}))
    await stage.wakes_at("AssignedPodAdd", stage.running("wanted", labels={"app": "db"}))


async def affinity_by_label(stage: Stage) -> None:
    """A running pod becomes another app, then the one that is wanted."""
    await stage.set_up(labels={"zone": "one"})
    await stage.running("other")
    await stage.scene.pod("waits", affinity=near("db"))
    await stage.rejected("InterPodAffinity")
    await stage.sleeps_through("AssignedPodUpdatePodLabel", stage.pod_labels("other", app="web"))
    await stage.wakes_at("AssignedPodUpdatePodLabel", stage.pod_labels("other", app="db"))


async def anti_affinity_by_deleted_pod(stage: Stage) -> None:
    """A harmless pod leaves, then the one to be far from."""
    await stage.set_up(labels={"zone": "one"})
    await stage.running("other")
    await stage.running("first", labels={"app": "noisy"})
    await stage.scene.pod("waits", affinity=near("noisy", anti=True))
    await stage.rejected("InterPodAffinity")
    await stage.sleeps_through("AssignedPodDelete", stage.delete_pod("other"))
    await stage.wakes_at("AssignedPodDelete", stage.delete_pod("first"))


async def gates_by_their_removal(stage: Stage) -> None:
    """A node comes, then one of two gates goes, then the other."""
    await stage.set_up()
    gates = [{"name": "example.com/one"}, {"name": "example.com/two"}]
    await stage.scene.pod("waits", schedulingGates=gates)
    await stage.sleeps_through("NodeAdd", stage.scene.node("b"))
    await stage.pod_spec("waits", schedulingGates=gates[1:])
    await stage.wakes_at(
        "UnschedulablePodUpdatePodSchedulingGatesEliminated", stage.pod_spec("waits", schedulingGates=[])
    )


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(resources_fit_by_allocatable, id="NodeResourcesFit-NodeUpdateNodeAllocatable"),
        pytest.param(resources_fit_by_new_node, id="NodeResourcesFit-NodeAdd"),
        pytest.param(resources_fit_by_deleted_pod, id="NodeResourcesFit-AssignedPodDelete"),
        pytest.param(unschedulable_by_uncordoned_node, id="NodeUnschedulable-NodeUpdateNodeTaint"),
        pytest.param(unschedulable_by_toleration, id="NodeUnschedulable-UpdatePodToleration"),
        pytest.param(taint_by_node, id="TaintToleration-NodeUpdateNodeTaint"),
        pytest.param(taint_by_toleration, id="TaintToleration-UpdatePodToleration"),
        pytest.param(node_affinity_by_label, id="NodeAffinity-NodeUpdateNodeLabel"),
        pytest.param(node_affinity_by_new_node, id="NodeAffinity-NodeAdd"),
        pytest.param(ports_by_deleted_pod, id="NodePorts-AssignedPodDelete"),
        pytest.param(restrictions_by_deleted_pod, id="VolumeRestrictions-AssignedPodDelete"),
        pytest.param(restrictions_by_claim, id="VolumeRestrictions-PersistentVolumeClaimAdd"),
        pytest.param(volume_limits_by_limit, id="NodeVolumeLimits-CSINodeUpdate"),
        pytest.param(volume_limits_by_deleted_pod, id="NodeVolumeLimits-AssignedPodDelete"),
        pytest.param(volume_binding_by_label, id="VolumeBinding-NodeUpdateNodeLabel"),
        pytest.param(volume_zone_by_label, id="VolumeZone-NodeUpdateNodeLabel"),
        pytest.param(spread_by_deleted_pod, id="PodTopologySpread-AssignedPodDelete"),
        pytest.param(spread_by_label, id="PodTopologySpread-NodeUpdateNodeLabel"),
        pytest.param(affinity_by_new_pod, id="InterPodAffinity-AssignedPodAdd"),
        pytest.param(affinity_by_label, id="InterPodAffinity-AssignedPodUpdatePodLabel"),
        pytest.param(anti_affinity_by_deleted_pod, id="InterPodAffinity-AssignedPodDelete"),
        pytest.param(gates_by_their_removal, id="SchedulingGates-UpdatePodSchedulingGatesEliminated"),
    ],
)
async def test_a_plugin_is_woken_by_what_may_help_and_by_nothing_else(
    scene: Scene, operator: Operator, case: Callable[[Stage], Awaitable[None]]
) -> None:
    """The table of plugins and events."""
    await case(Stage(scene, operator))
