"""Tests on a copy of the cluster and of a pod whether a change lets the pod fit.

A :data:`Grant` changes the copy. Then the scheduler of the pod's profile judges it as it would judge the
cluster. The cluster itself is never changed.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import Struct, structs

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.node import Node, Taint, allocatable_of
from plimsoll.model.kinds.pod import Affinity, Pod, PodAffinityTerms, Toleration
from plimsoll.model.taints import UNSCHEDULABLE_TAINT


class Supposition:
    """A fork of the cluster and a pod to place.

    Attributes:
        cluster: The fork; grants write it.
        pod: The pod; grants replace it.
    """

    def __init__(self, scheduler: ProfileScheduler, pod: PodInfo) -> None:
        self.cluster: Cluster = scheduler.cluster.fork()
        self.pod: Pod = pod.pod
        self._scheduler = scheduler

    def node(self, name: str) -> Node:
        """A node of the fork."""
        return self.cluster.nodes[self.cluster.rows[name]]

    def judge(self) -> tuple[ProfileScheduler, PodInfo]:
        """The scheduler and the pod, on the fork; without preemption."""
        profile = self._scheduler.profile.without_preemption
        return self._scheduler.on(self.cluster, profile), self.cluster.templates.info(self.pod)

    def feasible(self) -> tuple[str, ...]:
        """The nodes that are feasible for the pod now."""
        twin, info = self.judge()
        return twin.rank(info).nodes

    def lands(self) -> str:
        """The node that a scheduling attempt chooses, "" if none."""
        twin, info = self.judge()
        decision = schedule(twin, info)
        return decision.node if decision.outcome is AttemptOutcome.SCHEDULED else ""


class Grant(Protocol):
    """One change to a supposition."""

    def apply(self, on: Supposition) -> None:
        """Apply the change."""


class FreeResource(Struct, frozen=True):
    """Adds to a node's allocatable amount of a resource, in the resource's unit (cpu in milli)."""

    node: str
    resource: str
    amount: int

    def apply(self, on: Supposition) -> None:
        """Raise the node's allocatable amount."""
        node = on.node(self.node)
        total = allocatable_of(node).get(self.resource, 0) + self.amount
        quantity = f"{total}m" if self.resource == "cpu" else total
        allocatable = {**node.status.allocatable, self.resource: quantity}
        on.cluster.set_node(
            structs.replace(node, status=structs.replace(node.status, allocatable=allocatable))
        )


class Uncordon(Struct, frozen=True):
    """Uncordons a node and removes the taint of cordoned nodes."""

    node: str

    def apply(self, on: Supposition) -> None:
        """Change the spec of the node."""
        node = on.node(self.node)
        taints = tuple(each for each in node.spec.taints if each.key != UNSCHEDULABLE_TAINT.key)
        spec = structs.replace(node.spec, unschedulable=False, taints=taints)
        on.cluster.set_node(structs.replace(node, spec=spec))


class Tolerate(Struct, frozen=True):
    """Makes the pod tolerate a taint."""

    taint: Taint

    def apply(self, on: Supposition) -> None:
        """Add the toleration."""
        taint = self.taint
        toleration = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
        spec = structs.replace(on.pod.spec, tolerations=(*on.pod.spec.tolerations, toleration))
        on.pod = structs.replace(on.pod, spec=spec)


class Relabel(Struct, frozen=True):
    """Changes labels of a node; None removes one."""

    node: str
    labels: tuple[tuple[str, str | None], ...]

    def apply(self, on: Supposition) -> None:
        """Change the labels."""
        node = on.node(self.node)
        merged: Mapping[str, str | None] = {**node.labels, **dict(self.labels)}
        labels = {key: value for key, value in merged.items() if value is not None}
        on.cluster.set_node(structs.replace(node, metadata=structs.replace(node.metadata, labels=labels)))


class PodsLeave(Struct, frozen=True):
    """Removes pods from the cluster."""

    uids: tuple[str, ...]

    def apply(self, on: Supposition) -> None:
        """Remove the pods from their nodes."""
        for uid in self.uids:
            on.cluster.displace(uid)


class PodArrives(Struct, frozen=True):
    """Adds a pod with these labels, without requests, to a node."""

    node: str
    namespace: str
    labels: tuple[tuple[str, str], ...]

    def apply(self, on: Supposition) -> None:
        """Place the pod."""
        metadata = {
            "name": "supposed",
            "namespace": self.namespace,
            "uid": f"supposed:{self.node}:{self.labels}",
            "labels": dict(self.labels),
        }
        pod = convert(Pod, {"metadata": metadata, "spec": {"nodeName": self.node}})
        on.cluster.place(on.cluster.templates.info(pod), self.node)


class AllowSkew(Struct, frozen=True):
    """Raises the maximum skew of the pod's constraints over a topology key."""

    topology_key: str
    max_skew: int

    def apply(self, on: Supposition) -> None:
        """Raise ``maxSkew``."""
        constraints = tuple(
            structs.replace(each, max_skew=max(each.max_skew, self.max_skew))
            if each.topology_key == self.topology_key and each.when_unsatisfiable == "DoNotSchedule"
            else each
            for each in on.pod.spec.topology_spread_constraints
        )
        spec = structs.replace(on.pod.spec, topology_spread_constraints=constraints)
        on.pod = structs.replace(on.pod, spec=spec)


class DropAffinity(Struct, frozen=True):
    """Removes the pod's required pod affinity."""

    def apply(self, on: Supposition) -> None:
        """Remove the terms."""
        affinity = on.pod.spec.affinity or Affinity()
        terms = structs.replace(affinity.pod_affinity or PodAffinityTerms(), required=())
        spec = structs.replace(on.pod.spec, affinity=structs.replace(affinity, pod_affinity=terms))
        on.pod = structs.replace(on.pod, spec=spec)


class DropNodeRequirements(Struct, frozen=True):
    """Removes the pod's node selector and required node affinity."""

    def apply(self, on: Supposition) -> None:
        """Remove both."""
        affinity = on.pod.spec.affinity
        if affinity is not None and affinity.node_affinity is not None:
            terms = structs.replace(affinity.node_affinity, required=None)
            affinity = structs.replace(affinity, node_affinity=terms)
        spec = structs.replace(on.pod.spec, node_selector={}, affinity=affinity)
        on.pod = structs.replace(on.pod, spec=spec)


class NodeJoins(Struct, frozen=True):
    """Adds a copy of a node, without pods."""

    like: str
    name: str

    def apply(self, on: Supposition) -> None:
        """Add the node under its own host name."""
        node = on.node(self.like)
        labels = {**node.labels, "kubernetes.io/hostname": self.name}
        metadata = structs.replace(node.metadata, name=self.name, uid=f"supposed:{self.name}", labels=labels)
        spec = structs.replace(node.spec, unschedulable=False)
        on.cluster.set_node(structs.replace(node, metadata=metadata, spec=spec))


def supposed(scheduler: ProfileScheduler, pod: PodInfo, grants: Iterable[Grant]) -> Supposition:
    """Build a supposition with these grants applied in order."""
    made = Supposition(scheduler, pod)
    for grant in grants:
        grant.apply(made)
    return made
