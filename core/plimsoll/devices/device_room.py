"""DeviceRoom finds the fewest and cheapest pods to move off a node so that devices become free there.

Which devices a pod releases, and whether these suffice, requires a search, because a link group, a partition
or a share of counters is not a number. Small sets of pods are tried in order of size and cost. If there are
more pods than can be tried, pods that are not needed are left out one by one, the most expensive first. Each
pod is then moved to the node with the fewest remaining free devices.

Axis letters: N nodes, R resources.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import accumulate, combinations
from math import comb

import numpy as np

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.device_rows import DeviceRows
from plimsoll.devices.pod_claims import own_devices
from plimsoll.devices.taken import Taken
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Candidate
from plimsoll.model.columns.columns import IntArray
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.resource_claim import AllocationResult
from plimsoll.toolkit.descheduling.eviction_order import eviction_cost

Enough = Callable[[Taken], bool]
"""Whether the devices of a node suffice if those are taken."""

Keeps = Callable[[Node], bool]
"""Whether a node may have the pod that has just been sent there on trial."""

#: Maximum number of sets of pods to try on one node; of targets to try for one pod; and of pods of a node to
#: leave out because they have no target.
MOST_SETS, MOST_TARGETS, MOST_GIVEN_UP = 300, 12, 4


class DeviceRoom:
    """Finds moves of pods with devices on the current cluster.

    Args:
        context: The strategy's context.
        most: Maximum number of pods that may leave one node.
        highest: The highest priority of pods that may leave.
        reason: The reason of the moves.
    """

    def __init__(self, context: StrategyContext, *, most: int, highest: int, reason: str) -> None:
        self._context = context
        self._book = context.objects.ledger(DeviceBook)
        self._most, self._highest, self._reason = most, highest, reason
        self._free = DeviceRows(context.cluster, self._book, self._free_on, 1)

    @property
    def free_devices(self) -> IntArray:
        """The number of devices that each node reaches and that are not in use, shape (N,)."""
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
            row: The row of the node.
            enough: Whether the node's devices suffice.
            deficit: The other missing amounts there, shape (R,).
            keeps: Whether a target may keep a pod that was moved there.
            missing: Minimum number of devices that must become free.
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
        """The minimum number of pods whose devices add up to ``missing``; too many if all do not suffice."""
        if missing <= 0:
            return 1
        sizes = sorted((self.size(each) for each in pods), reverse=True)
        return 1 + sum(total < missing for total in accumulate(sizes))

    def _movable(self, row: int, *, with_others: bool) -> list[PodInfo]:
        """The movable pods of a node, only those with devices unless ``with_others``, the cheapest first."""
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
        """Whether devices and amounts suffice after these pods have left."""
        freed = deficit * 0
        for each in pods:
            freed = freed + self._context.snapshot.requests_row(each.requests)[: len(deficit)]
        if (freed < deficit).any():
            return False
        return enough(self._book.taken.without(given for each in pods for given in self._devices(each)))

    def _sent(
        self, pods: Sequence[PodInfo], row: int, keeps: Keeps
    ) -> tuple[tuple[Candidate, ...], PodInfo | None]:
        """The moves of all pods with their targets, or the first pod without a target."""
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
        """The number of a pod's devices."""
        return sum(len(each.devices.results) for each in self._devices(pod))

    def _target(self, pod: PodInfo, source: int, trials: ExitStack, keeps: Keeps) -> str:
        """Move a pod on trial to the node with the fewest remaining free devices; "" if it fits nowhere."""
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
    """The smallest sufficient set of pods, the first of equals; empty if no set of ``most`` pods suffices.

    Args:
        pods: The cheapest first.
        is_enough: Whether a set suffices; must be monotonic: a superset of a sufficient set suffices.
        most: Maximum size.
        least: A lower bound of the size.
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
