"""Binds pods to nodes: a simple scheduler for tests of programs whose pods must run.

Filters, in kube-scheduler's words: cordoned nodes, node selector and required node affinity, taints,
resources, volumes. Of the nodes that pass, the one with the least allocated share of CPU and memory is
chosen, then the first in the alphabet. A claim that waits for its first consumer is reserved a volume of the
node, or the node is written on it for its provisioner, and the pod is bound when all of its claims are.

Differs from kube-scheduler: no pod affinity, topology spread, host ports, devices, priorities or preemption.
A pod with required pod affinity or with resource claims is not scheduled.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from roadstead.controllers.ownership import key_of
from roadstead.controllers.pod_state import is_finished, is_terminating, with_condition
from roadstead.controllers.volumes.binder import BY_CONTROLLER
from roadstead.controllers.volumes.matching import (
    CLAIMS,
    CLASSES,
    LATE,
    SELECTED_NODE,
    VOLUMES,
    annotations_of,
    class_of,
    is_bound,
    matching_volume,
    reaches,
)
from roadstead.controllers.volumes.protection import claims_of
from roadstead.kubelets.claims import resources_of_node
from roadstead.kubelets.node_resources import NodeResources
from roadstead.schemas.quantities import amounts, pod_requests
from roadstead.store.api import Write
from roadstead.store.subresources import bind
from roadstead.values.label_selectors import node_fits, tolerates

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

NAME = "default-scheduler"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_COUNTED = ("cpu", "memory")


class UnschedulableError(Exception):
    """No node takes the pod; the message says why."""


class Scheduler:
    """Binds the pods that name it.

    Args:
        context: the context of controllers.
        name: the ``schedulerName`` of its pods.
    """

    def __init__(self, context: Context, name: str = NAME) -> None:
        self._context = context
        self._name = name
        self._nodes: dict[str, NodeResources] = {}
        self._pending: dict[str, None] = {}

    def start(self) -> None:
        """Subscribe to pods, nodes and what claims depend on."""
        api = self._context.api
        api.subscribe("pods", self._pod_changed)
        api.subscribe("nodes", self._node_changed)
        for resource in (CLAIMS, VOLUMES, CLASSES):
            api.subscribe(resource, lambda *_: self._retry())
        for node in api.list("nodes"):
            self._node_changed("ADDED", node, None)
        for pod in api.list("pods"):
            self._pod_changed("ADDED", pod, None)

    def reconcile(self, key: str) -> None:
        """Bind a pod, or write why it cannot be bound."""
        pod = self._context.find("pods", key)
        if pod is None or not self._is_mine(pod):
            self._pending.pop(key, None)
            return
        try:
            node = self._chosen(pod)
        except UnschedulableError as error:
            self._reject(pod, str(error))
            return
        if not self._prepare_claims(pod, node):
            return  # its claims, when they are bound, queue it again
        name = node["metadata"]["name"]
        meta = pod["metadata"]
        binding = {
            "metadata": {"name": meta["name"], "uid": meta["uid"]},
            "target": {"kind": "Node", "name": name},
        }
        bind(
            self._context.api, (meta["namespace"], meta["name"]), binding, Write(manager=NAME), labelled=True
        )
        message = f"Successfully assigned {key} to {name}"
        self._context.events.record(self._name, pod, "Scheduled", message)

    def _is_mine(self, pod: Obj) -> bool:
        spec = pod["spec"]
        return (
            spec.get("schedulerName", NAME) == self._name
            and not spec.get("nodeName")
            and not spec.get("schedulingGates")
            and not is_terminating(pod)
            and not is_finished(pod)
        )

    # -- choosing --------------------------------------------------------------------------------------------

    def _chosen(self, pod: Obj) -> Obj:
        """The best node that passes all filters.

        Raises:
            UnschedulableError: none does.
        """
        spec = pod["spec"]
        if spec.get("resourceClaims"):
            raise UnschedulableError("resource claims are not supported by the simple scheduler")
        if (
            (spec.get("affinity") or {})
            .get("podAffinity", {})
            .get("requiredDuringSchedulingIgnoredDuringExecution")
        ):
            raise UnschedulableError("required pod affinity is not supported by the simple scheduler")
        claims = self._claims(pod)
        nodes = self._context.api.list("nodes")
        if not nodes:
            raise UnschedulableError("no nodes available to schedule pods")
        requests = pod_requests(pod)
        refused: Counter[str] = Counter()
        fitting: list[tuple[float, str, Obj]] = []
        for node in nodes:
            name = node["metadata"]["name"]
            wanted = resources_of_node(pod, requests, self._nodes[name].allocatable)
            if lacking := self._nodes[name].lacks(wanted):
                reason = "Too many pods" if lacking == "pods" else f"Insufficient {lacking}"
            else:
                reason = ""
            reason = _static_fault(spec, node) or reason or self._volume_fault(claims, node)
            if reason:
                refused[reason] += 1
            else:
                fitting.append((self._share(name), name, node))
        if not fitting:
            told = ", ".join(sorted(f"{count} {reason}" for reason, count in refused.items()))
            raise UnschedulableError(f"0/{len(nodes)} nodes are available: {told}.")
        return min(fitting, key=lambda one: one[:2])[2]

    def _share(self, name: str) -> float:
        """The greater allocated share of CPU and memory."""
        node = self._nodes[name]
        return max(node.used.get(one, 0) / (node.allocatable.get(one) or 1) for one in _COUNTED)

    def _claims(self, pod: Obj) -> list[Obj]:
        """The claims of a pod, all of them bound or waiting for it.

        Raises:
            UnschedulableError: one is missing, is being deleted, or must be bound first.
        """
        claims = []
        for key in claims_of(pod):
            name = key.rpartition("/")[2]
            claim = self._context.find(CLAIMS, key)
            if claim is None:
                raise UnschedulableError(f'persistentvolumeclaim "{name}" not found')
            if is_terminating(claim):
                raise UnschedulableError(f'persistentvolumeclaim "{name}" is being deleted')
            if not is_bound(claim) and not self._is_late(claim):
                raise UnschedulableError("pod has unbound immediate PersistentVolumeClaims")
            claims.append(claim)
        return claims

    def _is_late(self, claim: Obj) -> bool:
        storage_class = self._context.find(CLASSES, class_of(claim)) if class_of(claim) else None
        return storage_class is not None and storage_class.get("volumeBindingMode") == LATE

    def _volume_fault(self, claims: list[Obj], node: Obj) -> str:
        for claim in claims:
            if is_bound(claim):
                volume = self._context.find(VOLUMES, claim["spec"]["volumeName"])
                if volume is None:
                    return "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
                if not reaches(volume, node):
                    return "node(s) didn't match PersistentVolume's node affinity"
            elif annotations_of(claim).get(SELECTED_NODE, node["metadata"]["name"]) != node["metadata"][
                "name"
            ] or not (self._matching(claim, node) or self._is_provisioned(claim)):
                return "node(s) didn't find available persistent volumes to bind"
        return ""

    def _matching(self, claim: Obj, node: Obj) -> Obj | None:
        return matching_volume(claim, self._context.api.list(VOLUMES), node=node)

    def _is_provisioned(self, claim: Obj) -> bool:
        storage_class = self._context.find(CLASSES, class_of(claim))
        return storage_class is not None and storage_class["provisioner"] != NO_PROVISIONER

    def _prepare_claims(self, pod: Obj, node: Obj) -> bool:
        """Reserve volumes, or write the node on claims to be provisioned; True if all claims are bound."""
        waiting = [claim for claim in self._claims(pod) if not is_bound(claim)]
        for claim in waiting:
            meta = claim["metadata"]
            if volume := self._matching(claim, node):
                if volume["spec"].get("claimRef") is None:
                    reference = {key: meta[key] for key in ("namespace", "name", "uid", "resourceVersion")}
                    patch = {
                        "metadata": {"annotations": {BY_CONTROLLER: "yes"}},
                        "spec": {
                            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference}
                        },
                    }
                    self._context.api.patch(VOLUMES, None, volume["metadata"]["name"], patch)
            elif SELECTED_NODE not in annotations_of(claim):
                selected = {"metadata": {"annotations": {SELECTED_NODE: node["metadata"]["name"]}}}
                self._context.api.patch(CLAIMS, meta["namespace"], meta["name"], selected)
        return not waiting

    # -- changes ---------------------------------------------------------------------------------------------

    def _reject(self, pod: Obj, message: str) -> None:
        status = pod.get("status") or {}
        conditions = with_condition(
            status.get("conditions") or [],
            "PodScheduled",
            "False",
            "Unschedulable",
            message,
            now=self._context.now,
        )
        if conditions != status.get("conditions"):
            self._context.write_status("pods", pod, {**status, "conditions": conditions})
            self._context.events.record(self._name, pod, "FailedScheduling", message, "Warning")

    def _pod_changed(self, kind: EventType, pod: Obj, old: Obj | None) -> None:
        """Count the pods of nodes; queue a pod to schedule, or those that wait when one has left."""
        name, uid = pod["spec"].get("nodeName"), pod["metadata"]["uid"]
        gone = kind == "DELETED" or is_finished(pod)
        if name:
            self._pending.pop(key_of(pod), None)
            node = self._nodes.setdefault(name, NodeResources())
            if gone and uid in node.admitted:
                node.free(uid)
                self._retry()
            elif not gone and uid not in node.admitted:
                node.take(uid, resources_of_node(pod, pod_requests(pod), node.allocatable))
        elif not gone and self._is_mine(pod) and (old is None or old["spec"] != pod["spec"]):
            self._pending[key_of(pod)] = None
            self._context.queue.add(self.reconcile, key_of(pod))

    def _node_changed(self, kind: EventType, node: Obj, _old: Obj | None) -> None:
        name, status = node["metadata"]["name"], node.get("status") or {}
        if kind == "DELETED":
            self._nodes.pop(name, None)
            return
        counted = self._nodes.setdefault(name, NodeResources())
        counted.allocatable = amounts(status.get("allocatable") or status.get("capacity"))
        self._retry()

    def _retry(self) -> None:
        """Queue all pods that wait."""
        for key in self._pending:
            self._context.queue.add(self.reconcile, key)


def _static_fault(spec: Obj, node: Obj) -> str:
    """Why a node does not take pods of such a spec, whatever runs on it; "" if it does."""
    tolerations = spec.get("tolerations")
    if node["spec"].get("unschedulable") and not tolerates(tolerations, _CORDONED):
        return "node(s) were unschedulable"
    if not node_fits(spec, node):
        return "node(s) didn't match Pod's node affinity/selector"
    taints = [one for one in node["spec"].get("taints") or () if one["effect"] != "PreferNoSchedule"]
    if any(not tolerates(tolerations, one) for one in taints):
        return "node(s) had untolerated taint(s)"
    return ""
