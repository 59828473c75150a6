"""FairShare: divide the cluster among queues by weights, ceilings and, optionally, shares that they deserve.

Formula, per queue q (the value of the pod label ``plimsoll.dev/queue``)::

    share[q]  = max over resources of requested[q] / allocatable of the cluster
    first     = the queue with the lowest share[q] / weight[q], then the order of the queue sort; in a tree
                among the queues below the root, then among those below the first of these, and so on
    refused   : requested[q] + pod > capability[q], in some resource
    protected : now < start of the victim + reclaimMinRuntimeSeconds of its queue, else of the one above
    reclaim   : q may take victims, if share[q] with the pod is at most what q deserves, on the node with
                the fewest victims; victims are of reclaimable queues, and none of these falls below
                what it deserves; in a tree this holds for each queue from the root to q, and for each from
                that of the victim up to the one that q is below, too

Units: cpu in milli, the rest in units; weights are plain numbers.
Edges: a pod without a queue, or with an unlisted one, is in "default" (weight 1 unless listed). A pod whose
label names a queue with others below it waits. Terminating
pods count as gone when victims are chosen. Pods protected by a disruption budget, in kube-system, or of
system-critical priority are never victims. Priorities of different queues are not compared.
Source: kube-batch, plugins drf and proportion, action reclaim; Volcano, Queue.spec; "Dominant Resource
Fairness", NSDI 2011.
Differs: kube-scheduler has no queues. What a queue deserves is computed by dominant share, in kube-batch
resource by resource; there a queue that does not use one resource never exceeds its share.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

from plimsoll import framework as fwk
from plimsoll.framework.columns import GangMembers, GangUnits, importance, started
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets
from plimsoll.toolkit.scheduling.fair_shares import (
    LARGEST_WEIGHT,
    QUEUE_LABEL,
    Amounts,
    Claim,
    Division,
    FairQueues,
    QueueAccount,
    QueueKey,
    QueueUsage,
    Reclaimable,
    ReclaimTimes,
    WaitingDemand,
    added,
    amounts_of,
    deserved_in_tree,
    dominant_share,
    victims_to_reclaim,
)

DEFAULT_QUEUE = "default"
SYSTEM_NAMESPACE = "kube-system"
SYSTEM_PRIORITY = 2_000_000_000

#: Maximum number of queues from the root to a queue.
MOST_LEVELS = 8

#: Maximum of ``reclaimMinRuntimeSeconds``: thirty days.
LONGEST_RUNTIME_S = 2_592_000

#: Maximum number of nodes tried one by one for a reclaim.
MOST_NODES = 100


class QueueArgs(fwk.PluginArgs):
    """One queue."""

    name: str = Field(min_length=1, max_length=63, description="Value of the label that puts a pod into it.")
    parent: str = Field(
        default="",
        max_length=63,
        description="The queue that it is below, whose part it shares with the others there.",
    )
    weight: Annotated[int, Field(ge=1, le=LARGEST_WEIGHT)] = Field(
        default=1,
        description="Part that the queue may use of the cluster, or of what its parent may use, relative to "
        "the weights of the others there.",
    )
    guaranteed: dict[str, str | int] = Field(
        default={},
        description="What it deserves, by resource, before the rest is divided by weight; others may use "
        "what it does not request.",
    )
    capability: dict[str, str | int] = Field(
        default={}, description="Ceiling of what its pods may request together, by resource."
    )
    reclaimable: bool = Field(
        default=True, description="Whether others may take back what it has above what it deserves."
    )
    reclaim_min_runtime_seconds: Annotated[int, Field(ge=0, le=LONGEST_RUNTIME_S)] | None = Field(
        default=None,
        description="Seconds that its pods run before others may take back what they use; all of a group "
        "from the start of its last member. Left out, as its parent has it, else 0.",
    )


class FairShareArgs(fwk.PluginArgs):
    """Arguments, written as ``spec.scheduling.fairShare`` in a SchedulingPolicy."""

    queues: tuple[QueueArgs, ...] = Field(
        default=(), description="Queues that share the cluster, and their weights."
    )
    reclaim: Literal["Never", "AboveDeserved"] = Field(
        default="Never", description="Whether a queue below what it deserves takes pods of others away."
    )

    @model_validator(mode="after")
    def _are_a_tree(self) -> "FairShareArgs":
        parents = {each.name: each.parent for each in self.queues}
        for name, parent in parents.items():
            if parent and parent not in parents:
                raise ValueError(f"queues: {name} names the parent {parent}, which is not listed")
            above = _path(name, parents)
            if len(above) > MOST_LEVELS:
                raise ValueError(f"queues: {name} is below itself, or more than {MOST_LEVELS} levels deep")
        return self


class _Claimed(NamedTuple):
    """Room that is being made: a pod, its victims, and their node."""

    pod: fwk.PodInfo
    victims: tuple[fwk.PodInfo, ...]
    node: str


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
        self._guaranteed = {name: amounts_of(each.guaranteed) for name, each in self._queues.items()}
        parents = {name: each.parent for name, each in self._queues.items()}
        self._paths = {name: _path(name, parents) for name in self._queues}
        self._min_runtime_s = {name: self._inherited_runtime_s(path) for name, path in self._paths.items()}
        self._children: dict[str, list[str]] = {}
        for name, parent in parents.items():
            self._children.setdefault(parent, []).append(name)
        self._summed: tuple[tuple[int, int], dict[str, int]] = ((-1, -1), {})
        self._claimed: dict[str, _Claimed] = {}

    @property
    def names_no_node(self) -> bool:
        """Whether it never nominates a node: True unless it reclaims room."""
        return self.args.reclaim == "Never"

    def _inherited_runtime_s(self, path: Sequence[str]) -> int:
        """That of the lowest queue of a path that states one."""
        stated = (self._queues[each].reclaim_min_runtime_seconds for each in reversed(path))
        return next((each for each in stated if each is not None), 0)

    def queue_of(self, pod: fwk.PodInfo) -> str:
        """The queue of the pod's label; "default" if the label names no listed queue."""
        named = pod.labels.get(QUEUE_LABEL, "")
        return named if named in self._queues else DEFAULT_QUEUE

    def standing(self, queue: str, scheduler: str, snapshot: fwk.Snapshot) -> tuple[float, ...]:
        """Dominant share divided by the weight, of each queue from the root to this one."""
        usage, total = self._by_queue(snapshot.index(QueueUsage).requested, scheduler), self._total(snapshot)
        return tuple(
            dominant_share(usage.get(each, {}), total) / self._queues[each].weight
            for each in self._paths[queue]
        )

    def accounts(
        self, scheduler: str, snapshot: fwk.Snapshot, waiting: Mapping[QueueKey, Amounts]
    ) -> list[QueueAccount]:
        """What each queue has and may have, each after the one that it is below."""
        index, total = snapshot.index(QueueUsage), self._total(snapshot)
        used = self._by_queue({key: index.staying(key) for key in index.requested}, scheduler)
        pending, demand = self._by_queue(waiting, scheduler), self._by_queue(index.requested, scheduler)
        for queue, amounts in pending.items():
            added(demand.setdefault(queue, {}), amounts)
        due = self._deserved(demand, total)
        return [
            QueueAccount(
                name,
                self._queues[name].parent,
                used.get(name, {}),
                pending.get(name, {}),
                self._guaranteed[name],
                self._capability[name],
                due.get(name, {}),
                dominant_share(used.get(name, {}), total) / self._queues[name].weight,
            )
            for name in sorted(self._queues, key=self._paths.__getitem__)
        ]

    def _deserved(self, demand: Mapping[str, Amounts], total: Mapping[str, int]) -> dict[str, Amounts]:
        """What each queue with a demand deserves."""
        claims = {
            name: Claim(amounts, self._queues[name].weight, self._capability[name], self._guaranteed[name])
            for name, amounts in demand.items()
        }
        return deserved_in_tree(total, claims, self._children)

    def _by_queue(self, sums: Mapping[QueueKey, Amounts], scheduler: str) -> dict[str, Amounts]:
        """Sums of one scheduler's pods, also for queues above; labels of unlisted queues are merged."""
        found: dict[str, Amounts] = {}
        for (of, label), amounts in sums.items():
            for queue in (
                self._paths[label if label in self._queues else DEFAULT_QUEUE] if of == scheduler else ()
            ):
                added(found.setdefault(queue, {}), amounts)
        return found

    def _losing(self, other: fwk.PodInfo, pod: fwk.PodInfo) -> tuple[str, ...]:
        """The queues that lose by a victim and do not win by the pod, from the widest to the victim's own."""
        winning = self._paths[self.queue_of(pod)]
        return tuple(each for each in self._paths[self.queue_of(other)] if each not in winning)

    def _total(self, snapshot: fwk.Snapshot) -> dict[str, int]:
        """Allocatable of all nodes by resource; recomputed when a node changes."""
        if self._summed[0] != snapshot.node_mark:
            sums = snapshot.allocatable.sum(axis=0).tolist()
            self._summed = (snapshot.node_mark, dict(zip(snapshot.resources, sums, strict=True)))
        return self._summed[1]

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Refuse a pod that exceeds its queue's capability; preemption would not help."""
        queue = self.queue_of(pod)
        if queue in self._children:
            below = ", ".join(sorted(self._children[queue]))
            return fwk.unresolvable(
                f"queue {queue} has queues below it, and pods name one of these: {below}", no_node_helps=True
            )
        limited = [each for each in self._paths[queue] if self._capability[each]]
        if not limited:
            return fwk.SKIP
        usage = self._by_queue(snapshot.index(QueueUsage).requested, _scheduler(pod))
        for each in limited:
            used = usage.get(each, {})
            over = [
                name
                for name, most in sorted(self._capability[each].items())
                if pod.requests.get(name, 0) and used.get(name, 0) + pod.requests[name] > most
            ]
            if over:
                return fwk.unresolvable(
                    f"queue {each} has no capability left for this pod: {', '.join(over)}", no_node_helps=True
                )
        return fwk.SKIP

    def events_to_register(self) -> Sequence[fwk.EventWithHint]:
        """Pods of the same queue that leave it or shrink, and other labels of the pod itself."""
        label = fwk.ActionType.UPDATE_POD_LABEL
        changes = fwk.ActionType.DELETE | fwk.ActionType.UPDATE_POD_SCALE_DOWN | label
        return (
            fwk.EventWithHint(fwk.EventResource.ASSIGNED_POD, changes, self._frees, by_template=True),
            fwk.EventWithHint(fwk.EventResource.UNSCHEDULABLE_POD, label),
        )

    def _frees(self, pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
        """The pod of the event left the queue of the waiting pod or one above, or shrank there."""
        queues = set(self._paths[self.queue_of(pod)])
        left = queues.intersection(self._paths[self.queue_of(change.old)])
        if change.action == fwk.ActionType.UPDATE_POD_LABEL:
            left -= set(self._paths[self.queue_of(change.new)])
        return fwk.QueueingHint.of(bool(left))

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
        self._forget(pod, snapshot, rejections.what_if)
        times = snapshot.index(ReclaimTimes)
        times.until.pop(pod.uid, None)
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
        above = [each for each in reversed(self._paths[self.queue_of(pod)]) if division.is_above(each)]
        if above[:1] == [self.queue_of(pod)]:
            return fwk.Nomination(
                fwk.unschedulable(f"reclaim: queue {above[0]} would be above what it deserves.")
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
            if pod.uid in times.until:
                return fwk.Nomination(
                    fwk.unschedulable("reclaim: what would help has not run for reclaimMinRuntimeSeconds.")
                )
            told = f" below {above[0]}" if above else ""
            return fwk.Nomination(
                fwk.unschedulable(f"reclaim: no queue{told} has more than it deserves where it would help.")
            )
        _, row, victims = best
        node = snapshot.node(row).name
        self._claimed[pod.uid] = _Claimed(pod, victims, node)
        # Victims of a higher priority would come back to the room, and be reclaimed again and again.
        return fwk.Nomination(node=node, victims=victims, priority=SYSTEM_PRIORITY - 1)

    def _forget(self, pod: fwk.PodInfo, snapshot: fwk.Snapshot, what_if: fwk.WhatIf) -> None:
        """Remove ended claims: the pod was placed or is tried again, or its victims have left.

        A pod that is not nominated did not get the room: it is of a group that would not fit even so.
        """
        for uid, (_, victims, node) in list(self._claimed.items()):
            row = snapshot.row_of(node)
            if (
                uid == pod.uid
                or snapshot.is_placed(uid)
                or not any(snapshot.is_placed(each.uid) for each in victims)
                or row is None
                or not any(each.uid == uid for each in what_if.nominated(row))
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
        for claimant, victims, _ in self._claimed.values():
            self._add(usage, claimant)
            for victim in victims:
                if snapshot.is_placed(victim.uid) and not victim.is_terminating:
                    self._add(usage, victim, -1)
        self._add(usage, pod)
        total = self._total(snapshot)
        for queue in self._paths[self.queue_of(pod)]:
            for name, amount in usage[queue].items():  # the pod itself may not be known to wait yet
                demand.setdefault(queue, {})[name] = max(amount, demand.get(queue, {}).get(name, 0))
        due = {
            name: dominant_share(amounts, total) for name, amounts in self._deserved(demand, total).items()
        }
        return Division(total, usage, due)

    def _add(self, usage: dict[str, Amounts], pod: fwk.PodInfo, sign: int = 1) -> None:
        for queue in self._paths[self.queue_of(pod)]:
            added(usage.setdefault(queue, {}), pod.requests, sign)

    def _may_be_victim(self, other: fwk.PodInfo, pod: fwk.PodInfo) -> bool:
        return (
            _scheduler(other) == _scheduler(pod)
            and self.queue_of(other) != self.queue_of(pod)
            and bool(losing := self._losing(other, pod))
            and all(self._queues[each].reclaimable for each in losing)
            and other.namespace != SYSTEM_NAMESPACE
            and other.priority < SYSTEM_PRIORITY
        )

    def _may_lose(
        self, other: fwk.PodInfo, pod: fwk.PodInfo, over: Collection[str], times: ReclaimTimes
    ) -> bool:
        """Whether a pod may be a victim now; the queues above what they deserve are ``over``.

        Up to the queue that both are below, all of the victim's are, and none of the claimant's.
        """
        losing, winning = self._losing(other, pod), self._losing(pod, other)
        may = self._may_be_victim(other, pod) and all(
            [*(each in over for each in losing), *(each not in over for each in winning)]
        )
        seconds = self._min_runtime_s[self.queue_of(other)]
        return may and not times.is_protected(pod.uid, started(other), seconds)

    def _promising(
        self, pod: fwk.PodInfo, snapshot: fwk.Snapshot, rejections: fwk.Rejections, division: Division
    ) -> Iterator[int]:
        """The first rows where evicting every candidate would make enough room."""
        assert rejections.what_if is not None
        found = 0
        over = {queue for queue in division.usage if division.is_above(queue)}
        times = snapshot.index(ReclaimTimes)
        for row in rejections.what_if.helpful().tolist() if over else ():
            if any(self._may_lose(each, pod, over, times) for each in snapshot.pods(row)):
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
        over = {queue for queue in division.usage if division.is_above(queue)}
        candidates = list(self._candidates(pod, row, snapshot, over))
        budgets = DisruptionBudgets(snapshot.objects)
        trial = rejections.what_if.on(row)
        try:
            return victims_to_reclaim(
                candidates, lambda other: self._losing(other, pod), division, budgets, trial
            )
        finally:
            trial.close()

    def _candidates(
        self, pod: fwk.PodInfo, row: int, snapshot: fwk.Snapshot, over: Collection[str]
    ) -> Iterator[Reclaimable]:
        """Single pods and whole groups that may be victims on a node; spare members of a group are single."""
        times = snapshot.index(ReclaimTimes)
        condemned = {each.uid for claimed in self._claimed.values() for each in claimed.victims}

        def may_go(other: fwk.PodInfo) -> bool:
            may_lose = self._may_lose(other, pod, over, times)
            return may_lose and not other.is_terminating and other.uid not in condemned

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
                if unit.surplus:
                    left = unit.surplus - len(condemned & unit.members.keys())
                    yield from (Reclaimable((each,)) for each in list(filter(may_go, here))[: max(left, 0)])
                elif all(map(may_go, unit.members.values())) and not any(
                    members.shares_gang(pod, each) for each in unit.members.values()
                ):
                    there = {each.uid for each in here}
                    away = tuple(each for uid, each in unit.members.items() if uid not in there)
                    yield Reclaimable(tuple(here), away)


def _path(queue: str, parents: Mapping[str, str]) -> tuple[str, ...]:
    """The queues from the root to one; longer than any allowed if it is below itself."""
    path = [queue]
    while (parent := parents.get(path[-1], "")) and len(path) <= MOST_LEVELS:
        path.append(parent)
    return tuple(reversed(path))


def _scheduler(pod: fwk.PodInfo) -> str:
    return pod.pod.spec.scheduler_name
