"""Fair shares of a cluster among queues: dominant and deserved shares, and the victims of reclaim.

Formula, for queues q with weight w, demand d and dominant share D = max_r d[q, r] / total[r]::

    raise every queue's dominant share at the rate w[q], its amounts in the proportions of d[q], until
    it has its whole demand, or its capability, or a resource that it demands is used up

This is weighted max-min fairness of dominant shares: no queue gets more than it demands, the rest is divided
among the others by weight, and a larger weight never means a smaller share. A queue that has a guarantee
starts with it, as far as it demands it. Queues in a tree divide what their parent deserves, in the same way.

Victims of reclaim are pods of queues above their deserved share. They are chosen greedily, in up to two
passes: the least important first, which disturbs little; if that fails because a queue may give up no more,
the largest first. Then victims that were not needed are put back.

Units: cpu in milli, the rest in units; shares are fractions of the cluster.
Edges: a resource that the cluster does not have counts in no share.
Source: Ghodsi et al., "Dominant Resource Fairness", NSDI 2011, progressive filling; kube-batch's plugins drf
and proportion, action reclaim.
Differs: proportion fills each resource by itself, so that a queue that does not use one resource can never be
above its deserved amount of it; here a queue has one share. Reclaim frees room on one node, and only if the
pod then fits there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct, field

from plimsoll.framework.extension_points import NodeTrial, Plugin
from plimsoll.model.columns.pods_by_importance import started
from plimsoll.model.columns.queue_usage import QUEUE_LABEL as QUEUE_LABEL
from plimsoll.model.columns.queue_usage import Amounts as Amounts
from plimsoll.model.columns.queue_usage import QueueKey as QueueKey
from plimsoll.model.columns.queue_usage import QueueUsage as QueueUsage
from plimsoll.model.columns.queue_usage import ReclaimTimes as ReclaimTimes
from plimsoll.model.columns.queue_usage import WaitingDemand as WaitingDemand
from plimsoll.model.columns.queue_usage import added as added
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.quantity import milli, units
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets

#: Shares that differ by less are equal: a thousandth of a milli-CPU on a cluster of a million.
EPSILON = 1e-9

#: The largest weight, as in Volcano.
LARGEST_WEIGHT = 65_535


class Claim(Struct, frozen=True):
    """The input of one queue.

    Attributes:
        demand: The requests of its placed and waiting pods.
        weight: Its weight among the queues with the same parent.
        capability: Ceilings; resources that it does not name are unlimited.
        guaranteed: What it deserves before the rest is divided; resources that it does not name follow the
            named ones, in the proportions of the demand.
    """

    demand: Mapping[str, int]
    weight: int = 1
    capability: Mapping[str, int] = field(default_factory=dict)
    guaranteed: Mapping[str, int] = field(default_factory=dict)


class Division(Struct, frozen=True):
    """The cluster's resources, the usage of each queue, and the deserved dominant share of each.

    That of a queue with others below it is that of all of them.
    """

    total: Mapping[str, int]
    usage: Mapping[str, Amounts]
    due: Mapping[str, float]

    def share(self, queue: str) -> float:
        """A queue's dominant share."""
        return dominant_share(self.usage.get(queue, {}), self.total)

    def deserved(self, queue: str) -> float:
        """A queue's deserved dominant share."""
        return self.due.get(queue, 0.0)

    def is_above(self, queue: str) -> bool:
        """Whether a queue has more than it deserves."""
        return self.share(queue) > self.deserved(queue) + EPSILON


class QueueAccount(Struct, frozen=True):
    """What a queue has and may have, with those below it; cpu in milli, the rest in units.

    Attributes:
        name: The queue.
        parent: The queue that it is below, "" for none.
        used: Requests of its pods with a node, without those that are terminating.
        pending: Requests of its pods that wait.
        guaranteed: What it deserves first.
        capability: The most that it may have.
        deserved: What it deserves of what all queues request now.
        standing: The part of the cluster that it has, divided by its weight: the lowest is served first.
    """

    name: str
    parent: str
    used: Amounts
    pending: Amounts
    guaranteed: Amounts
    capability: Amounts
    deserved: Amounts
    standing: float

    @property
    def borrowed(self) -> Amounts:
        """What it has above what it deserves: others may take that back."""
        above = {name: amount - self.deserved.get(name, 0) for name, amount in self.used.items()}
        return {name: amount for name, amount in above.items() if amount > 0}


def amounts_of(quantities: Mapping[str, str | int]) -> Amounts:
    """Quantities by resource as integers.

    Raises:
        QuantityError: A value is not a quantity.
    """
    return {name: milli(text) if name == "cpu" else units(text) for name, text in quantities.items()}


