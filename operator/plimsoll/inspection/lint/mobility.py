"""Rules about mobility: pods without an owner, local data, long grace periods, single replicas."""

from collections.abc import Iterator

from plimsoll.inspection.lint.placement import PER_NODE
from plimsoll.inspection.lint.subjects import LintedWorkload, Neighbourhood

#: Seconds that a pod may take to end before a move of it blocks others for long.
LONGEST_GRACE_S = 3600

#: Kinds whose pods the evictor counts.
_REPLICATED = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})


def bare_pod(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:  # noqa: ARG001 - rules have one form
    """A pod without an owner."""
    if workload.kind == "Pod":
        yield "nothing makes this pod again when it is evicted, so the evictor protects it"


def local_storage(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:  # noqa: ARG001 - rules have one form
    """Volumes whose content stays behind on the node."""
    if workload.kind in PER_NODE:
        return
    local = [
        f"{volume.name} ({'hostPath' if volume.host_path is not None else 'emptyDir'})"
        for volume in workload.pod.spec.volumes
        if volume.host_path is not None or volume.empty_dir is not None
    ]
    if local:
        yield f"its pods are not moved because of local storage: {', '.join(local)}"


def long_grace(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:  # noqa: ARG001 - rules have one form
    """A termination grace period beyond an hour."""
    grace = workload.pod.spec.termination_grace_period_seconds
    if grace is not None and grace > LONGEST_GRACE_S:
        yield f"its pods may take {grace} seconds to end, and hold their room on both nodes meanwhile"


def single_replica(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:  # noqa: ARG001 - rules have one form
    """One pod alone."""
    if workload.kind in _REPLICATED and workload.replicas == 1:
        yield "it has one pod, which the evictor protects (minReplicas 2)"
