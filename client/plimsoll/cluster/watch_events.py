"""Watch events: the only input of the mutable state.

Pods and nodes have their own events, because almost all events are about them; the other kinds share three.
Every event carries whole objects, never a difference.
"""

from typing import TypeAlias

import msgspec

from plimsoll.model.kinds.metadata import ApiObject
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod


class PodAdded(msgspec.Struct, frozen=True, gc=False):
    """A pod was seen for the first time."""

    pod: Pod


class PodUpdated(msgspec.Struct, frozen=True, gc=False):
    """A pod changed."""

    old: Pod
    new: Pod


class PodDeleted(msgspec.Struct, frozen=True, gc=False):
    """A pod was deleted; ``pod`` is its last known state."""

    pod: Pod


class NodeAdded(msgspec.Struct, frozen=True, gc=False):
    """A node was seen for the first time."""

    node: Node


class NodeUpdated(msgspec.Struct, frozen=True, gc=False):
    """A node changed."""

    old: Node
    new: Node


class NodeDeleted(msgspec.Struct, frozen=True, gc=False):
    """A node was deleted."""

    node: Node


class ObjectAdded(msgspec.Struct, frozen=True, gc=False):
    """An object of another kind was seen for the first time."""

    object: ApiObject


class ObjectUpdated(msgspec.Struct, frozen=True, gc=False):
    """An object of another kind changed; both are of one kind."""

    old: ApiObject
    new: ApiObject


class ObjectDeleted(msgspec.Struct, frozen=True, gc=False):
    """An object of another kind was deleted."""

    object: ApiObject


class Synced(msgspec.Struct, frozen=True, gc=False):
    """The first list of a kind is complete, or the server does not serve it: other objects do not exist."""

    kind: str
    is_served: bool = True


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
