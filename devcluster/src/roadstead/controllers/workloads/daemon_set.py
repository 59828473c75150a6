"""Runs DaemonSets: one pod for every eligible node, bound to it by affinity and the scheduler.

Source: kubernetes v1.36 ``pkg/controller/daemon/{daemon_controller,update}.go``, ``util/daemonset_util.go``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from roadstead.controllers.ownership import Owners, key_of
from roadstead.controllers.pod_state import available_in_s, is_ready, is_terminating, phase_of
from roadstead.controllers.workloads import revisions as history
from roadstead.controllers.workloads.pod_creation import create_pod, delete_pod, pod_from_template
from roadstead.controllers.workloads.revisions import REVISION_HASH
from roadstead.controllers.workloads.rolling_update import scaled
from roadstead.values.label_selectors import node_fits, tolerates

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

RESOURCE = "daemonsets.apps"
COMPONENT = "daemonset-controller"
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
BATCH = 64
_TOLERATED = {
    "not-ready": "NoExecute",
    "unreachable": "NoExecute",
    "disk-pressure": "NoSchedule",
    "memory-pressure": "NoSchedule",
    "pid-pressure": "NoSchedule",
    "unschedulable": "NoSchedule",
}


class DaemonSetController:
    """Runs a pod of each DaemonSet on each eligible node."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._owners = Owners(RESOURCE, "apps/v1", "DaemonSet", self._enqueue)

    def start(self) -> None:
        """Subscribe to DaemonSets, their pods and revisions, and nodes."""
        self._context.ownership.follow("pods", self._owners)
        self._context.ownership.follow(history.RESOURCE, self._owners)
        self._context.enqueue_all(RESOURCE, self.reconcile)
        self._context.api.subscribe("nodes", self._node_changed)

    def reconcile(self, key: str) -> None:
        """Create and delete pods until every node has its pod, and write the status."""
        daemon_set = self._context.find(RESOURCE, key)
        if daemon_set is None or is_terminating(daemon_set):
            return
        revisions = history.synced(self._context, self._owners, daemon_set)
        update = history.hash_of(revisions[-1])
        nodes = self._context.api.list("nodes")
        self._step(daemon_set, nodes, update)
        self._replace(daemon_set, nodes, update)
        pods = self._write_status(daemon_set, nodes, update)
        live = {revisions[-1]["metadata"]["name"]}
        live |= {f"{daemon_set['metadata']['name']}-{_revision(pod)}" for pod in pods}
        history.forget_old(self._context, daemon_set, revisions, live)

    def _enqueue(self, key: str) -> None:
        self._context.queue.add(self.reconcile, key)

    def _node_changed(self, kind: EventType, node: Obj, old: Obj | None) -> None:
        """Queue all DaemonSets if a node appears, disappears or its eligibility may change."""
        if kind == "MODIFIED" and old is not None:
            same_labels = node["metadata"].get("labels") == old["metadata"].get("labels")
            if same_labels and node.get("spec") == old.get("spec"):
                return
        for daemon_set in self._context.api.list(RESOURCE):
            self._enqueue(key_of(daemon_set))

    def _by_node(self, daemon_set: Obj) -> dict[str, list[Obj]]:
        """The set's pods by the node on which they run or which their affinity requires, oldest first."""
        found: dict[str, list[Obj]] = defaultdict(list)
        for pod in self._context.ownership.claim("pods", self._owners, daemon_set):
            found[pod["spec"].get("nodeName") or _tied_to(pod)].append(pod)
        for pods in found.values():
            pods.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
        return found

    def _step(self, daemon_set: Obj, nodes: list[Obj], update: str) -> None:
        """Create missing pods and delete pods of nodes that are no longer eligible."""
        spec = _placement(daemon_set)
        present = self._by_node(daemon_set)
        created = 0
        for node in nodes:
            name = node["metadata"]["name"]
            should_run, may_stay = _fits(spec, node)
            pods = present.pop(name, [])
            failed = [pod for pod in pods if phase_of(pod) == "Failed"]
            alive = [pod for pod in pods if phase_of(pod) != "Failed" and not is_terminating(pod)]
            for pod in pods if not may_stay else failed:
                if not is_terminating(pod):
                    delete_pod(self._context, COMPONENT, daemon_set, pod)
            if may_stay:
                self._delete_surplus(daemon_set, alive)
            if should_run and not pods and created < BATCH:
                self._create(daemon_set, name, update)
                created += 1
        for pods in present.values():
            for pod in pods:
                if not pod["spec"].get("nodeName") and not is_terminating(pod):
                    delete_pod(self._context, COMPONENT, daemon_set, pod)
        if created == BATCH:
            self._enqueue(key_of(daemon_set))

    def _delete_surplus(self, daemon_set: Obj, alive: list[Obj]) -> None:
        """Delete the younger of several pods on one node; a surge keeps one old and one new."""
        by_revision: dict[str, list[Obj]] = defaultdict(list)
        for pod in alive:
            by_revision[_revision(pod) if _surge(daemon_set) else ""].append(pod)
        for same in by_revision.values():
            for pod in same[1:]:
                delete_pod(self._context, COMPONENT, daemon_set, pod)

    def _create(self, daemon_set: Obj, node: str, update: str) -> None:
        """Create a pod for a node."""
        reference = self._owners.reference_to(daemon_set)
        pod = pod_from_template(daemon_set["spec"]["template"], daemon_set, reference)
        generation = (daemon_set["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "1")
        pod["metadata"]["labels"] |= {REVISION_HASH: update, "pod-template-generation": generation}
        _tie(pod["spec"], node)
        pod["spec"]["tolerations"] = _tolerations(pod["spec"])
        create_pod(self._context, COMPONENT, daemon_set, pod)

    def _replace(self, daemon_set: Obj, nodes: list[Obj], update: str) -> None:
        """Delete pods of an old template within maxUnavailable; with a surge create first."""
        strategy = daemon_set["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return
        spec = _placement(daemon_set)
        running = self._by_node(daemon_set)
        fitting = [node["metadata"]["name"] for node in nodes if _fits(spec, node)[0]]
        unavailable: list[Obj] = []
        replaceable: list[Obj] = []
        missing = 0
        for name in fitting:
            pods = [pod for pod in running.get(name, ()) if not is_terminating(pod)]
            old = [pod for pod in pods if _revision(pod) != update]
            if not any(self._is_available(daemon_set, pod) for pod in pods):
                missing += 1
                unavailable += old
            elif old and len(old) == len(pods):
                replaceable += old[:1]
            else:
                unavailable += old  # its successor is available
        rolling = strategy.get("rollingUpdate") or {}
        surge = scaled(rolling.get("maxSurge", 0), len(fitting), round_up=True)
        if surge:
            surging = sum(len(running.get(name, ())) > 1 for name in fitting)
            for pod in replaceable[: max(0, surge - surging)]:
                self._create(daemon_set, pod["spec"].get("nodeName") or _tied_to(pod), update)
        else:
            may_go = scaled(rolling.get("maxUnavailable", 1), len(fitting), round_up=True) - missing
            unavailable += replaceable[: max(0, may_go)]
        for pod in unavailable:
            delete_pod(self._context, COMPONENT, daemon_set, pod)

    def _is_available(self, daemon_set: Obj, pod: Obj) -> bool:
        """Whether a pod is available; if it is only ready, queue the set for that time."""
        min_ready_s = daemon_set["spec"].get("minReadySeconds") or 0
        wait_s = available_in_s(pod, min_ready_s, self._context.now)
        if wait_s:
            self._context.queue.add(self.reconcile, key_of(daemon_set), wait_s)
        return wait_s == 0.0

    def _write_status(self, daemon_set: Obj, nodes: list[Obj], update: str) -> list[Obj]:
        """Write the counts by node, and return the pods."""
        spec = _placement(daemon_set)
        running = self._by_node(daemon_set)
        counts = dict.fromkeys(("current", "misscheduled", "desired", "ready", "updated", "available"), 0)
        for node in nodes:
            pods = [pod for pod in running.get(node["metadata"]["name"], ()) if not is_terminating(pod)]
            if not _fits(spec, node)[0]:
                counts["misscheduled"] += bool(pods)
                continue
            counts["desired"] += 1
            if pods:
                counts["current"] += 1
                counts["ready"] += is_ready(pods[0])
                counts["available"] += self._is_available(daemon_set, pods[0])
                counts["updated"] += _revision(pods[-1]) == update
        status: Obj = {
            "currentNumberScheduled": counts["current"],
            "numberMisscheduled": counts["misscheduled"],
            "desiredNumberScheduled": counts["desired"],
            "numberReady": counts["ready"],
            "observedGeneration": daemon_set["metadata"]["generation"],
        }
        optional = {
            "updatedNumberScheduled": counts["updated"],
            "numberAvailable": counts["available"],
            "numberUnavailable": counts["desired"] - counts["available"],
        }
        status |= {name: count for name, count in optional.items() if count}
        self._context.write_status(RESOURCE, daemon_set, status)
        return [pod for pods in running.values() for pod in pods]


def _tolerations(spec: Obj) -> list[Obj]:
    """A pod's tolerations, and those of every daemon pod."""
    added = dict(_TOLERATED)
    if spec.get("hostNetwork"):
        added["network-unavailable"] = "NoSchedule"
    own: list[Obj] = list(spec.get("tolerations") or ())
    for key, effect in added.items():
        toleration = {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
        if toleration not in own:
            own.append(toleration)
    return own


def _placement(daemon_set: Obj) -> Obj:
    """The parts of a template that decide the eligibility of nodes."""
    spec = daemon_set["spec"]["template"]["spec"]
    return {**spec, "tolerations": _tolerations(spec)}


def _fits(spec: Obj, node: Obj) -> tuple[bool, bool]:
    """Whether a pod should run on a node, and whether a running one may stay."""
    if (spec.get("nodeName") or node["metadata"]["name"]) != node["metadata"]["name"]:
        return False, False
    if not node_fits(spec, node):
        return False, False
    taints = (node.get("spec") or {}).get("taints") or ()
    hard = [one for one in taints if one["effect"] in ("NoSchedule", "NoExecute")]
    untolerated = [one for one in hard if tolerates(spec["tolerations"], one) is None]
    return not untolerated, all(one["effect"] != "NoExecute" for one in untolerated)


def _tie(spec: Obj, node: str) -> None:
    """Require one node in place of the terms' fields; the node matches the expressions already."""
    affinity: Obj = spec.setdefault("affinity", {})
    requirement = {"key": "metadata.name", "operator": "In", "values": [node]}
    node_affinity: Obj = affinity.setdefault("nodeAffinity", {})
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [{"matchFields": [requirement]}]
    }


def _tied_to(pod: Obj) -> str:
    """The one node that a pod's affinity requires."""
    required = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for one in term.get("matchFields") or ():
            if one["key"] == "metadata.name" and one["values"]:
                return str(one["values"][0])
    return ""


def _surge(daemon_set: Obj) -> bool:
    """Whether an update starts the new pod before the old one ends."""
    rolling = (daemon_set["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return rolling.get("maxSurge", 0) not in (0, "0%")


def _revision(pod: Obj) -> str:
    """The hash of a pod's template."""
    digest: str = (pod["metadata"].get("labels") or {}).get(REVISION_HASH, "")
    return digest
