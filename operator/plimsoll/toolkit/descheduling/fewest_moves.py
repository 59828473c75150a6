"""FewestMoves picks pods of an over-used node such that few of them bring it below its target.

Order, at equal importance (priority, quality of service, wish to be spared)::

    the smallest pod that covers the node's excess in every resource that is above its target
    else the largest that fits on one of the destinations

A pod that fits on none of them below its target is no candidate (``TooLarge``).

Units: billionths by resource, as :mod:`plimsoll.toolkit.descheduling.node_usage` has them.
Edges: a resource without a target is not asked for.
Source: koordinator a7a1b76b, ``pkg/descheduler/framework/plugins/loadaware``, which sorts pods by whether
they alone bring the node below the line.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.measurements import Protected
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.toolkit.descheduling.eviction_order import cheapest_first
from plimsoll.toolkit.descheduling.node_usage import NodeUsage, UsageError, UsageSource

#: Percentage points below the line that triggers moves at which targets must stay.
BAND = 5.0

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FewestMoves:
    """The order in which pods leave one node after the other.

    Attributes:
        excess: What a node uses above its target, by resource.
        rooms: What each destination has left, by resource, below its target.
    """

    usage: UsageSource
    excess: Callable[[NodeUsage], Amounts]
    rooms: Sequence[Amounts]

    def order(
        self, source: NodeUsage, pods: Sequence[PodInfo], reason: str, context: StrategyContext
    ) -> Iterator[PodInfo]:
        """The next pod, by what the node uses when it is asked for."""
        left: list[tuple[tuple[int, ...], Amounts, PodInfo]] = []
        for pod in sorted(pods, key=cheapest_first):
            try:
                used = self.usage.pod(pod, context) or {}
            except UsageError:
                continue  # what it uses is unknown
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

    def _fits(self, used: Amounts) -> bool:
        return any(all(used.get(name, 0) <= free for name, free in room.items()) for room in self.rooms)


def _rank(used: Amounts, excess: Amounts) -> tuple[bool, float]:
    """Sort key: those that cover the excess, the smallest first; then the others, the largest first."""
    covered = min((used.get(name, 0) / amount for name, amount in excess.items() if amount > 0), default=0.0)
    is_enough = covered >= 1.0
    return not is_enough, covered if is_enough else -covered
