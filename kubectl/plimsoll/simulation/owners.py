"""Replaces pods that have left a replay, as their owners do, and counts them against their budgets."""

from datetime import UTC, datetime

import msgspec

from plimsoll.framework import Pod, PodInfo
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod import PodStatus


class Budgets:
    """PodDisruptionBudgets, by ``namespace/name``: what the snapshot allows, less pods that are missing."""

    def __init__(self, objects: ClusterObjects) -> None:
        self._objects = objects
        self._missing: dict[str, int] = {}
        self._allowed = {key: each.status.disruptions_allowed for key, each in objects.budgets.items()}

    def may_disrupt(self, budget: str) -> bool:
        """Whether a budget ("" for none) allows one more eviction."""
        return not budget or self._allowed.get(budget, 0) > self._missing.get(budget, 0)

    def count_missing(self, budget: str, amount: int) -> None:
        """Record that pods of a budget ("" for none) were evicted (above 0) or replaced (below 0)."""
        found = self._objects.budgets.get(budget)
        if found is None:
            return
        missing = self._missing[budget] = self._missing.get(budget, 0) + amount
        status = msgspec.structs.replace(
            found.status,
            disruptions_allowed=max(0, self._allowed[budget] - missing),
            current_healthy=max(0, found.status.current_healthy - amount),
        )
        self._objects.budgets[budget] = msgspec.structs.replace(found, status=status)
        self._objects.budget_version += 1


def replacement(pod: PodInfo, number: int, now: float) -> Pod | None:
    """The pod with which the owner replaces one that has left; None if no owner does.

    ``number`` tells replacements apart; ``now`` is in seconds since the epoch.
    """
    metadata = pod.pod.metadata
    owner = metadata.controller
    if owner is None or owner.kind in ("Node", "DaemonSet") or pod.pod.is_terminal:
        return None
    fresh = msgspec.structs.replace(
        metadata,
        name=metadata.name if owner.kind == "StatefulSet" else f"{owner.name}-r{number}",
        uid=f"replacement-{number}",
        creation_timestamp=datetime.fromtimestamp(now, UTC),
        deletion_timestamp=None,
    )
    spec = msgspec.structs.replace(pod.pod.spec, node_name="")
    return msgspec.structs.replace(pod.pod, metadata=fresh, spec=spec, status=PodStatus(phase="Pending"))
