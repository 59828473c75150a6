"""The taint of nodes that are being emptied: no other pod comes while the last ones leave."""

from plimsoll.model.kinds.node import Node
from plimsoll.model.taints import NO_SCHEDULE

#: Key of the taint; its effect is NoSchedule.
CONSOLIDATING = "plimsoll.dev/consolidating"


def is_closed(node: Node) -> bool:
    """Whether the node has our taint."""
    return any(taint.key == CONSOLIDATING and taint.effect == NO_SCHEDULE for taint in node.spec.taints)
