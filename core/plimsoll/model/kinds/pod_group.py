"""PodGroup: pods that start together or not at all, in one form for the core API's kind and for ours.

The core API's group is read into the form of ours, and adds to it where pods may run and how they may leave.
Sources: scheduler-plugins' Coscheduling (ours); Kubernetes, ``scheduling.k8s.io`` v1alpha2 (1.36), v1alpha3
and v1beta1 (1.37), KEP-4671, 5710, 5729, 5732, 6012 (of which only the name of the parent is read).
"""

import msgspec

from plimsoll.model.kinds.metadata import ApiObject, Int64
from plimsoll.model.kinds.pod import Pod, PodResourceClaim
from plimsoll.model.quantity import QuantityValue
from plimsoll.model.read_only_dict import NO_ENTRIES

GROUP_LABEL = "plimsoll.dev/pod-group"
"""Names a pod's PodGroup, in its own namespace."""

UPSTREAM_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
"""The same for pods that were written for scheduler-plugins; ours goes first."""

DEFAULT_TIMEOUT_S = 60
"""Seconds that a start may take where the group does not say; upstream's permitWaitingTimeSeconds."""

CORE = "scheduling.k8s.io"
"""The API group of the core API's PodGroups; begins the keys of these."""

OURS = "podgroups.plimsoll.dev"
"""The resource of our own groups."""

CORE_TIMEOUT_S = 300
"""The same for a group of the core API, which cannot say; kube-scheduler's GangScheduling."""

WHOLE, SINGLE = "PodGroup", "Pod"
"""How a group of v1alpha2 may be disrupted; later versions say ``all`` and ``single``."""


PREFERRED_TOPOLOGY = "plimsoll.dev/preferred-topology"
"""Annotation of a group of the core API: the node label whose value its members should share if they can."""


