"""Reads workloads, budgets and their surroundings for rules, from a cluster or from manifests."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from plimsoll.inspection.state import ClusterState
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.node import Node, Taint
from plimsoll.model.kinds.pod import Pod, Volume
from plimsoll.model.kinds.storage import PersistentVolumeClaim, StorageClass
from plimsoll.model.kinds.workload import Namespace, PodDisruptionBudget
from plimsoll.model.selectors import (
    NodeMatcher,
    Selector,
    SelectorError,
    compile_node_matcher,
    compile_selector,
)
from plimsoll.toolkit.descheduling.disruption_signals import Bearer

#: Facts about the cluster that rules may need.
NODES, CLASSES, CLAIMS, POLICIES, PODS = (
    "nodes",
    "priorityclasses",
    "persistentvolumeclaims",
    "schedulingpolicies",
    "pods",
)

#: Priority classes that every cluster has.
_SYSTEM_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})

#: The scheduler that every cluster has.
DEFAULT_SCHEDULER = "default-scheduler"


@dataclass(frozen=True, eq=False)
class LintedWorkload:
    """A workload whose pods are judged.

    Attributes:
        pod: Its newest pod, or one built from its template.
        replicas: Number of its pods, current or desired.
        source: The file that defines it, "" for a cluster.
    """

    kind: str
    namespace: str
    name: str
    pod: Pod
    replicas: int
    source: str = ""

    @cached_property
    def required_nodes(self) -> NodeMatcher:
        """The node selector and the required node affinity."""
        return compile_node_matcher(self.pod.spec.node_selector, self.pod.spec.node_affinity.required)


@dataclass(frozen=True, eq=False)
class LintedBudget:
    """A PodDisruptionBudget.

    Attributes:
        source: The file that defines it, "" for a cluster.
    """

    document: PodDisruptionBudget
    source: str = ""

    kind = "PodDisruptionBudget"

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.document.namespace

    @property
    def name(self) -> str:
        """Its name."""
        return self.document.name

    @cached_property
    def selector(self) -> Selector | None:
        """The selector of the covered pods; None if it is malformed."""
        try:
            return compile_selector(self.document.spec.selector)
        except SelectorError:
            return None

    def covers(self, workload: LintedWorkload) -> bool:
        """Whether it covers the pods of a workload."""
        return (
            self.namespace == workload.namespace
            and self.selector is not None
            and self.selector.matches(workload.pod.labels)
        )


@dataclass(frozen=True, eq=False)
class LintedObject:
    """The metadata of a node, of a namespace, or of a workload's pods.

    Attributes:
        volumes: Those of the pods.
        source: The file that defines it, "" for a cluster.
    """

    bearer: Bearer
    kind: str
    namespace: str
    name: str
    metadata: ObjectMeta
    volumes: tuple[Volume, ...] = ()
    source: str = ""


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The surroundings against which workloads are judged.

    Attributes:
        unknown: Why a fact is unknown, keyed by one of the names above.
        schedulers: Valid values of ``schedulerName``.
        pods: Pods with annotations or labels that the newest pod of their workload does not have: only these.
    """

    workloads: tuple[LintedWorkload, ...] = ()
    pods: tuple[LintedObject, ...] = ()
    budgets: tuple[LintedBudget, ...] = ()
    nodes: tuple[Node, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    classes: frozenset[str] = _SYSTEM_CLASSES
    claims: Mapping[str, PersistentVolumeClaim] = field(default_factory=dict)
    storage_classes: Mapping[str, StorageClass] = field(default_factory=dict)
    schedulers: frozenset[str] = frozenset({DEFAULT_SCHEDULER})
    unknown: Mapping[str, str] = field(default_factory=dict)

    def eligible(self, workload: LintedWorkload) -> Sequence[Node]:
        """The nodes that match the workload's selector and required node affinity."""
        wanted = workload.required_nodes
        if wanted.is_empty:
            return self.nodes
        if wanted not in self._eligible:
            self._eligible[wanted] = [
                node for node in self.nodes if wanted.matches(node.metadata.labels, node.name)
            ]
        return self._eligible[wanted]

    @cached_property
    def _eligible(self) -> dict[NodeMatcher, Sequence[Node]]:
        return {}

    @property
    def objects(self) -> Iterator[LintedObject]:
        """What has metadata that others read."""
        for each in self.workloads:
            spec, meta = each.pod.spec, each.pod.metadata
            yield LintedObject(
                Bearer.POD, each.kind, each.namespace, each.name, meta, spec.volumes, each.source
            )
        yield from self.pods
        for node in self.nodes:
            yield LintedObject(Bearer.NODE, "Node", "", node.name, node.metadata)
        for space in self.namespaces:
            yield LintedObject(Bearer.NAMESPACE, "Namespace", space.name, space.name, space.metadata)

    @cached_property
    def label_keys(self) -> frozenset[str]:
        """The keys of all node labels."""
        return frozenset(key for node in self.nodes for key in node.metadata.labels)

    @cached_property
    def taints(self) -> frozenset[Taint]:
        """The taints of all nodes."""
        return frozenset(taint for node in self.nodes for taint in node.spec.taints)

    @cached_property
    def _neighbours(self) -> dict[str, list[LintedWorkload]]:
        found: dict[str, list[LintedWorkload]] = {}
        for each in self.workloads:
            found.setdefault(each.namespace, []).append(each)
        return found

    @cached_property
    def _guards(self) -> dict[str, list[LintedBudget]]:
        found: dict[str, list[LintedBudget]] = {}
        for each in self.budgets:
            found.setdefault(each.namespace, []).append(each)
        return found

    def workloads_in(self, namespace: str) -> Sequence[LintedWorkload]:
        """The workloads of a namespace."""
        return self._neighbours.get(namespace, ())

    def covering(self, workload: LintedWorkload) -> list[LintedBudget]:
        """The budgets that cover the workload's pods."""
        return [each for each in self._guards.get(workload.namespace, ()) if each.covers(workload)]

    def domains(self, workload: LintedWorkload, key: str) -> frozenset[str]:
        """The values of a topology label on eligible nodes."""
        place = (workload.required_nodes, key)
        if place not in self._domains:
            labels = [node.metadata.labels for node in self.eligible(workload)]
            self._domains[place] = frozenset(each[key] for each in labels if key in each)
        return self._domains[place]

    @cached_property
    def _domains(self) -> dict[tuple[NodeMatcher, str], frozenset[str]]:
        return {}


def nothing_known(why: str) -> Neighbourhood:
    """Surroundings without a cluster."""
    return Neighbourhood(unknown=dict.fromkeys((NODES, CLASSES, CLAIMS, POLICIES, PODS), why))


def of_cluster(state: ClusterState) -> Neighbourhood:
    """Surroundings from a cluster with its workloads."""
    objects = state.cluster.objects
    pods = [info.pod for info in (*state.cluster.pods.values(), *state.objects.pending.infos())]
    groups = _groups(pods, state)
    return Neighbourhood(
        workloads=tuple(_workloads(groups, state)),
        pods=tuple(each for group in groups.values() for each in _differing(group)),
        budgets=tuple(map(LintedBudget, objects.budgets.values())),
        nodes=tuple(state.cluster.nodes),
        namespaces=tuple(objects.namespaces.values()),
        classes=_SYSTEM_CLASSES | frozenset(objects.priority_classes),
        claims=objects.claims,
        storage_classes=objects.storage_classes,
        schedulers=frozenset({DEFAULT_SCHEDULER, *state.profiles, *state.unknown}),
        unknown={
            name: state.content.missing[name]
            for name in (NODES, CLASSES, CLAIMS, POLICIES, PODS)
            if name in state.content.missing
        },
    )


def _groups(pods: Iterable[Pod], state: ClusterState) -> dict[tuple[str, str, str], list[Pod]]:
    """Pods by namespace, kind and name of their workload; finished and terminating pods are left out."""
    found: dict[tuple[str, str, str], list[Pod]] = {}
    for pod in pods:
        if pod.is_terminal or pod.metadata.deletion_timestamp is not None:
            continue
        owner = state.cluster.objects.above(pod) or pod.metadata.owner
        kind, name = ("Pod", pod.name) if owner is None else (owner.kind, owner.name)
        if kind != "Node":  # a mirror pod of a static pod
            found.setdefault((pod.namespace, kind, name), []).append(pod)
    return found


def _newest(group: Iterable[Pod]) -> Pod:
    return max(group, key=lambda pod: (str(pod.metadata.creation_timestamp or ""), pod.name))


def _differing(group: Sequence[Pod]) -> Iterator[LintedObject]:
    """Pods with annotations or labels that the newest one does not have, reduced to these."""
    like = _newest(group).metadata
    for pod in group:
        meta = pod.metadata
        annotations = dict(meta.annotations.items() - like.annotations.items())
        labels = dict(meta.labels.items() - like.labels.items())
        if annotations or labels:
            own = msgspec.structs.replace(meta, annotations=annotations, labels=labels)
            yield LintedObject(Bearer.POD, "Pod", pod.namespace, pod.name, own, pod.spec.volumes)


def _workloads(
    groups: Mapping[tuple[str, str, str], Sequence[Pod]], state: ClusterState
) -> Iterable[LintedWorkload]:
    wanted = {
        (each.namespace, "Deployment", each.name): each.spec.replicas
        for each in state.objects.deployments.values()
    }
    for key, group in sorted(groups.items()):
        namespace, kind, name = key
        yield LintedWorkload(kind, namespace, name, _newest(group), max(len(group), wanted.get(key, 0)))


#: Path of the pod template of each kind, and of its number of pods.
_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "Deployment": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "Pod": (),
}


