"""Deeds are what people, machines and other programs do to a cluster while the operator works."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from roadstead.store.api import Write
from roadstead.values.copies import copied
from roadstead.values.status_errors import StatusError
from simulation.cluster import NAMESPACE, POLICIES, RECORDS, SCHEDULER, SimulatedCluster
from simulation.faults import FaultKind, FaultPlan
from simulation.network import Network
from simulation.replica import Replica

#: Mean virtual seconds between two deeds.
EVERY_S = 4.0

#: Seconds that a passing state lasts.
PASSING_S = (2.0, 40.0)

OTHERS_LEASE = {"holderIdentity": "somebody-else", "leaseDurationSeconds": 15}


class Deeds:
    """Does one after the other, each of a kind that the seed has enabled."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        network: Network,
        replicas: Sequence[Replica],
        random: Random,
        faults: FaultPlan,
    ) -> None:
        self._cluster = cluster
        self._api = cluster.api
        self._network = network
        self._replicas = replicas
        self._random = random
        self._faults = faults
        self._made = 0
        self._passing: set[asyncio.Task[None]] = set()
        self._undo: list[Callable[[], object]] = []
        self._ways: dict[FaultKind, Callable[[], object]] = {
            FaultKind.COMPACTION: self._compact,
            FaultKind.API_RESTART: lambda: network.restart_server(random.uniform(0.1, 20.0)),
            FaultKind.REPLICA_KILLED: lambda: random.choice(replicas).kill(),
            FaultKind.REPLICA_PAUSED: lambda: random.choice(replicas).pause(
                random.choice((0.05, 2.0, 12.0, 30.0))
            ),
            FaultKind.REPLICA_STOPPED: lambda: random.choice(replicas).stop(),
            FaultKind.CLOCK_JUMP: self._jump,
            FaultKind.LEASE_STOLEN: self._steal,
            FaultKind.NODE_GONE: self._remove_node,
            FaultKind.NODE_FLAPPED: self._flap,
            FaultKind.NODE_SHRUNK: self._shrink,
            FaultKind.NODE_TAINTED: self._taint,
            FaultKind.NODE_ADDED: cluster.add_node,
            FaultKind.OTHER_SCHEDULER: self._take_room,
            FaultKind.POD_DELETED: self._delete_pod,
            FaultKind.POLICY_EDITED: self._edit_policy,
            FaultKind.BUDGET_CHANGED: self._change_budget,
            FaultKind.WORKLOAD_SCALED: self._scale,
            FaultKind.RECORD_DELETED: self._delete_record,
        }

    async def run(self) -> None:
        """Act until the faults stop."""
        while not self._faults.is_over:
            await asyncio.sleep(self._random.expovariate(1.0 / EVERY_S))
            kind = self._faults.deed()
            if kind is None:
                continue
            try:
                did = self._ways[kind]()
            except StatusError:
                continue
            if did is not False:
                self._faults.count(kind)
                self._network.trace.tell(f"{self._network.loop.time():.6f} deed         {kind}")

    async def end(self) -> None:
        """What was to pass has passed."""
        for undo in self._undo:
            try:
                undo()
            except StatusError:
                continue
        self._undo.clear()

    def _later(self, undo: Callable[[], object]) -> None:
        """Undo something in a while."""

        def passed() -> None:
            if undo in self._undo:
                self._undo.remove(undo)
                try:
                    undo()
                except StatusError:
                    return

        self._undo.append(undo)
        self._network.loop.call_later(self._random.uniform(*PASSING_S), passed)

    def _chosen(self, resource: str) -> Any | None:
        """An object that exists, or None."""
        found = self._cluster.objects(resource)
        return copied(self._random.choice(found)) if found else None

    # -- the API server and the processes ------------------------------------------------------------------

    def _compact(self) -> None:
        store = self._api.store
        for name, _ in list(store.everything()):
            collection = store.collection(name)
            collection.changes.clear()
            collection.complete_since = store.revision

    def _jump(self) -> None:
        self._random.choice(self._replicas).clock.ahead_s += self._random.uniform(-3600.0, 3600.0)

    def _steal(self) -> bool:
        lease = self._api.find("leases.coordination.k8s.io", "kube-system", "plimsoll")
        if lease is None:
            return False
        taken = copied(lease)
        taken["spec"].update(OTHERS_LEASE)
        self._api.update("leases.coordination.k8s.io", taken)
        return True

    # -- nodes ---------------------------------------------------------------------------------------------

    def _remove_node(self) -> bool:
        node = self._chosen("nodes")
        if node is None or len(self._cluster.objects("nodes")) < 3:
            return False
        self._api.delete("nodes", None, node["metadata"]["name"])
        return True

    def _flap(self) -> bool:
        node = self._chosen("nodes")
        if node is None:
            return False
        name = node["metadata"]["name"]
        self._set_ready(name, "False")
        self._later(lambda: self._set_ready(name, "True"))
        return True

    def _set_ready(self, name: str, status: str) -> None:
        node = copied(self._api.get("nodes", None, name))
        for condition in node["status"].get("conditions") or ():
            if condition["type"] == "Ready":
                condition["status"] = status
        self._api.update_status("nodes", node)

    def _shrink(self) -> bool:
        node = self._chosen("nodes")
        if node is None or not node["status"].get("allocatable"):
            return False
        node["status"]["allocatable"]["cpu"] = "1"
        self._api.update_status("nodes", node)
        return True

    def _taint(self) -> bool:
        node = self._chosen("nodes")
        if node is None:
            return False
        name = node["metadata"]["name"]
        effect = self._random.choice(("NoSchedule", "NoExecute"))
        self._set_taint(name, effect)
        self._later(lambda: self._set_taint(name, ""))
        return True

    def _set_taint(self, name: str, effect: str) -> None:
        node = copied(self._api.get("nodes", None, name))
        taints = [each for each in node["spec"].get("taints") or () if each["key"] != "simulated"]
        if effect:
            taints.append({"key": "simulated", "value": "yes", "effect": effect})
        node["spec"]["taints"] = taints
        self._api.update("nodes", node, Write())

    # -- pods, workloads and policies ----------------------------------------------------------------------

    def _take_room(self) -> bool:
        node = self._chosen("nodes")
        if node is None:
            return False
        self._made += 1
        pod = self._cluster.add_pod(f"foreign-{self._made}", "default-scheduler")
        self._cluster.bind(pod, node["metadata"]["name"])
        return True

    def _delete_pod(self) -> bool:
        pod = self._chosen("pods")
        if pod is None:
            return False
        self._api.delete(
            "pods", NAMESPACE, pod["metadata"]["name"], grace_seconds=self._random.choice((None, 0))
        )
        return True

    def _edit_policy(self) -> bool:
        if self._random.random() < 0.5:
            found = self._chosen(POLICIES)
            if found is None:
                return False
            found["metadata"].setdefault("labels", {})["edited"] = str(self._random.randrange(100))
            if "rebalancing" in found["spec"]:
                mode = self._random.choice(("DryRun", "Enforce"))
                found["spec"]["rebalancing"]["mode"] = mode
            self._api.update(POLICIES, found)
            return True
        serve = self._api.find(POLICIES, None, "serve")
        if serve is None:
            return False
        kept = {key: serve[key] for key in ("apiVersion", "spec")}
        self._api.delete(POLICIES, None, "serve")

        def create_again() -> None:
            self._api.create(POLICIES, {**copied(kept), "metadata": {"name": "serve"}})

        self._later(create_again)
        return True

    def _change_budget(self) -> bool:
        budget = self._chosen("poddisruptionbudgets.policy")
        if budget is None:
            return False
        budget["spec"]["maxUnavailable"] = self._random.choice((0, 1, 2))
        self._api.update("poddisruptionbudgets.policy", budget)
        return True

    def _scale(self) -> bool:
        workload = self._chosen("deployments.apps")
        if workload is None:
            return False
        workload["spec"]["replicas"] = self._random.randint(0, 5)
        self._api.update("deployments.apps", workload)
        return True

    def _delete_record(self) -> bool:
        record = self._chosen(RECORDS)
        if record is None:
            return False
        self._api.delete(RECORDS, record["metadata"]["namespace"], record["metadata"]["name"])
        return True


__all__ = ["SCHEDULER", "Deeds"]
