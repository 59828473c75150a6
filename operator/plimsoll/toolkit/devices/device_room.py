"""DeviceRoom finds the fewest and cheapest pods to move off a node so that devices are free there.

Which devices a pod gives back, and whether that is enough, is searched for: a link group, a partition or a
share of counters is no number. Small sets of pods are tried in order of size and cost; of more pods than can
be tried, those are left out one after the other, the dearest first, that are not needed. Each pod is then
sent to where the fewest devices are left free.

Axis letters: N nodes, R resources.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import accumulate, combinations
from math import comb

import numpy as np

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.pod_claims import own_devices
from plimsoll.devices.taken import Taken
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Candidate
from plimsoll.model.columns.columns import IntArray
from plimsoll.model.kinds.devices.resource_claim import AllocationResult
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.toolkit.descheduling.eviction_order import eviction_cost
from plimsoll.toolkit.devices.device_rows import DeviceRows

Enough = Callable[[Taken], bool]
"""Whether the devices of a node suffice if those are taken."""

Keeps = Callable[[Node], bool]
"""Whether a node may have the pod that has just been sent there on trial."""

#: Sets of pods that are tried on one node; targets that are tried for one pod; pods of a node that are left
#: out for want of a target.
MOST_SETS, MOST_TARGETS, MOST_GIVEN_UP = 300, 12, 4


class DeviceRoom:
    """Moves of pods with devices, found on the present cluster.

    Args:
        context: The strategy's.
        most: How many pods may leave one node.
        highest: The highest priority of a pod that may leave.
        reason: Of the moves.
    """

    def __init__(self, context: StrategyContext, *, most: int, highest: int, reason: str) -> None:
        self._context = context
        self._book = context.objects.ledger(DeviceBook)
        self._most, self._highest, self._reason = most, highest, reason
        self._free = DeviceRows(context.cluster, self._book, self._free_on, 1)

    @property
    def free_devices(self) -> IntArray:
        """Shape (N,): how many devices of those that each node reaches are not in use."""
        free: IntArray = self._free.values()[:, 0]
        return free

    def moves_off(
        self,
        row: int,
        enough: Enough,
        deficit: IntArray,
        keeps: Keeps = lambda _: True,
        missing: int = 0,
    ) -> tuple[Candidate, ...]:
        """Moves of pods off the node of a row; empty if impossible.

        Args:
            row: Of the node.
            enough: Whether its devices suffice.
            deficit: Shape (R,): what else is lacking there.
            keeps: Whether a target may have a pod that was sent there.
            missing: Devices that must come free at least.
        """
        pods = self._movable(row, with_others=bool(deficit.any()))
        for _ in range(MOST_GIVEN_UP):
            least = self._least(pods, missing)
            if least > self._most:
                return ()
            chosen = fewest(pods, lambda some: self._suffice(some, enough, deficit), self._most, least)
            if not chosen:
                return ()
            moves, stuck = self._sent(chosen, row, keeps)
            if stuck is None:
                return moves
            pods = [each for each in pods if each is not stuck]
        return ()

    def _least(self, pods: Sequence[PodInfo], missing: int) -> int:
        """How many pods must leave at least so that so many devices come free; too many where all do not."""
        if missing <= 0:
            return 1
        sizes = sorted((self.size(each) for each in pods), reverse=True)
        return 1 + sum(total < missing for total in accumulate(sizes))

    def _movable(self, row: int, *, with_others: bool) -> list[PodInfo]:
        """Pods of a node that may leave and hold devices there, or also others, the cheapest first."""
        name = self._context.snapshot.node(row).name
        pods = (
            each
            for each in self._context.pods(name)
            if each.stands_in_for is None
            and each.pod.node_name == name
            and not each.is_terminating
            and each.priority <= self._highest
            and (with_others or self._devices(each))
            and self._context.may_go(each)
        )
        return sorted(pods, key=eviction_cost)

    def _devices(self, pod: PodInfo) -> tuple[AllocationResult, ...]:
        return own_devices(pod.pod, self._book.claims, self._book.left_over(pod.pod))

    def _suffice(self, pods: Sequence[PodInfo], enough: Enough, deficit: IntArray) -> bool:
        """Whether it is enough when these pods have left."""
        freed = deficit * 0
        for each in pods:
            freed = freed + self._context.snapshot.requests_row(each.requests)[: len(deficit)]
        if (freed < deficit).any():
            return False
        return enough(self._book.taken.without(given for each in pods for given in self._devices(each)))

    def _sent(
        self, pods: Sequence[PodInfo], row: int, keeps: Keeps
    ) -> tuple[tuple[Candidate, ...], PodInfo | None]:
        """All of the pods with their targets, or the first one that has none."""
        source = self._context.snapshot.node(row).name
        moves: list[Candidate] = []
        with ExitStack() as trials:
            for pod in sorted(pods, key=lambda each: (-self.size(each), each.key)):
                target = self._target(pod, row, trials, keeps)
                if not target:
                    return (), pod
                moves.append(Candidate(pod, source, self._reason, target))
        return tuple(moves), None

    def size(self, pod: PodInfo) -> int:
        """How many devices a pod has."""
        return sum(len(each.devices.results) for each in self._devices(pod))

    def _target(self, pod: PodInfo, source: int, trials: ExitStack, keeps: Keeps) -> str:
        """Send a pod on trial to the node where the fewest devices are left free; "" where none takes it."""
        context = self._context
        rows = context.prospects.feasible(pod)
        if rows is None:
            return ""
        rows = rows[rows != source]
        order = np.lexsort((context.cluster.name_ranks[rows], self.free_devices[rows]))
        for node in [context.cluster.nodes[row] for row in rows[order[:MOST_TARGETS]].tolist()]:
            with ExitStack() as trial:
                trial.enter_context(context.prospects.attempt()).move(pod, node.name)
                if keeps(node):
                    trials.push(trial.pop_all())
                    return str(node.name)
        return ""

    def _free_on(self, node: Node) -> tuple[int]:
        pools = self._book.slices.pools_of(node)
        return (sum(not self._book.taken.is_consumed(each.id) for pool in pools for each in pool.devices),)


def fewest(
    pods: Sequence[PodInfo], is_enough: Callable[[Sequence[PodInfo]], bool], most: int, least: int = 1
) -> tuple[PodInfo, ...]:
    """The smallest set of pods that is enough, the first of equals; empty where none of ``most`` is.

    Args:
        pods: The cheapest first.
        is_enough: Of a set; of more pods it is never false where it is true of fewer.
        most: How many.
        least: No set of fewer pods is enough.
    """
    if not pods or not is_enough(pods):
        return ()
    left = MOST_SETS
    for size in range(least, min(most, len(pods)) + 1):
        left -= comb(len(pods), size)
        if left < 0:
            break
        for chosen in combinations(pods, size):
            if is_enough(chosen):
                return chosen
    kept = list(pods)
    for each in reversed(pods):
        rest = [other for other in kept if other is not each]
        if is_enough(rest):
            kept = rest
    return tuple(kept) if len(kept) <= most else ()
