"""FairShare: divide the cluster among queues by weights, ceilings and, optionally, shares that they deserve.

Formula, per queue q (the value of the pod label ``plimsoll.dev/queue``)::

    share[q]  = max over resources of requested[q] / allocatable of the cluster
    first     = the queue with the lowest share[q] / weight[q], then the order of the queue sort
    refused   : requested[q] + pod > capability[q], in some resource
    reclaim   : q may take victims, if share[q] with the pod is at most what q deserves, on the node with
                the fewest victims; victims are of reclaimable queues, and none of these falls below
                what it deserves

Units: cpu in milli, the rest in units; weights are plain numbers.
Edges: a pod without a queue, or with an unlisted one, is in "default" (weight 1 unless listed). Terminating
pods count as gone when victims are chosen. Pods protected by a disruption budget, in kube-system, or of
system-critical priority are never victims. Priorities of different queues are not compared.
Source: kube-batch, plugins drf and proportion, action reclaim; Volcano, Queue.spec; "Dominant Resource
Fairness", NSDI 2011.
Differs: kube-scheduler has no queues. What a queue deserves is computed by dominant share, in kube-batch
resource by resource; there a queue that does not use one resource never exceeds its share.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll import framework as fwk
from plimsoll.framework.columns import GangMembers, GangUnits, importance
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets
from plimsoll.toolkit.scheduling.fair_shares import (
    EPSILON,
    LARGEST_WEIGHT,
    QUEUE_LABEL,
    Amounts,
    Claim,
    Division,
    FairQueues,
    QueueKey,
    QueueUsage,
    Reclaimable,
    WaitingDemand,
    added,
    amounts_of,
    deserved,
    dominant_share,
    victims_to_reclaim,
)

DEFAULT_QUEUE = "default"
SYSTEM_NAMESPACE = "kube-system"
SYSTEM_PRIORITY = 2_000_000_000

#: Maximum number of nodes tried one by one for a reclaim.
MOST_NODES = 100


class QueueArgs(fwk.PluginArgs):
    """One queue."""

    name: str = Field(min_length=1, max_length=63, description="Value of the label that puts a pod into it.")
    weight: Annotated[int, Field(ge=1, le=LARGEST_WEIGHT)] = Field(
        default=1,
        description="Part of the cluster that the queue may use, relative to the other queues' weights.",
    )
    capability: dict[str, str | int] = Field(
        default={}, description="Ceiling of what its pods may request together, by resource."
    )
    reclaimable: bool = Field(
        default=True, description="Whether others may take back what it has above what it deserves."
    )


class FairShareArgs(fwk.PluginArgs):
    """Arguments, written as ``spec.scheduling.fairShare`` in a SchedulingPolicy."""

    queues: tuple[QueueArgs, ...] = Field(
        default=(), description="Queues that share the cluster, and their weights."
    )
    reclaim: Literal["Never", "AboveDeserved"] = Field(
        default="Never", description="Whether a queue below what it deserves takes pods of others away."
    )


class FairShare(fwk.PreFilterPlugin, fwk.PostFilterPlugin, fwk.EnqueueExtensions, FairQueues):
    """Divide the cluster among queues."""

    name: ClassVar = "FairShare"
    args_model: ClassVar = FairShareArgs
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.CLUSTER)

    def __init__(self, args: FairShareArgs) -> None:
        self.args = args
        self._queues = {each.name: each for each in args.queues}
        self._queues.setdefault(DEFAULT_QUEUE, QueueArgs(name=DEFAULT_QUEUE))
        self._capability = {name: amounts_of(each.capability) for name, each in self._queues.items()}
        self._summed: tuple[tuple[int, int], dict[str, int]] = ((-1, -1), {})
        self._claimed: dict[str, tuple[fwk.PodInfo, tuple[fwk.PodInfo, ...]]] = {}

    @property
    def names_no_node(self) -> bool:
        """Whether it never nominates a node: True unless it reclaims room."""
        return self.args.reclaim == "Never"

    def queue_of(self, pod: fwk.PodInfo) -> str:
        """The queue of the pod's label; "default" if the label names no listed queue."""
        named = pod.labels.get(QUEUE_LABEL, "")
        return named if named in self._queues else DEFAULT_QUEUE

    def standing(self, queue: str, scheduler: str, snapshot: fwk.Snapshot) -> float:
        """Dominant share divided by the weight."""
        usage = self._by_queue(snapshot.index(QueueUsage).requested, scheduler).get(queue, {})
        return dominant_share(usage, self._total(snapshot)) / self._queues[queue].weight

    def _by_queue(self, sums: Mapping[QueueKey, Amounts], scheduler: str) -> dict[str, Amounts]:
        """Sums of one scheduler's pods; labels of unlisted queues are merged."""
        found: dict[str, Amounts] = {}
        for (of, label), amounts in sums.items():
            if of == scheduler:
                added(found.setdefault(label if label in self._queues else DEFAULT_QUEUE, {}), amounts)
        return found

    def _total(self, snapshot: fwk.Snapshot) -> dict[str, int]:
        """Allocatable of all nodes by resource; recomputed when a node changes."""
        if self._summed[0] != snapshot.node_mark:
            sums = snapshot.allocatable.sum(axis=0).tolist()
            self._summed = (snapshot.node_mark, dict(zip(snapshot.resources, sums, strict=True)))
        return self._summed[1]

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Refuse a pod that exceeds its queue's capability; preemption would not help."""
        queue = self.queue_of(pod)
        capability = self._capability[queue]
        if not capability:
            return fwk.SKIP
        usage = self._by_queue(snapshot.index(QueueUsage).requested, _scheduler(pod)).get(queue, {})
        over = [
            name
            for name, most in sorted(capability.items())
            if pod.requests.get(name, 0) and usage.get(name, 0) + pod.requests[name] > most
        ]
        if not over:
            return fwk.SKIP
        return fwk.unresolvable(
            f"queue {queue} has no capability left for this pod: {', '.join(over)}", no_node_helps=True
        )

    def events_to_register(self) -> Sequence[fwk.EventWithHint]:
        """Pods of the same queue that leave it or shrink, and other labels of the pod itself."""
        label = fwk.ActionType.UPDATE_POD_LABEL
        changes = fwk.ActionType.DELETE | fwk.ActionType.UPDATE_POD_SCALE_DOWN | label
        return (
            fwk.EventWithHint(fwk.EventResource.ASSIGNED_POD, changes, self._frees, by_template=True),
            fwk.EventWithHint(fwk.EventResource.UNSCHEDULABLE_POD, label),
        )

    def _frees(self, pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
        """The pod of the event was in the queue of the waiting pod, and left it or shrank."""
        queue = self.queue_of(pod)
        stays = change.action == fwk.ActionType.UPDATE_POD_LABEL and self.queue_of(change.new) == queue
        return fwk.QueueingHint.of(self.queue_of(change.old) == queue and not stays)

    def post_filter(
        self,
        state: fwk.CycleState,
        pod: fwk.PodInfo,
        snapshot: fwk.Snapshot,
        rejections: fwk.Rejections,
    ) -> fwk.Nomination:
        """Reclaim room from queues above their deserved shares for a queue below its own."""
        if self.args.reclaim == "Never" or rejections.what_if is None:
            return fwk.Nomination(fwk.unschedulable())
        self._forget(pod, snapshot)
        if pod.pod.spec.preemption_policy == "Never":
            return fwk.Nomination(fwk.unschedulable("reclaim: not eligible due to preemptionPolicy=Never."))
        row = snapshot.row_of(pod.pod.nominated_node_name)
        if row is not None and any(
            self._may_be_victim(each, pod) for each in snapshot.pods(row) if each.is_terminating
        ):
            return fwk.Nomination(
                fwk.unschedulable("reclaim: not eligible due to a terminating pod on the nominated node.")
            )
        division = self._division(pod, snapshot)
        queue = self.queue_of(pod)
        if division.share(queue) > division.deserved(queue) + EPSILON:
            return fwk.Nomination(
                fwk.unschedulable(f"reclaim: queue {queue} would be above what it deserves.")
            )
        best: tuple[tuple[int, int, int], int, tuple[fwk.PodInfo, ...]] | None = None
        for row in self._promising(pod, snapshot, rejections, division):
            found = self._victims(pod, row, snapshot, rejections, division)
            victims = tuple(victim for each in found for victim in each.pods)
            if victims:
                groups = sum(len(each.pods) > 1 for each in found)
                cost = (groups, len(victims), sum(each.priority for each in victims))
                if best is None or cost < best[0]:
                    best = (cost, row, victims)
        if best is None:
            return fwk.Nomination(
                fwk.unschedulable("reclaim: no queue has more than it deserves where it would help.")
            )
        _, row, victims = best
        self._claimed[pod.uid] = (pod, victims)
        # Victims of a higher priority would come back to the room, and be reclaimed again and again.
        return fwk.Nomination(node=snapshot.node(row).name, victims=victims, priority=SYSTEM_PRIORITY - 1)

    def _forget(self, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> None:
        """Remove ended claims: the pod was placed or is tried again, or its victims have left."""
        for uid, (_, victims) in list(self._claimed.items()):
            if (
                uid == pod.uid
                or snapshot.is_placed(uid)
                or not any(snapshot.is_placed(each.uid) for each in victims)
            ):
                del self._claimed[uid]

    def _division(self, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> Division:
        """Usage and deserved shares, counting the pod, earlier claims and terminating pods."""
        scheduler = _scheduler(pod)
        index = snapshot.index(QueueUsage)
        demand = self._by_queue(index.requested, scheduler)
        for queue, amounts in self._by_queue(snapshot.index(WaitingDemand).sums, scheduler).items():
            added(demand.setdefault(queue, {}), amounts)
        usage = self._by_queue({key: index.staying(key) for key in index.requested}, scheduler)
        for claimant, victims in self._claimed.values():
            added(usage.setdefault(self.queue_of(claimant), {}), claimant.requests)
            for victim in victims:
                if snapshot.is_placed(victim.uid) and not victim.is_terminating:
                    added(usage.setdefault(self.queue_of(victim), {}), victim.requests, -1)
        queue = self.queue_of(pod)
        added(usage.setdefault(queue, {}), pod.requests)
        total = self._total(snapshot)
        for name, amount in usage[queue].items():  # the pod itself may not be known to wait yet
            demand.setdefault(queue, {})[name] = max(amount, demand.get(queue, {}).get(name, 0))
        claims = {
            name: Claim(amounts, self._queues[name].weight, self._capability[name])
            for name, amounts in demand.items()
        }
        due = {name: dominant_share(amounts, total) for name, amounts in deserved(total, claims).items()}
        return Division(total, usage, due)

    def _may_be_victim(self, other: fwk.PodInfo, pod: fwk.PodInfo) -> bool:
        return (
            _scheduler(other) == _scheduler(pod)
            and self.queue_of(other) != self.queue_of(pod)
            and self._queues[self.queue_of(other)].reclaimable
            and other.namespace != SYSTEM_NAMESPACE
            and other.priority < SYSTEM_PRIORITY
        )

    def _promising(
        self, pod: fwk.PodInfo, snapshot: fwk.Snapshot, rejections: fwk.Rejections, division: Division
    ) -> Iterator[int]:
        """The first rows where evicting every candidate would make enough room."""
        assert rejections.what_if is not None
        found = 0
        over = {
            queue for queue in division.usage if division.share(queue) > division.deserved(queue) + EPSILON
        }
        for row in rejections.what_if.helpful().tolist() if over else ():
            candidates = [
                each
                for each in snapshot.pods(row)
                if self._may_be_victim(each, pod) and self.queue_of(each) in over
            ]
            if candidates:
                yield row
                found += 1
            if found >= MOST_NODES:
                return

    def _victims(
        self,
        pod: fwk.PodInfo,
        row: int,
        snapshot: fwk.Snapshot,
        rejections: fwk.Rejections,
        division: Division,
    ) -> tuple[Reclaimable, ...]:
        """The victims of a node that make the pod fit; empty if none do."""
        assert rejections.what_if is not None
        candidates = list(self._candidates(pod, row, snapshot))
        budgets = DisruptionBudgets(snapshot.objects)
        trial = rejections.what_if.on(row)
        try:
            return victims_to_reclaim(candidates, self.queue_of, division, budgets, trial)
        finally:
            trial.close()

    def _candidates(self, pod: fwk.PodInfo, row: int, snapshot: fwk.Snapshot) -> Iterator[Reclaimable]:
        """Single pods and whole groups that may be victims on a node; spare members of a group are single."""
        condemned = {each.uid for _, victims in self._claimed.values() for each in victims}

        def may_go(other: fwk.PodInfo) -> bool:
            return self._may_be_victim(other, pod) and not other.is_terminating and other.uid not in condemned

        members, seen = snapshot.index(GangMembers), set[str]()
        units = GangUnits(members, snapshot.placed_pod, snapshot.objects)
        for other in sorted(filter(may_go, snapshot.pods(row)), key=importance, reverse=True):
            unit = units.of(other)
            if unit is None:
                yield Reclaimable((other,))
            elif other.uid not in seen:
                seen |= unit.members.keys()
                here = sorted(
                    (each for each in snapshot.pods(row) if each.uid in unit.members),
                    key=importance,
                    reverse=True,
                )
                if unit.spare:
                    left = unit.spare - len(condemned & unit.members.keys())
                    yield from (Reclaimable((each,)) for each in list(filter(may_go, here))[: max(left, 0)])
                elif all(map(may_go, unit.members.values())) and not any(
                    members.shares_gang(pod, each) for each in unit.members.values()
                ):
                    there = {each.uid for each in here}
                    away = tuple(each for uid, each in unit.members.items() if uid not in there)
                    yield Reclaimable(tuple(here), away)


def _scheduler(pod: fwk.PodInfo) -> str:
    return pod.pod.spec.scheduler_name
