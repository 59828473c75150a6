"""Watch events: the only input of the mutable state.

Pods and nodes have events of their own, because almost everything is about them; the other kinds share
three. Every event carries whole objects, never a difference.
"""

from dataclasses import dataclass
from typing import TypeAlias

from plimsoll.model.kinds.metadata import ApiObject
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod


@dataclass(frozen=True, slots=True)
class PodAdded:
    """A pod was seen for the first time."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class PodUpdated:
    """A pod changed."""

    old: Pod
    new: Pod


@dataclass(frozen=True, slots=True)
class PodDeleted:
    """A pod is gone; ``pod`` is the last that was seen of it."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class NodeAdded:
    """A node was seen for the first time."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeUpdated:
    """A node changed."""

    old: Node
    new: Node


@dataclass(frozen=True, slots=True)
class NodeDeleted:
    """A node is gone."""

    node: Node


@dataclass(frozen=True, slots=True)
class ObjectAdded:
    """An object of another kind was seen for the first time."""

    object: ApiObject


@dataclass(frozen=True, slots=True)
class ObjectUpdated:
    """An object of another kind changed; both are of one kind."""

    old: ApiObject
    new: ApiObject


@dataclass(frozen=True, slots=True)
class ObjectDeleted:
    """An object of another kind is gone."""

    object: ApiObject


@dataclass(frozen=True, slots=True)
class Synced:
    """The first list of a kind is complete; objects that were not in it do not exist."""

    kind: str


WatchEvent: TypeAlias = (
    PodAdded
    | PodUpdated
    | PodDeleted
    | NodeAdded
    | NodeUpdated
    | NodeDeleted
    | ObjectAdded
    | ObjectUpdated
    | ObjectDeleted
    | Synced
)
