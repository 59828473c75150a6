"""Measures the costs of one large object: the mirror, an attempt, the next pod, and memory that stays."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from large_objects.fields import Steps
from large_objects.largest import Writer
from large_objects.stage import Stage, a_node, a_pod, encoded
from plimsoll.model.heavy_memory import apart
from plimsoll.model.heavy_objects import HEAVY_BYTES

TENANT = "tenant"

#: How often the loop may go on with one pod before the next must be bound.
PATIENCE = 100


@dataclass(frozen=True, slots=True)
class Variant:
    """A role in which an object meets the scheduler.

    Attributes:
        name: For the table.
        amount: What each resource is requested or offered.
        node: The node of a pod that is placed already.
        spec: More fields of its spec, of a pod or a slice.
    """

    name: str
    amount: str = "0"
    node: str = ""
    spec: dict[str, Any] = field(default_factory=dict)


#: A pod that fits, one that fits nowhere, and one that its author has put on a node.
PODS = (
    Variant("pod"),
    Variant("refused pod", "1", spec={"priority": 1}),
    Variant("placed pod", "1", "node-0"),
)
ANYTHING = (Variant(""),)
_FAST = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}
#: A slice of one node, one of the nodes that it selects, and one whose devices select theirs.
SLICES = (
    *ANYTHING,
    Variant("selects nodes", spec={"nodeName": "", "nodeSelector": _FAST}),
    Variant(
        "devices select nodes",
        spec={
            "nodeName": "",
            "perDeviceNodeSelection": True,
            "devices": [{"name": "gpu-0", "nodeSelector": _FAST}],
        },
    ),
)


@dataclass(slots=True)
class Cost:
    """What an object cost.

    Attributes:
        mirror_s: CPU seconds to read the object, and to let go of it.
        attempt_s: CPU seconds of its pod's attempt.
        next_s: CPU seconds until the next pod of another namespace was bound.
        kept: Bytes that are in use after the object has gone, beyond those before.
        size: Bytes of the document.
    """

    resource: str
    steps: Steps
    variant: str
    size: int
    mirror_s: float = 0.0
    attempt_s: float = 0.0
    next_s: float = 0.0
    kept: int = 0

    @property
    def field(self) -> str:
        """The field, as ``kubectl explain`` writes it."""
        path = ".".join((self.resource, *self.steps)).replace(".[]", "[]")
        return f"{path} ({self.variant})" if self.variant else path

    @property
    def worst_s(self) -> float:
        """The largest of the three."""
        return max(self.mirror_s, self.attempt_s, self.next_s)


def variants(resource: str) -> tuple[Variant, ...]:
    """The roles of a kind."""
    return PODS if resource == "pods" else SLICES if resource == "resourceslices" else ANYTHING


#: Objects next to which a large one is shown, and the pod that meets it, by kind.
BASES: dict[str, dict[str, Any]] = {
    "namespaces": {"metadata": {"name": TENANT}},
    "services": {"spec": {"selector": {"app": TENANT}}},
    "replicasets": {"spec": {"selector": {"matchLabels": {"app": TENANT}}}},
    "statefulsets": {"spec": {"selector": {"matchLabels": {"app": TENANT}}}},
    "poddisruptionbudgets": {"spec": {"selector": {"matchLabels": {"app": TENANT}}}},
    "persistentvolumes": {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "slow"}
    },
    "persistentvolumeclaims": {
        "spec": {
            "resources": {"requests": {"storage": "1Gi"}},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "slow",
        }
    },
    "storageclasses": {
        "metadata": {"name": "slow"},
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    "csinodes": {"metadata": {"name": "node-0"}},
    "csistoragecapacities": {"storageClassName": "slow", "capacity": "1Ti"},
    "resourceclaims": {
        "spec": {
            "devices": {
                "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.example.com", "count": 1}}]
            }
        }
    },
    "resourceslices": {
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "node-0",
            "devices": [{"name": "gpu-0"}],
        }
    },
    "deviceclasses": {"metadata": {"name": "gpu.example.com"}},
    "priorityclasses": {"value": 1},
    "limitranges": {"spec": {"limits": []}},
    "replicationcontrollers": {"spec": {"selector": {"app": TENANT}}},
    "csidrivers": {"metadata": {"name": "disk.example.com"}},
    "volumeattachments": {
        "spec": {
            "attacher": "disk.example.com",
            "nodeName": "node-0",
            "source": {"persistentVolumeName": "v"},
        }
    },
    "rebalancingrules": {"spec": {"never": True}},
}

#: Kinds without a namespace.
CLUSTER_WIDE = frozenset(
    {
        "nodes",
        "namespaces",
        "priorityclasses",
        "persistentvolumes",
        "storageclasses",
        "csinodes",
        "resourceslices",
        "deviceclasses",
        "csidrivers",
        "volumeattachments",
    }
)
STORAGE = (
    "persistentvolumes",
    "persistentvolumeclaims",
    "storageclasses",
    "csistoragecapacities",
    "csinodes",
)
DEVICE_KINDS = ("resourceclaims", "resourceslices", "deviceclasses")


def base(resource: str, name: str, variant: Variant) -> dict[str, Any]:
    """A small object of the kind."""
    if resource == "pods":
        return a_pod(name, TENANT, variant.node, **variant.spec)
    made = a_node(0) if resource == "nodes" else dict(BASES.get(resource, {}))
    meta = {"name": name, "uid": name, "resourceVersion": "1", **made.get("metadata", {})}
    if resource == "nodes":
        meta |= {"name": name, "uid": name}
    if variant.spec:
        made["spec"] = {**made["spec"], **variant.spec}
    return {**made, "metadata": meta if resource in CLUSTER_WIDE else {**meta, "namespace": TENANT}}


def companions(resource: str, name: str) -> dict[str, dict[str, Any]]:
    """Other small objects that the tenant's pod needs to meet the large one, by kind."""
    kinds = STORAGE[:3] if resource in STORAGE else DEVICE_KINDS if resource in DEVICE_KINDS else ()
    return {each: base(each, name, Variant("")) for each in kinds if each != resource}


