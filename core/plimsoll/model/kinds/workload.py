"""Owners and protections of pods: controllers, Services, budgets, Namespaces, classes."""

from datetime import datetime
from typing import TypeAlias

import msgspec

from plimsoll.model.kinds.metadata import ApiObject, Int64
from plimsoll.model.read_only_dict import NO_ENTRIES
from plimsoll.model.selectors import LabelSelector

IntOrString: TypeAlias = Int64 | str
"""A count, or a share such as ``"30%"``."""


class Namespace(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A namespace; affinity terms select among them by label."""


class PriorityClass(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A name for a priority; admission copies the value into the pod."""

    value: Int64 = 0
    preemption_policy: str = "PreemptLowerPriority"
    global_default: bool = False


class LabelMapSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The spec of the older kinds, whose selector is a plain map; an empty one selects nothing."""

    replicas: Int64 = 1
    selector: dict[str, str] = NO_ENTRIES


class Service(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A Service; here only the pods it selects matter."""

    spec: LabelMapSpec = LabelMapSpec()


class ReplicaStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The number of pods, and of ready pods."""

    replicas: Int64 = 0
    ready_replicas: Int64 = 0
    available_replicas: Int64 = 0


class ReplicationController(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """The predecessor of the ReplicaSet."""

    spec: LabelMapSpec = LabelMapSpec()
    status: ReplicaStatus = ReplicaStatus()


class ReplicaSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The wanted number of pods, and their selector."""

    replicas: Int64 = 1
    selector: LabelSelector | None = None


class ReplicaSet(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A number of equal pods."""

    spec: ReplicaSpec = ReplicaSpec()
    status: ReplicaStatus = ReplicaStatus()


class StatefulSet(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """Numbered pods, each with its own storage."""

    spec: ReplicaSpec = ReplicaSpec()
    status: ReplicaStatus = ReplicaStatus()


class PodDisruptionBudgetSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The number of selected pods that must be available, or may be unavailable."""

    selector: LabelSelector | None = None
    min_available: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    unhealthy_pod_eviction_policy: str = "IfHealthyBudget"


class PodDisruptionBudgetStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The disruption controller's counts.

    Attributes:
        disruptions_allowed: the remaining evictions.
        disrupted_pods: pods whose eviction was granted and not observed yet, keyed by name.
    """

    disruptions_allowed: Int64 = 0
    current_healthy: Int64 = 0
    desired_healthy: Int64 = 0
    expected_pods: Int64 = 0
    observed_generation: Int64 = 0
    disrupted_pods: dict[str, datetime | None] = NO_ENTRIES


class PodDisruptionBudget(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A limit on how many pods of a set may be unavailable simultaneously (policy/v1)."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
