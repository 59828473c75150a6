"""The scheduling plugins, one file each. ``IN_TREE`` registers all of them."""

from collections.abc import Mapping

from plimsoll import framework as fwk
from plimsoll.plugins.default_binder import DefaultBinder
from plimsoll.plugins.default_preemption import DefaultPreemption
from plimsoll.plugins.dynamic_resources import DynamicResources
from plimsoll.plugins.fair_share import FairShare
from plimsoll.plugins.image_locality import ImageLocality
from plimsoll.plugins.inter_pod_affinity import InterPodAffinity
from plimsoll.plugins.node_affinity import NodeAffinity
from plimsoll.plugins.node_declared_features import NodeDeclaredFeatures
from plimsoll.plugins.node_load import NodeLoad
from plimsoll.plugins.node_name import NodeName
from plimsoll.plugins.node_ports import NodePorts
from plimsoll.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from plimsoll.plugins.node_resources_fit import NodeResourcesFit
from plimsoll.plugins.node_unschedulable import NodeUnschedulable
from plimsoll.plugins.node_volume_limits import NodeVolumeLimits
from plimsoll.plugins.pack_unmovable import PackUnmovable
from plimsoll.plugins.pod_topology_spread import PodTopologySpread
from plimsoll.plugins.priority_sort import PrioritySort
from plimsoll.plugins.scheduling_gates import SchedulingGates
from plimsoll.plugins.taint_toleration import TaintToleration
from plimsoll.plugins.volume_binding import VolumeBinding
from plimsoll.plugins.volume_restrictions import VolumeRestrictions
from plimsoll.plugins.volume_zone import VolumeZone

IN_TREE: tuple[type[fwk.Plugin], ...] = (
    DefaultBinder,
    DefaultPreemption,
    DynamicResources,
    FairShare,
    ImageLocality,
    InterPodAffinity,
    NodeAffinity,
    NodeDeclaredFeatures,
    NodeLoad,
    NodeName,
    NodePorts,
    NodeResourcesBalancedAllocation,
    NodeResourcesFit,
    NodeUnschedulable,
    NodeVolumeLimits,
    PackUnmovable,
    PodTopologySpread,
    PrioritySort,
    SchedulingGates,
    TaintToleration,
    VolumeBinding,
    VolumeRestrictions,
    VolumeZone,
)
"""Every plugin of this folder, keyed by name."""

DEFAULT_PLUGINS: Mapping[str, int] = {
    "SchedulingGates": 0,
    "PrioritySort": 0,
    "NodeUnschedulable": 0,
    "NodeName": 0,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodePorts": 0,
    "NodeResourcesFit": 1,
    "VolumeRestrictions": 0,
    "NodeVolumeLimits": 0,
    "VolumeBinding": 0,
    "VolumeZone": 0,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "DefaultPreemption": 0,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "DefaultBinder": 0,
    "NodeDeclaredFeatures": 0,
}
"""kube-scheduler 1.36's default profile: plugins in order, with their weights (0: unset, which is 1)."""
