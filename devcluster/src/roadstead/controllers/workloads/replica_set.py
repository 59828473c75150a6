"""Runs ReplicaSets: creates and deletes pods until their number is ``spec.replicas``.

Source: kubernetes v1.36 ``pkg/controller/replicaset/replica_set.go``, ``replica_set_utils.go``.
Differs: one reconcile creates or deletes at most ``BATCH`` pods, then other keys follow.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from roadstead.controllers.ownership import Owners, controller_of, key_of
from roadstead.controllers.pod_state import (
    available_in_s,
    deletion_rank,
    is_active,
    is_finished,
    is_ready,
    is_terminating,
    with_condition,
    without_condition,
)
from roadstead.controllers.workloads.pod_creation import create_pod, delete_pod, pod_from_template
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.values.resources import Obj

RESOURCE = "replicasets.apps"
COMPONENT = "replicaset-controller"
BATCH = 32


class ReplicaSetController:
    """Keeps ReplicaSets at their size."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._owners = Owners(RESOURCE, "apps/v1", "ReplicaSet", self._enqueue)

    def start(self) -> None:
        """Subscribe to ReplicaSets and their pods."""
        self._context.ownership.follow("pods", self._owners)
        self._context.enqueue_all(RESOURCE, self.reconcile)

    def reconcile(self, key: str) -> None:
        """Create or delete pods until their number is right, and write the status.

        Raises:
            StatusError: a pod could not be created or deleted; the queue retries.
        """
        replica_set = self._context.find(RESOURCE, key)
        if replica_set is None:
            return
        pods = self._context.ownership.claim("pods", self._owners, replica_set)
        failure: StatusError | None = None
        if not is_terminating(replica_set):
            missing = replica_set["spec"]["replicas"] - sum(map(is_active, pods))
            try:
                self._resize(replica_set, pods, missing)
            except StatusError as error:
                failure = error
            if missing:
                pods = self._context.ownership.dependents("pods", replica_set)
                if abs(missing) > BATCH:
                    self._enqueue(key)
        self._write_status(replica_set, pods, failure)
        if failure is not None:
            raise failure

    def _enqueue(self, key: str) -> None:
        self._context.queue.add(self.reconcile, key)

    def _resize(self, replica_set: Obj, pods: list[Obj], missing: int) -> None:
        """Create some missing pods, or delete some surplus ones."""
        for _ in range(min(missing, BATCH)):
            reference = self._owners.reference_to(replica_set)
            pod = pod_from_template(replica_set["spec"]["template"], replica_set, reference)
            create_pod(self._context, COMPONENT, replica_set, pod)
        if missing < 0:
            neighbours = self._pods_by_node(replica_set, pods)
            active = filter(is_active, pods)
            ranked = sorted(
                active, key=lambda pod: deletion_rank(pod, neighbours[pod["spec"].get("nodeName", "")])
            )
            for pod in ranked[: min(-missing, BATCH)]:
                delete_pod(self._context, COMPONENT, replica_set, pod)

    def _pods_by_node(self, replica_set: Obj, pods: list[Obj]) -> Counter[str]:
        """The number of active pods by node, of this set and of its siblings under one Deployment."""
        related = list(pods)
        if reference := controller_of(replica_set):
            owner = {"metadata": {"uid": reference["uid"]}}
            for sibling in self._context.ownership.dependents(RESOURCE, owner):
                if sibling["metadata"]["uid"] != replica_set["metadata"]["uid"]:
                    related += self._context.ownership.dependents("pods", sibling)
        return Counter(pod["spec"].get("nodeName", "") for pod in related if is_active(pod))

    def _write_status(self, replica_set: Obj, pods: list[Obj], failure: StatusError | None) -> None:
        """Write the counts, and queue the set for the time at which the next pod becomes available."""
        spec, now = replica_set["spec"], self._context.now
        template_labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        min_ready_s = spec.get("minReadySeconds") or 0
        active = [pod for pod in pods if is_active(pod)]
        waits = [available_in_s(pod, min_ready_s, now) for pod in active]
        pending = [wait for wait in waits if wait]
        if pending:
            self._context.queue.add(self.reconcile, key_of(replica_set), min(pending))
        before: Obj = replica_set.get("status") or {}
        status: Obj = {"replicas": len(active)}
        counts = {
            "fullyLabeledReplicas": sum(
                template_labels.items() <= (pod["metadata"].get("labels") or {}).items() for pod in active
            ),
            "readyReplicas": sum(map(is_ready, active)),
            "availableReplicas": waits.count(0.0),
        }
        status.update({name: count for name, count in counts.items() if count})
        status["terminatingReplicas"] = sum(is_terminating(pod) and not is_finished(pod) for pod in pods)
        status["observedGeneration"] = replica_set["metadata"]["generation"]
        conditions = before.get("conditions") or []
        if failure is not None:
            conditions = with_condition(
                conditions, "ReplicaFailure", "True", "FailedCreate", failure.message, now=now
            )
        else:
            conditions = without_condition(conditions, "ReplicaFailure")
        if conditions:
            status["conditions"] = conditions
        self._context.write_status(RESOURCE, replica_set, status)
