"""Descheduling strategies and the evictor, one file each, under their upstream names."""

from plimsoll.framework.descheduling.strategy import Strategy
from plimsoll.strategies.consolidate_nodes import ConsolidateNodes
from plimsoll.strategies.default_evictor import DefaultEvictor
from plimsoll.strategies.defragment_resource import DefragmentResource
from plimsoll.strategies.drain_nodes import DrainNodes
from plimsoll.strategies.follow_score import FollowScore
from plimsoll.strategies.high_node_utilization import HighNodeUtilization
from plimsoll.strategies.improve_topology import ImproveTopology
from plimsoll.strategies.low_node_utilization import LowNodeUtilization
from plimsoll.strategies.make_room_for_pending import MakeRoomForPending
from plimsoll.strategies.pod_life_time import PodLifeTime
from plimsoll.strategies.remove_duplicates import RemoveDuplicates
from plimsoll.strategies.remove_failed_pods import RemoveFailedPods
from plimsoll.strategies.remove_pods_from_unhealthy_nodes import RemovePodsFromUnhealthyNodes
from plimsoll.strategies.remove_pods_having_too_many_restarts import RemovePodsHavingTooManyRestarts
from plimsoll.strategies.remove_pods_violating_inter_pod_anti_affinity import (
    RemovePodsViolatingInterPodAntiAffinity,
)
from plimsoll.strategies.remove_pods_violating_node_affinity import RemovePodsViolatingNodeAffinity
from plimsoll.strategies.remove_pods_violating_node_taints import RemovePodsViolatingNodeTaints
from plimsoll.strategies.remove_pods_violating_topology_spread_constraint import (
    RemovePodsViolatingTopologySpreadConstraint,
)

IN_TREE: tuple[type[Strategy], ...] = (
    ConsolidateNodes,
    DefragmentResource,
    DrainNodes,
    FollowScore,
    HighNodeUtilization,
    ImproveTopology,
    LowNodeUtilization,
    MakeRoomForPending,
    PodLifeTime,
    RemoveDuplicates,
    RemoveFailedPods,
    RemovePodsFromUnhealthyNodes,
    RemovePodsHavingTooManyRestarts,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
    RemovePodsViolatingTopologySpreadConstraint,
)

EVICTORS = (DefaultEvictor,)

__all__ = ["EVICTORS", "IN_TREE"]
