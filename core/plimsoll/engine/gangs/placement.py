"""Decides on nodes for several pods together, on a fork: for as many as are needed, or for none.

The pods go through the ordinary cycle in turn on a copy of the cluster that is then thrown away; each sees
the earlier ones as placed. Nothing is assumed here. The caller assumes all placements of a feasible decision
without awaiting in between, so two gangs never hold half of what they need.

A group whose nodes must share the value of a label is tried as a whole, domain by domain, best fit first
(:mod:`plimsoll.engine.gangs.topology_domains`), until one takes all members. If none does, the group
gets the one that takes the most, if they are enough.

Order: by priority, then the largest first (a small pod finds a gap after a large one, not the other way
round), then as given. The search is greedy: a gang that only fits in some other order is rejected. Devices
are searched in several places only where members share a claim that has none yet.
Source: KEP 4671 and 5732 (kube-scheduler v1.36, pod-group cycle). Differs: nothing is reserved during the
search, a gang preempts as a whole only when all of it fits afterwards, and one with a topology preempts, too.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from plimsoll.devices.fork_bookings import decide_on_fork
from plimsoll.devices.gang_claims import GangClaims
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.gangs.topology_domains import TopologyDomains, TopologyPlacement
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import CycleState, PluginError, PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import BoolArray, RowArray
from plimsoll.model.gang_members import GangMembers, GangUnit, GangUnits
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets

#: Maximum number of gangs that are tried as the only one that breaks.
MOST_GANGS = 16

#: Maximum number of topology domains in which victims are searched.
MOST_DOMAINS = 16

#: Maximum number of different reasons that a message lists in full.
TOLD = 3


class Placement(Struct, frozen=True):
    """The node of one member, with its cycle state and nomination.

    Attributes:
        group: Members of another gang that leave for several members of this one.
    """

    decision: Decision
    node: str
    state: CycleState
    group: tuple[PodInfo, ...] = ()

    @property
    def victims(self) -> tuple[PodInfo, ...]:
        """Pods that have to leave first."""
        nomination = self.decision.nomination
        is_free = nomination is None or self.decision.outcome is AttemptOutcome.SCHEDULED
        return self.group if nomination is None or is_free else self.group + nomination.victims


class GangDecision(Struct, frozen=True):
    """The result of a joint attempt; ``refused`` members do not fit in addition to the placements.

    Attributes:
        domain: The topology domain that was searched, in words; "" without one.
    """

    placements: tuple[Placement, ...]
    refused: tuple[Decision, ...]
    needed: int
    domain: str = ""

    @property
    def is_feasible(self) -> bool:
        """Whether enough members fit together."""
        return len(self.placements) >= self.needed

    @property
    def plugins(self) -> frozenset[str]:
        """Plugins that rejected members; empty after an error, which only time may clear."""
        if any(each.outcome is AttemptOutcome.ERROR or each.diagnosis is None for each in self.refused):
            return frozenset()
        found = frozenset(
            name for each in self.refused if each.diagnosis is not None for name in each.diagnosis.plugins
        )
        # Members were refused in other domains, too, for whatever reasons: any event may help.
        return found | {TopologyPlacement.name} if self.domain else found

    @property
    def no_node_helps(self) -> bool:
        """Whether too few members could fit whatever nodes there are."""
        hopeless = sum(each.no_node_helps for each in self.refused)
        return bool(self.refused) and len(self.placements) + len(self.refused) - hopeless < self.needed

    @property
    def awaits_victims(self) -> bool:
        """Whether a member fits nowhere only because its victims have not left yet."""
        return any(each.nomination is not None and each.nomination.node is None for each in self.refused)

    def message(self, placed: int, least: int | None = None) -> str:
        """How many fit, including ``placed`` members that have a node, and what the others lack.

        ``least``: the number of members that the gang needs, if the placed ones may be as many.
        """
        fitting = placed + len(self.placements)
        total = fitting + len(self.refused)
        counts = Counter(each.message for each in self.refused).most_common()
        lacking = [f"{count} lack a node: {text}" for text, count in counts[:TOLD]]
        if len(counts) > TOLD:
            lacking.append(f"{len(counts) - TOLD} further reasons")
        if self.domain and not total - placed:
            return self.domain
        text = f"{fitting} of {total} members fit, {least or placed + self.needed} must; {'; '.join(lacking)}"
        return f"{self.domain}: {text}" if self.domain else text


def place_together(
    members: Iterable[tuple[PodInfo, ProfileScheduler]],
    cluster: Cluster,
    needed: int,
    *,
    is_preempting: bool = False,
    placed: Collection[str] = (),
    within: str = "",
) -> GangDecision:
    """Find nodes for all members, or for as many as are needed; the cluster is only read.

    Args:
        members: The members without a node, with their schedulers.
        cluster: The cluster.
        needed: Number of them that must get a node.
        is_preempting: Whether members that fit nowhere may name victims that are not members.
        placed: The uids of members that have a node already.
        within: The node label whose value all members share, "" for none.
    """
    ordered = sorted(
        members,
        key=lambda each: (
            -each[0].priority,
            -each[0].requests.get("cpu", 0),
            -each[0].requests.get("memory", 0),
        ),
    )
    ours = {pod.uid for pod, _ in ordered} | set(placed)
    search = _Search(ordered, cluster, needed, ours, is_preempting)
    return _in_a_domain(search, within, placed) if within else _placed(search)


class _Search(Struct, frozen=True):
    """Members in the order in which they are placed, and what they may do.

    Attributes:
        ours: The uids of all members, which cannot be victims.
        domain: Confines the members; None for no confinement.
        gives_up: Whether the search ends as soon as too few members can fit.
    """

    ordered: Sequence[tuple[PodInfo, ProfileScheduler]]
    cluster: Cluster
    needed: int
    ours: Collection[str]
    is_preempting: bool
    domain: TopologyPlacement | None = None
    gives_up: bool = False

    @property
    def pods(self) -> list[PodInfo]:
        """The members."""
        return [pod for pod, _ in self.ordered]


def _in_a_domain(search: _Search, key: str, placed: Collection[str]) -> GangDecision:
    """Place the members in one domain of a node label: that of the placed ones, if there are any."""
    schedulers = {pod.uid: scheduler for pod, scheduler in search.ordered}
    domains = TopologyDomains(
        key, search.pods, search.cluster, lambda pod: _eligible(schedulers[pod.uid], pod)
    )
    nothing = GangDecision((), (), max(search.needed, 1))
    settled = domains.of([row for row in map(search.cluster.row_of_pod, placed) if row is not None])
    if settled is None or len(settled) > 1:
        return replace(nothing, domain=f"the members that have a node are not in one domain of label {key}")
    if search.is_preempting:
        values = domains.by_room()[:MOST_DOMAINS]
    else:
        values = domains.by_fit(len(search.ordered), search.needed)
    nominated = (scheduler.nominated_row(pod) for pod, scheduler in search.ordered)
    reserved = domains.of([row for row in nominated if row is not None]) or []
    values = settled or list(dict.fromkeys((*(each for each in reserved if domains.has(each)), *values)))
    if not values:
        return replace(nothing, domain=f"no node has the label {key}")
    best: GangDecision | None = None
    for value in values:
        domain = TopologyPlacement(key, value)
        found = _placed(replace(search, domain=domain, gives_up=search.is_preempting or best is not None))
        found = replace(found, domain=f"in {key} {value}, the first of {len(values)} to try")
        if best is None or (found.is_feasible, len(found.placements)) > (
            best.is_feasible,
            len(best.placements),
        ):
            best = found
        if best.is_feasible and (search.is_preempting or not best.refused):
            break
    return best or nothing


def _eligible(scheduler: ProfileScheduler, pod: PodInfo) -> RowArray:
    """The rows of the nodes that a member may take, whatever the other members do."""
    try:
        found = scheduler.filtered(pod)
    except PluginError:  # the attempt reports it
        return np.arange(len(scheduler.cluster))
    return found.rows if found.cache.is_filtered_by_node else np.arange(len(scheduler.cluster))


def _placed(search: _Search) -> GangDecision:
    """Place the members on the whole cluster, or in the domain."""
    claims = GangClaims(search.pods, search.cluster)
    first = None
    while True:
        found = _one_by_one(search, search.cluster.fork(), claims)
        if search.is_preempting and found.is_feasible:
            return _breaking_fewer(found, search, claims)
        if found.is_feasible or not claims.look_elsewhere(each.pod for each in found.refused):
            return found if first is None or found.is_feasible else first
        first = first or found


def _one_by_one(search: _Search, fork: Cluster, claims: GangClaims) -> GangDecision:
    """Place members in order on a fork."""
    ordered, needed, is_preempting = search.ordered, search.needed, search.is_preempting
    twins: dict[int, ProfileScheduler] = {}
    placements: list[Placement] = []
    refused: list[Decision] = []
    for tried, (pod, scheduler) in enumerate(ordered):
        if (is_preempting or search.gives_up) and len(placements) + len(ordered) - tried < needed:
            break  # the search for victims is expensive, and none would be used
        twin = twins.get(id(scheduler))
        if twin is None:
            profile = scheduler.profile if is_preempting else scheduler.profile.without_preemption
            if search.domain is not None:
                profile = profile.confined(search.domain)
            twin = twins[id(scheduler)] = scheduler.on(fork, profile)
        decides = claims.decides(pod)
        decision = schedule(twin, pod, _home(twin, pod, claims) if decides else None)
        nomination = decision.nomination
        if decision.outcome is AttemptOutcome.SCHEDULED:
            node = decision.node
        elif (
            nomination is not None
            and nomination.status.is_success
            and nomination.node
            and not any(victim.uid in search.ours for victim in nomination.victims)
        ):
            node = nomination.node
            for victim in nomination.victims:
                fork.displace(victim.uid)
        else:
            refused.append(decision)
            continue
        state = (decision.state or CycleState()).clone()
        if decision.outcome is AttemptOutcome.SCHEDULED:
            decide_on_fork(state, pod, node, fork)
        if decides:
            claims.note(pod, fork)
        placements.append(Placement(decision, node, state))
        fork.place(pod, node)
    return GangDecision(tuple(placements), tuple(refused), needed)


def _breaking_fewer(found: GangDecision, search: _Search, claims: GangClaims) -> GangDecision:
    """The placements, or others for which fewer gangs break: one whole gang may make room for all members.

    Members take the victims that cost least one after the other, each without regard to the next.
    """
    cluster = search.cluster
    units = GangUnits(cluster.index(GangMembers), cluster.pods.get, cluster.objects)
    fewest = _broken(found, units)
    if fewest < 2:
        return found
    best, lowest = found, min(pod.priority for pod in search.pods)
    for unit in _breakable(units, cluster, lowest, search.ours):
        fork = cluster.fork()
        for uid in unit.members:
            fork.displace(uid)
        other = _one_by_one(search, fork, claims)
        if not other.is_feasible:
            continue
        first, *rest = other.placements
        first = replace(first, group=tuple(unit.members.values()))
        other = replace(other, placements=(first, *rest))
        broken = _broken(other, units)
        if broken < fewest:
            best, fewest = other, broken
        if fewest < 2:
            break
    return best


def _breakable(units: GangUnits, cluster: Cluster, priority: int, ours: Collection[str]) -> list[GangUnit]:
    """Gangs that may all be victims of pods of that priority, the least important and smallest first."""
    budgets = DisruptionBudgets(cluster.objects)
    found = {
        min(unit.members): unit
        for uid in units.members.gangs
        if uid in cluster.pods and (unit := units.of(cluster.pods[uid])) is not None
    }
    lower = [
        unit
        for unit in found.values()
        if all(
            unit.priority_of(each) < priority and uid not in ours and not budgets.cover(each)
            for uid, each in unit.members.items()
        )
    ]
    lower.sort(key=lambda unit: (max(map(unit.priority_of, unit.members.values())), len(unit.members)))
    return lower[:MOST_GANGS]


def _broken(decision: GangDecision, units: GangUnits) -> int:
    """The number of gangs that lose more members than they can spare."""
    lost: Counter[str] = Counter()
    spare: dict[str, int] = {}
    for victim in (each for placement in decision.placements for each in placement.victims):
        unit = units.of(victim)
        if unit is not None:
            key = min(unit.members)
            lost[key] += 1
            spare[key] = unit.spare
    return sum(count > spare[key] for key, count in lost.items())


def _home(scheduler: ProfileScheduler, pod: PodInfo, claims: GangClaims) -> BoolArray | None:
    """Preferred nodes of a member whose node determines the others', shape (N,); None for no preference."""
    try:
        return claims.home(pod, scheduler.filtered(pod).rows, scheduler.cluster)
    except PluginError:  # the attempt reports it
        return None


def lacking_resources(cluster: Cluster, wanted: dict[str, int], own: Iterable[PodInfo]) -> dict[str, int]:
    """The part of these amounts that the cluster as a whole lacks; a gang is rejected early by it.

    Formula: wanted - sum over nodes of max(0, allocatable - requested) - what the gang holds already.

    Args:
        cluster: The present cluster.
        wanted: Amounts by resource; cpu in milli.
        own: The gang's placed pods.
    """
    held: Counter[str] = Counter()
    for pod in own:
        held.update(pod.requests)
    lacking = {}
    for name, amount in wanted.items():
        axis = cluster.axis_of(name)
        free = 0
        if axis is not None:
            n = len(cluster)
            free = int((cluster.allocatable[:n, axis] - cluster.requested[:n, axis]).clip(0).sum())
        if amount > free + held[name]:
            lacking[name] = amount - free - held[name]
    return lacking
