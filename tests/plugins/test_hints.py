"""Queueing hints of every plugin, for one pod and one event each.

Rows follow the order of the default profile. A row that no registration of the plugin covers counts as no.
"""

from typing import Any

import numpy as np
import pytest

from devices.builders import a_claim
from plimsoll.cluster.changes import node_changes, pod_changes, waiting_changes
from plimsoll.framework import (
    ActionType,
    ClusterEvent,
    EnqueueExtensions,
    EventResource,
    QueueingHint,
    Registry,
)
from plimsoll.framework.columns import Cluster, LoadBook, LoadFall
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod_info import PodInfo, Templates
from plimsoll.model.kinds.resource_slice import DeviceClass, DeviceClassSpec
from plimsoll.model.kinds.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from plimsoll.model.kinds.workload import Namespace
from plimsoll.plugins import IN_TREE
from plimsoll.testing.builders import a_node, a_pod

REGISTRY = Registry(IN_TREE)

#: Plugins that upstream does not have, or whose registrations are ours: tested with what they wait for.
ELSEWHERE = {"DefaultPreemption", "FairShare"}
TEMPLATES = Templates()
OBJECTS = ClusterObjects(namespaces={"far": Namespace(metadata=ObjectMeta(name="far", labels={"team": "a"}))})
DRIVER = "disk.example"


def info(name: Any = "pod", **options: Any) -> PodInfo:
    return TEMPLATES.info(a_pod(name, **options))


def obj(
    kind: Any,
    name: str,
    namespace: str = "",
    annotations: dict[str, Any] | None = None,
    labels: dict[str, Any] | None = None,
    **fields: Any,
) -> Any:
    metadata = {
        "name": name,
        "namespace": namespace,
        "annotations": annotations or {},
        "labels": labels or {},
    }
    return convert(kind, {"metadata": metadata, **fields})


def woken(plugin: str, pod: PodInfo, changes: list[ClusterEvent], args: dict[str, Any] | None = None) -> bool:
    """Whether any of the changes is covered by a registration whose hint says QUEUE."""
    built = REGISTRY.build(plugin, args, "spec")
    assert isinstance(built, EnqueueExtensions)
    return any(
        registered.covers(change.resource, change.action)
        and (registered.hint is None or registered.hint(pod, change) is QueueingHint.QUEUE)
        for change in changes
        for registered in built.events_to_register()
    )


def fell(before: float, after: float) -> list[ClusterEvent]:
    """The cpu of a node of ten cores, in percent."""
    cluster = Cluster()
    fall = LoadFall(
        np.array([[before, 0.0, 0.0, 0.0]]),
        np.array([[after, 0.0, 0.0, 0.0]]),
        np.array([[10**10, 2**36]]),
        np.array([False]),
        LoadBook(cluster),
    )
    return [ClusterEvent(EventResource.NODE_LOAD, ActionType.UPDATE, None, fall)]


def node(old: Any = None, new: Node | None = None) -> list[ClusterEvent]:
    """The events that ingestion emits for a node that came, went or changed."""
    if old is None or new is None:
        action = ActionType.ADD if old is None else ActionType.DELETE
        return [ClusterEvent(EventResource.NODE, action, old, new, OBJECTS)]
    return [ClusterEvent(EventResource.NODE, bit, old, new, OBJECTS) for bit in node_changes(old, new)]


def placed(old: PodInfo | None = None, new: PodInfo | None = None) -> list[ClusterEvent]:
    """The events that it emits for a pod with a node."""
    if old is None or new is None:
        action = ActionType.ADD if old is None else ActionType.DELETE
        return [ClusterEvent(EventResource.ASSIGNED_POD, action, old, new, OBJECTS)]
    return [ClusterEvent(EventResource.ASSIGNED_POD, bit, old, new, OBJECTS) for bit in pod_changes(old, new)]


def own(old: PodInfo, new: PodInfo) -> list[ClusterEvent]:
    """What the queue makes of an update of the waiting pod."""
    return [
        ClusterEvent(EventResource.UNSCHEDULABLE_POD, bit, old, new, OBJECTS)
        for bit in waiting_changes(old, new)
    ]


