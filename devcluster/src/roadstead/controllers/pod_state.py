"""Evaluates the status of pods (active, ready, available) and conditions of any object.

Source: kubernetes v1.36 ``pkg/api/v1/pod/util.go``, ``pkg/controller/controller_utils.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.schemas.timestamps import to_seconds, to_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roadstead.values.resources import Obj

FINISHED = ("Succeeded", "Failed")
POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def phase_of(pod: Obj) -> str:
    """The pod's phase; Pending without a status."""
    phase: str = (pod.get("status") or {}).get("phase") or "Pending"
    return phase


def is_terminating(obj: Obj) -> bool:
    """Whether the object is being deleted."""
    return obj["metadata"].get("deletionTimestamp") is not None


def is_finished(pod: Obj) -> bool:
    """Whether the pod has Succeeded or Failed."""
    return phase_of(pod) in FINISHED


def is_active(pod: Obj) -> bool:
    """Whether the pod counts for its workload: neither finished nor being deleted."""
    return not is_terminating(pod) and not is_finished(pod)


def condition_of(obj: Obj, kind: str) -> Obj | None:
    """The condition of a type."""
    conditions: list[Obj] = (obj.get("status") or {}).get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def has_condition(obj: Obj, kind: str, status: str = "True") -> bool:
    """Whether the condition of a type has this status."""
    condition = condition_of(obj, kind)
    return condition is not None and condition.get("status") == status


def is_ready(pod: Obj) -> bool:
    """Whether the pod's Ready condition is true."""
    return has_condition(pod, "Ready")


def ready_since_s(pod: Obj) -> float:
    """The time at which the pod became ready, in seconds since the epoch; 0 if unknown."""
    condition = condition_of(pod, "Ready") or {}
    return to_seconds(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else 0.0


def available_in_s(pod: Obj, min_ready_s: int, now: float) -> float | None:
    """Seconds until a pod is available, 0 if it is, None while it is not ready."""
    if not is_ready(pod):
        return None
    return max(0.0, ready_since_s(pod) + min_ready_s - now) if min_ready_s else 0.0


def deletion_rank(pod: Obj, neighbours: int) -> tuple[object, ...]:
    """The rank of a pod when its workload shrinks; the lowest is deleted first.

    Unbound before bound, Pending before Running, not ready before ready, low before high deletion cost,
    crowded before lonely, recently before long ready, frequently before rarely restarted, young before old.

    Args:
        pod: the pod.
        neighbours: the number of pods of the same owner on its node.
    """
    metadata = pod["metadata"]
    ready = is_ready(pod)
    try:
        cost = int((metadata.get("annotations") or {}).get(POD_DELETION_COST, "0"))
    except ValueError:
        cost = 0
    restarts = max(
        (one.get("restartCount", 0) for one in (pod.get("status") or {}).get("containerStatuses") or ()),
        default=0,
    )
    return (
        bool(pod["spec"].get("nodeName")),
        {"Pending": 0, "Unknown": 1}.get(phase_of(pod), 2),
        ready,
        cost,
        -neighbours,
        -ready_since_s(pod) if ready else 0.0,
        -restarts,
        -to_seconds(metadata["creationTimestamp"]),
        metadata["name"],
    )


def with_condition(
    conditions: Iterable[Obj],
    kind: str,
    status: str,
    reason: str,
    message: str,
    *,
    now: float,
    updated: bool = False,
) -> list[Obj]:
    """The conditions with one of them set; its transition time moves only with its status.

    Args:
        conditions: the current ones; not changed.
        kind: the type of the condition to set.
        status: True, False or Unknown.
        reason: a word for machines.
        message: a sentence for people.
        now: seconds since the epoch.
        updated: also set ``lastUpdateTime``, as Deployments do.
    """
    conditions = list(conditions)
    before = next((one for one in conditions if one.get("type") == kind), None)
    if before and (before.get("status"), before.get("reason")) == (status, reason):
        if before.get("message", "") == message:
            return conditions
        updated_condition = {**before, "message": message}
    else:
        same_status = before is not None and before.get("status") == status
        moment = to_timestamp(now)
        updated_condition = {"type": kind, "status": status, "reason": reason, "message": message}
        if updated:
            updated_condition["lastUpdateTime"] = moment
        updated_condition["lastTransitionTime"] = (
            before["lastTransitionTime"] if same_status and before else moment
        )
    return [*(one for one in conditions if one.get("type") != kind), updated_condition]


def without_condition(conditions: Iterable[Obj], kind: str) -> list[Obj]:
    """The conditions without one of them."""
    return [one for one in conditions if one.get("type") != kind]