def dominant_share(amounts: Mapping[str, int], total: Mapping[str, int]) -> float:
    """The largest share of any resource."""
    return max(
        (amount / total[name] for name, amount in amounts.items() if total.get(name, 0) > 0), default=0.0
    )


def deserved(total: Mapping[str, int], claims: Mapping[str, Claim]) -> dict[str, Amounts]:
    """The deserved amounts of each queue.

    Returns:
        Amounts by queue and resource: never more than its demand or its capability, together never more than
        ``total``.
    """
    wanted = {
        queue: {
            name: amount for name, amount in claim.demand.items() if amount > 0 and total.get(name, 0) > 0
        }
        for queue, claim in claims.items()
    }
    fractions = _filled(total, wanted, claims)
    shares = {
        queue: {name: min(amount, int(fractions[queue] * amount + 1e-6)) for name, amount in amounts.items()}
        for queue, amounts in wanted.items()
    }
    for name, most in total.items():
        over = sum(amounts.get(name, 0) for amounts in shares.values()) - max(0, most)
        if over > 0:  # because of rounding
            largest = max((queue for queue in shares if name in shares[queue]), key=lambda q: shares[q][name])
            shares[largest][name] -= over
    return shares


def deserved_in_tree(
    total: Mapping[str, int],
    claims: Mapping[str, Claim],
    children: Mapping[str, Sequence[str]],
    parent: str = "",
) -> dict[str, Amounts]:
    """The same for queues in a tree: the children of a queue divide what it deserves.

    Args:
        total: What the children of ``parent`` divide.
        claims: The demand of a queue with children is that of all below it.
        children: The queues below a queue; those below "" divide the cluster.
        parent: The queue whose descendants are asked for.
    """
    below = [queue for queue in children.get(parent, ()) if queue in claims]
    found = deserved(total, {queue: claims[queue] for queue in below})
    for queue in below:
        if queue in children:
            found |= deserved_in_tree(found[queue], claims, children, queue)
    return found


def _filled(
    total: Mapping[str, int], wanted: Mapping[str, Mapping[str, int]], claims: Mapping[str, Claim]
) -> dict[str, float]:
    """The satisfied fraction of each queue's demand, by progressive filling."""
    filled = dict.fromkeys(wanted, 0.0)
    ceilings = {queue: _ceiling(amounts, claims[queue].capability) for queue, amounts in wanted.items()}
    #: The fraction of its demand by which a queue grows while dominant shares grow by its weight.
    rates = {
        queue: claims[queue].weight / share
        for queue, amounts in wanted.items()
        if (share := dominant_share(amounts, total)) > 0
    }
    _start_with_guarantees(filled, total, wanted, claims, ceilings)
    growing = {queue for queue in rates if ceilings[queue] > filled[queue]}
    left = {
        name: amount - sum(filled[queue] * amounts.get(name, 0) for queue, amounts in wanted.items())
        for name, amount in total.items()
    }
    while growing:
        speeds = {
            name: speed
            for name in left
            if (speed := sum(rates[queue] * wanted[queue].get(name, 0) for queue in growing)) > 0
        }
        until = {queue: (ceilings[queue] - filled[queue]) / rates[queue] for queue in growing}
        step = min(*until.values(), *(max(0.0, left[name]) / speed for name, speed in speeds.items()), 1e300)
        used_up = {
            name for name, speed in speeds.items() if max(0.0, left[name]) / speed <= step * (1 + 1e-12)
        }
        for queue in list(growing):
            filled[queue] += rates[queue] * step
            if until[queue] <= step * (1 + 1e-12):
                filled[queue] = ceilings[queue]
                growing.discard(queue)
            elif not used_up.isdisjoint(wanted[queue]):
                growing.discard(queue)
        for name, speed in speeds.items():
            left[name] = 0.0 if name in used_up else left[name] - speed * step
    return filled


def _start_with_guarantees(
    filled: dict[str, float],
    total: Mapping[str, int],
    wanted: Mapping[str, Mapping[str, int]],
    claims: Mapping[str, Claim],
    ceilings: Mapping[str, float],
) -> None:
    """Fill each queue up to its guarantee; all by the same part of it if they exceed the total together."""
    for queue, amounts in wanted.items():
        guaranteed = claims[queue].guaranteed
        if not guaranteed.keys().isdisjoint(amounts):
            filled[queue] = min(ceilings[queue], _ceiling(amounts, guaranteed))
    part = 1.0
    for name, amount in total.items():
        taken = sum(filled[queue] * amounts.get(name, 0) for queue, amounts in wanted.items())
        part = min(part, max(0, amount) / taken) if taken > 0 else part
    for queue in filled:
        filled[queue] *= part


