"""Runs StatefulSets: creates, replaces and deletes pods with stable names and claims in order.

Source: kubernetes v1.36 ``pkg/controller/statefulset/{stateful_set_control,stateful_set_utils}.go``.
Differs: claims are never deleted with their set (persistentVolumeClaimRetentionPolicy is Retain), and a
rolling update replaces one pod at a time (no maxUnavailable).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roadstead.controllers.ownership import Owners, key_of
from roadstead.controllers.pod_state import (
    available_in_s,
    is_finished,
    is_ready,
    is_terminating,
    phase_of,
)
from roadstead.controllers.workloads import revisions as history
from roadstead.controllers.workloads.pod_creation import create_pod, delete_pod, pod_from_template
from roadstead.controllers.workloads.revisions import REVISION_HASH
from roadstead.values.copies import copied

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.values.resources import Obj

RESOURCE = "statefulsets.apps"
CLAIMS = "persistentvolumeclaims"
COMPONENT = "statefulset-controller"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
_ORDINAL = re.compile(r"(.*)-(\d+)")


class StatefulSetController:
    """Keeps StatefulSets at their size and template."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._owners = Owners(RESOURCE, "apps/v1", "StatefulSet", self._enqueue)

    def start(self) -> None:
        """Subscribe to StatefulSets, their pods and their revisions."""
        self._context.ownership.follow("pods", self._owners)
        self._context.ownership.follow(history.RESOURCE, self._owners)
        self._context.enqueue_all(RESOURCE, self.reconcile)

    def reconcile(self, key: str) -> None:
        """Perform the next step of a StatefulSet, and write its status."""
        stateful_set = self._context.find(RESOURCE, key)
        if stateful_set is None:
            return
        pods = self._pods(stateful_set)
        if is_terminating(stateful_set):
            return
        revisions = history.synced(self._context, self._owners, stateful_set)
        current = self._current(stateful_set, revisions)
        self._step(stateful_set, pods, current, revisions[-1])
        current = self._write_status(stateful_set, current, revisions[-1])
        live = {current["metadata"]["name"], revisions[-1]["metadata"]["name"]}
        live |= {_revision(pod) for pod in pods.values()}
        history.forget_old(self._context, stateful_set, revisions, live)

    def _enqueue(self, key: str) -> None:
        self._context.queue.add(self.reconcile, key)

    def _pods(self, stateful_set: Obj) -> dict[int, Obj]:
        """The set's pods by ordinal."""
        pods = self._context.ownership.claim("pods", self._owners, stateful_set)
        found = ((_ORDINAL.fullmatch(pod["metadata"]["name"]), pod) for pod in pods)
        name = stateful_set["metadata"]["name"]
        return {int(match[2]): pod for match, pod in found if match and match[1] == name}

    @staticmethod
    def _current(stateful_set: Obj, revisions: list[Obj]) -> Obj:
        """The revision from which the set is being updated; without an update the current one."""
        name = (stateful_set.get("status") or {}).get("currentRevision")
        return next((one for one in revisions if one["metadata"]["name"] == name), revisions[-1])

    def _step(self, stateful_set: Obj, pods: dict[int, Obj], current: Obj, update: Obj) -> None:
        """Create, delete or replace pods as far as the order allows."""
        spec = stateful_set["spec"]
        in_order = spec.get("podManagementPolicy", "OrderedReady") != "Parallel"
        start = (spec.get("ordinals") or {}).get("start", 0)
        wanted = range(start, start + spec["replicas"])
        for ordinal in wanted:
            pod = pods.get(ordinal)
            if pod is None:
                revision = current if self._keeps_current(stateful_set, ordinal, start) else update
                self._create(stateful_set, ordinal, revision)
            elif is_finished(pod):
                if not is_terminating(pod):
                    delete_pod(self._context, COMPONENT, stateful_set, pod)
            elif not in_order or (not is_terminating(pod) and self._is_available(stateful_set, pod)):
                continue
            if in_order:
                return
        condemned = sorted((ordinal for ordinal in pods if ordinal not in wanted), reverse=True)
        for ordinal in condemned:
            if not is_terminating(pods[ordinal]):
                delete_pod(self._context, COMPONENT, stateful_set, pods[ordinal])
            if in_order:
                return
        self._update(stateful_set, pods, wanted, update)

    def _update(self, stateful_set: Obj, pods: dict[int, Obj], wanted: range, update: Obj) -> None:
        """Delete the pod with the highest ordinal and an old template, once all above it are available."""
        strategy = stateful_set["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return
        partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
        for ordinal in reversed(wanted[partition:]):
            pod = pods.get(ordinal)
            if pod is None or is_terminating(pod):
                return
            if _revision(pod) != update["metadata"]["name"]:
                delete_pod(self._context, COMPONENT, stateful_set, pod)
                return
            if not self._is_available(stateful_set, pod):
                return

    @staticmethod
    def _keeps_current(stateful_set: Obj, ordinal: int, start: int) -> bool:
        """Whether a missing pod is created with the template before the update."""
        strategy = stateful_set["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return False
        partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
        kept = partition or (stateful_set.get("status") or {}).get("currentReplicas", 0)
        return bool(ordinal < start + kept)

    def _is_available(self, stateful_set: Obj, pod: Obj) -> bool:
        """Whether a pod is available; if it is only ready, queue the set for that time."""
        if phase_of(pod) != "Running":
            return False
        min_ready_s = stateful_set["spec"].get("minReadySeconds") or 0
        wait_s = available_in_s(pod, min_ready_s, self._context.now)
        if wait_s:
            self._context.queue.add(self.reconcile, key_of(stateful_set), wait_s)
        return wait_s == 0.0

    def _create(self, stateful_set: Obj, ordinal: int, revision: Obj) -> None:
        """Create a pod of a revision, after its claims."""
        name = f"{stateful_set['metadata']['name']}-{ordinal}"
        template = history.template_of(revision)
        pod = pod_from_template(template, stateful_set, self._owners.reference_to(stateful_set))
        metadata, spec = pod["metadata"], pod["spec"]
        metadata["name"] = name
        metadata["labels"] |= {
            POD_NAME: name,
            POD_INDEX: str(ordinal),
            REVISION_HASH: revision["metadata"]["name"],
        }
        spec["hostname"] = name
        if service := stateful_set["spec"].get("serviceName"):
            spec["subdomain"] = service
        claims = stateful_set["spec"].get("volumeClaimTemplates") or []
        named = {claim["metadata"]["name"]: f"{claim['metadata']['name']}-{name}" for claim in claims}
        for claim in claims:
            self._claim(stateful_set, claim, named[claim["metadata"]["name"]])
        if named:
            volumes = [one for one in spec.get("volumes") or () if one["name"] not in named]
            spec["volumes"] = volumes + [
                {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
                for volume, claim in named.items()
            ]
        create_pod(self._context, COMPONENT, stateful_set, pod)

    def _claim(self, stateful_set: Obj, template: Obj, name: str) -> None:
        """Create a claim if it is missing."""
        namespace = stateful_set["metadata"]["namespace"]
        if self._context.find(CLAIMS, f"{namespace}/{name}"):
            return
        claim = copied({key: value for key, value in template.items() if key != "status"})
        labels = {
            **(claim["metadata"].get("labels") or {}),
            **(stateful_set["spec"]["selector"].get("matchLabels") or {}),
        }
        claim["metadata"] = {**claim["metadata"], "name": name, "namespace": namespace, "labels": labels}
        self._context.api.create(CLAIMS, claim)

    def _write_status(self, stateful_set: Obj, current: Obj, update: Obj) -> Obj:
        """Write the counts; if all pods have the new template it becomes the current one, and is returned."""
        pods = list(self._pods(stateful_set).values())
        alive = [pod for pod in pods if not is_terminating(pod)]
        ready = [pod for pod in pods if phase_of(pod) == "Running" and is_ready(pod)]
        updated = sum(_revision(pod) == update["metadata"]["name"] for pod in alive)
        if updated == stateful_set["spec"]["replicas"] == len(ready) == len(pods):
            current = update
        names = current["metadata"]["name"], update["metadata"]["name"]
        status: Obj = {
            "observedGeneration": stateful_set["metadata"]["generation"],
            "replicas": len(pods),
            "readyReplicas": len(ready),
            "currentReplicas": sum(_revision(pod) == names[0] for pod in alive),
            "updatedReplicas": updated,
        }
        status = {name: count for name, count in status.items() if count or name == "replicas"}
        status["availableReplicas"] = sum(self._is_available(stateful_set, pod) for pod in ready)
        status |= {"currentRevision": names[0], "updateRevision": names[1], "collisionCount": 0}
        self._context.write_status(RESOURCE, stateful_set, status)
        return current


def _revision(pod: Obj) -> str:
    """The name of a pod's revision."""
    name: str = (pod["metadata"].get("labels") or {}).get(REVISION_HASH, "")
    return name
