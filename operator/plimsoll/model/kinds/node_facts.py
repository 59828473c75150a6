"""The facts of a node object that decisions read, and comparison of two states by them."""

from collections.abc import Iterator

from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod_info import LARGEST_AMOUNT
from plimsoll.model.kinds.requests import to_integer, unreadable_amounts
from plimsoll.model.quantity import readable


def allocatable_of(node: Node) -> dict[str, int]:
    """What pods may take of a node: cpu in milli, the rest in units; of what is no quantity nothing."""
    return {
        name: max(0, min(to_integer(name, readable(quantity)), LARGEST_AMOUNT))
        for name, quantity in node.status.allocatable.items()
    }


def unreadable_of(node: Node) -> Iterator[str]:
    """What is wrong with the allocatable amounts that are no quantities, and count as 0; a sentence each."""
    return unreadable_amounts("the node", node.status.allocatable)


def decide_the_same(old: Node, new: Node) -> bool:
    """Whether no decision can differ between two states of a node."""
    return (
        old.spec == new.spec
        and old.labels == new.labels
        and old.status.allocatable == new.status.allocatable
        and old.status.images == new.status.images
        and _states(old) == _states(new)
        and old.metadata.annotations == new.metadata.annotations
        and old.status.declared_features == new.status.declared_features
    )


def _states(node: Node) -> list[tuple[str, str]]:
    """The conditions without their times, which every heartbeat renews."""
    return [(condition.type, condition.status) for condition in node.status.conditions]