def _ceiling(amounts: Mapping[str, int], capability: Mapping[str, int]) -> float:
    """The fraction of a demand that a capability allows."""
    return min(
        (min(1.0, capability[name] / amounts[name]) for name in capability if name in amounts), default=1.0
    )


@runtime_checkable
class FairQueues(Plugin, Protocol):
    """A plugin that divides the cluster among queues; the scheduling queue pops pods by it."""

    def queue_of(self, pod: PodInfo) -> str:
        """The queue of a pod."""

    def standing(self, queue: str, scheduler: str, snapshot: Snapshot) -> tuple[float, ...]:
        """The dominant share divided by the weight, among a scheduler's pods: the lowest goes first.

        First that of the queue below the root, last that of the queue itself.
        """

    def accounts(
        self, scheduler: str, snapshot: Snapshot, waiting: Mapping[QueueKey, Amounts]
    ) -> list[QueueAccount]:
        """What each queue has of one scheduler's pods, each after the one that it is below.

        Args:
            scheduler: The scheduler name.
            snapshot: The cluster.
            waiting: The requests of pods that wait for a node.
        """


def fair_queues(plugins: Iterable[Plugin]) -> FairQueues | None:
    """The plugin of a profile that divides shares, if it has one."""
    return next((each for each in plugins if isinstance(each, FairQueues)), None)


class Reclaimable(Struct, frozen=True):
    """Pods that leave together: one pod, or all members of a group.

    Attributes:
        here: Those on the node where room is made, at least one.
        elsewhere: Those on other nodes.
    """

    here: tuple[PodInfo, ...]
    elsewhere: tuple[PodInfo, ...] = ()

    @property
    def pods(self) -> tuple[PodInfo, ...]:
        """All of them."""
        return self.here + self.elsewhere

    @property
    def rank(self) -> tuple[int, int, float]:
        """A sort key: the least important first, single pods before groups."""
        return (
            max(each.priority for each in self.pods),
            len(self.pods),
            -min(started(each) for each in self.pods),
        )


def victims_to_reclaim(
    candidates: Sequence[Reclaimable],
    queues_of: Callable[[PodInfo], Sequence[str]],
    division: Division,
    budgets: DisruptionBudgets,
    trial: NodeTrial,
) -> tuple[Reclaimable, ...]:
    """The victims of one node, the most important first; empty if no set of victims suffices.

    Candidates may be evicted within their budgets and the deserved shares of their queues: of each that the
    pod loses by (``queues_of``). The caller closes the trial.
    """
    orders = (
        sorted(candidates, key=lambda each: each.rank),
        sorted(
            candidates,
            key=lambda each: -sum(dominant_share(pod.requests, division.total) for pod in each.here),
        ),
    )
    for order in orders:
        victims = _fewest_needed(order, queues_of, division, budgets, trial)
        if victims:
            return victims
    return ()


def _fewest_needed(
    order: Sequence[Reclaimable],
    queues_of: Callable[[PodInfo], Sequence[str]],
    division: Division,
    budgets: DisruptionBudgets,
    trial: NodeTrial,
) -> tuple[Reclaimable, ...]:
    left = {queue: dict(amounts) for queue, amounts in division.usage.items()}
    victims: list[Reclaimable] = []
    pods = [pod for each in order for pod in each.pods]
    protected = {pod.uid for pod, violates in zip(pods, budgets.violating(pods), strict=True) if violates}
    for each in order:
        before = {queue: dict(left[queue]) for pod in each.pods for queue in queues_of(pod)}
        for pod in each.pods:
            for queue in queues_of(pod):
                added(left[queue], pod.requests, -1)
        if any(pod.uid in protected for pod in each.pods) or any(
            dominant_share(left[queue], division.total) < division.deserved(queue) - EPSILON
            for queue in before
        ):
            left |= before
            continue
        for pod in each.here:
            trial.remove(pod)
        victims.append(each)
        if trial.status().is_success:
            return _without_needless(victims, trial)
    for each in victims:
        for pod in each.here:
            trial.add(pod)
    return ()


def _without_needless(victims: Sequence[Reclaimable], trial: NodeTrial) -> tuple[Reclaimable, ...]:
    """Put back pods that may stay, the most important first; the last victim is known to be needed."""
    needed = [victims[-1]]
    for each in sorted(victims[:-1], key=lambda each: each.rank, reverse=True):
        for pod in each.here:
            trial.add(pod)
        if not trial.status().is_success:
            for pod in each.here:
                trial.remove(pod)
            needed.append(each)
    return tuple(sorted(needed, key=lambda each: each.rank, reverse=True))
