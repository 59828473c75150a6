"""Measures a cluster: the use of each node, its evenness, and pending pods that could run.

Pure: API objects in, numbers out. The summary's figures come from here, from listed objects alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import pstdev
from typing import Any

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.profile import Profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.snapshot import CPU, MEMORY, PODS
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.taints import untolerated

#: Phases of a record whose pod leaves.
LEAVING = ("Evicted", "Surging")

BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class NodeUse:
    """How full one node is: shares of allocatable that placed pods request, 0..1."""

    name: str
    cpu: float
    memory: float
    pods: int
    is_open: bool  #: takes new pods: neither cordoned nor tainted against scheduling


@dataclass(frozen=True, slots=True)
class Balance:
    """A cluster at one moment.

    Attributes:
        nodes: The use of each node, sorted by name.
        spread: Standard deviation of the cpu share over open nodes, in percentage points.
        bound: Pods with a node.
        pending: Pods without one.
        misplaced: Pods on a node whose taints they do not tolerate.
    """

    nodes: tuple[NodeUse, ...]
    spread: float
    bound: int
    pending: int
    misplaced: int = 0

    @property
    def badness(self) -> tuple[int, float]:
        """What moves lower, the more important first: rules go before balance (ADR 44)."""
        return self.misplaced, self.spread


def as_cluster(nodes: Iterable[Any], pods: Iterable[Any]) -> tuple[Cluster, list[Pod]]:
    """Columns of the listed objects, and the pods that wait."""
    cluster = Cluster()
    for node in nodes:
        cluster.set_node(convert(Node, node))
    waiting = []
    for each in pods:
        pod = convert(Pod, each)
        if pod.is_terminal:
            continue
        if pod.node_name:
            cluster.place(cluster.templates.info(pod), pod.node_name)
        else:
            waiting.append(pod)
    return cluster, waiting


def balance(nodes: Sequence[Any], pods: Sequence[Any]) -> Balance:
    """Measure a cluster from its listed objects."""
    cluster, waiting = as_cluster(nodes, pods)
    uses = []
    for row, node in enumerate(cluster.nodes):
        allocatable, requested = cluster.allocatable[row], cluster.requested[row]
        uses.append(
            NodeUse(
                name=node.name,
                cpu=float(requested[CPU] / allocatable[CPU]) if allocatable[CPU] else 0.0,
                memory=float(requested[MEMORY] / allocatable[MEMORY]) if allocatable[MEMORY] else 0.0,
                pods=int(requested[PODS]),
                is_open=not node.spec.unschedulable
                and not any(taint.effect in BLOCKING_EFFECTS for taint in node.spec.taints),
            )
        )
    shares = [use.cpu * 100 for use in uses if use.is_open]
    return Balance(
        nodes=tuple(sorted(uses, key=lambda use: use.name)),
        spread=pstdev(shares) if shares else 0.0,
        bound=len(cluster.pods),
        pending=len(waiting),
        misplaced=sum(
            untolerated(cluster.nodes[at].spec.taints, info.pod.spec.tolerations) is not None
            for uid, info in cluster.pods.items()
            if (at := cluster.row_of_pod(uid)) is not None
        ),
    )


def moved_again(records: Iterable[Any]) -> list[str]:
    """Pods that were evicted although they had replaced an evicted one."""
    records = list(records)
    known = (record.get("status", {}).get("replacement") for record in records)
    heirs = {each["uid"] for each in known if each}
    return sorted(
        record["spec"]["pod"]["name"]
        for record in records
        if record["spec"]["pod"]["uid"] in heirs
        and any(each["phase"] in LEAVING for each in record.get("status", {}).get("transitions", ()))
    )


def could_run(nodes: Iterable[Any], pods: Iterable[Any], profile: Profile) -> list[str]:
    """Pending pods for which the profile finds a feasible node right now, as ``namespace/name``."""
    cluster, waiting = as_cluster(nodes, pods)
    scheduler = ProfileScheduler(profile, cluster)
    return [
        pod.key
        for pod in waiting
        if schedule(scheduler, cluster.templates.info(pod)).outcome is AttemptOutcome.SCHEDULED
    ]
