"""MakeRoomForPending: move running pods to other nodes so that a pending one, or a deferred resize, fits.

Formula, for each pending pod of a scheduler that the policy serves and that fits no node now, the highest
priority first and among equals the largest request (as a share of the cluster): on a node that refuses it
only for lack of room, ::

    deficit = request - (allocatable - requested)

and a set of pods of equal or lower priority that together request at least the deficit, each with a place on
another node, is moved. Sets are compared by their highest priority, then the number of moves, then the
deletion costs; the cheapest is chosen. All pods of a set are moved or none, and only if the pending pod then
fits. Each pod is sent where the least is left over. The room is reserved for the pending pod until the last
one has left.

A PodGroup that has not started is served as a whole or not at all. As many of its members as must start
together (the highest priority first, then the largest) are placed one after another, with room made where
one fits no node. All moves for the group are one set. A group whose nodes must share the value of a label
gets the cheapest set of at most eight domains, those with room for most members first. The group's place in
the order is that of its first member. Further members are left to later runs; once the group has started,
each member is treated as a single pod, or waits for room in the domain of the others.

A pod whose resize in place is Deferred is served after the pending ones, in the same order: neighbours of
equal or lower priority leave its node, all or none, if the node then has what the pod asks for.

Units: as requests; moves in pods, for each pending pod or resize.
For a pod with resource claims the node must also have devices for all of them after the pods have left. The
search for these is the scheduler's; a node that lacks them is tried with the fewest leaving pods first.

Edges: a pending pod is skipped if another scheduler serves it, an extender is interested in it, it is gated,
or it has a nominated node. A PodGroup is skipped if it cannot start for another reason (too few members,
minResources), or if more than 100 members must start together. A node is skipped if more than requests stands
in the way (affinity between pods, ports, volumes). A pod that fits some node is left to the scheduler.
Resizes of pods of any scheduler are served; those that are Infeasible, and those that no moves help, are
named in the policy's status.
Source: our own; descheduler has no such strategy.
Differs: there is nothing upstream to differ from; planners Proven and Optimal only.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import ClassVar

import numpy as np
from pydantic import Field

from plimsoll.devices.device_places import device_places, own_requests
from plimsoll.devices.device_room import DeviceRoom
from plimsoll.devices.devices_wanted import DevicesWanted, wanted_devices
from plimsoll.framework import ABSENT, IntArray, PluginArgs, PodInfo
from plimsoll.framework.columns import RowArray
from plimsoll.framework.descheduling import (
    NOT_YET,
    Planner,
    Strategy,
    StrategyContext,
    StrategyKind,
    Verdict,
    is_owned,
    key_of,
)
from plimsoll.framework.descheduling.proposals import Beneficiary, Bundle, Candidate, Candidates
from plimsoll.toolkit.descheduling.best_fit import BestFit
from plimsoll.toolkit.descheduling.eviction_order import deletion_cost
from plimsoll.toolkit.descheduling.pod_scope import NamespacesArg
from plimsoll.toolkit.descheduling.resize_room import resize_deficit, resizing, room_for_resize
from plimsoll.toolkit.descheduling.room_search import moves_off, promising

#: Maximum number of bundles compared for one pending pod, and of those proposed.
COMPARED, PROPOSED = 8, 4

#: Number of resizes that are named.
REMARKS = 3

#: Maximum number of topology domains that are compared for one PodGroup.
MOST_DOMAINS = 8

#: Maximum number of members of a PodGroup that must start together.
MOST_MEMBERS = 100

#: Maximum number of nodes whose devices are counted for one member.
MOST_NODES = 64


class MakeRoomForPendingArgs(PluginArgs):
    """Arguments."""

    namespaces: NamespacesArg | None = Field(
        default=None, description="Namespaces whose pending pods room is made for; left out, all."
    )
    max_moves_per_pod: int = Field(
        default=5, ge=1, le=110, description="A pending pod that needs more moves than this waits on."
    )
    resizes: bool = Field(
        default=True, description="Whether room is also made for resizes in place that are Deferred."
    )


class MakeRoomForPending(Strategy):
    """Make pending pods fit by moving others, without preemption."""

    name: ClassVar = "MakeRoomForPending"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = MakeRoomForPendingArgs
    planners: ClassVar = frozenset({Planner.PROVEN, Planner.OPTIMAL})

    def __init__(self, args: MakeRoomForPendingArgs) -> None:
        self.args = args

    @property
    def most_moves(self) -> int:
        """Maximum number of pods moved for one pending pod."""
        return self.args.max_moves_per_pod

    def waiting(self, context: StrategyContext) -> list[PodInfo]:
        """Pods that fit no node, sorted by priority, then by size, largest first."""
        return [pod for pod in self._waiting(context) if not self._fits(pod, context)]

    def candidates(self, context: StrategyContext) -> Candidates:
        """Bundles for one pending pod after another; siblings of a pod that cannot be helped are skipped."""
        hopeless = set()
        gangs = self._gangs(context)
        for pod in self._sorted([*self._waiting(context), *gangs], context):
            if pod in gangs:
                together = self._together(gangs[pod], context)
                if together is not None and together.candidates:
                    yield together
                continue
            kind = (pod.template, pod.priority)
            if kind in hopeless or self._fits(pod, context):
                continue
            for bundle in self._rooms(pod, context):
                verdict = yield bundle
                if verdict is Verdict.ACCEPTED:
                    break
            else:
                hopeless.add(kind)
        if self.args.resizes:
            yield from self._resizes(context)

    def _resizes(self, context: StrategyContext) -> Candidates:
        """A bundle for each Deferred resize that moves would help; the others are named."""
        deferred, infeasible = (filter(self._covers, pods) for pods in resizing(context))
        said = [
            f"pod {pod.key} asks for a resize that node {context.node_of(pod)} can never grant"
            for pod in infeasible
        ]
        for pod in self._sorted(deferred, context):
            if not resize_deficit(pod, context).any():
                continue  # the kubelet has not tried again yet
            bundle = room_for_resize(pod, context, self.args.max_moves_per_pod)
            if bundle is not None:
                yield bundle
            else:
                said.append(f"no moves would make room for the resize of pod {pod.key}")
        context.remarks += said[:REMARKS]

    def _waiting(self, context: StrategyContext) -> list[PodInfo]:
        """Pending pods that are placed individually."""
        return self._sorted(
            (pod for pod in self._pending(context) if not self._needed(pod, context)), context
        )

    def _gangs(self, context: StrategyContext) -> dict[PodInfo, list[PodInfo]]:
        """Members of each PodGroup that must start together, keyed by the first of them."""
        members: defaultdict[str, list[PodInfo]] = defaultdict(list)
        for pod in self._sorted(self._pending(context), context):
            if self._needed(pod, context):
                members[key_of(pod.pod, derives=True)].append(pod)
        found = (pods[: context.gangs[key]] for key, pods in members.items() if context.gangs.get(key, 0) > 0)
        return {
            pods[0]: pods
            for pods in found
            if len(pods) == context.gangs[key_of(pods[0].pod, derives=True)] <= MOST_MEMBERS
        }

    def _needed(self, pod: PodInfo, context: StrategyContext) -> bool:
        """Whether the pod can start only together with others; an owner that is unknown forms no group."""
        key = key_of(pod.pod, derives=True)
        return bool(key) and context.gangs.get(key, 0 if is_owned(key) else NOT_YET) != 0

    def _pending(self, context: StrategyContext) -> Iterator[PodInfo]:
        return (
            pod
            for pod in context.unplaced.pending()
            if self._covers(pod) and pod.uid not in context.cluster.pods
        )

    def _covers(self, pod: PodInfo) -> bool:
        return self.args.namespaces is None or self.args.namespaces.covers(pod.namespace)

    def _sorted(self, pods: Iterable[PodInfo], context: StrategyContext) -> list[PodInfo]:
        """The pods sorted by priority, highest first, then by size, largest first."""
        total = np.maximum(context.snapshot.allocatable.sum(axis=0), 1)

        def size(pod: PodInfo) -> float:
            (wanted,) = own_requests([pod], context.snapshot)
            return float((wanted / np.resize(total, len(wanted))).max())

        return sorted(pods, key=lambda pod: (-pod.priority, -size(pod), pod.key))

    def _together(self, members: Sequence[PodInfo], context: StrategyContext) -> Bundle | None:
        """The moves that make room for all members; None if impossible or not needed."""
        group = context.objects.pod_groups.get(key_of(members[0].pod, derives=True))
        if group is None or not group.spec.topology_key:
            return self._within(np.arange(len(context.snapshot)), members, context)
        found = [
            self._within(rows, members, context)
            for rows in _domains(group.spec.topology_key, members, context)[:MOST_DOMAINS]
        ]
        bundles = [each for each in found if each is not None]
        if any(not each.candidates for each in bundles):
            return None  # the scheduler places them in that domain
        return min(bundles, key=lambda each: _cost(each.candidates), default=None)

    def _within(
        self, inside: RowArray, members: Sequence[PodInfo], context: StrategyContext
    ) -> Bundle | None:
        """The moves that make room for all members on these nodes; None if impossible.

        Tries twice: at first, no pod is moved to the nodes that members are likely to use.
        """
        for spared in (self._likely(members, context, inside), frozenset[int]()):
            moves: list[Candidate] = []
            places: list[Beneficiary] = []
            with ExitStack() as trials:
                for pod in members:
                    found = self._place(pod, members, context, trials, spared, inside)
                    if found is None:
                        break
                    moves += found.candidates
                    places.append(Beneficiary(pod, found.beneficiary.node if found.beneficiary else ""))
            if len(places) == len(members):
                first, *others = places
                return Bundle(tuple(moves), Beneficiary(first.pod, first.node, tuple(others)))
        return None

    def _likely(
        self, members: Sequence[PodInfo], context: StrategyContext, inside: RowArray
    ) -> frozenset[int]:
        """As many rows as there are members: the nodes from which the fewest pods must leave."""
        highest = min(pod.priority for pod in members)
        counts = Counter(pod.template for pod in members)
        samples = {pod.template: pod for pod in members}
        likely: set[int] = set()
        for template, count in counts.items():
            if (devices := wanted_devices(samples[template], context)) is not None:
                rows = np.array(devices.rows(context), dtype=np.intp)
                rows = rows[np.isin(rows, inside)]
            else:
                rows, _ = self._deficits(samples[template], highest, context, inside)
            likely.update([row for row in rows.tolist() if row not in likely][:count])
        return frozenset(likely)

    def _place(
        self,
        pod: PodInfo,
        members: Sequence[PodInfo],
        context: StrategyContext,
        trials: ExitStack,
        spared: frozenset[int],
        inside: RowArray,
    ) -> Bundle | None:
        """Place one member on trial, with the moves that this needs, if any."""
        rows = context.prospects.feasible(pod)
        if rows is None:
            return None
        rows = rows[np.isin(rows, inside)]
        if len(rows):
            node = _fullest(rows, pod, context)
            trials.enter_context(context.prospects.attempt()).place(pod, node)
            return Bundle((), Beneficiary(pod, node))
        highest = min(each.priority for each in members)
        for bundle in self._rooms(pod, context, highest, spared, inside):
            node = bundle.beneficiary.node if bundle.beneficiary else ""
            with ExitStack() as trial:
                attempt = trial.enter_context(context.prospects.attempt())
                for each in bundle.candidates:
                    attempt.move(each.pod, each.target)
                rows = context.prospects.feasible(pod)
                if rows is not None and context.cluster.rows[node] in rows.tolist():
                    attempt.place(pod, node)
                    trials.push(trial.pop_all())
                    return bundle
        return None

    def _deficits(
        self, pod: PodInfo, highest: int, context: StrategyContext, inside: RowArray | None = None
    ) -> tuple[RowArray, IntArray]:
        """Rows of nodes where moves might make room for a pod, the fewest moves first, and the deficits."""
        snapshot = context.snapshot
        what_if = context.prospects.what_if(pod)
        if what_if is None:
            return np.zeros(0, dtype=np.intp), np.zeros((0, 0), dtype=np.int64)
        wanted = snapshot.requests_row(pod.requests)
        rows = what_if.helpful()
        rows = rows[np.isin(rows, [context.cluster.rows[name] for name in context.nodes])]
        rows = rows if inside is None else rows[np.isin(rows, inside)]
        rows = rows[what_if.by_sums(rows)]
        deficits = np.maximum(snapshot.requested[rows] + wanted - snapshot.allocatable[rows], 0)
        deficits[:, wanted == 0] = 0
        return promising(rows, deficits, snapshot, self.args.max_moves_per_pod, highest)

    def _rooms(
        self,
        pod: PodInfo,
        context: StrategyContext,
        highest: int | None = None,
        spared: frozenset[int] = frozenset(),
        inside: RowArray | None = None,
    ) -> Iterator[Bundle]:
        """Bundles that make room for a pending pod, the cheapest first; no pod moves to rows ``spared``.

        With ``inside``, on these rows only.
        """
        highest = pod.priority if highest is None else highest
        most, snapshot = self.args.max_moves_per_pod, context.snapshot
        if (devices := wanted_devices(pod, context)) is not None:
            yield from self._device_rooms(pod, devices, context, highest, spared, inside)
            return
        rows, deficits = self._deficits(pod, highest, context, inside)
        fit, reason = BestFit(context), f"makes room on its node for pending pod {pod.key}"
        fit.free[list(spared)] = 0
        found = []
        for row, deficit in zip(rows.tolist(), deficits, strict=True):
            moves = moves_off(row, deficit, context, fit, most=most, highest=highest, reason=reason)
            if moves:
                found.append((_cost(moves), snapshot.node(row).name, moves))
            if len(found) == COMPARED:
                break
        found.sort(key=lambda each: each[:2])
        for _, node, moves in found[:PROPOSED]:
            yield Bundle(moves, Beneficiary(pod, node))

    def _device_rooms(
        self,
        pod: PodInfo,
        wanted: DevicesWanted,
        context: StrategyContext,
        highest: int,
        spared: frozenset[int],
        inside: RowArray | None,
    ) -> Iterator[Bundle]:
        """The same for a pod that lacks devices."""
        reason = f"makes room on its node for pending pod {pod.key}"
        room = DeviceRoom(context, most=self.args.max_moves_per_pod, highest=highest, reason=reason)
        found = []
        allowed = None if inside is None else frozenset(inside.tolist())
        for row in wanted.rows(context):
            if allowed is not None and row not in allowed:
                continue
            moves = room.moves_off(
                row,
                partial(wanted.suffice, row, context),
                wanted.deficit(row, context),
                lambda node: context.cluster.rows[node.name] not in spared,
            )
            if moves:
                cost = (*_cost(moves), sum(room.size(each.pod) for each in moves))
                found.append((cost, context.snapshot.node(row).name, moves))
            if len(found) == COMPARED:
                break
        found.sort(key=lambda each: each[:2])
        for _, node, moves in found[:PROPOSED]:
            yield Bundle(moves, Beneficiary(pod, node))

    def _fits(self, pod: PodInfo, context: StrategyContext) -> bool:
        rows = context.prospects.feasible(pod)
        return rows is None or bool(len(rows))


def _domains(key: str, members: Sequence[PodInfo], context: StrategyContext) -> list[RowArray]:
    """The rows of the nodes of each domain, the most room for pods like the first member first.

    Nodes that lack a part of one count in part: there the fewest pods must leave.
    """
    snapshot = context.snapshot
    (wanted,) = own_requests(members[:1], snapshot)
    ids, axes = snapshot.label_ids(key), np.flatnonzero(wanted > 0)
    free = (snapshot.allocatable - snapshot.requested)[:, axes].clip(0)
    room = (free / wanted[axes]).min(axis=1)
    places = device_places(members[0], snapshot, np.arange(len(snapshot)))
    room = room if places is None else np.minimum(room, places)
    found = [np.flatnonzero(ids == each) for each in np.unique(ids[ids != ABSENT]).tolist()]
    return sorted(found, key=lambda rows: (-float(room[rows].sum()), int(rows[0])))


def _fullest(rows: RowArray, pod: PodInfo, context: StrategyContext) -> str:
    """The node among these with the least left over, by the largest share; then the fewest devices."""
    snapshot = context.snapshot
    (wanted,) = own_requests([pod], snapshot)
    free = snapshot.allocatable[rows] - snapshot.requested[rows] - wanted
    left = (free / np.maximum(snapshot.allocatable[rows], 1))[:, wanted > 0].max(axis=1)
    ranks = context.cluster.name_ranks[rows]
    order = np.lexsort((ranks, left))[:MOST_NODES]
    places = device_places(pod, snapshot, rows[order])
    best = int(order[0 if places is None else places.argmin()])
    return str(snapshot.node(int(rows[best])).name)


def _cost(moves: tuple[Candidate, ...]) -> tuple[int, int, int]:
    """Sort key of bundles: the highest priority, the number of moves, the deletion costs."""
    pods = [each.pod for each in moves]
    return max(pod.priority for pod in pods), len(pods), sum(map(deletion_cost, pods))
