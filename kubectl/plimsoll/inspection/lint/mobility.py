"""Defines rules about mobility: pods without an owner, local data, long grace periods, single replicas."""

from collections.abc import Iterator

from plimsoll.inspection.lint.placement import PER_NODE
from plimsoll.inspection.lint.subjects import LintedWorkload, Neighbourhood
from plimsoll.toolkit.descheduling.disruption_signals import has_local_storage

#: Longest grace period, in seconds, before a pod's move blocks other moves for long.
LONGEST_GRACE_S = 3600

#: Kinds of owners whose pods the evictor counts.
_REPLICATED = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})


def bare_pod(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:  # noqa: ARG001 - rules have one form
    """The pod has no owner."""
    if workload.kind == "Pod":
        yield "nothing makes this pod again when it is evicted, so the evictor protects it"


def local_storage(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:  # noqa: ARG001 - rules have one form
    """The pod has volumes whose content stays on the node."""
    if workload.kind in PER_NODE:
        return
    local = [
        f"{volume.name} ({'hostPath' if volume.host_path is not None else 'emptyDir'})"
        for volume in workload.pod.spec.volumes
        if volume.host_path is not None or volume.empty_dir is not None
    ]
    if has_local_storage(workload.pod):
        yield f"its pods are not moved because of local storage: {', '.join(local)}"


def long_grace(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:  # noqa: ARG001 - rules have one form
    """The termination grace period exceeds an hour."""
    grace = workload.pod.spec.termination_grace_period_seconds
    if grace is not None and grace > LONGEST_GRACE_S:
        yield f"its pods may take {grace} seconds to end, and hold their room on both nodes meanwhile"


def single_replica(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:  # noqa: ARG001 - rules have one form
    """The workload has a single pod."""
    if workload.kind in _REPLICATED and workload.replicas == 1:
        yield "it has one pod, which the evictor protects (minReplicas 2)"