def thing(old: Any = None, new: Any = None) -> list[ClusterEvent]:
    """The events that ingestion emits for an object of another kind."""
    action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE
    kind = type(old if new is None else new).__name__
    return [ClusterEvent(kind, action, old, new, OBJECTS)]


def check(
    plugin: str, pod: PodInfo, changes: list[ClusterEvent], expected: bool, case: str
) -> pytest.ParameterSet:
    return pytest.param(plugin, pod, changes, expected, id=f"{plugin}-{case}")


def far(**labels: str) -> Namespace:
    return Namespace(metadata=ObjectMeta(name="far", labels=labels))


DEVICES = info(resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}])
ALLOCATED = a_claim("other", status={"allocation": {"devices": {"results": []}}})


def devices(resource: EventResource, old: Any, new: Any) -> list[ClusterEvent]:
    return [ClusterEvent(resource, ActionType.ADD if old is None else ActionType.UPDATE, old, new, OBJECTS)]


def serving(resource: str | None) -> DeviceClass:
    return DeviceClass(metadata=ObjectMeta(name="c"), spec=DeviceClassSpec(extended_resource_name=resource))


def of_claim(old: Any, new: Any) -> list[ClusterEvent]:
    return devices(EventResource.RESOURCE_CLAIM, old, new)


def generated(pod: PodInfo) -> list[ClusterEvent]:
    action = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    return [ClusterEvent(EventResource.UNSCHEDULABLE_POD, action, pod, pod, OBJECTS)]


def on(name: str = "other", **options: Any) -> PodInfo:
    return info(name, node="n1", **options)


def term(app: str, *, anti: bool = False, **more: Any) -> dict[str, Any]:
    found = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone", **more}
    kind = "podAntiAffinity" if anti else "podAffinity"
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [found]}}


NEAR_TEAM = term("db", namespaceSelector={"matchLabels": {"team": "a"}})


def terms(*apps: str) -> dict[str, Any]:
    """Anti-affinity to the pods of each."""
    each = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"podAntiAffinity": {each: [term(app)["podAffinity"][each][0] for app in apps]}}


def spread(app: str = "web", **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
            **more,
        }
    ]


