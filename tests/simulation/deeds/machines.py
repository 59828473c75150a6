"""MachineDeeds are what happens to processes, clocks, nodes and the API server."""

from __future__ import annotations

from roadstead.store.api import Write
from roadstead.values.copies import copied
from simulation.deeds.scene import Scene, Way
from simulation.faults import FaultKind


class MachineDeeds:
    """Deeds of machines.

    Attributes:
        ways: How each is done.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._api = scene.api
        self._random = scene.random
        self.ways: dict[FaultKind, Way] = {
            FaultKind.COMPACTION: self._compact,
            FaultKind.API_RESTART: lambda: scene.network.restart_server(self._random.uniform(0.1, 20.0)),
            FaultKind.REPLICA_KILLED: lambda: self._random.choice(scene.replicas).kill(),
            FaultKind.REPLICA_PAUSED: lambda: self._random.choice(scene.replicas).pause(
                self._random.choice((0.05, 2.0, 12.0, 30.0))
            ),
            FaultKind.REPLICA_STOPPED: lambda: self._random.choice(scene.replicas).stop(),
            FaultKind.CLOCK_JUMP: self._jump,
            FaultKind.NODE_GONE: self._remove_node,
            FaultKind.NODE_FLAPPED: self._flap,
            FaultKind.NODE_SHRUNK: self._shrink,
            FaultKind.NODE_TAINTED: self._taint,
            FaultKind.NODE_ADDED: scene.cluster.add_node,
        }

    # -- the API server and the processes ------------------------------------------------------------------

    def _compact(self) -> None:
        store = self._api.store
        for name, _ in list(store.everything()):
            collection = store.collection(name)
            collection.changes.clear()
            collection.complete_since = store.revision

    def _jump(self) -> None:
        self._random.choice(self._scene.replicas).clock.ahead_s += self._random.uniform(-3600.0, 3600.0)

    # -- nodes ---------------------------------------------------------------------------------------------

    def _remove_node(self) -> bool:
        node = self._scene.chosen("nodes")
        if node is None or len(self._scene.cluster.objects("nodes")) < 3:
            return False
        self._api.delete("nodes", None, node["metadata"]["name"])
        return True

    def _flap(self) -> bool:
        node = self._scene.chosen("nodes")
        if node is None:
            return False
        name = node["metadata"]["name"]
        self._set_ready(name, "False")
        self._scene.later(lambda: self._set_ready(name, "True"))
        return True

    def _set_ready(self, name: str, status: str) -> None:
        node = copied(self._api.get("nodes", None, name))
        for condition in node["status"].get("conditions") or ():
            if condition["type"] == "Ready":
                condition["status"] = status
        self._api.update_status("nodes", node)

    def _shrink(self) -> bool:
        node = self._scene.node()
        if node is None:
            return False
        node["status"]["allocatable"]["cpu"] = "1"
        self._api.update_status("nodes", node)
        return True

    def _taint(self) -> bool:
        node = self._scene.chosen("nodes")
        if node is None:
            return False
        name = node["metadata"]["name"]
        effect = self._random.choice(("NoSchedule", "NoExecute"))
        self._set_taint(name, effect)
        self._scene.later(lambda: self._set_taint(name, ""))
        return True

    def _set_taint(self, name: str, effect: str) -> None:
        node = copied(self._api.get("nodes", None, name))
        taints = [each for each in node["spec"].get("taints") or () if each["key"] != "simulated"]
        if effect:
            taints.append({"key": "simulated", "value": "yes", "effect": effect})
        node["spec"]["taints"] = taints
        self._api.update("nodes", node, Write())
