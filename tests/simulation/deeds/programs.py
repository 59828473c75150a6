"""ProgramDeeds are what other programs do: schedulers, and whoever wants the lease."""

from __future__ import annotations

from roadstead.values.copies import copied
from simulation.deeds.scene import Scene, Way
from simulation.faults import FaultKind

LEASES = "leases.coordination.k8s.io"
OTHERS_LEASE = {"holderIdentity": "somebody-else", "leaseDurationSeconds": 15}


class ProgramDeeds:
    """Deeds of other programs.

    Attributes:
        ways: How each is done.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._api = scene.api
        self.ways: dict[FaultKind, Way] = {
            FaultKind.LEASE_STOLEN: self._steal,
            FaultKind.OTHER_SCHEDULER: self._take_room,
        }

    def _steal(self) -> bool:
        lease = self._api.find(LEASES, "kube-system", "plimsoll")
        if lease is None:
            return False
        taken = copied(lease)
        taken["spec"].update(OTHERS_LEASE)
        self._api.update(LEASES, taken)
        return True

    def _take_room(self) -> bool:
        node = self._scene.chosen("nodes")
        if node is None:
            return False
        pod = self._scene.cluster.add_pod(self._scene.named("foreign"), "default-scheduler")
        self._scene.cluster.bind(pod, node["metadata"]["name"])
        return True
