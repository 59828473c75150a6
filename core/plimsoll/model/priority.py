"""Importance of pods: quality of service, and the order in which pods may be disrupted.

Source: Kubernetes v1.36 ``component-helpers/qos`` and descheduler v0.36 ``pkg/descheduler/pod/pods.go``.
"""

from collections.abc import Mapping
from enum import StrEnum

from plimsoll.model.kinds.pod import Pod
from plimsoll.model.quantity import QuantityValue, nanos

PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
"""Annotation (any value) of a pod that would rather be disturbed last among its equals."""


class QualityOfService(StrEnum):
    """Classes of pods by what they have been promised, the least first."""

    BEST_EFFORT = "BestEffort"
    BURSTABLE = "Burstable"
    GUARANTEED = "Guaranteed"


_RANKS: dict[str, int] = {quality: rank for rank, quality in enumerate(QualityOfService)}


def quality_of_service(pod: Pod) -> QualityOfService:
    """The class in the status, or else the one that follows from the containers' cpu and memory.

    Raises:
        QuantityError: the status has none and a quantity cannot be read.
    """
    if pod.status.qos_class:
        return QualityOfService(pod.status.qos_class)
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    guaranteed = True
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        _add_positive(requests, container.resources.requests)
        limited = _add_positive(limits, container.resources.limits)
        guaranteed = guaranteed and limited == {"cpu", "memory"}
    if not requests and not limits:
        return QualityOfService.BEST_EFFORT
    return QualityOfService.GUARANTEED if guaranteed and requests == limits else QualityOfService.BURSTABLE


def _add_positive(total: dict[str, int], quantities: Mapping[str, QuantityValue]) -> set[str]:
    positive = set()
    for name in ("cpu", "memory") if quantities else ():
        value = nanos(quantities.get(name, 0))
        if value > 0:
            total[name] = total.get(name, 0) + value
            positive.add(name)
    return positive


def importance(pod: Pod) -> tuple[bool, int, int, bool]:
    """Rank of a pod among those that may be disrupted, the first ones first; equal for many.

    No priority before any priority, then ascending priority, then quality of service, then pods that do not
    request to be spared.
    """
    quality: str = pod.status.qos_class
    if quality not in _RANKS:
        quality = quality_of_service(pod)
    return (
        pod.spec.priority is not None,
        pod.priority,
        _RANKS[quality],
        PREFER_NO_EVICTION in pod.metadata.annotations,
    )


def low_to_high(pod: Pod) -> tuple[bool, int, int, bool, str]:
    """A sort key: the pod that may be disrupted first comes first.

    Pods of equal importance are ordered by namespace and name, so that the order never depends on
    the order of arrival.
    """
    return (*importance(pod), pod.key)
