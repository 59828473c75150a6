"""Computes the status of Deployments: counts, Available, Progressing.

Pure functions from a Deployment and its ReplicaSets to a status.

Source: kubernetes v1.36 ``pkg/controller/deployment/{progress,sync}.go``, ``util/deployment_util.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.pod_state import condition_of, with_condition, without_condition
from roadstead.controllers.workloads import rolling_update
from roadstead.schemas.timestamps import to_seconds, to_timestamp

if TYPE_CHECKING:
    from roadstead.values.resources import Obj

NO_DEADLINE = 2**31 - 1
_DONE = "NewReplicaSetAvailable"
_LATE = "ProgressDeadlineExceeded"
_PAUSED = "DeploymentPaused"


def has_deadline(deployment: Obj) -> bool:
    """Whether a rollout has a progress deadline."""
    deadline = deployment["spec"].get("progressDeadlineSeconds")
    return deadline is not None and deadline != NO_DEADLINE


def with_progress(deployment: Obj, status: str, reason: str, message: str, now: float) -> list[Obj]:
    """The conditions with Progressing set."""
    conditions = (deployment.get("status") or {}).get("conditions") or []
    return with_condition(conditions, "Progressing", status, reason, message, now=now, updated=True)


def with_pause(deployment: Obj, now: float) -> list[Obj] | None:
    """The conditions after a pause or its end, or None if neither is new."""
    condition = condition_of(deployment, "Progressing")
    if condition and condition.get("reason") == _LATE:
        return None
    was_paused = bool(condition and condition.get("reason") == _PAUSED)
    paused = bool(deployment["spec"].get("paused"))
    if paused and not was_paused:
        return with_progress(deployment, "Unknown", _PAUSED, "Deployment is paused", now)
    if was_paused and not paused:
        return with_progress(deployment, "Unknown", "DeploymentResumed", "Deployment is resumed", now)
    return None


def counted(deployment: Obj, new: Obj | None, sets: list[Obj], now: float) -> Obj:
    """A status with the sets' counts and the Available condition; other conditions stay."""
    before: Obj = deployment.get("status") or {}

    def total(field: str) -> int:
        return sum((one.get("status") or {}).get(field, 0) for one in sets)

    available = total("availableReplicas")
    counts = {
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": total("replicas"),
        "updatedReplicas": ((new or {}).get("status") or {}).get("replicas", 0),
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(map(rolling_update.size, sets)) - available),
    }
    status: Obj = {name: count for name, count in counts.items() if count}
    status["terminatingReplicas"] = total("terminatingReplicas")
    if "collisionCount" in before:
        status["collisionCount"] = before["collisionCount"]
    least = deployment["spec"]["replicas"] - rolling_update.max_unavailable(deployment)
    has_least = available >= least
    status["conditions"] = with_condition(
        before.get("conditions") or [],
        "Available",
        "True" if has_least else "False",
        "MinimumReplicasAvailable" if has_least else "MinimumReplicasUnavailable",
        f"Deployment {'has' if has_least else 'does not have'} minimum availability.",
        now=now,
        updated=True,
    )
    return status


def is_complete(deployment: Obj, status: Obj) -> bool:
    """Whether all pods belong to the newest set and are available."""
    desired = deployment["spec"]["replicas"]
    return (
        all(status.get(field, 0) == desired for field in ("updatedReplicas", "replicas", "availableReplicas"))
        and status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    )


def progressed(deployment: Obj, status: Obj, new: Obj | None, sets: list[Obj], now: float) -> None:
    """Set Progressing, and ReplicaFailure, in a counted status."""
    before: Obj = deployment.get("status") or {}
    condition = condition_of(deployment, "Progressing")
    if not has_deadline(deployment):
        status["conditions"] = without_condition(status["conditions"], "Progressing")
    elif not _was_complete(status, condition):
        name = f'ReplicaSet "{new["metadata"]["name"]}"' if new else "Deployment"
        if not new:
            name = f'Deployment "{deployment["metadata"]["name"]}"'
        progress: tuple[str, str, str] | None = None
        if is_complete(deployment, status):
            progress = ("True", _DONE, f"{name} has successfully progressed.")
        elif _has_moved(before, status):
            progress = ("True", "ReplicaSetUpdated", f"{name} is progressing.")
        elif _is_late(deployment, condition, now):
            progress = ("False", _LATE, f"{name} has timed out progressing.")
        if progress:
            status["conditions"] = with_condition(
                status["conditions"], "Progressing", *progress, now=now, updated=True
            )
            if progress[1] == "ReplicaSetUpdated":
                _touch(status, now)
    _copy_failure(status, new, sets)


def deadline_in_s(deployment: Obj, status: Obj, now: float) -> float | None:
    """Seconds until the progress deadline; None without a rollout."""
    condition = condition_of({"status": status}, "Progressing")
    if not has_deadline(deployment) or condition is None:
        return None
    if is_complete(deployment, status) or condition.get("reason") in (_DONE, _LATE):
        return None
    return max(1.0, _deadline(deployment, condition) - now)


def _was_complete(status: Obj, condition: Obj | None) -> bool:
    """Whether the rollout was complete before; later changes of the pods are not part of it."""
    done = condition is not None and condition.get("reason") == _DONE
    return done and status.get("replicas", 0) == status.get("updatedReplicas", 0)


def _has_moved(before: Obj, now: Obj) -> bool:
    """Whether the rollout progressed: more new pods, fewer old ones, or more ready or available ones."""

    def old_pods(status: Obj) -> int:
        count: int = status.get("replicas", 0) - status.get("updatedReplicas", 0)
        return count

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old_pods(now) < old_pods(before) or any(now.get(one, 0) > before.get(one, 0) for one in grown)


def _deadline(deployment: Obj, condition: Obj) -> float:
    """The progress deadline after the last update of the condition, in seconds since the epoch."""
    seconds: int = deployment["spec"]["progressDeadlineSeconds"]
    return to_seconds(condition["lastUpdateTime"]) + seconds


def _is_late(deployment: Obj, condition: Obj | None, now: float) -> bool:
    """Whether the progress deadline has passed."""
    if condition is None or condition.get("reason") == _DONE:
        return False
    return condition.get("reason") == _LATE or _deadline(deployment, condition) <= now


def _touch(status: Obj, now: float) -> None:
    """A copy of the condition with the current time of progress."""
    status["conditions"] = [
        {**one, "lastUpdateTime": to_timestamp(now)} if one["type"] == "Progressing" else one
        for one in status["conditions"]
    ]


def _copy_failure(status: Obj, new: Obj | None, sets: list[Obj]) -> None:
    """Copy the failure of a ReplicaSet, preferably the newest set's."""
    status["conditions"] = without_condition(status["conditions"], "ReplicaFailure")
    failures = (condition_of(one, "ReplicaFailure") for one in ([new] if new else []) + sets)
    if failure := next((one for one in failures if one), None):
        status["conditions"].append(dict(failure))