TOLERATES_ALL = [{"operator": "Exists"}]
CORDONED, OPEN = a_node("n", unschedulable=True), a_node("n")
TAINTED, OTHERWISE_TAINTED = a_node("n", taints=["a=b:NoSchedule"]), a_node("n", taints=["a=c:NoSchedule"])
PORT = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]
OTHER_PORT = [{"name": "c", "ports": [{"containerPort": 81, "hostPort": 81}]}]
CLAIM = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
OTHER_CLAIM = [{"name": "v", "persistentVolumeClaim": {"claimName": "else"}}]
EPHEMERAL = [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
DISK = [{"name": "v", "gcePersistentDisk": {"pdName": "d"}}]
OTHER_DISK = [{"name": "v", "gcePersistentDisk": {"pdName": "e"}}]
INLINE = [{"name": "v", "csi": {"driver": DRIVER}}]


def claim(name: str = "data", namespace: str = "default", **more: Any) -> Any:
    return obj(PersistentVolumeClaim, name, namespace, **more)


def limits(count: int, **more: Any) -> Any:
    drivers = [] if count is None else [{"name": DRIVER, "allocatable": {"count": count}}]  # type: ignore[redundant-expr] # mypy does not see the change
    return obj(CSINode, "n", spec={"drivers": drivers}, **more)


def room(capacity: str, largest: str = "1Gi") -> Any:
    return obj(CSIStorageCapacity, "c", "ns", capacity=capacity, maximumVolumeSize=largest)


def a_class(mode: str = "WaitForFirstConsumer", **more: Any) -> Any:
    return obj(StorageClass, "s", provisioner="p", volumeBindingMode=mode, **more)


def attached(driver: str = DRIVER) -> Any:
    return obj(VolumeAttachment, "a", spec={"attacher": driver, "nodeName": "n"})


WAKES, SLEEPS = True, False

ROWS = [
    check("SchedulingGates", info(), own(info(schedulingGates=[{"name": "g"}]), info()), WAKES, "last-gate"),
    check("SchedulingGates", info(), node(None, OPEN), SLEEPS, "node"),
    check("NodeUnschedulable", info(), node(None, OPEN), WAKES, "new"),
    check("NodeUnschedulable", info(), node(None, CORDONED), SLEEPS, "new-cordoned"),
    check("NodeUnschedulable", info(), node(CORDONED, OPEN), WAKES, "uncordoned"),
    check("NodeUnschedulable", info(), node(OPEN, TAINTED), SLEEPS, "was-open"),
    check("NodeUnschedulable", info(), own(info(), info(tolerations=TOLERATES_ALL)), WAKES, "toleration"),
    check(
        "NodeUnschedulable",
        info(),
        own(info(), info(tolerations=[{"key": "x", "operator": "Exists"}])),
        SLEEPS,
        "other-toleration",
    ),
    check("NodeName", info(), node(None, OPEN), WAKES, "new"),
    check("NodeName", info(), node(OPEN, TAINTED), SLEEPS, "update"),
    check("TaintToleration", info(), node(TAINTED, OPEN), WAKES, "untainted"),
    check("TaintToleration", info(), node(TAINTED, OTHERWISE_TAINTED), SLEEPS, "another-taint"),
    check("TaintToleration", info(), node(None, OPEN), WAKES, "new"),
    check("TaintToleration", info(), node(None, TAINTED), SLEEPS, "new-tainted"),
    check(
        "TaintToleration", info(tolerations=TOLERATES_ALL), node(TAINTED, OTHERWISE_TAINTED), SLEEPS, "before"
    ),
    check("TaintToleration", info(), own(info(), info(tolerations=TOLERATES_ALL)), WAKES, "toleration"),
    *(
        check(
            "NodeAffinity",
            info(nodeSelector={"disk": "ssd"}),
            node(before and a_node("n", labels=before), a_node("n", labels=now)),
            expected,
            case,
        )
        for before, now, expected, case in (
            (None, {"disk": "ssd"}, WAKES, "new"),
            (None, {}, SLEEPS, "new-without"),
            ({"disk": "hdd"}, {"disk": "ssd"}, WAKES, "relabelled"),
            ({"disk": "ssd"}, {"disk": "ssd", "x": "y"}, SLEEPS, "matched-before"),
            ({"disk": "ssd"}, {"disk": "hdd"}, SLEEPS, "matches-no-longer"),
        )
    ),
    check("NodePorts", info(containers=PORT), node(None, OPEN), WAKES, "new"),
    check("NodePorts", info(containers=PORT), placed(on(containers=PORT)), WAKES, "holder-left"),
    check("NodePorts", info(containers=PORT), placed(on(containers=OTHER_PORT)), SLEEPS, "another-left"),
    check("NodeResourcesFit", info(cpu="2"), placed(on()), WAKES, "pod-left"),
    check("NodeResourcesFit", info(cpu="2"), placed(None, on()), SLEEPS, "pod-came"),
    check("NodeResourcesFit", info(cpu="2"), placed(on(cpu="3"), on(cpu="1")), WAKES, "pod-shrank"),
    check(
        "NodeResourcesFit", info(cpu="2"), placed(on(memory="3Gi"), on(memory="1Gi")), SLEEPS, "not-wanted"
    ),
    check("NodeResourcesFit", info(cpu="2"), own(info(cpu="4"), info(cpu="2")), WAKES, "own-shrank"),
    check("NodeResourcesFit", info(cpu="2"), own(info(cpu="1"), info(cpu="2")), SLEEPS, "own-grew"),
    *(
        check("NodeResourcesFit", info(requests={name: "1"}), thing(old, new), expected, case)
        for name, old, new, expected, case in (
            ("example.com/gpu", None, serving("example.com/gpu"), WAKES, "class-serves"),
            ("example.com/gpu", serving(None), serving("example.com/gpu"), WAKES, "class-serves-now"),
            ("example.com/gpu", serving("example.com/gpu"), serving("example.com/gpu"), SLEEPS, "class-same"),
            ("example.com/gpu", None, serving("example.com/nic"), SLEEPS, "class-serves-others"),
            ("deviceclass.resource.kubernetes.io/c", None, serving(None), WAKES, "class-by-its-name"),
        )
    ),
    check("NodeResourcesFit", info(cpu="2"), node(None, a_node("n", cpu="2")), WAKES, "new"),
    check("NodeResourcesFit", info(cpu="2"), node(None, a_node("n", cpu="1")), SLEEPS, "new-too-small"),
    check("NodeResourcesFit", info(cpu="2"), node(a_node("n", cpu="1"), a_node("n", cpu="2")), WAKES, "grew"),
    check(
        "NodeResourcesFit",
        info(cpu="2"),
        node(a_node("n", cpu="4", memory="1Gi"), a_node("n", cpu="4", memory="2Gi")),
        SLEEPS,
        "grew-in-what-is-not-wanted",
    ),
    check(
        "NodeResourcesFit", info(cpu="2"), node(a_node("n", cpu="4"), a_node("n", cpu="3")), SLEEPS, "less"
    ),
    check("VolumeRestrictions", info(volumes=CLAIM), placed(on(volumes=CLAIM)), WAKES, "shared-claim"),
    check("VolumeRestrictions", info(volumes=CLAIM), placed(on(volumes=OTHER_CLAIM)), SLEEPS, "other-claim"),
    check(
        "VolumeRestrictions",
        info(volumes=CLAIM),
        placed(on(volumes=CLAIM, namespace="far")),
        SLEEPS,
        "elsewhere",
    ),
    check("VolumeRestrictions", info(volumes=DISK), placed(on(volumes=DISK)), WAKES, "shared-disk"),
    check(
        "VolumeRestrictions",
        info(volumes=DISK),
        placed(on(volumes=DISK, namespace="other")),
        WAKES,
        "disk-elsewhere",
    ),
    check("VolumeRestrictions", info(volumes=DISK), placed(on(volumes=OTHER_DISK)), SLEEPS, "other-disk"),
    check("VolumeRestrictions", info(volumes=CLAIM), thing(None, claim()), WAKES, "its-claim"),
    check("VolumeRestrictions", info(volumes=CLAIM), thing(None, claim("else")), SLEEPS, "another-claim"),
    check("VolumeRestrictions", info(volumes=CLAIM), node(None, OPEN), WAKES, "node"),
    check("NodeVolumeLimits", info(volumes=CLAIM), thing(None, limits(1)), WAKES, "new-limits"),
    check("NodeVolumeLimits", info(volumes=CLAIM), thing(limits(1), limits(2)), WAKES, "limit-rose"),
    check("NodeVolumeLimits", info(volumes=CLAIM), thing(limits(2), limits(1)), SLEEPS, "limit-fell"),
    check("NodeVolumeLimits", info(volumes=CLAIM), placed(on(volumes=OTHER_CLAIM)), WAKES, "user-left"),
    check("NodeVolumeLimits", info(volumes=CLAIM), placed(on(volumes=EPHEMERAL)), WAKES, "ephemeral-left"),
    check("NodeVolumeLimits", info(volumes=CLAIM), placed(on(volumes=DISK)), WAKES, "disk-left"),
    check("NodeVolumeLimits", info(volumes=CLAIM), placed(on()), SLEEPS, "pod-without-left"),
    check("NodeVolumeLimits", info(volumes=CLAIM), placed(info("n", volumes=CLAIM)), SLEEPS, "promise-only"),
    check("NodeVolumeLimits", info(volumes=CLAIM), thing(None, claim()), WAKES, "its-claim"),
    check(
        "NodeVolumeLimits", info("p", volumes=EPHEMERAL), thing(None, claim("p-v")), WAKES, "its-ephemeral"
    ),
    check("NodeVolumeLimits", info(volumes=CLAIM), thing(None, claim("else")), SLEEPS, "another-claim"),
    check("NodeVolumeLimits", info(volumes=CLAIM), thing(attached()), WAKES, "detached"),
    check("NodeVolumeLimits", info(volumes=INLINE), thing(attached()), SLEEPS, "detached-for-no-claim"),
    check(
        "NodeVolumeLimits",
        info(volumes=DISK),
        thing(attached("pd.csi.storage.gke.io")),
        WAKES,
        "detached-by-its-driver",
    ),
    check("VolumeBinding", info(volumes=CLAIM), node(None, OPEN), WAKES, "new"),
    check("VolumeBinding", info(volumes=CLAIM), node(OPEN, a_node("n", labels={"z": "1"})), WAKES, "label"),
    check("VolumeBinding", info(volumes=CLAIM), node(OPEN, TAINTED), SLEEPS, "taint"),
    check("VolumeBinding", info(volumes=CLAIM), thing(None, obj(PersistentVolume, "v")), WAKES, "volume"),
    check("VolumeBinding", info(volumes=CLAIM), thing(claim(), claim()), WAKES, "its-claim"),
    check("VolumeBinding", info("p", volumes=EPHEMERAL), thing(None, claim("p-v")), WAKES, "its-ephemeral"),
    check("VolumeBinding", info(volumes=CLAIM), thing(None, claim(namespace="far")), SLEEPS, "far-claim"),
    check("VolumeBinding", info(volumes=CLAIM), thing(None, a_class()), WAKES, "class"),
    check(
        "VolumeBinding",
        info(volumes=CLAIM),
        thing(
            a_class(),
            a_class(allowedTopologies=[{"matchLabelExpressions": [{"key": "z", "values": ["1"]}]}]),
        ),
        WAKES,
        "topologies",
    ),
    check("VolumeBinding", info(volumes=CLAIM), thing(a_class(), a_class("Immediate")), SLEEPS, "class-same"),
    check("VolumeBinding", info(volumes=CLAIM), thing(None, limits(1)), WAKES, "csi-node"),
    check(
        "VolumeBinding",
        info(volumes=CLAIM),
        thing(
            limits(1),
            limits(1, annotations={"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd"}),
        ),
        WAKES,
        "migrated",
    ),
    check("VolumeBinding", info(volumes=CLAIM), thing(limits(1), limits(2)), SLEEPS, "csi-node-limits"),
    *(
        check(
            "VolumeBinding",
            info(volumes=volumes),
            thing(
                obj(CSIDriver, DRIVER, spec={"storageCapacity": before}),
                obj(CSIDriver, DRIVER, spec={"storageCapacity": now}),
            ),
            expected,
            case,
        )
        for volumes, before, now, expected, case in (
            (INLINE, True, False, WAKES, "driver-stops-counting"),
            (INLINE, False, True, SLEEPS, "driver-begins-counting"),
            (CLAIM, True, False, SLEEPS, "driver-of-others"),
        )
    ),
    check("VolumeBinding", info(volumes=CLAIM), thing(None, room("1Gi")), WAKES, "capacity"),
    check("VolumeBinding", info(volumes=CLAIM), thing(room("1Gi"), room("2Gi")), WAKES, "capacity-rose"),
    check("VolumeBinding", info(volumes=CLAIM), thing(room("2Gi"), room("1Gi")), SLEEPS, "capacity-fell"),
    check(
        "VolumeBinding", info(volumes=CLAIM), thing(room("2Gi", "1Gi"), room("2Gi", "2Gi")), WAKES, "largest"
    ),
    check("VolumeZone", info(volumes=CLAIM), node(OPEN, a_node("n", labels={"z": "1"})), WAKES, "label"),
    check("VolumeZone", info(volumes=CLAIM), thing(None, claim()), WAKES, "its-claim"),
    check("VolumeZone", info(volumes=CLAIM), thing(None, claim("else")), SLEEPS, "another-claim"),
    check("VolumeZone", info(volumes=CLAIM), thing(None, obj(PersistentVolume, "v")), WAKES, "volume"),
    *(
        check(
            "VolumeZone",
            info(volumes=CLAIM),
            thing(obj(PersistentVolume, "v"), obj(PersistentVolume, "v", labels={key: "1"})),
            expected,
            case,
        )
        for key, expected, case in (
            ("topology.kubernetes.io/zone", WAKES, "volume-moved"),
            ("app", SLEEPS, "volume-noted"),
        )
    ),
    check("VolumeZone", info(volumes=CLAIM), thing(None, a_class()), WAKES, "class"),
    check("VolumeZone", info(volumes=CLAIM), thing(None, a_class("Immediate")), SLEEPS, "immediate-class"),
    *(
        check("PodTopologySpread", info(topologySpreadConstraints=spread(**more)), changes, expected, case)
        for more, changes, expected, case in (
            ({}, placed(None, on(labels={"app": "web"})), WAKES, "counted-came"),
            ({}, placed(on(labels={"app": "web"})), WAKES, "counted-left"),
            ({}, placed(on(labels={"app": "db"})), SLEEPS, "other-left"),
            ({}, placed(on(labels={"app": "web"}, namespace="far")), SLEEPS, "far-left"),
            ({}, placed(on(labels={"app": "web"}), on(labels={"app": "db"})), WAKES, "relabelled"),
            (
                {},
                placed(on(labels={"app": "web"}), on(labels={"app": "web", "x": "y"})),
                SLEEPS,
                "relabelled-beside",
            ),
            ({}, own(info(labels={"app": "web"}), info(labels={"app": "db"})), WAKES, "own-label"),
            ({}, own(info(), info(tolerations=TOLERATES_ALL)), SLEEPS, "own-toleration"),
            (
                {"nodeTaintsPolicy": "Honor"},
                own(info(), info(tolerations=TOLERATES_ALL)),
                WAKES,
                "own-toleration-honoured",
            ),
            ({}, node(None, a_node("n", labels={"zone": "a"})), WAKES, "new"),
            ({}, node(None, OPEN), SLEEPS, "new-without-key"),
            ({}, node(a_node("n", labels={"zone": "a"}), None), WAKES, "gone"),
            ({}, node(OPEN, None), SLEEPS, "gone-without-key"),
            ({}, node(OPEN, a_node("n", labels={"zone": "a"})), WAKES, "key-gained"),
            ({}, node(a_node("n", labels={"zone": "a"}), OPEN), WAKES, "key-lost"),
            (
                {},
                node(a_node("n", labels={"zone": "a"}), a_node("n", labels={"zone": "b"})),
                WAKES,
                "zone-changed",
            ),
            (
                {},
                node(a_node("n", labels={"zone": "a"}), a_node("n", labels={"zone": "a", "x": "y"})),
                SLEEPS,
                "label-beside",
            ),
            (
                {},
                node(
                    a_node("n", labels={"zone": "a"}),
                    a_node("n", labels={"zone": "a"}, taints=["a=b:NoSchedule"]),
                ),
                WAKES,
                "taint",
            ),
        )
    ),
    *(
        check("InterPodAffinity", info(affinity=affinity, **more), changes, expected, case)
        for affinity, more, changes, expected, case in (
            (NEAR_TEAM, {}, thing(None, far(team="a")), WAKES, "namespace-came"),
            (NEAR_TEAM, {}, thing(None, far(team="b")), SLEEPS, "other-namespace-came"),
            (NEAR_TEAM, {}, thing(far(), far(team="a")), WAKES, "namespace-selected"),
            (NEAR_TEAM, {}, thing(far(team="a"), far()), WAKES, "namespace-not-selected"),
            (NEAR_TEAM, {}, thing(far(team="a"), far(team="a", x="y")), SLEEPS, "namespace-beside"),
            (term("db"), {}, thing(far(), far(team="a")), SLEEPS, "namespace-of-others"),
            (term("db"), {"namespace": "far"}, thing(far(), far(team="a")), WAKES, "own-namespace"),
            (term("db"), {"namespace": "far"}, thing(far(x="y"), far(x="y")), SLEEPS, "own-as-before"),
            (term("db"), {}, placed(None, on(labels={"app": "db"})), WAKES, "wanted-came"),
            (term("db"), {}, placed(None, on(labels={"app": "web"})), SLEEPS, "other-came"),
            (
                term("db", namespaceSelector={"matchLabels": {"team": "a"}}),
                {},
                placed(None, on(labels={"app": "db"}, namespace="far")),
                WAKES,
                "wanted-came-to-a-selected-namespace",
            ),
            (term("db"), {}, placed(on(labels={"app": "db"})), SLEEPS, "wanted-left"),
            (term("me"), {"labels": {"app": "me"}}, placed(on(labels={"app": "me"})), WAKES, "may-be-first"),
            (
                term("me"),
                {"labels": {"app": "me"}},
                placed(on(labels={"app": "me"}), on()),
                WAKES,
                "may-be-first-of-those-labelled",
            ),
            (
                terms("db", "web"),
                {},
                placed(on(labels={"app": "web"})),
                WAKES,
                "one-of-two-unwanted-left",
            ),
            (
                terms("db", "web"),
                {},
                placed(on(labels={"app": "web"}), on(labels={"app": "db"})),
                WAKES,
                "unwanted-by-another-term",
            ),
            (terms("db", "web"), {}, placed(on(labels={"app": "x"})), SLEEPS, "other-of-two-left"),
            (
                None,
                {"labels": {"app": "me"}},
                placed(on(affinity=terms("you", "me"))),
                WAKES,
                "shy-of-two-left",
            ),
            (term("db", anti=True), {}, placed(on(labels={"app": "db"})), WAKES, "unwanted-left"),
            (term("db", anti=True), {}, placed(on()), SLEEPS, "other-left"),
            (None, {"labels": {"app": "me"}}, placed(on(affinity=term("me", anti=True))), WAKES, "shy-left"),
            (
                None,
                {"labels": {"app": "me"}},
                placed(on(affinity=term("you", anti=True))),
                SLEEPS,
                "shy-of-you",
            ),
            (term("db"), {}, placed(on(), on(labels={"app": "db"})), WAKES, "became-wanted"),
            (term("db"), {}, placed(on(labels={"app": "db"}), on()), SLEEPS, "became-other"),
            (term("db", anti=True), {}, placed(on(labels={"app": "db"}), on()), WAKES, "no-longer-unwanted"),
            (term("db"), {}, own(info(), info(labels={"app": "x"})), WAKES, "own-label"),
            (term("db"), {}, node(None, a_node("n", labels={"zone": "a"})), WAKES, "new"),
            (term("db"), {}, node(None, OPEN), SLEEPS, "new-without-key"),
            (term("db", anti=True), {}, node(None, OPEN), WAKES, "new-for-the-shy"),
            (None, {}, node(None, OPEN), WAKES, "new-for-those-kept-away"),
            (None, {}, node(a_node("n", labels={"zone": "a"}), OPEN), WAKES, "left-zone-of-the-shy"),
            (None, {}, node(OPEN, a_node("n", labels={"zone": "a"})), SLEEPS, "came-into-zone-of-the-shy"),
            (term("db"), {}, node(OPEN, a_node("n", labels={"zone": "a"})), WAKES, "key-gained"),
            (term("db"), {}, node(a_node("n", labels={"zone": "a"}), OPEN), SLEEPS, "key-lost"),
            (term("db"), {}, node(a_node("n", labels={"rack": "a"}), OPEN), WAKES, "left-another-domain"),
            (term("db", anti=True), {}, node(a_node("n", labels={"zone": "a"}), OPEN), WAKES, "left-zone"),
            (
                term("db", anti=True),
                {},
                node(OPEN, a_node("n", labels={"zone": "a"})),
                SLEEPS,
                "came-into-zone",
            ),
        )
    ),
    check("DynamicResources", info(), node(None, OPEN), WAKES, "new"),
    check("DynamicResources", info(), node(OPEN, TAINTED), SLEEPS, "other-update"),
    check("DynamicResources", DEVICES, devices(EventResource.RESOURCE_SLICE, None, object()), WAKES, "slice"),
    check("DynamicResources", DEVICES, devices(EventResource.DEVICE_CLASS, None, object()), WAKES, "class"),
    check("DynamicResources", DEVICES, of_claim(None, a_claim()), WAKES, "its-claim"),
    check("DynamicResources", DEVICES, of_claim(None, a_claim("other")), SLEEPS, "other-claim"),
    check("DynamicResources", DEVICES, of_claim(ALLOCATED, a_claim("other")), WAKES, "devices-became-free"),
    check("DynamicResources", DEVICES, of_claim(a_claim(), a_claim()), SLEEPS, "same-status"),
    check("DynamicResources", DEVICES, generated(DEVICES), WAKES, "claims-were-made"),
    check("DynamicResources", DEVICES, generated(info("other")), SLEEPS, "of-another-pod"),
    check("DynamicResources", DEVICES, generated(info(uid="later")), SLEEPS, "of-a-later-pod-of-the-name"),
    check("DynamicResources", DEVICES, generated(info(namespace="far")), SLEEPS, "of-its-name-elsewhere"),
    check("NodeDeclaredFeatures", info(), node(None, OPEN), WAKES, "new"),
    check(
        "NodeDeclaredFeatures",
        info(),
        node(OPEN, a_node("n", status={"declaredFeatures": ["F"]})),
        WAKES,
        "declares-more",
    ),
    check("NodeDeclaredFeatures", info(), node(OPEN, TAINTED), SLEEPS, "other-update"),
    check(
        "NodeDeclaredFeatures",
        info(),
        own(info(hostNetwork=True, hostUsers=False), info(hostNetwork=True)),
        WAKES,
        "needs-less",
    ),
    check("NodeDeclaredFeatures", info(), own(info(), info(labels={"x": "y"})), SLEEPS, "needs-the-same"),
    check("NodeLoad", info(), node(None, OPEN), WAKES, "new"),
    check("NodeLoad", info(), placed(on()), WAKES, "somebody-left"),
    check("NodeLoad", info(), fell(90, 60), SLEEPS, "no-line"),
]


@pytest.mark.parametrize(("plugin", "pod", "changes", "expected"), ROWS)
def test_a_change_wakes(plugin: str, pod: PodInfo, changes: list[ClusterEvent], expected: bool) -> None:
    """As kube-scheduler's plugin would."""
    assert changes or not expected
    assert woken(plugin, pod, changes) is expected


def test_an_added_affinity_counts_like_the_pods_own() -> None:
    """A node that the profile does not allow is no reason to try again."""
    required = {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}]
    }
    args = {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    pod = info(nodeSelector={"disk": "ssd"})

    only_own, both = a_node("n", labels={"disk": "ssd"}), a_node("n", labels={"disk": "ssd", "pool": "a"})

    assert woken("NodeAffinity", pod, node(only_own, both), args)
    assert not woken("NodeAffinity", pod, node(None, only_own), args)
    assert woken("NodeAffinity", pod, node(None, both), args)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(70, 60, True), (90, 70, False), (64, 55, True), (63, 55, False), (70, 64, False)],
)
def test_a_node_that_fell_below_its_line_with_the_pod_wakes(before: int, after: int, expected: bool) -> None:
    """The pod is expected to use 2 % of the node."""
    args = {"usageThresholds": {"cpu": 65}}

    assert woken("NodeLoad", info(cpu="235m"), fell(before, after), args) is expected
    peaks = {"aggregated": {"usageThresholds": {"cpu": 65}}}
    assert not woken("NodeLoad", info(cpu="235m"), fell(before, after), peaks)


def test_ignored_resources_wake_no_pod_and_hinder_none() -> None:
    """The filter does not look at them, nor does the hint."""
    pod = info(cpu="1", requests={"example.com/gpu": "8"})
    args = {"ignoredResources": ["example.com/gpu"]}

    assert woken("NodeResourcesFit", pod, node(None, a_node("n", cpu="4")), args)
    assert not woken("NodeResourcesFit", pod, node(None, a_node("n", cpu="4")))


def test_every_registration_of_every_plugin_is_exercised() -> None:
    """A plugin that registers for something new gets a row here."""
    for cls in IN_TREE:
        if not hasattr(cls, "events_to_register") or cls.name in ELSEWHERE:
            continue
        for registered in REGISTRY.build(cls.name, None, "spec").events_to_register():  # type: ignore[attr-defined] # known to exist in this test
            rows = [
                change
                for row in ROWS
                for change in row.values[2]
                if row.values[0] == cls.name and registered.covers(change.resource, change.action)
            ]
            assert rows, (cls.name, registered.resource, registered.actions.label)
