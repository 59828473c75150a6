"""Descheduling strategies and the evictor, one file each, under their upstream names."""

from plimsoll.framework.strategy import Strategy
from plimsoll.strategies.default_evictor import DefaultEvictor
from plimsoll.strategies.low_node_utilization import LowNodeUtilization
from plimsoll.strategies.remove_duplicates import RemoveDuplicates
from plimsoll.strategies.remove_pods_violating_inter_pod_anti_affinity import (
    RemovePodsViolatingInterPodAntiAffinity,
)
from plimsoll.strategies.remove_pods_violating_node_affinity import RemovePodsViolatingNodeAffinity
from plimsoll.strategies.remove_pods_violating_node_taints import RemovePodsViolatingNodeTaints

IN_TREE: tuple[type[Strategy], ...] = (
    LowNodeUtilization,
    RemoveDuplicates,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
)

EVICTORS = (DefaultEvictor,)

__all__ = ["EVICTORS", "IN_TREE"]