def met_by(resource: str, name: str) -> dict[str, Any]:
    """The fields of the tenant's pod."""
    if resource in STORAGE:
        return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}
    if resource in DEVICE_KINDS:
        return {"resourceClaims": [{"name": "c", "resourceClaimName": name}]}
    if resource == "nodes":
        return {"nodeSelector": {"kubernetes.io/hostname": "node-0"}}
    return {}


async def tried(
    stage: Stage, resource: str, steps: Steps, variant: Variant, size: int, memory: Callable[[], int]
) -> Cost:
    """Let the scheduler meet one object of that size, and let it go."""
    name = stage.new_name()
    before = stage.in_use or memory()
    shown: list[tuple[str, Any]] = [
        (kind, stage.show(kind, encoded(each))) for kind, each in companions(resource, name).items()
    ]
    with apart(size > HEAVY_BYTES):  # its author is another process
        writer = Writer(resource, name, variant.amount)
        document = encoded(writer.write(base(resource, name, variant), steps, size))
        del writer
    cost = Cost(resource, steps, variant.name, len(document))
    began = time.process_time()
    if resource == "pods" and not variant.node:
        large, cost.attempt_s = await stage.schedule(document)
    else:
        large = stage.show(resource, document)
        cost.mirror_s = time.process_time() - began
    del document
    if large is not None:
        shown.append((resource, large))
    if resource != "pods":
        met, cost.attempt_s = await stage.schedule(
            encoded(a_pod(f"{name}-met", TENANT, **met_by(resource, name)))
        )
        shown.append(("pods", met))
    following, cost.next_s = await stage.schedule(encoded(a_pod(f"{name}-next", "other")))
    for _ in range(PATIENCE):  # a search for the devices of the pod before is made in parts
        if stage.is_bound(following):
            break
        began = time.process_time()
        await stage.rest()
        cost.next_s += time.process_time() - began
    assert stage.is_bound(following), stage.problems.failures
    shown.append(("pods", following))
    following = met = large = None
    began = time.process_time()
    fork = stage.cache.cluster.fork()
    for each in shown:  # an ordinary pod comes last: the last event is in use until the next
        stage.delete(*each)
    shown.clear()
    await stage.rest()
    del fork
    after = stage.show("pods", encoded(a_pod(f"{name}-after", "other", "node-0")))
    stage.delete("pods", after)  # the latest event is in use until the next
    del after
    stage.bookmark()
    cost.mirror_s += time.process_time() - began
    stage.forget_messages()
    stage.in_use = memory()
    cost.kept = stage.in_use - before
    return cost
