"""Workloads, budgets, groups and priorities for authors of strategies and plugins."""

from plimsoll.model.kinds.pod import PodCondition
from plimsoll.model.kinds.pod_group import group_key
from plimsoll.model.kinds.workload import PodDisruptionBudget, ReplicaSet, StatefulSet
from plimsoll.model.priority import PREFER_NO_EVICTION, low_to_high

__all__ = [
    "PREFER_NO_EVICTION",
    "PodCondition",
    "PodDisruptionBudget",
    "ReplicaSet",
    "StatefulSet",
    "group_key",
    "low_to_high",
]
