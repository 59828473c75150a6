"""NodeDeeds are what happens to nodes and their kubelets."""

from __future__ import annotations

from collections.abc import Callable

from roadstead.kubelets.nodes import KUBELET, SIMULATED, STOPPED
from roadstead.store.api import Write
from roadstead.store.store import EventType
from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.cluster import ZONES
from simulation.deeds.scene import Scene, Way, attempted
from simulation.faults import FaultKind

ZONE = "topology.kubernetes.io/zone"

#: Fewer nodes than this are never left.
NODES_AT_LEAST = 2

#: Seconds after its binding in which a kubelet that refuses pods says so: before others start it.
REFUSAL_S = (0.005, 0.05)

#: The key of a taint with which a node cannot be read.
ODD = "simulated.test/odd"

#: Pods that it refuses: their controllers replace them without end.
REFUSALS = 20


class NodeDeeds:
    """Deeds of nodes.

    Attributes:
        ways: How each is done.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._api = scene.api
        self._random = scene.random
        self._refusing: dict[str, int] = {}  #: nodes whose kubelets refuse pods, and how many more
        scene.api.subscribe("pods", self._pod_changed)
        self.ways: dict[FaultKind, Way] = {
            FaultKind.NODE_GONE: self._remove,
            FaultKind.NODE_REPLACED: self._replace,
            FaultKind.NODE_FLAPPED: self._flap,
            FaultKind.NODE_SHRUNK: lambda: self._resize("1"),
            FaultKind.NODE_GROWN: lambda: self._resize("8"),
            FaultKind.NODE_TAINTED: self._taint,
            FaultKind.NODE_CORDONED: self._cordon,
            FaultKind.NODE_RELABELLED: self._relabel,
            FaultKind.NODE_ADDED: scene.cluster.add_node,
            FaultKind.NODE_UNREADABLE: lambda: self._for_a_while(_odd(is_odd=True), _odd(is_odd=False)),
            FaultKind.KUBELET_SILENT: self._silence,
            FaultKind.KUBELET_REFUSES: self._refuse,
        }

    def _edit(self, name: str, change: Callable[[Obj], None], *, status: bool = False) -> None:
        node = copied(self._api.get("nodes", None, name))
        change(node)
        if status:
            self._api.update_status("nodes", node)
        else:
            self._api.update("nodes", node, Write())

    def _for_a_while(self, change: Callable[[Obj], None], undo: Callable[[Obj], None]) -> bool:
        node = self._scene.node()
        if node is None:
            return False
        name = node["metadata"]["name"]
        self._edit(name, change)
        self._scene.later(lambda: self._edit(name, undo))
        return True

    # -- machines ------------------------------------------------------------------------------------------

    def _remove(self) -> bool:
        node = self._scene.chosen("nodes")
        if node is None or len(self._scene.cluster.objects("nodes")) <= NODES_AT_LEAST:
            return False
        self._api.delete("nodes", None, node["metadata"]["name"])
        return True

    def _replace(self) -> bool:
        """It comes back under its name as another object, perhaps of another size."""
        node = self._scene.node()
        if node is None:
            return False
        meta, status = node["metadata"], node["status"]
        room = copied(status["capacity"])
        room["cpu"] = self._random.choice((room["cpu"], "2", "4"))
        again = {
            "metadata": {key: copied(meta[key]) for key in ("name", "labels", "annotations") if key in meta},
            "spec": {},
            "status": {"capacity": room, "allocatable": dict(room)},
        }
        self._api.delete("nodes", None, meta["name"])
        if self._random.random() < 0.5:
            self._api.create("nodes", again)
        else:
            self._scene.later(lambda: self._api.create("nodes", again))
        return True

    def _resize(self, cpu: str) -> bool:
        node = self._scene.node()
        if node is None:
            return False
        node["status"]["allocatable"]["cpu"] = cpu
        self._api.update_status("nodes", node)
        return True

    def _flap(self) -> bool:
        node = self._scene.chosen("nodes")
        if node is None:
            return False
        name = node["metadata"]["name"]
        self._edit(name, _ready("False"), status=True)
        self._scene.later(lambda: self._edit(name, _ready("True"), status=True))
        return True

    # -- what administrators set ---------------------------------------------------------------------------

    def _taint(self) -> bool:
        effect = self._random.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        return self._for_a_while(_tainted(effect), _tainted(""))

    def _cordon(self) -> bool:
        return self._for_a_while(_closed(closed=True), _closed(closed=False))

    def _relabel(self) -> bool:
        """Its zone, permanently, and a label that comes and goes."""
        zone = self._random.choice(ZONES)

        def change(node: Obj) -> None:
            node["metadata"]["labels"] |= {ZONE: zone, "simulated.test/seen": "yes"}

        def undo(node: Obj) -> None:
            node["metadata"]["labels"].pop("simulated.test/seen", None)

        return self._for_a_while(change, undo)

    # -- kubelets ------------------------------------------------------------------------------------------

    def _silence(self) -> bool:
        """The node is lost, with what runs there, until its kubelet is heard of again."""

        def said(word: str) -> Callable[[Obj], None]:
            def change(node: Obj) -> None:
                node["metadata"]["annotations"][KUBELET] = word

            return change

        return self._for_a_while(said(STOPPED), said(SIMULATED))

    def _refuse(self) -> bool:
        node = self._scene.node()
        if node is None:
            return False
        name = node["metadata"]["name"]
        self._refusing[name] = REFUSALS
        self._scene.later(lambda: self._refusing.pop(name, None))
        return True

    def _pod_changed(self, kind: EventType, pod: Obj, old: Obj | None) -> None:
        """A kubelet that refuses pods fails each that is bound to its node."""
        was_bound = old is not None and old["spec"].get("nodeName")
        if kind == "DELETED" or was_bound or not self._refusing.get(pod["spec"].get("nodeName")):
            return
        self._refusing[pod["spec"]["nodeName"]] -= 1
        meta, network = pod["metadata"], self._scene.network

        def refuse() -> None:
            refused = copied(self._api.get("pods", meta["namespace"], meta["name"]))
            if refused["metadata"]["uid"] != meta["uid"] or refused["status"].get("phase") != "Pending":
                return
            message = "Pod was rejected: Allocate failed due to a device that is not healthy"
            refused["status"] |= {
                "phase": "Failed",
                "reason": "UnexpectedAdmissionError",
                "message": message,
            }
            self._api.update_status("pods", refused)

        after_s = self._random.uniform(*REFUSAL_S)
        network.loop.call_later(after_s, lambda: attempted(refuse), context=network.context)


def _ready(status: str) -> Callable[[Obj], None]:
    def change(node: Obj) -> None:
        for condition in node["status"].get("conditions") or ():
            if condition["type"] == "Ready":
                condition["status"] = status

    return change


def _tainted(effect: str) -> Callable[[Obj], None]:
    def change(node: Obj) -> None:
        taints = [each for each in node["spec"].get("taints") or () if each["key"] != "simulated"]
        if effect:
            taints.append({"key": "simulated", "value": "yes", "effect": effect})
        node["spec"]["taints"] = taints

    return change


def _odd(*, is_odd: bool) -> Callable[[Obj], None]:
    """With a time in the year 0, which the API server takes, and Python has no such year."""

    def change(node: Obj) -> None:
        taints = [each for each in node["spec"].get("taints") or () if each["key"] != ODD]
        if is_odd:
            taints.append({"key": ODD, "effect": "PreferNoSchedule", "timeAdded": "0000-01-01T00:00:00Z"})
        node["spec"]["taints"] = taints

    return change


def _closed(*, closed: bool) -> Callable[[Obj], None]:
    def change(node: Obj) -> None:
        node["spec"]["unschedulable"] = closed

    return change
