"""ProgramDeeds are what other programs do: schedulers, autoscalers, writers of the lease."""

from __future__ import annotations

from collections.abc import Callable

from roadstead.store.api import Write
from roadstead.store.deletion import DeleteOptions
from roadstead.store.subresources import evict
from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from roadstead.values.status_errors import StatusError
from simulation.cluster import SCHEDULER
from simulation.deeds.nodes import NODES_AT_LEAST
from simulation.deeds.scene import Scene, Way, attempted
from simulation.faults import FaultKind

LEASES = "leases.coordination.k8s.io"
LEASE = ("kube-system", "plimsoll")
OTHERS_LEASE = {"holderIdentity": "somebody-else", "leaseDurationSeconds": 15}

#: What the API server lets somebody write into a lease.
ABSURD: tuple[Obj, ...] = (
    {},
    {"leaseDurationSeconds": 1},
    {"holderIdentity": ""},
    {"holderIdentity": "somebody-else", "leaseDurationSeconds": 2**31 - 1},
    {"holderIdentity": "somebody-else"},
    {"renewTime": "9999-12-31T23:59:59.999999Z", "acquireTime": "9999-12-31T23:59:59.999999Z"},
    {"renewTime": "0001-01-01T00:00:00.000000Z"},
    {"leaseTransitions": 2**31 - 1},
)

#: The taint with which an autoscaler closes a node that it removes.
TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"

#: Seconds between two attempts of an autoscaler to empty a node, and how many it makes.
DRAIN_S, DRAINS = 2.0, 8


class ProgramDeeds:
    """Deeds of other programs.

    Attributes:
        ways: How each is done.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._api = scene.api
        self._random = scene.random
        self.ways: dict[FaultKind, Way] = {
            FaultKind.LEASE_STOLEN: lambda: self._write_lease(OTHERS_LEASE),
            FaultKind.LEASE_DELETED: lambda: self._api.delete(LEASES, *LEASE),
            FaultKind.LEASE_ABSURD: self._write_absurd,
            FaultKind.OTHER_SCHEDULER: self._take_room,
            FaultKind.AUTOSCALER_ADDS: self._scale_up,
            FaultKind.AUTOSCALER_REMOVES: self._scale_down,
        }

    def _write_lease(self, fields: Obj) -> bool:
        lease = self._scene.found(LEASES, *LEASE)
        if lease is None:
            return False
        taken = copied(lease)
        taken["spec"].update(fields)
        self._api.update(LEASES, taken)
        return True

    def _write_absurd(self) -> bool:
        """Somebody who holds it for 68 years lets go of it in the end."""
        lease = self._scene.found(LEASES, *LEASE)
        if lease is None:
            return False
        absurd = copied(lease)
        fields = self._random.choice(ABSURD)
        absurd["spec"] = {**absurd["spec"], **fields} if fields else {}
        self._api.update(LEASES, absurd)

        def let_go() -> bool:
            found = self._scene.found(LEASES, *LEASE)
            if found is None or found["spec"].get("holderIdentity") != "somebody-else":
                return False
            return self._write_lease({"holderIdentity": "", "leaseDurationSeconds": 1})

        self._scene.later(let_go)
        return True

    def _take_room(self) -> bool:
        node = self._scene.chosen("nodes")
        if node is None:
            return False
        pod = self._scene.cluster.add_pod(self._scene.named("foreign"), "default-scheduler")
        self._scene.cluster.bind(pod, node["metadata"]["name"])
        return True

    # -- an autoscaler -------------------------------------------------------------------------------------

    def _scale_up(self) -> bool:
        """A node more, where pods wait for room."""

        def waits(pod: Obj) -> bool:
            return pod["spec"].get("schedulerName") == SCHEDULER and not pod["spec"].get("nodeName")

        if self._scene.chosen("pods", waits) is None:
            return False
        self._scene.cluster.add_node()
        return True

    def _scale_down(self) -> bool:
        """Close the node with the fewest pods, evict these, delete the node; or give up."""
        nodes = self._scene.cluster.objects("nodes")
        if len(nodes) <= NODES_AT_LEAST:
            return False
        names = [node["metadata"]["name"] for node in nodes]
        name = min(names, key=lambda one: (len(self._pods_on(one)), one))
        self._edit_taints(name, lambda taints: [*taints, {"key": TO_BE_DELETED, "effect": "NoSchedule"}])
        self._drain(name, DRAINS)
        return True

    def _pods_on(self, node: str) -> list[Obj]:
        pods = self._scene.cluster.objects("pods")
        return [pod for pod in pods if pod["spec"].get("nodeName") == node]

    def _edit_taints(self, name: str, change: Callable[[list[Obj]], list[Obj]]) -> None:
        node = copied(self._api.get("nodes", None, name))
        node["spec"]["taints"] = change(node["spec"].get("taints") or [])
        self._api.update("nodes", node, Write())

    def _drain(self, name: str, left: int) -> None:
        if self._scene.found("nodes", None, name) is None:
            return
        pods = self._pods_on(name)
        if not pods:
            attempted(lambda: self._api.delete("nodes", None, name))
        elif not left or self._scene.faults.is_over:
            attempted(lambda: self._edit_taints(name, _without_ours))
        else:
            for pod in pods:
                self._evict(pod)
            network = self._scene.network
            network.loop.call_later(DRAIN_S, self._drain, name, left - 1, context=network.context)

    def _evict(self, pod: Obj) -> None:
        meta = pod["metadata"]
        eviction = {"metadata": {"name": meta["name"], "namespace": meta["namespace"]}}
        try:
            evict(self._api, (meta["namespace"], meta["name"]), eviction, Write(), DeleteOptions())
        except StatusError:
            return  # a budget; or somebody else was faster


def _without_ours(taints: list[Obj]) -> list[Obj]:
    return [one for one in taints if one["key"] != TO_BE_DELETED]
