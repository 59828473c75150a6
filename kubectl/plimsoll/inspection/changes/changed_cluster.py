"""ChangedCluster is a fork to which changes are applied one by one; the queue places pods after each.

Pods that wait in the cluster hold no place: a change that takes one from them lets them wait again.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count, islice

import msgspec

from plimsoll.framework import PodInfo
from plimsoll.inspection.changes.cluster_changes import (
    AddNode,
    AddNodes,
    ApplyManifests,
    ClusterChange,
    Cordon,
    Drain,
    LabelNode,
    RemoveNodes,
    ScaleWorkload,
    TaintNode,
)
from plimsoll.inspection.changes.node_drain import Blocked, drain
from plimsoll.inspection.changes.workload_members import added, deleted_first, members
from plimsoll.inspection.manifests.daemon_pods import daemon_pod, daemon_templates, runs_on
from plimsoll.inspection.manifests.documents import NEW, Manifests, shelve
from plimsoll.inspection.manifests.new_claims import copied_claims, with_claims
from plimsoll.inspection.manifests.pod_defaults import ManifestError
from plimsoll.inspection.manifests.workload_pods import WorkloadPods
from plimsoll.inspection.placement.fit import missing_notes, pending_pods, schedulers_of, waiting_pods
from plimsoll.inspection.state import ClusterState
from plimsoll.model.counted import agreeing, counted
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.node import Node, NodeSpec, NodeStatus
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.taints import NO_EXECUTE, NO_SCHEDULE, untolerated
from plimsoll.offline.cluster import OfflineCluster, OfflinePlacement
from plimsoll.planning.moves import replacement_of

_HOSTNAME = "kubernetes.io/hostname"
_CONDITIONS = "node.kubernetes.io/"


class ChangedCluster:
    """The fork.

    Attributes:
        queue: The pods without a node on the fork.
        placed: Pods that the queue placed, by uid.
        unserved: Pods that wait for a scheduler that none seems to run, by uid; they are never placed.
        blocked: Pods that could not be drained.
        evicted: Number of pods that the changes evicted and that were, or must be, placed again.
        gone: Pods that the changes ended and that no controller recreates, as ``namespace/name``.
        notes: Sentences about facts that are unknown or assumed.
    """

    def __init__(self, state: ClusterState, manifests: Iterable[Manifests] = ()) -> None:
        groups = {key: group for each in manifests for key, group in each.pod_groups().items()}
        schedulers = schedulers_of(state, groups)
        self.queue = OfflineCluster(state.cluster.fork(), schedulers, state.book.nominator.entries())
        self.fork = self.queue.fork
        self.placed: dict[str, OfflinePlacement] = {}
        self.blocked: list[Blocked] = []
        self.evicted = 0
        self.gone: list[str] = []
        self.notes: list[str] = []
        self._now = state.time
        self.notes += missing_notes(state)
        self._waited = {pod.uid: pod for pod in waiting_pods(state)}
        self.unserved = {pod.uid: pod for pod in pending_pods(state) if pod.uid not in self._waited}
        for pod in self._waited.values():
            self.queue.add(pod)

    def settle(self) -> None:
        """Let the queue place every pod that fits."""
        for each in self.queue.settle():
            self.placed[each.pod.uid] = each

    def make(self, change: ClusterChange) -> None:
        """Apply a change, then place every pod that fits.

        Raises:
            ManifestError: Its node or workload does not exist, or exists already.
        """
        match change:
            case AddNode(name, like):
                self._add_copies([name], like)
            case AddNodes(amount, like):
                names = (name for number in count(1) if (name := f"new-{number}") not in self.fork.rows)
                self._add_copies(list(islice(names, amount)), like)
            case RemoveNodes(names):
                self._remove(names)
            case Drain(names):
                self._drain(names)
            case Cordon(names, unschedulable):
                self._cordon(names, unschedulable=unschedulable)
            case LabelNode(name, key, value):
                self._label(name, key, value)
            case TaintNode():
                self._taint(change)
            case ScaleWorkload():
                self._scale(change)
            case ApplyManifests(manifests):
                self._apply(manifests)
        self.settle()

    # -- nodes ---------------------------------------------------------------------------------------

    def _node(self, name: str) -> Node:
        row = self.fork.rows.get(name)
        if row is None:
            some = ", ".join(sorted(self.fork.rows)[:5])
            there = (
                f"the cluster has {counted(len(self.fork), 'node')}, such as {some}"
                if some
                else "it has none"
            )
            raise ManifestError(f"there is no node {name}; {there}")
        return self.fork.nodes[row]

    def _add_copies(self, names: Sequence[str], like: str) -> None:
        sample = self._node(like) if like else self._commonest()
        for name in names:
            if name in self.fork.rows:
                raise ManifestError(f"node {name} exists already; give the new one another name")
            self._add_node(self._copied(name, sample))
        if not like:
            made = agreeing(len(names), f"node {names[0]} is a copy", f"{names[0]} to {names[-1]} are copies")
            self.notes.append(f"{made} of {sample.name}, one of the most common nodes")

    def _copied(self, name: str, sample: Node) -> Node:
        """A copy of a node under another name, without pods."""
        csi = self.fork.objects.csi_nodes.get(sample.name)
        if csi is not None:
            shelve(
                self.fork,
                msgspec.structs.replace(csi, metadata=ObjectMeta(name=name, uid=f"{NEW}CSINode:/{name}")),
            )
        labels = sample.labels
        if _HOSTNAME in labels:
            labels = {**labels, _HOSTNAME: name}
        taints = tuple(each for each in sample.spec.taints if not each.key.startswith(_CONDITIONS))
        return Node(
            metadata=ObjectMeta(
                name=name, uid=f"{NEW}Node:/{name}", labels=labels, creation_timestamp=self._now
            ),
            spec=NodeSpec(taints=taints),
            status=NodeStatus(
                allocatable=sample.status.allocatable,
                capacity=sample.status.capacity,
                conditions=sample.status.conditions,
                declared_features=sample.status.declared_features,
            ),
        )

    def _commonest(self) -> Node:
        """A node of the most common kind; none that was added here."""
        nodes = [node for node in self.fork.nodes if not node.metadata.uid.startswith(NEW)]
        if not nodes:
            raise ManifestError("the cluster has no node to copy; give the new one as a manifest with -f")
        shapes = Counter(map(_shape, nodes))
        most = max(shapes.values())
        return min((node for node in nodes if shapes[_shape(node)] == most), key=lambda node: node.name)

    def _add_node(self, node: Node) -> None:
        """Add or replace a node, with the daemon pods that it would get."""
        is_new = node.name not in self.fork.rows
        self.fork.set_node(node)
        if is_new:
            for template in daemon_templates(list(self.fork.pods.values())):
                if runs_on(template, node):
                    self._wait(daemon_pod(template, node.name))

    def _remove(self, names: Sequence[str]) -> None:
        for name in names:
            self._node(name)
            for pod in list(self.fork.pods_on(self.fork.rows[name])):
                self._evict(pod)
            self.fork.remove_node(name)

    def _cordon(self, names: Sequence[str], *, unschedulable: bool) -> None:
        for name in names:
            node = self._node(name)
            spec = msgspec.structs.replace(node.spec, unschedulable=unschedulable)
            self.fork.set_node(msgspec.structs.replace(node, spec=spec))

    def _drain(self, names: Sequence[str]) -> None:
        self._cordon(names, unschedulable=True)
        for row in [self.fork.rows[name] for name in names]:
            for pod in [each for each in self.fork.pods_on(row) if each.uid in self._waited]:
                self._evict(pod)
        outcome = drain(self.queue, names, self._evict, self.settle)
        self.blocked += outcome.blocked
        scratch = sum(
            1
            for pod in outcome.evicted
            if any(volume.empty_dir is not None for volume in pod.pod.spec.volumes)
        )
        if scratch:
            drained = f"{counted(scratch, 'drained pod')} {agreeing(scratch, 'has', 'have')}"
            self.notes.append(f"{drained} emptyDir volumes, whose data is lost")

    def _label(self, name: str, key: str, value: str | None) -> None:
        node = self._node(name)
        labels = {each: text for each, text in node.labels.items() if each != key}
        if value is not None:
            labels[key] = value
        metadata = msgspec.structs.replace(node.metadata, labels=labels)
        self.fork.set_node(msgspec.structs.replace(node, metadata=metadata))

    def _taint(self, change: TaintNode) -> None:
        node, taint = self._node(change.node), change.taint
        taints = tuple(
            each for each in node.spec.taints if (each.key, each.effect) != (taint.key, taint.effect)
        )
        if not change.removed:
            taints = (*taints, taint)
        self.fork.set_node(
            msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints))
        )
        if taint.effect != NO_EXECUTE or change.removed:
            return
        for pod in sorted(self.fork.pods_on(self.fork.rows[change.node]), key=lambda pod: pod.key):
            lasting = [each for each in pod.pod.spec.tolerations if each.toleration_seconds is None]
            if untolerated((taint,), lasting, frozenset((NO_EXECUTE,))) is not None:
                self._evict(pod)

    # -- pods ----------------------------------------------------------------------------------------

    def _wait(self, pod: Pod, templates: Sequence[object] = ()) -> None:
        """Queue a new pod."""
        made, notes = with_claims(pod, templates, self.fork)  # type: ignore[arg-type]
        self.notes += notes
        self.queue.add(self.fork.templates.info(made))

    def _evict(self, pod: PodInfo) -> None:
        """Evict a pod; its controller recreates it, if the controller does so."""
        self.fork.displace(pod.uid)
        self.placed.pop(pod.uid, None)
        if pod.uid in self._waited:
            self.queue.add(self._waited[pod.uid])
            return
        if pod.is_terminating or pod.pod.goes_with_its_node:
            return
        if pod.pod.metadata.controller is None:
            self.gone.append(pod.key)
            return
        self.evicted += 1
        successor = replacement_of(pod, self.fork)
        metadata = msgspec.structs.replace(successor.pod.metadata, creation_timestamp=self._now)
        young = msgspec.structs.replace(successor.pod, metadata=metadata)
        self.queue.add(self.fork.templates.info(young, successor.stands_in_for))

    def _drop(self, pod: PodInfo) -> None:
        """Delete a pod that is not recreated."""
        self.queue.remove(pod.uid)
        self.placed.pop(pod.uid, None)
        self.unserved.pop(pod.uid, None)
        self.gone.append(pod.key)

    def _members(self, kind: str, namespace: str, name: str) -> list[PodInfo]:
        pods = [*self.fork.pods.values(), *self.queue.waiting.values(), *self.unserved.values()]
        return members(kind, namespace, name, pods, self.fork.objects)

    def _shrink(self, kind: str, pods: list[PodInfo], amount: int) -> None:
        node_of = {
            pod.uid: self.fork.nodes[row].name
            for pod in pods
            if pod.uid not in self._waited and (row := self.fork.row_of_pod(pod.uid)) is not None
        }
        for pod in deleted_first(kind, pods, node_of)[:amount]:
            self._drop(pod)

    def _scale(self, change: ScaleWorkload) -> None:
        pods = self._members(change.kind, change.namespace, change.name)
        if not pods:
            raise ManifestError(
                f"{change.subject} has no pods to copy or delete; give its manifest with -f instead"
            )
        self._shrink(change.kind, pods, max(0, len(pods) - change.replicas))
        if change.replicas > len(pods):
            claims = copied_claims(max(pods, key=lambda pod: pod.key).pod, self.fork.objects)
            for pod in added(change.kind, pods, change.replicas - len(pods), self._now):
                self._wait(pod, claims)

    def _apply(self, manifests: Manifests) -> None:
        for found in manifests.objects:
            shelve(self.fork, found)
        for node in manifests.nodes:
            self._add_node(node)
        for workload in manifests.workloads:
            self._create(workload)

    def _create(self, workload: WorkloadPods) -> None:
        """Create the missing pods of a workload, or delete surplus ones."""
        if workload.owner is not None:
            shelve(self.fork, workload.owner)
        if workload.kind == "DaemonSet":
            for node in self.fork.nodes:
                if runs_on(workload.template, node):
                    self._wait(daemon_pod(workload.template, node.name))
            return
        there = self._members(workload.kind, workload.namespace, workload.name)
        if there:
            self.notes.append(
                f"{workload.subject} has {counted(len(there), 'pod')} already: a rollout is not simulated"
            )
        self._shrink(workload.kind, there, max(0, len(there) - workload.replicas))
        for number in range(len(there), workload.replicas):
            self._wait(workload.pod(number, self._now), workload.claims)


def _shape(node: Node) -> tuple[tuple[str, str], ...]:
    """The allocatable amounts of a node as a key."""
    hard = [(each.key, each.effect) for each in node.spec.taints if each.effect in (NO_SCHEDULE, NO_EXECUTE)]
    return (*sorted((name, str(amount)) for name, amount in node.status.allocatable.items()), *hard)
