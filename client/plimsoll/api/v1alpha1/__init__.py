"""The kinds of ``plimsoll.dev/v1alpha1``; the source of ``crds/*.yaml``."""

from plimsoll.api.v1alpha1.eviction import Eviction
from plimsoll.api.v1alpha1.node_maintenance import NodeMaintenance
from plimsoll.api.v1alpha1.pod_group import PodGroupResource
from plimsoll.api.v1alpha1.rebalancing_rule import RebalancingRuleResource
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy

KINDS = (SchedulingPolicy, Eviction, PodGroupResource, NodeMaintenance, RebalancingRuleResource)
"""Every kind of the group, in the order in which they are documented."""

__all__ = [
    "KINDS",
    "Eviction",
    "NodeMaintenance",
    "PodGroupResource",
    "RebalancingRuleResource",
    "SchedulingPolicy",
]
