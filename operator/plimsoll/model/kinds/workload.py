"""Owners and protections of pods: controllers, Services, budgets, Namespaces, classes."""

from datetime import datetime
from typing import TypeAlias

import msgspec

from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.selectors import LabelSelector

IntOrString: TypeAlias = int | str
"""A count, or a share such as ``"30%"``."""


class Namespace(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A namespace; affinity terms select among them by label."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        """Name."""
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        """Labels; not to be written to."""
        return self.metadata.labels


class PriorityClass(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A name for a priority; admission copies the value into the pod."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"

    @property
    def name(self) -> str:
        """Name; classes have no namespace."""
        return self.metadata.name


class LabelMapSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The spec of the older kinds, whose selector is a plain map; an empty one selects nothing."""

    replicas: int = 1
    selector: dict[str, str] = {}


class Service(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A Service; here only the pods it selects matter."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LabelMapSpec = LabelMapSpec()


class ReplicaStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How many pods there are, and how many of them are ready."""

    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0


class ReplicationController(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The ancestor of the ReplicaSet."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LabelMapSpec = LabelMapSpec()
    status: ReplicaStatus = ReplicaStatus()


class ReplicaSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How many pods are wanted, and which ones count."""

    replicas: int = 1
    selector: LabelSelector | None = None


class ReplicaSet(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Equal pods, as many as wanted."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSpec = ReplicaSpec()
    status: ReplicaStatus = ReplicaStatus()


class StatefulSet(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Numbered pods, each with its own storage."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSpec = ReplicaSpec()
    status: ReplicaStatus = ReplicaStatus()


class PodDisruptionBudgetSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How many of the selected pods must stay, or may be gone."""

    selector: LabelSelector | None = None
    min_available: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    unhealthy_pod_eviction_policy: str = "IfHealthyBudget"


class PodDisruptionBudgetStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What the disruption controller has counted.

    Attributes:
        disruptions_allowed: evictions that are left.
        disrupted_pods: pods whose eviction was granted and not observed yet, keyed by name.
    """

    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0
    disrupted_pods: dict[str, datetime | None] = {}


class PodDisruptionBudget(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A limit on how many pods of a set may be unavailable simultaneously (policy/v1)."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
