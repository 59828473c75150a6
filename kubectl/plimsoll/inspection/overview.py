"""Describes a cluster's state: its source, counts of objects, missing kinds, utilisation."""

from collections import Counter
from datetime import UTC, datetime

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.inspection.state import ClusterState
from plimsoll.model.counted import agreeing, counted
from plimsoll.snapshots.content import SnapshotContent

#: Number of namespaces listed.
LARGEST = 10


class ResourceUtilisation(AnswerPart):
    """One resource over all nodes."""

    resource: str = Field(description="Name of the resource.")
    allocatable: int = Field(description="What pods may take: cpu in milli, the rest in units.")
    requested: int = Field(description="Amount that placed pods request, in the unit of the allocatable.")
    used: int | None = Field(
        default=None,
        description="Amount that is used by the metrics API, in the unit of the allocatable; null where it"
        " is not known.",
    )


class NamespaceSize(AnswerPart):
    """The totals of a namespace's pods."""

    namespace: str = Field(description="Name of the namespace.")
    pods: int = Field(description="Pods of the namespace that have not ended.")
    pending: int = Field(description="Pods of the namespace that have no node and have not ended.")
    cpu_milli: int = Field(description="Cpu that they request.")
    memory_bytes: int = Field(description="Memory that they request.")


class PolicySummary(AnswerPart):
    """One SchedulingPolicy."""

    name: str = Field(description="Name of the SchedulingPolicy.")
    problem: str = Field(default="", description="Why it is not accepted; empty when it is.")


class UnreadableObject(AnswerPart):
    """An object, or a part of one, that cannot be read."""

    resource: str = Field(description="Plural of its kind.")
    name: str = Field(description="NAMESPACE/NAME, or NAME.")
    problem: str = Field(description="What is wrong.")


class SnapshotOverview(Answer):
    """The contents of a snapshot."""

    taken: datetime = Field(description="When it was taken.")
    source: str = Field(
        description="Where the cluster was read: the address of an API server, or the path of a file."
    )
    counts: dict[str, int] = Field(description="Objects by plural; kinds without one are left out.")
    missing: dict[str, str] = Field(description="Why kinds could not be read, by plural.")
    usage_problem: str = Field(default="", description="Why usage is not known; empty if it is.")
    pending: int = Field(description="Pods without a node that have not ended.")
    utilisation: tuple[ResourceUtilisation, ...] = Field(description="Use of each resource over all nodes.")
    largest_namespaces: tuple[NamespaceSize, ...] = Field(
        description="Namespaces with the most requested cpu, at most ten."
    )
    policies: tuple[PolicySummary, ...] = Field(
        description="SchedulingPolicies in the snapshot, the oldest first."
    )
    unreadable: tuple[UnreadableObject, ...] = Field(description="What cannot be read.")


class SavedSnapshot(Answer):
    """A saved snapshot."""

    file: str = Field(description="Path of the written file.")
    size_bytes: int = Field(description="Size of the file in bytes.")
    source: str = Field(
        description="Where the cluster was read: the address of an API server, or the path of a file."
    )
    counts: dict[str, int] = Field(description="Objects by plural; kinds without one are left out.")
    missing: dict[str, str] = Field(description="Why kinds could not be read, by plural.")

    @property
    def sentence(self) -> str:
        """The answer as a sentence for people."""
        nodes, pods = self.counts.get("nodes", 0), self.counts.get("pods", 0)
        others = sum(self.counts.values()) - nodes - pods
        kinds = len(self.missing)
        missing = f"; {counted(kinds, 'kind')} {agreeing(kinds, 'is', 'are')} missing, see snapshot show"
        lacking = missing if kinds else ""
        return (
            f"saved {counted(nodes, 'node')}, {counted(pods, 'pod')} and {counted(others, 'other object')} of"
            f" {self.source} in {self.file}"
            f" ({_size(self.size_bytes)}){lacking}"
        )


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:.1f} MiB" if size_bytes >= 2**20 else f"{size_bytes / 2**10:.1f} KiB"


def saved(content: SnapshotContent, file: str, size_bytes: int) -> SavedSnapshot:
    """The answer about a saved snapshot."""
    counts = {plural: len(found) for plural, found in content.objects.items() if found}
    return SavedSnapshot(
        file=file,
        size_bytes=size_bytes,
        source=content.source,
        counts=counts,
        missing=dict(content.missing),
    )


def overview(state: ClusterState) -> SnapshotOverview:
    """The contents of a cluster's state."""
    content = state.content
    return SnapshotOverview(
        taken=datetime.fromtimestamp(int(content.taken), UTC),
        source=content.source,
        counts={plural: len(found) for plural, found in content.objects.items() if found},
        missing=dict(content.missing),
        usage_problem=content.usage.problem,
        pending=len(state.objects.pending.waiting()),
        utilisation=_utilisation(state),
        largest_namespaces=_namespaces(state),
        policies=tuple(
            PolicySummary(name=name, problem=each.unknown or each.problem[1])
            for name, each in state.policies.items()
        ),
        unreadable=tuple(
            UnreadableObject(resource=each.resource, name=each.name, problem=each.problem)
            for each in state.objects.skipped
        ),
    )


def _utilisation(state: ClusterState) -> tuple[ResourceUtilisation, ...]:
    """Every resource of any node, in the order of the cluster's columns."""
    cluster = state.cluster
    nodes = len(cluster)
    used: Counter[str] = Counter()
    for reading in state.content.usage.nodes:
        for name, billionths in reading.usage.items():
            used[name] += billionths
    found = []
    for axis, name in enumerate(cluster.resources):
        allocatable = int(cluster.allocatable[:nodes, axis].sum())
        if not allocatable:
            continue
        found.append(
            ResourceUtilisation(
                resource=name,
                allocatable=allocatable,
                requested=int(cluster.requested[:nodes, axis].sum()),
                used=used[name] // (10**6 if name == "cpu" else 10**9) if name in used else None,
            )
        )
    return tuple(found)


def _namespaces(state: ClusterState) -> tuple[NamespaceSize, ...]:
    pods: Counter[str] = Counter()
    pending: Counter[str] = Counter()
    cpu: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    waiting = {pod.uid for pod in state.objects.pending.waiting()}
    for each in (*state.cluster.pods.values(), *state.objects.pending.infos()):
        if each.pod.is_terminal:
            continue
        pods[each.namespace] += 1
        pending[each.namespace] += each.uid in waiting
        cpu[each.namespace] += each.requests.get("cpu", 0)
        memory[each.namespace] += each.requests.get("memory", 0)
    largest = sorted(pods, key=lambda name: (-cpu[name], -pods[name], name))[:LARGEST]
    return tuple(
        NamespaceSize(
            namespace=name,
            pods=pods[name],
            pending=pending[name],
            cpu_milli=cpu[name],
            memory_bytes=memory[name],
        )
        for name in largest
    )