def with_manifests(
    around: Neighbourhood, manifests: Iterable[tuple[str, Mapping[str, Any]]], namespace: str
) -> Neighbourhood:
    """Surroundings with the manifests' workloads and budgets as the subjects.

    Args:
        around: Facts known otherwise.
        manifests: The source and content of each.
        namespace: Namespace of manifests that name none.

    Raises:
        DecodeError: A manifest does not match its kind.
    """
    workloads, budgets = [], []
    classes, schedulers = set(around.classes), set(around.schedulers)
    claims = dict(around.claims)
    for source, content in manifests:
        kind = str(content.get("kind") or "")
        metadata = _object(content.get("metadata"))
        where = str(metadata.get("namespace") or namespace)
        placed = {**content, "metadata": {**metadata, "namespace": where}}
        match kind:
            case "PodDisruptionBudget":
                budgets.append(LintedBudget(convert(PodDisruptionBudget, placed), source))
            case "PersistentVolumeClaim":
                claim = convert(PersistentVolumeClaim, placed)
                claims[f"{where}/{claim.name}"] = claim
            case "PriorityClass":
                classes.add(str(metadata.get("name")))
            case "SchedulingPolicy":
                spec = _object(_object(content.get("spec")).get("scheduling"))
                schedulers.add(str(spec.get("schedulerName") or DEFAULT_SCHEDULER))
            case _ if kind in _TEMPLATES:
                workloads.append(_of_manifest(source, placed))
    named = {(each.namespace, each.kind, each.name) for each in workloads}
    others = [each for each in around.workloads if (each.namespace, each.kind, each.name) not in named]
    known = {(each.namespace, each.name) for each in budgets}
    return Neighbourhood(
        workloads=(*workloads, *others),
        budgets=(*budgets, *(each for each in around.budgets if (each.namespace, each.name) not in known)),
        nodes=around.nodes,
        namespaces=around.namespaces,
        classes=frozenset(classes),
        claims=claims,
        storage_classes=around.storage_classes,
        schedulers=frozenset(schedulers),
        unknown=around.unknown,
    )


def _of_manifest(source: str, content: Mapping[str, Any]) -> LintedWorkload:
    """A workload from its manifest."""
    kind, metadata = content["kind"], content["metadata"]
    template: Any = content
    for step in _TEMPLATES[kind]:
        template = _object(_object(template).get(step))
    name, namespace = str(metadata.get("name") or metadata.get("generateName") or ""), metadata["namespace"]
    own = {**_object(template.get("metadata")), "namespace": namespace, "name": name}
    pod = convert(Pod, {"metadata": own, "spec": template.get("spec") or {}})
    spec = _object(content.get("spec"))
    wanted = spec.get("replicas", spec.get("parallelism", 1)) if kind != "Pod" else 1
    replicas = wanted if isinstance(wanted, int) and not isinstance(wanted, bool) else 1
    return LintedWorkload(kind, namespace, name, pod, replicas, source)


def _object(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one: files may contain anything."""
    return value if isinstance(value, Mapping) else {}
