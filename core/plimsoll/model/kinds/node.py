"""Nodes as the API serves them (core/v1), reduced to what decisions read, and their amounts as integers."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from plimsoll.model.kinds.metadata import ApiObject, Int64
from plimsoll.model.kinds.requests import bounded, to_integer, unreadable_amounts
from plimsoll.model.quantity import readable
from plimsoll.model.read_only_dict import NO_ENTRIES


class Taint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Keeps pods off the node that do not tolerate it; ``effect`` says how strongly."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The wanted state of the node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One observed condition of the node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class ContainerImage(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An image on the node, under each of its names."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeAddress(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An address of the node; series of Prometheus may name it by this."""

    type: str = ""
    address: str = ""


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The observed state of the node; quantities as written."""

    allocatable: dict[str, str | Int64 | float] = NO_ENTRIES
    capacity: dict[str, str | Int64 | float] = NO_ENTRIES
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(ApiObject, frozen=True, kw_only=True, rename="camel", gc=True, weakref=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        """Whether the condition ``Ready`` is ``True``."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)


def allocatable_of(node: Node) -> dict[str, int]:
    """The allocatable amounts of a node: cpu in milli, the rest in units; 0 for an invalid quantity."""
    amounts = node.status.allocatable.items()
    return bounded({name: to_integer(name, readable(quantity)) for name, quantity in amounts})


def unreadable_of(node: Node) -> Iterator[str]:
    """A sentence for each allocatable amount that is not a quantity and counts as 0."""
    return unreadable_amounts("the node", node.status.allocatable)


def decide_the_same(old: Node, new: Node) -> bool:
    """Whether no decision can differ between two states of a node."""
    return (
        old.spec == new.spec
        and old.labels == new.labels
        and old.status.allocatable == new.status.allocatable
        and old.status.images == new.status.images
        and old.status.addresses == new.status.addresses
        and _states(old) == _states(new)
        and old.metadata.annotations == new.metadata.annotations
        and old.status.declared_features == new.status.declared_features
    )


def _states(node: Node) -> list[tuple[str, str]]:
    """The conditions without their times, which every heartbeat changes."""
    return [(condition.type, condition.status) for condition in node.status.conditions]
