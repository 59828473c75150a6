"""Determines the pods of a workload that scaling down deletes, and those that scaling up adds.

Source: Kubernetes v1.36, ``pkg/controller/controller_utils.go`` (``ActivePodsWithRanks``).
Differs: compares exact ages, not their powers of two.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from plimsoll.framework import ClusterObjects, PodInfo
from plimsoll.inspection.manifests.documents import NEW
from plimsoll.model.kinds.deployment import deployment_name_of
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.pod import Pod, PodStatus
from plimsoll.model.names import PodUid

_LONGEST_COST = 20
_COST = "controller.kubernetes.io/pod-deletion-cost"
_NAME_LABEL, _NUMBER_LABEL = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"


def members(
    kind: str, namespace: str, name: str, pods: Iterable[PodInfo], objects: ClusterObjects
) -> list[PodInfo]:
    """The pods of a workload that are not terminating, sorted by name."""
    found = [
        pod
        for pod in pods
        if pod.namespace == namespace
        and not pod.is_terminating
        and not pod.pod.is_terminal
        and _workload_of(pod, kind, objects) == name
    ]
    return sorted(found, key=lambda pod: pod.key)


def deleted_first(kind: str, pods: Iterable[PodInfo], node_of: Mapping[PodUid, str]) -> list[PodInfo]:
    """The pods in the order in which their controller would delete them; ``node_of`` is by uid."""
    pods = list(pods)
    if kind == "StatefulSet":
        return sorted(pods, key=lambda pod: _ordinal(pod.name), reverse=True)
    together = Counter(node_of.get(pod.uid, "") for pod in pods)

    def rank(pod: PodInfo) -> tuple[Any, ...]:
        node = node_of.get(pod.uid, "")
        return (
            bool(node),
            pod.pod.is_ready,
            _cost(pod),
            -together[node] if node else 0,
            -pod.pod.metadata.created_s,
            pod.key,
        )

    return sorted(pods, key=rank)


def added(kind: str, pods: list[PodInfo], amount: int, now: datetime) -> list[Pod]:
    """The additional pods, created after the youngest one; names continue from the highest number."""
    sample = max(pods, key=lambda pod: (pod.pod.metadata.created_s, pod.key))
    owner = sample.pod.metadata.controller
    first = max(_ordinal(pod.name) for pod in pods) + 1 if kind == "StatefulSet" else len(pods)
    return [
        _sibling(sample.pod, owner.name if owner else sample.name, first + each, now)
        for each in range(amount)
    ]


def _sibling(pod: Pod, prefix: str, number: int, now: datetime) -> Pod:
    name, metadata = f"{prefix}-{number}", pod.metadata
    numbered = {_NAME_LABEL: name, _NUMBER_LABEL: str(number)}
    return msgspec.structs.replace(
        pod,
        metadata=ObjectMeta(
            name=name,
            namespace=metadata.namespace,
            uid=f"{NEW}{metadata.namespace}/{name}",
            labels={key: numbered.get(key, value) for key, value in metadata.labels.items()},
            annotations=metadata.annotations,
            owner_references=metadata.owner_references,
            creation_timestamp=now,
        ),
        spec=msgspec.structs.replace(pod.spec, node_name=""),
        status=PodStatus(phase="Pending"),
    )


def _workload_of(pod: PodInfo, kind: str, objects: ClusterObjects) -> str:
    """The name of the pod's workload of that kind, "" if it has none."""
    owner = pod.pod.metadata.controller
    if owner is None:
        return ""
    if kind != "Deployment":
        return owner.name if owner.kind == kind else ""
    above = objects.above(pod.pod)
    if above is not None:
        return above.name if above.kind == kind else ""
    return deployment_name_of(pod.pod)


def _ordinal(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def _cost(pod: PodInfo) -> int:
    text = pod.pod.metadata.annotations.get(_COST, "0")
    return int(text) if len(text) <= _LONGEST_COST and text.removeprefix("-").isdecimal() else 0