class TopologyWishes(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Node labels whose value all members share: must, and should if there is room; "" for none."""

    required: str = ""
    preferred: str = ""


class PodGroupSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The number of pods that a start needs, and their resources."""

    min_member: Int64 = 1
    min_resources: dict[str, QuantityValue] = NO_ENTRIES
    schedule_timeout_seconds: Int64 = DEFAULT_TIMEOUT_S
    topology: TopologyWishes = TopologyWishes()

    @property
    def least_name(self) -> str:
        """The field that has the number."""
        return "minMember"

    @property
    def topology_key(self) -> str:
        """The node label whose value must be the same for all members, "" for none."""
        return self.topology.required

    @property
    def leaves_whole(self) -> bool:
        """Whether all members leave together or none does."""
        return False

    @property
    def are_independent(self) -> bool:
        """Whether each member may run without the others."""
        return False

    @property
    def own_priority(self) -> int | None:
        """The priority of the group; None if only its pods have one."""
        return None

    @property
    def never_preempts(self) -> bool:
        """Whether the group waits for room instead of preempting."""
        return False

    @property
    def parent(self) -> str:
        """The name of the CompositePodGroup that the group is part of, "" for none."""
        return ""

    @property
    def shared_claims(self) -> tuple[PodResourceClaim, ...]:
        """Claims on devices that are reserved for the group; a member lists those that it uses likewise."""
        return ()


class GangPolicy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """All or nothing: the number of pods that a start needs."""

    min_count: Int64 = 1


class GroupPolicy(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All or nothing, or, without ``gang``, each pod for itself."""

    gang: GangPolicy | None = None


class TopologyConstraint(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The label whose value all members' nodes share."""

    key: str = ""


class GroupConstraints(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where members may run together; servers admit one label."""

    topology: tuple[TopologyConstraint, ...] = ()


class LeavesWhole(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Members leave together only."""


class DisruptionMode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How members may leave, from v1alpha3 on."""

    all: LeavesWhole | None = None


class CorePodGroupSpec(PodGroupSpec, frozen=True, kw_only=True, rename="camel", gc=False):
    """The spec of the core API's PodGroup, in any of its versions; ``min_member`` is its ``minCount``."""

    schedule_timeout_seconds: Int64 = CORE_TIMEOUT_S
    scheduling_policy: GroupPolicy = GroupPolicy()
    scheduling_constraints: GroupConstraints = GroupConstraints()
    disruption_mode: str | DisruptionMode = SINGLE
    priority: Int64 | None = None
    preemption_policy: str = ""
    parent_composite_pod_group_name: str = ""
    resource_claims: tuple[PodResourceClaim, ...] = ()

    def __post_init__(self) -> None:
        """Set the number of pods that a start needs."""
        gang = self.scheduling_policy.gang
        msgspec.structs.force_setattr(self, "min_member", 1 if gang is None else gang.min_count)

    @property
    def least_name(self) -> str:
        """The field that has the number."""
        return "minCount"

    @property
    def topology_key(self) -> str:
        """The node label whose value must be the same for all members, "" for none."""
        return next((each.key for each in self.scheduling_constraints.topology), "")

    @property
    def leaves_whole(self) -> bool:
        """Whether all members leave together or none does."""
        mode = self.disruption_mode
        return mode == WHOLE if isinstance(mode, str) else mode.all is not None

    @property
    def are_independent(self) -> bool:
        """Whether each member may run without the others."""
        return self.scheduling_policy.gang is None and not self.leaves_whole

    @property
    def own_priority(self) -> int | None:
        """The priority of the group; None if only its pods have one."""
        return self.priority

    @property
    def never_preempts(self) -> bool:
        """Whether the group waits for room instead of preempting."""
        return self.preemption_policy == "Never"

    @property
    def parent(self) -> str:
        """The name of the CompositePodGroup that the group is part of, "" for none."""
        return self.parent_composite_pod_group_name

    @property
    def shared_claims(self) -> tuple[PodResourceClaim, ...]:
        """Claims on devices that are reserved for the group; a member lists those that it uses likewise."""
        return self.resource_claims


class GroupCondition(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One aspect of the status."""

    type: str = ""
    status: str = ""
    observed_generation: Int64 | None = None
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class PodGroupStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The progress of the group."""

    phase: str = ""
    occupied_by: str = ""
    scheduled: Int64 = 0
    running: Int64 = 0
    succeeded: Int64 = 0
    failed: Int64 = 0
    schedule_start_time: str = ""
    conditions: tuple[GroupCondition, ...] = ()


class PodGroup(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A gang, as in the API server."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def group_key(self) -> str:
        """The key by which pods name it: ``namespace/name``, after the API group if it is not ours."""
        return self.key

    @property
    def preferred_topology(self) -> str:
        """The node label whose value all members should share if there is room, "" for none."""
        return self.spec.topology.preferred or self.metadata.annotations.get(PREFERRED_TOPOLOGY, "")


class CorePodGroup(PodGroup, frozen=True, kw_only=True, rename="camel", gc=False):
    """A group of the core API, as in the API server."""

    spec: CorePodGroupSpec = CorePodGroupSpec()

    @property
    def group_key(self) -> str:
        """``scheduling.k8s.io/namespace/name``."""
        return f"{CORE}/{self.key}"


def resource_of(key: str) -> str:
    """The resource of the group with this key, as kubectl takes it."""
    return f"podgroups.{CORE}" if is_core(key) else key.split("/")[-3] if key.count("/") > 1 else OURS


def is_core(key: str) -> bool:
    """Whether a key is that of a group of the core API."""
    return key.startswith(f"{CORE}/")


def group_key(pod: Pod) -> str:
    """The key of the PodGroup that a pod starts with, "" for none; the core API's goes first."""
    return core_key(pod) or label_key(pod)


def core_key(pod: Pod) -> str:
    """The key of the core API's PodGroup that a pod names, "" for none."""
    group = pod.spec.scheduling_group
    name = "" if group is None else group.pod_group_name
    return f"{CORE}/{pod.namespace}/{name}" if name else ""


def label_key(pod: Pod) -> str:
    """``namespace/name`` of our PodGroup that a pod's label names, "" for none."""
    labels = pod.metadata.labels
    name = labels.get(GROUP_LABEL) or labels.get(UPSTREAM_GROUP_LABEL)
    return f"{pod.namespace}/{name}" if name else ""
