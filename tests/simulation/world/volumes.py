"""Claims of pods: late and immediate ones, local volumes, limits of what a node attaches."""

from __future__ import annotations

from roadstead.values.resources import Obj
from simulation.cluster import SCHEDULER
from simulation.world.part import Part
from simulation.world.volume_controller import (
    CLAIMS,
    CLASSES,
    DRIVER,
    NO_PROVISIONER,
    VOLUMES,
    VolumeController,
)

LATE, SOON, LOCAL = "late", "soon", "local"
SIZE = {"requests": {"storage": "1Gi"}}


class Volumes(Part):
    """StatefulSets and single pods with claims."""

    def begin(self) -> None:
        """Classes, limits of the nodes, local disks, and pods with claims."""
        VolumeController(self.cluster.context, self.random).start()
        self._storage_class(LATE, DRIVER, "WaitForFirstConsumer")
        self._storage_class(SOON, DRIVER, "Immediate")
        self._storage_class(LOCAL, NO_PROVISIONER, "WaitForFirstConsumer")
        for node in self.cluster.objects("nodes"):
            name = node["metadata"]["name"]
            driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": self.random.choice((1, 2, 8))}}
            self.create("csinodes.storage.k8s.io", name, spec={"drivers": [driver]})
            if self.random.random() < 0.5:
                self._disk(name)
        for _ in range(self.random.randint(1, 2)):
            self._set(self.random.choice((LATE, LATE, SOON)))
        self._single(LOCAL)

    def act(self) -> None:
        """A pod with a claim comes."""
        if self._made < 8:
            self._single(self.random.choice((LATE, LATE, SOON, LOCAL)))

    def _storage_class(self, name: str, provisioner: str, mode: str) -> None:
        self.create(CLASSES, name, provisioner=provisioner, volumeBindingMode=mode)

    def _disk(self, node: str) -> None:
        """A local volume, which one node reaches."""
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
        spec: Obj = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "2Gi"},
            "storageClassName": LOCAL,
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }
        made = self.create(VOLUMES, f"disk-{node}", spec=spec)
        self.api.update_status(
            VOLUMES, {**made, "status": {**(made.get("status") or {}), "phase": "Available"}}
        )

    def _set(self, storage_class: str) -> None:
        name = self.name("data")
        labels = {"app": name}
        claim = {
            "metadata": {"name": "disk"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "resources": SIZE},
        }
        container = {**self.container(), "volumeMounts": [{"name": "disk", "mountPath": "/disk"}]}
        pod = {"schedulerName": SCHEDULER, "containers": [container]}
        spec = {
            "replicas": self.random.randint(1, 3),
            "serviceName": name,
            "podManagementPolicy": self.random.choice(("Parallel", "OrderedReady")),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            "volumeClaimTemplates": [claim],
        }
        self.create("statefulsets.apps", name, spec=spec)

    def _single(self, storage_class: str) -> None:
        name = self.name("disk-user")
        mode = self.random.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))
        claim = {"accessModes": [mode], "storageClassName": storage_class, "resources": SIZE}
        if storage_class == LOCAL:
            claim["accessModes"] = ["ReadWriteOnce"]
        first = self.random.random() < 0.8  # else the pod comes before its claim
        if first:
            self.create(CLAIMS, name, spec=claim)
        volume = {"name": "disk", "persistentVolumeClaim": {"claimName": name}}
        spec = {"schedulerName": SCHEDULER, "containers": [self.container()], "volumes": [volume]}
        self.create("pods", name, spec=spec)
        if not first:
            self.create(CLAIMS, name, spec=claim)
