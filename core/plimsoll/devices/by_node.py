"""Keeps what was found about nodes, each for as long as that state of the node lives."""

from typing import Generic, TypeVar
from weakref import ReferenceType, ref

from plimsoll.model.kinds.node import Node

FoundT = TypeVar("FoundT")


class NodeRef(ReferenceType[Node]):
    """A reference to a node that knows its name when it has gone."""

    __slots__ = ("name",)
    name: str


class ByNode(Generic[FoundT]):
    """A value for each node; neither the node nor its name stays when the cluster has dropped it."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[NodeRef, FoundT]] = {}
        me = ref(self)

        def gone(node: ReferenceType[Node]) -> None:
            this = me()
            if this is not None and isinstance(node, NodeRef):
                this.forget(node)

        self._gone = gone

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def find(self, node: Node) -> FoundT | None:
        """The value of this state of a node; None without one."""
        known = self._known.get(node.name)
        return known[1] if known is not None and known[0]() is node else None

    def put(self, node: Node, found: FoundT) -> None:
        """Set the value of a node, in place of that of its former states."""
        known = NodeRef(node, self._gone)
        known.name = node.name
        self._known[node.name] = known, found

    def forget(self, gone: NodeRef) -> None:
        """Drop the value of a state that has gone."""
        known = self._known.get(gone.name)
        if known is not None and known[0] is gone:
            del self._known[gone.name]

    def pop(self, name: str) -> None:
        """Drop the value of a node."""
        self._known.pop(name, None)

    def clear(self) -> None:
        """Drop all values."""
        self._known.clear()

    def copied(self) -> "ByNode[FoundT]":
        """An independent copy."""
        twin: ByNode[FoundT] = ByNode()
        for node, found in list(self._known.values()):
            alive = node()
            if alive is not None:
                twin.put(alive, found)
        return twin
