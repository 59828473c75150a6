"""MakeRoomForPending: move running pods elsewhere so that a pending one fits, where nothing need be killed.

Formula, for each pending pod of a scheduler that the policy serves and that fits no node now, the highest
priority first and of one priority the largest request (as a share of the cluster): on a node that refuses
it for want of room alone, ::

    deficit = request - (allocatable - requested)

and a set of pods of no higher priority that requests the deficit at least, each with a place elsewhere, is
moved. Sets are told apart by the highest priority in them, then the number of moves, then the deletion
costs; the cheapest goes. All of a set go or none does, and only if the pending pod fits afterwards. Each
pod is sent where least is left over. The room is held for the pending pod until the last one has left.

Units: as requests; moves in pods.
Edges: a pod whose scheduler is not ours, whose place an extender has a say in, that is gated or of a
PodGroup, or that already has a nominated node is left alone; where more than requests stands in the way
(affinity between pods, ports, volumes) the node is left out; a pod that fits somewhere is the scheduler's.
Source: our own; descheduler has no such strategy.
Differs: there is nothing upstream to differ from; planners Proven and Optimal only.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from pydantic import Field

from plimsoll.framework import (
    NamespacesArg,
    Planner,
    PluginArgs,
    PodInfo,
    Strategy,
    StrategyContext,
    StrategyKind,
    Verdict,
    group_key,
)
from plimsoll.framework.best_fit import BestFit
from plimsoll.framework.eviction_cost import deletion_cost
from plimsoll.framework.room_search import moves_off, promising
from plimsoll.framework.strategy import Beneficiary, Bundle, Candidate, Candidates

#: Bundles that are compared for one pending pod, and how many of them are proposed.
COMPARED, PROPOSED = 8, 4


class MakeRoomForPendingArgs(PluginArgs):
    """Arguments."""

    namespaces: NamespacesArg | None = Field(
        default=None, description="Namespaces whose pending pods room is made for; left out, all."
    )
    max_moves_per_pod: int = Field(
        default=5, ge=1, le=110, description="A pending pod that needs more moves than this waits on."
    )


class MakeRoomForPending(Strategy):
    """Let pending pods fit by moving others, without killing any."""

    name: ClassVar = "MakeRoomForPending"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = MakeRoomForPendingArgs
    planners: ClassVar = frozenset({Planner.PROVEN, Planner.OPTIMAL})

    def __init__(self, args: MakeRoomForPendingArgs) -> None:
        self.args = args

    @property
    def most_moves(self) -> int:
        """How many pods may move for one that waits."""
        return self.args.max_moves_per_pod

    def waiting(self, context: StrategyContext) -> list[PodInfo]:
        """Pods that fit nowhere, of the highest priority and the largest first."""
        return [pod for pod in self._waiting(context) if not self._fits(pod, context)]

    def candidates(self, context: StrategyContext) -> Candidates:
        """Pending pod by pending pod; siblings of one that cannot be helped are not tried."""
        hopeless = set()
        for pod in self._waiting(context):
            kind = (pod.template, pod.priority)
            if kind in hopeless or self._fits(pod, context):
                continue
            for bundle in self._rooms(pod, context):
                verdict = yield bundle
                if verdict is Verdict.ACCEPTED:
                    break
            else:
                hopeless.add(kind)

    def _waiting(self, context: StrategyContext) -> list[PodInfo]:
        total = np.maximum(context.snapshot.allocatable.sum(axis=0), 1)

        def size(pod: PodInfo) -> float:
            wanted = context.snapshot.requests_row(pod.requests)
            return float((wanted / np.resize(total, len(wanted))).max())

        namespaces = self.args.namespaces
        waiting = [
            pod
            for pod in context.unplaced.pending()
            if (namespaces is None or namespaces.covers(pod.namespace))
            and not group_key(pod.pod)
            and pod.uid not in context.cluster.pods
        ]
        return sorted(waiting, key=lambda pod: (-pod.priority, -size(pod), pod.key))

    def _rooms(self, pod: PodInfo, context: StrategyContext) -> Iterator[Bundle]:
        """Bundles that make room for a pending pod, the cheapest first."""
        what_if = context.prospects.what_if(pod)
        if what_if is None:
            return
        most, snapshot = self.args.max_moves_per_pod, context.snapshot
        wanted = snapshot.requests_row(pod.requests)
        rows = what_if.helpful()
        rows = rows[np.isin(rows, [context.cluster.rows[name] for name in context.nodes])]
        rows = rows[what_if.by_sums(rows)]
        deficits = np.maximum(snapshot.requested[rows] + wanted - snapshot.allocatable[rows], 0)
        deficits[:, wanted == 0] = 0
        rows, deficits = promising(rows, deficits, snapshot, most, pod.priority)
        fit, reason = BestFit(context), f"makes room on its node for pending pod {pod.key}"
        found = []
        for row, deficit in zip(rows.tolist(), deficits, strict=True):
            moves = moves_off(row, deficit, context, fit, most=most, highest=pod.priority, reason=reason)
            if moves:
                found.append((_cost(moves), snapshot.node(row).name, moves))
            if len(found) == COMPARED:
                break
        found.sort(key=lambda each: each[:2])
        for _, node, moves in found[:PROPOSED]:
            yield Bundle(moves, Beneficiary(pod, node))

    def _fits(self, pod: PodInfo, context: StrategyContext) -> bool:
        rows = context.prospects.feasible(pod)
        return rows is None or bool(len(rows))


def _cost(moves: tuple[Candidate, ...]) -> tuple[int, int, int]:
    """What tells bundles apart: the highest priority, the number of moves, the deletion costs."""
    pods = [each.pod for each in moves]
    return max(pod.priority for pod in pods), len(pods), sum(map(deletion_cost, pods))
