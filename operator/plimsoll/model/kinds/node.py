"""Nodes as the API serves them (core/v1), cut down to the fields that decisions read."""

from datetime import datetime

import msgspec

from plimsoll.model.kinds.metadata import ObjectMeta


class Taint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Keeps pods away that do not tolerate it; ``effect`` says how strongly."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What the cluster's operator wants of the node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeCondition(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One observation about the node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_heartbeat_time: datetime | None = None
    last_transition_time: datetime | None = None


class ContainerImage(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An image the node has already, under each of its names."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What was observed of the node; quantities as written."""

    allocatable: dict[str, str | int | float] = {}
    capacity: dict[str, str | int | float] = {}
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        """Name; nodes have no namespace."""
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        """Labels; not to be written to."""
        return self.metadata.labels

    @property
    def is_ready(self) -> bool:
        """Whether the condition ``Ready`` is ``True``."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)
