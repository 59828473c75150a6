"""PodGroup: pods that start together or not at all (scheduler-plugins' Coscheduling, our own group)."""

import msgspec

from plimsoll.model.kinds.metadata import ApiObject, Int64
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.quantity import QuantityValue
from plimsoll.model.read_only_dict import NO_ENTRIES

GROUP_LABEL = "plimsoll.dev/pod-group"
"""Names a pod's PodGroup, in its own namespace."""

UPSTREAM_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
"""The same for pods that were written for scheduler-plugins; ours goes first."""

DEFAULT_TIMEOUT_S = 60
"""Seconds that a start may take where the group does not say; upstream's permitWaitingTimeSeconds."""


class PodGroupSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The number of pods that a start needs, and their resources."""

    min_member: Int64 = 1
    min_resources: dict[str, QuantityValue] = NO_ENTRIES
    schedule_timeout_seconds: Int64 = DEFAULT_TIMEOUT_S


class GroupCondition(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One aspect of the status."""

    type: str = ""
    status: str = ""
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


def group_key(pod: Pod) -> str:
    """``namespace/name`` of the PodGroup that a pod's label names, "" for none."""
    labels = pod.metadata.labels
    name = labels.get(GROUP_LABEL) or labels.get(UPSTREAM_GROUP_LABEL)
    return f"{pod.namespace}/{name}" if name else ""
