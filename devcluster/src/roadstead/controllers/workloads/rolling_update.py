"""Computes the next sizes of a Deployment's ReplicaSets.

A rolling update never has more pods than the surge allows, nor fewer available ones than maxUnavailable
allows; a change of size during an update is distributed in proportion.

Source: kubernetes v1.36 ``pkg/controller/deployment/{rolling,sync}.go``, ``util/deployment_util.go``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roadstead.values.resources import Obj


def scaled(value: int | str, total: int, *, round_up: bool) -> int:
    """A number, or a percentage of a total."""
    if isinstance(value, int):
        return value
    share = total * int(value.removesuffix("%"))
    return -(-share // 100) if round_up else share // 100


def is_rolling(deployment: Obj) -> bool:
    """Whether the strategy is RollingUpdate."""
    return bool(deployment["spec"].get("strategy", {}).get("type", "RollingUpdate") == "RollingUpdate")


def fence_posts(deployment: Obj) -> tuple[int, int]:
    """Surge and unavailability of a rolling update in pods, never both 0."""
    replicas = deployment["spec"]["replicas"]
    rolling = deployment["spec"].get("strategy", {}).get("rollingUpdate") or {}
    surge = scaled(rolling.get("maxSurge", "25%"), replicas, round_up=True)
    unavailable = scaled(rolling.get("maxUnavailable", "25%"), replicas, round_up=False)
    return surge, unavailable if surge or unavailable else 1


def max_surge(deployment: Obj) -> int:
    """The number of pods that a Deployment may have beyond its size."""
    return fence_posts(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Obj) -> int:
    """The number of a Deployment's pods that may be unavailable."""
    replicas: int = deployment["spec"]["replicas"]
    if not is_rolling(deployment) or not replicas:
        return 0
    return min(fence_posts(deployment)[1], replicas)


def size(replica_set: Obj) -> int:
    """The desired number of a ReplicaSet's pods."""
    replicas: int = replica_set["spec"]["replicas"]
    return replicas


def available(replica_set: Obj) -> int:
    """The number of available pods in a ReplicaSet's status."""
    count: int = (replica_set.get("status") or {}).get("availableReplicas", 0)
    return count


def new_size(deployment: Obj, new: Obj | None, everything: list[Obj]) -> int:
    """The size of the newest ReplicaSet: as large as the surge allows.

    Args:
        deployment: the Deployment.
        new: its newest ReplicaSet, or None.
        everything: all its ReplicaSets, including the newest.
    """
    replicas: int = deployment["spec"]["replicas"]
    if not is_rolling(deployment):
        return replicas
    current = size(new) if new else 0
    if current > replicas:
        return replicas
    room = replicas + max_surge(deployment) - sum(map(size, everything))
    return current + max(0, min(room, replicas - current))


def old_sizes(deployment: Obj, new: Obj, old: list[Obj]) -> dict[str, int]:
    """The sizes to which old ReplicaSets shrink now, keyed by name; unavailable pods go first.

    Args:
        deployment: the Deployment.
        new: its newest ReplicaSet.
        old: the others that have pods, oldest first.
    """
    sizes = {one["metadata"]["name"]: size(one) for one in old}
    least = deployment["spec"]["replicas"] - max_unavailable(deployment)
    may_go = sum(sizes.values()) + size(new) - least - (size(new) - available(new))
    if may_go <= 0:
        return {}
    shrunk: dict[str, int] = {}
    for one in old:
        name = one["metadata"]["name"]
        sick = min(may_go, sizes[name] - available(one))
        if sick > 0:
            shrunk[name] = sizes[name] - sick
            may_go -= sick
    spare = available(new) + sum(map(available, old)) - least
    for one in old:
        name = one["metadata"]["name"]
        going = min(spare, shrunk.get(name, sizes[name]))
        if going > 0:
            shrunk[name] = shrunk.get(name, sizes[name]) - going
            spare -= going
    return shrunk


def proportional_sizes(deployment: Obj, active: list[Obj], annotated_max: dict[str, int]) -> dict[str, int]:
    """The sizes of ReplicaSets after a change of the Deployment's size, keyed by name.

    Args:
        deployment: the Deployment.
        active: its ReplicaSets that have pods.
        annotated_max: the Deployment's largest size when a ReplicaSet was last scaled, keyed by its name.
    """
    replicas: int = deployment["spec"]["replicas"]
    allowed = replicas + max_surge(deployment) if replicas else 0
    to_add = allowed - sum(map(size, active))
    # Of equal sets the newest grows first and the oldest shrinks first.
    by_age = sorted(active, key=lambda one: one["metadata"]["creationTimestamp"], reverse=to_add > 0)
    ordered = sorted(by_age, key=size, reverse=True)
    sizes: dict[str, int] = {}
    added = 0
    for one in ordered:
        name, own = one["metadata"]["name"], size(one)
        share = 0
        if to_add and own:
            share = _share(own, replicas, allowed, annotated_max.get(name) or 0)
            left = to_add - added
            share = min(share, left) if to_add > 0 else max(share, left)
        sizes[name] = own + share
        added += share
    if ordered and to_add:
        first = ordered[0]["metadata"]["name"]
        sizes[first] = max(0, sizes[first] + to_add - added)
    return sizes


def _share(own: int, replicas: int, allowed: int, annotated: int) -> int:
    """The proportional change of one ReplicaSet's size."""
    if not replicas:
        return -own
    return math.floor(own * allowed / (annotated or replicas) + 0.5) - own
