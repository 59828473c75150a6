"""Pods as the API serves them (core/v1), reduced to the fields that decisions read.

Attribute names are the API's in snake case; every absent field has the value that the API means by absence.
Quantities stay as written (`"500m"`, `2`); :mod:`plimsoll.model.kinds.requests` turns them into integers.
"""

from datetime import datetime
from typing import TypeAlias

import msgspec

from plimsoll.model.kinds.metadata import ApiObject, Int64
from plimsoll.model.kinds.storage import (
    AWSElasticBlockStoreSource,
    CSIVolumeSource,
    EphemeralVolumeSource,
    GCEPersistentDiskSource,
    ISCSISource,
    RBDSource,
)
from plimsoll.model.read_only_dict import NO_ENTRIES
from plimsoll.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm

Quantities: TypeAlias = dict[str, str | Int64 | float]
"""Resource name to quantity as written in the API."""


class ResourceRequirements(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The requests and limits of a container (or a whole pod)."""

    requests: Quantities = NO_ENTRIES
    limits: Quantities = NO_ENTRIES


class ContainerPort(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A port; only one with a ``host_port`` above 0 occupies a port of the node."""

    host_port: Int64 = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class ExitCodes(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The exit codes of a rule."""

    operator: str = ""
    values: tuple[Int64, ...] = ()


class RestartRule(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The action when a container ends with some exit codes."""

    action: str = ""
    exit_codes: ExitCodes = ExitCodes()


class Container(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A container; as an init container with ``restart_policy`` ``Always`` it is a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[RestartRule, ...] = ()

    @property
    def is_sidecar(self) -> bool:
        """Whether, as an init container, it keeps running together with the others."""
        return self.restart_policy == "Always"


class Toleration(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Allows a pod on a node in spite of a taint."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class PreferredSchedulingTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A preference for nodes, with its weight (1 to 100)."""

    weight: Int64 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinityTerms(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Node affinity: the nodes that a pod requires, or prefers."""

    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


NO_NODE_AFFINITY = NodeAffinityTerms()


class PodAffinityTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Pods (by selector, in namespaces) to be near to or far from; near means the same topology value."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A preference about other pods, with its weight (1 to 100)."""

    weight: Int64 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinityTerms(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Pods to be near to, or far from."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The three kinds of affinity of a pod."""

    node_affinity: NodeAffinityTerms | None = None
    pod_affinity: PodAffinityTerms | None = None
    pod_anti_affinity: PodAffinityTerms | None = None


class TopologySpreadConstraint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How evenly pods of a selector must, or should, spread over the values of a node label."""

    max_skew: Int64 = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: Int64 | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A reason, set by another component, not to schedule the pod yet."""

    name: str = ""


class PodResourceClaim(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A claim on devices, named or created from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PersistentVolumeClaimSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A volume that is a claim of the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class ImageVolumeSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A volume that is the content of an image."""

    reference: str = ""


class HostPathSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A volume that is a directory of the node."""

    path: str = ""


class EmptyDirSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A volume that is created and deleted with the pod on its node."""


class Volume(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A volume of a pod; exactly one source is set, or one that no decision reads."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None
    host_path: HostPathSource | None = None
    empty_dir: EmptyDirSource | None = None
    csi: CSIVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreSource | None = None
    iscsi: ISCSISource | None = None
    rbd: RBDSource | None = None


class PodSchedulingGroup(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The group a pod is scheduled with."""

    pod_group_name: str = ""


class WorkloadReference(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The group of a Workload that a pod is scheduled with (Kubernetes 1.35)."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class PodSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The wanted state of the pod."""

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: Int64 | None = None
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: Quantities = NO_ENTRIES
    node_selector: dict[str, str] = NO_ENTRIES
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    volumes: tuple[Volume, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    restart_policy: str = "Always"
    termination_grace_period_seconds: Int64 | None = None
    scheduling_group: PodSchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None

    @property
    def node_affinity(self) -> NodeAffinityTerms:
        """The node affinity; when absent, one without terms."""
        return (self.affinity and self.affinity.node_affinity) or NO_NODE_AFFINITY

    @property
    def required_anti_affinity(self) -> tuple[PodAffinityTerm, ...]:
        """The required terms of the pod anti-affinity."""
        terms = self.affinity and self.affinity.pod_anti_affinity
        return terms.required if terms else ()


#: The scheduler of pods that name none: the API server sets it before admission, and every cluster has it.
DEFAULT_SCHEDULER = PodSpec().scheduler_name

#: The annotation by which a kubelet marks its copies of static pods.
MIRROR = "kubernetes.io/config.mirror"


class PodCondition(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One observed condition of the pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    last_transition_time: datetime | None = None


class ContainerStateWaiting(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Why a container has not started."""

    reason: str = ""


class ContainerStateTerminated(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How a container ended."""

    reason: str = ""
    exit_code: Int64 = 0


class ContainerState(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """At most one of the two is set; neither means running or unknown."""

    waiting: ContainerStateWaiting | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The kubelet's report about one container."""

    name: str = ""
    ready: bool = False
    restart_count: Int64 = 0
    state: ContainerState = ContainerState()
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities = NO_ENTRIES


class PodResourceClaimStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The claim that was created from a template."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The observed state of the pod."""

    phase: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    qos_class: str = ""
    start_time: datetime | None = None
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities = NO_ENTRIES
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class Pod(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A pod, with shortcuts to the most used facts."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def priority(self) -> int:
        """``spec.priority``, 0 when absent."""
        return self.spec.priority or 0

    @property
    def node_name(self) -> str:
        """The node it is assigned to, or the empty string."""
        return self.spec.node_name

    @property
    def nominated_node_name(self) -> str:
        """Its nominated node while it waits, or the empty string."""
        return self.status.nominated_node_name

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended, so that it takes nothing from its node any more."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_terminating(self) -> bool:
        """Whether its deletion was requested; it keeps its place until it is gone."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_mirror(self) -> bool:
        """Whether it mirrors a static pod of its kubelet."""
        return MIRROR in self.metadata.annotations

    @property
    def goes_with_its_node(self) -> bool:
        """Whether it runs where its node is and nowhere else: a DaemonSet's, or a static one's mirror."""
        return self.is_mirror or self.metadata.has_owner_of("DaemonSet", "Node")

    @property
    def is_ready(self) -> bool:
        """Whether its kubelet reports it as ready."""
        ready = self.condition("Ready")
        return ready is not None and ready.status == "True"

    def condition(self, kind: str) -> PodCondition | None:
        """The condition of that type, if there is one."""
        for condition in self.status.conditions:
            if condition.type == kind:
                return condition
        return None
