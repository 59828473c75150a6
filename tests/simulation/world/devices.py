"""Devices of nodes, pods with claims made from templates, and another allocator next to the operator."""

from __future__ import annotations

from random import Random

from roadstead.kubelets.devices import DRIVER, DeviceDriver
from roadstead.kubelets.nodes import DEVICES
from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from roadstead.values.status_errors import StatusError
from simulation.cluster import NAMESPACE, POLICIES, SimulatedCluster, policy
from simulation.world.part import Part

CLAIMS, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
SLICES = "resourceslices.resource.k8s.io"

#: Whose pods the other allocator serves.
RIVAL = "rival"

#: By which the controller of claims knows that it has to release one.
PROTECTION = "resource.kubernetes.io/delete-protection"

#: Pods and claims of it, at most.
MOST = 6

Device = tuple[str, str]


class Devices(Part):
    """Workloads whose pods need devices, a policy that moves them, and a rival for the devices."""

    def __init__(self, cluster: SimulatedCluster, random: Random) -> None:
        super().__init__(cluster, random)
        self._rivals: list[str] = []

    def begin(self) -> None:
        """The driver, devices on most nodes, and pods that want more than there are, or fewer."""
        DeviceDriver(self.cluster.context).start()
        for each in self.cluster.objects("nodes"):
            if self.random.random() < 0.8:
                node = copied(each)
                notes = node["metadata"].setdefault("annotations", {})
                notes[DEVICES] = str(self.random.choice((1, 2, 4)))
                self.api.update("nodes", node)
        for count in (1, 2):
            self.create(TEMPLATES, f"gpus-{count}", spec={"spec": _asking(count)})
        for _ in range(self.random.randint(2, 3)):
            self._workload()
        spec: Obj = {
            "mode": "Enforce",
            "planner": "Proven",
            "schedule": {"intervalSeconds": self.random.choice((5, 10))},
            "strategies": [
                {"name": "RemovePodsViolatingNodeTaints"},
                {"name": self.random.choice(("MakeRoomForPending", "RemoveDuplicates"))},
            ],
            "evictor": {"minReplicas": 1, "podProtections": {"extraEnabled": ["PodsWithPVC"]}},
        }
        self.api.create(POLICIES, policy("gpus", rebalancing=spec))

    def act(self) -> None:
        """A workload changes its size, or the rival takes a device or gives one back."""
        drawn = self.random.random()
        if drawn < 0.3:
            self._resize()
        elif drawn < 0.5 and self._rivals:
            name = self._rivals.pop(self.random.randrange(len(self._rivals)))
            self.api.delete("pods", NAMESPACE, name, grace_seconds=0)
        elif len(self._rivals) < MOST:
            self.rival()

    def end(self) -> None:
        """The rival leaves."""
        while self._rivals:
            name = self._rivals.pop()
            if self.api.find("pods", NAMESPACE, name):
                self.api.delete("pods", NAMESPACE, name, grace_seconds=0)

    def rival(self) -> None:
        """Another scheduler allocates a device that is free by now, and binds a pod of its own."""
        free = self._free()
        if not free:
            return
        node, device = self.random.choice(free)
        name = self.name(RIVAL)
        self._rivals.append(name)
        taken(self.cluster, name, node, device)

    def _free(self) -> list[Device]:
        """Node and name of the devices that no claim has."""
        taken = {
            (each["pool"], each["device"])
            for claim in self.cluster.objects(CLAIMS)
            for each in results_of(claim)
        }
        nodes = {each["metadata"]["name"] for each in self.cluster.objects("nodes")}
        return [
            (one["spec"]["nodeName"], each["name"])
            for one in self.cluster.objects(SLICES)
            for each in one["spec"].get("devices") or ()
            if one["spec"]["driver"] == DRIVER
            and one["spec"]["nodeName"] in nodes
            and (one["spec"]["pool"]["name"], each["name"]) not in taken
        ]

    def _workload(self) -> None:
        claims = [{"name": "gpu", "resourceClaimTemplateName": f"gpus-{self.random.choice((1, 1, 2))}"}]
        self.deployment(self.name("gpu"), self.random.randint(1, 3), resourceClaims=claims)

    def _resize(self) -> None:
        mine = [
            each
            for each in self.cluster.objects("deployments.apps")
            if each["metadata"]["name"].startswith("gpu-")
        ]
        if mine:
            chosen = copied(self.random.choice(mine))
            chosen["spec"]["replicas"] = self.random.randint(0, 4)
            self.api.update("deployments.apps", chosen)

    def container(self) -> Obj:
        """A small one: devices are what is scarce."""
        return {
            "name": "main",
            "image": "app:1",
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        }


def taken(cluster: SimulatedCluster, name: str, node: str, device: str) -> None:
    """Another scheduler allocates a device to a claim of its own, and binds its pod immediately."""
    meta = {"name": name, "namespace": NAMESPACE}
    protected = {**meta, "finalizers": [PROTECTION]}
    held = copied(cluster.api.create(CLAIMS, {"metadata": protected, "spec": _asking(1)}))
    spec = {
        "schedulerName": RIVAL,
        "containers": [{"name": "main", "image": "app:1"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
    }
    pod = cluster.api.create("pods", {"metadata": dict(meta), "spec": spec})
    held["status"] = _allocated(node, device, pod)
    cluster.api.update_status(CLAIMS, held)
    try:
        cluster.bind(pod, node)
    except StatusError:
        cluster.api.delete("pods", NAMESPACE, name, grace_seconds=0)


def _asking(count: int) -> Obj:
    asked = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": count}
    return {"devices": {"requests": [{"name": "gpu", "exactly": asked}]}}


def results_of(claim: Obj) -> list[Obj]:
    """The devices of a claim."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return list((allocation.get("devices") or {}).get("results") or ())


def _allocated(node: str, device: str, pod: Obj) -> Obj:
    """The status of a claim with a device of a node, reserved for a pod."""
    place = {"key": "metadata.name", "operator": "In", "values": [node]}
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device}
    meta = pod["metadata"]
    return {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [place]}]},
        },
        "reservedFor": [{"resource": "pods", "name": meta["name"], "uid": meta["uid"]}],
    }
