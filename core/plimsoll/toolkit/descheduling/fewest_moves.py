"""FewestMoves orders the pods of an over-used node such that few of them bring it below its target.

The order among pods of equal importance (priority, quality of service, preference against eviction)::

    the smallest pod that covers the node's excess in every resource that is above its target
    else the largest that fits on one of the destinations

A pod that fits on no destination below its target is rejected (``TooLarge``).

Units: billionths by resource, as in :mod:`plimsoll.toolkit.descheduling.node_usage`.
Edges: a resource without a target is ignored.
Source: koordinator a7a1b76b, ``pkg/descheduler/framework/plugins/loadaware``, which sorts pods by whether
each alone brings the node below the line.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.measurements import Protected
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.toolkit.descheduling.eviction_order import cheapest_first
from plimsoll.toolkit.descheduling.node_usage import NodeUsage, UsageError, UsageSource

#: Minimum distance of targets below the line that triggers moves, in percentage points.
BAND = 5.0

Amounts = Mapping[str, int]


class FewestMoves(Struct, frozen=True):
    """Decides the order in which pods leave one node after the other.

    Attributes:
        excess: The usage of a node above its target, by resource.
        rooms: The remaining room of each destination below its target, by resource.
    """

    usage: UsageSource
    excess: Callable[[NodeUsage], Amounts]
    rooms: Sequence[Amounts]

    def order(
        self, source: NodeUsage, pods: Sequence[PodInfo], reason: str, context: StrategyContext
    ) -> Iterator[PodInfo]:
        """Yield the next pod, according to the node's usage at that moment."""
        left: list[tuple[tuple[int, ...], Amounts, PodInfo]] = []
        for pod in sorted(pods, key=cheapest_first):
            try:
                used = self.usage.pod(pod, context) or {}
            except UsageError:
                continue  # its usage is unknown
            if self.rooms and not self._fits(used):
                refusal = Refusal("TooLarge", "no under-used node would stay below its target with it")
                context.protected.append(Protected(pod, reason, refusal))
            else:
                left.append((cheapest_first(pod)[0], used, pod))
        known: Amounts | None = None
        while left:
            excess = self.excess(source)
            if excess != known:
                known = excess
                left.sort(key=lambda each: (each[0], *_rank(each[1], excess)))
            yield left.pop(0)[-1]

    def sorted(self, source: NodeUsage, pods: Sequence[PodInfo], context: StrategyContext) -> list[PodInfo]:
        """All measured pods in that order, by the node's usage now; also those that fit no destination."""
        excess, known = self.excess(source), list[tuple[PodInfo, Amounts]]()
        for pod in sorted(pods, key=cheapest_first):
            with suppress(UsageError):
                known.append((pod, self.usage.pod(pod, context) or {}))
        known.sort(key=lambda each: (cheapest_first(each[0])[0], *_rank(each[1], excess)))
        return [pod for pod, _ in known]

    def _fits(self, used: Amounts) -> bool:
        return any(all(used.get(name, 0) <= free for name, free in room.items()) for room in self.rooms)


def _rank(used: Amounts, excess: Amounts) -> tuple[bool, float]:
    """A sort key: the smallest pods that cover the excess come first; then the others, the largest first."""
    covered = min((used.get(name, 0) / amount for name, amount in excess.items() if amount > 0), default=0.0)
    is_enough = covered >= 1.0
    return not is_enough, covered if is_enough else -covered
