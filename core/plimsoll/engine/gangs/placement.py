"""Chooses topology domain and nodes for several pods together, on a fork: for as many as needed, or for none.

The pods go through the ordinary cycle in turn on a copy of the cluster that is then thrown away; each sees
the earlier ones as placed. Nothing is assumed here. The caller assumes all placements of a feasible decision
without awaiting in between, so two gangs never hold half of what they need.

A group whose nodes must share the value of a label is tried as a whole, domain by domain, best fit first
(:mod:`plimsoll.engine.gangs.topology_domains`), until one takes all members. If none does, the group
gets the one that takes the most, if they are enough. A group whose nodes should share one is tried in the
same way in the domains that may have room for all, then in those of the next wider label; if none takes all
members, they fill as few domains as possible. No member is refused for such a wish.

Order: by priority, then the largest first (a small pod finds a gap after a large one, not the other way
round), then by rank where domains matter, then as given. Equal members swap nodes until ranks next to each
other are on nodes next to each other. The search is greedy; where it fails for unequal members, nodes are
assigned to them jointly, by amounts, for a bounded time. Devices are searched in several places only where
members share a claim that has none yet.
Source: KEP 4671 and 5732 (kube-scheduler v1.36, pod-group cycle). Differs: nothing is reserved during the
search, a gang preempts as a whole only when all of it fits afterwards, and one with a topology preempts, too.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from plimsoll.devices.device_places import own_requests
from plimsoll.devices.fork_bookings import decide_on_fork
from plimsoll.devices.gang_claims import GangClaims
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.gangs.fewer_victims import displace, with_fewer_victims
from plimsoll.engine.gangs.joint_assignment import Patience, assigned
from plimsoll.engine.gangs.joint_decision import GangDecision, Placement
from plimsoll.engine.gangs.ranks import Rank, natural, rank_of
from plimsoll.engine.gangs.topology_domains import (
    Filling,
    TopologyDomains,
    TopologyPlacement,
    looks_at_pods,
    never_fits,
    shape_of,
)
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import CycleState, PluginError, PodInfo, PodTemplate
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import BoolArray, RowArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.names import PodUid
from plimsoll.model.read_only_dict import NO_ENTRIES

#: Maximum number of members that are assigned to nodes jointly, and of nodes that are looked at for it.
MOST_ASSIGNED, MOST_LOOKS = 64, 400_000

#: Maximum number of topology domains in which victims are searched.
MOST_DOMAINS = 16


def place_together(  # noqa: PLR0913 - what is placed, and where it may go
    members: Iterable[tuple[PodInfo, ProfileScheduler]],
    cluster: Cluster,
    needed: int,
    *,
    is_preempting: bool = False,
    placed: Collection[str] = (),
    within: str = "",
    near: Sequence[str] = (),
    inside: Sequence[tuple[str, str]] = (),
    others: Collection[str] = (),
) -> GangDecision:
    """Find nodes for all members, or for as many as are needed; the cluster is only read.

    Args:
        members: The members without a node, with their schedulers.
        cluster: The cluster.
        needed: Number of them that must get a node.
        is_preempting: Whether members that fit nowhere may name victims that are not members.
        placed: The uids of members that have a node already.
        within: The node label whose value all members share, "" for none.
        near: The node labels whose values all members should share, the narrowest first; a wider one counts
            where no domain of a narrower one has room for all.
        inside: Label and value of further domains in which all members must be.
        others: The uids of further pods that are no victims: members of groups that start with this one.
    """
    members = tuple(members)
    ranks = {pod.uid: rank_of(pod.pod) for pod, _ in members} if within or near else {}
    ordered = sorted(
        members,
        key=lambda each: (
            -each[0].priority,
            -each[0].requests.get("cpu", 0),
            -each[0].requests.get("memory", 0),
            ranks.get(each[0].uid, ()),
        ),
    )
    ours = {pod.uid for pod, _ in ordered} | {*placed, *others}
    settled = [row for row in map(cluster.row_of_pod, placed) if row is not None]
    search = GangSearch(ordered, cluster, needed, ours, is_preempting, tuple(near), settled, tuple(inside))
    found = _in_a_domain(search, within) if within else _placed(search)
    is_free = bool(ranks) and not (is_preempting or search.is_nominated)
    return _by_rank(found, cluster, near, ranks) if is_free else found


class GangSearch(Struct, frozen=True):
    """Members in the order in which they are placed, and what they may do.

    Attributes:
        ours: The uids of all members, which cannot be victims.
        near: The node labels whose values all members should share, the narrowest first.
        settled: The rows of the nodes that have members already.
        domains: Label and value of each domain that confines the members.
        gives_up: Whether the search ends as soon as too few members can fit.
        patience: How long members are assigned jointly, in all domains together.
        homes: The rows of the nodes that members prefer, by uid.
    """

    ordered: Sequence[tuple[PodInfo, ProfileScheduler]]
    cluster: Cluster
    needed: int
    ours: Collection[str]
    is_preempting: bool
    near: tuple[str, ...] = ()
    settled: Sequence[int] = ()
    domains: tuple[tuple[str, str], ...] = ()
    gives_up: bool = False
    patience: Patience = field(default_factory=lambda: Patience(MOST_LOOKS))
    homes: Mapping[str, int] = NO_ENTRIES

    @property
    def pods(self) -> list[PodInfo]:
        """The members."""
        return [pod for pod, _ in self.ordered]

    @property
    def is_nominated(self) -> bool:
        """Whether room is held for a member."""
        return any(scheduler.nominated_row(pod) is not None for pod, scheduler in self.ordered)

    def home_of(self, pod: PodInfo) -> BoolArray | None:
        """The only node that a member prefers, shape (N,); None for no preference."""
        row = self.homes.get(pod.uid)
        return None if row is None else np.arange(len(self.cluster)) == row

    def confined(self, key: str, value: str) -> "GangSearch":
        """The same search in one more domain."""
        return replace(self, domains=(*self.domains, (key, value)))

    def domains_of(self, key: str) -> TopologyDomains:
        """The domains of a label, as far as the members may be in them."""
        schedulers = {pod.uid: scheduler for pod, scheduler in self.ordered}
        inside = TopologyPlacement(*self.domains).inside(Snapshot(self.cluster))

        def feasible(pod: PodInfo) -> RowArray:
            rows = _eligible(schedulers[pod.uid], pod)
            return rows[inside[rows]]

        return TopologyDomains(key, self.pods, self.cluster, feasible)


def _in_a_domain(search: GangSearch, key: str) -> GangDecision:
    """Place the members in one domain of a node label: that of the placed ones, if there are any."""
    values, why = domains_to_try(search, key)
    nothing = GangDecision((), (), max(search.needed, 1), domain=why)
    best: GangDecision | None = None
    for value in values:
        gives_up = search.is_preempting or best is not None
        found = _placed(replace(search.confined(key, value), gives_up=gives_up))
        found = replace(found, domain=f"in {key} {value}, the first of {len(values)} to try")
        if best is None or (found.is_feasible, len(found.placements)) > (
            best.is_feasible,
            len(best.placements),
        ):
            best = found
        if best.is_feasible and (search.is_preempting or not best.refused):
            break
    return best or nothing


def domains_to_try(search: GangSearch, key: str) -> tuple[list[str], str]:
    """The domains of a label in which members may be placed together, in the order of trial; or why none."""
    domains = search.domains_of(key)
    settled = domains.of(search.settled)
    if settled is None or len(settled) > 1:
        return [], f"the members that have a node are not in one domain of label {key}"
    if settled:
        return settled, ""
    never = never_fits(search.pods, search.cluster, search.needed, key)
    if never:
        return [], never
    if search.is_preempting:
        values = domains.by_room()[:MOST_DOMAINS]
    else:
        narrower = search.domains_of(search.near[0]) if search.near else None
        values = domains.by_fit(len(search.ordered), search.needed, narrower)
    nominated = (scheduler.nominated_row(pod) for pod, scheduler in search.ordered)
    reserved = domains.of([row for row in nominated if row is not None]) or []
    values = list(dict.fromkeys((*(each for each in reserved if domains.has(each)), *values)))
    return values, "" if values else f"no node has the label {key}"


def _eligible(scheduler: ProfileScheduler, pod: PodInfo) -> RowArray:
    """The rows of the nodes that a member may take, whatever the other members do."""
    try:
        found = scheduler.filtered(pod)
    except PluginError:  # the attempt reports it
        return np.arange(len(scheduler.cluster))
    return found.rows if found.cache.is_filtered_by_node else np.arange(len(scheduler.cluster))


def _placed(search: GangSearch) -> GangDecision:
    """Place the members in the cluster or the domain; close to each other if that costs no member."""
    if search.is_preempting or search.is_nominated:
        return _anywhere(search)
    found = _nearby(search) if search.near else _anywhere(search)
    if search.near and found.refused:
        other = _anywhere(search)
        found = other if len(other.placements) > len(found.placements) else found
    return found if found.is_feasible else _jointly(search) or found


def _jointly(search: GangSearch) -> GangDecision | None:
    """Place as many members as are needed where amounts say that all of them fit; None if they do not.

    One by one, each member takes the node that scores best for it, and unequal ones may then not fit.
    """
    by_size = sorted(
        search.ordered, key=lambda each: (each[0].requests.get("cpu", 0), each[0].requests.get("memory", 0))
    )
    chosen, others = by_size[: search.needed], by_size[search.needed :]
    shapes = {shape_of(pod) for pod, _ in chosen}
    if len(chosen) < search.needed or not 1 < len(shapes) <= len(chosen) <= MOST_ASSIGNED:
        return None
    snapshot = Snapshot(search.cluster)
    wanted = np.stack(own_requests([pod for pod, _ in chosen], snapshot))
    eligible = np.zeros((len(chosen), len(search.cluster)), dtype=np.bool_)
    for at, (pod, scheduler) in enumerate(chosen):
        eligible[at, _eligible(scheduler, pod)] = True
    eligible &= TopologyPlacement(*search.domains).inside(snapshot)
    rows = np.flatnonzero(eligible.any(axis=0))
    free = snapshot.allocatable[rows] - snapshot.requested[rows]
    found = assigned(wanted, free, eligible[:, rows], search.patience)
    if found is None:
        return None
    homes = {pod.uid: int(rows[at]) for (pod, _), at in zip(chosen, found, strict=True)}
    ordered = (*sorted(chosen, key=lambda each: -each[0].priority), *others)
    search = replace(search, ordered=ordered, homes=homes)
    decision = _one_by_one(search, search.cluster.fork(), GangClaims(search.pods, search.cluster))
    return decision if decision.is_feasible else None


def _nearby(search: GangSearch) -> GangDecision:
    """Place the members in one domain of the narrowest label that has one for all, else in few domains."""
    narrowest = search.domains_of(search.near[0])
    count = len(search.ordered)
    begun = narrowest.of(search.settled) or []
    for key in () if search.settled else search.near:
        domains, inner = (narrowest, None) if key == search.near[0] else (search.domains_of(key), narrowest)
        for value in domains.holding(count, inner)[:MOST_DOMAINS]:
            part = replace(search.confined(key, value), needed=count, gives_up=True)
            filling = None if inner is None else Filling(part.domains_of(search.near[0]), search.pods, ())
            found = _one_by_one(part, search.cluster.fork(), GangClaims(search.pods, search.cluster), filling)
            if not found.is_feasible:
                found = _jointly(part) or found
            if found.is_feasible:
                return replace(found, needed=search.needed)
    filling = Filling(narrowest, search.pods, begun)
    return _one_by_one(search, search.cluster.fork(), GangClaims(search.pods, search.cluster), filling)


def _anywhere(search: GangSearch) -> GangDecision:
    """Place the members on whatever nodes score best."""
    claims = GangClaims(search.pods, search.cluster)
    first = None
    while True:
        found = _one_by_one(search, search.cluster.fork(), claims)
        if search.is_preempting and found.is_feasible:
            return _with_fewer_victims(found, search, claims)
        if found.is_feasible or not claims.look_elsewhere(each.pod for each in found.refused):
            return found if first is None or found.is_feasible else first
        first = first or found


def _with_fewer_victims(found: GangDecision, search: GangSearch, claims: GangClaims) -> GangDecision:
    """The placements, or others for which fewer groups and pods leave."""

    def place(fork: Cluster, needed: int, *, is_preempting: bool) -> GangDecision:
        again = replace(search, needed=needed, is_preempting=is_preempting, gives_up=True)
        return _one_by_one(again, fork, claims)

    inside = TopologyPlacement(*search.domains).inside(Snapshot(search.cluster))
    return with_fewer_victims(found, search.pods, search.cluster, search.ours, inside, place)


def _one_by_one(
    search: GangSearch, fork: Cluster, claims: GangClaims, filling: Filling | None = None
) -> GangDecision:
    """Place members in order on a fork."""
    ordered, needed, is_preempting = search.ordered, search.needed, search.is_preempting
    twins = _Twins(search, fork)
    placements: list[Placement] = []
    refused: list[Decision] = []
    for tried, (pod, scheduler) in enumerate(ordered):
        if (is_preempting or search.gives_up) and len(placements) + len(ordered) - tried < needed:
            break  # the search for victims is expensive, and none would be used
        decides = claims.decides(pod)
        twin = twins.of(scheduler)
        home = _home(twin, pod, claims) if decides else search.home_of(pod)
        by = pod if decides else twins.sibling(twin, pod)
        decision = schedule(twin, by, home) if filling is None else _filled(filling, by, twin, home)
        if by is not pod:
            decision = replace(decision, pod=pod)
        nomination = decision.nomination
        victims: tuple[PodInfo, ...] = ()
        if decision.outcome is AttemptOutcome.SCHEDULED:
            node = decision.node
        elif (
            nomination is not None
            and nomination.status.is_success
            and nomination.node
            and not any(victim.uid in search.ours for victim in nomination.victims)
        ):
            node, victims = nomination.node, nomination.victims
            displace(victims, fork)
        else:
            refused.append(decision)
            continue
        state = (decision.state or CycleState()).clone()
        if decision.outcome is AttemptOutcome.SCHEDULED:
            decide_on_fork(state, pod, node, fork)
        if decides:
            claims.note(pod, fork)
        placements.append(Placement(decision, node, state, victims))
        fork.place(pod, node)
    return GangDecision(tuple(placements), tuple(refused), needed)


class _Twins:
    """The schedulers of the members on the fork, confined to the domains of the search."""

    def __init__(self, search: GangSearch, fork: Cluster) -> None:
        self._search, self._fork = search, fork
        self._known: dict[int, ProfileScheduler] = {}
        self._firsts: dict[Hashable, PodInfo] = {}  #: members of different shapes
        self._latest: PodTemplate | None = None
        self._may_share = not (search.is_preempting or search.is_nominated)

    def of(self, scheduler: ProfileScheduler) -> ProfileScheduler:
        """The twin of a scheduler."""
        found = self._known.get(id(scheduler))
        if found is None:
            search = self._search
            profile = scheduler.profile if search.is_preempting else scheduler.profile.without_preemption
            if search.domains:
                profile = profile.confined(TopologyPlacement(*search.domains))
            found = self._known[id(scheduler)] = scheduler.on(self._fork, profile)
        return found

    def sibling(self, twin: ProfileScheduler, pod: PodInfo) -> PodInfo:
        """A member that is decided on as this one would be, and whose results are kept; often itself.

        Members of an indexed job have labels of their own, and each would be evaluated on all nodes.
        """
        if pod.template is self._latest or not self._may_share:
            return pod
        self._latest = pod.template
        try:
            key = twin.decides_by(pod.template)
            if key is None:
                return pod
            first = self._firsts.setdefault((id(twin), pod.priority, key), pod)
            if first.template is pod.template:
                return pod
            return first if twin.refreshed(first).is_local and twin.is_of_no_concern(pod) else pod
        except PluginError:  # the attempt reports it
            return pod


def _filled(filling: Filling, pod: PodInfo, twin: ProfileScheduler, home: BoolArray | None) -> Decision:
    """Decide on a member in the domains in use, then in a further one, else on any node."""
    try:
        found = twin.filtered(pod)
        for value in _values(filling, pod):
            rows = found.among(filling.domains.rows_in(value))
            if len(rows):
                at_home = rows if home is None else rows[home[rows]]
                best, total = found.cache.best(pod, at_home if len(at_home) else rows)
                return twin.placed(pod, found, best, total, len(rows))
            filling.refuses(pod, value)
        return schedule(twin, pod, home)
    except PluginError as exc:
        return twin.broken(pod, exc)
    finally:
        filling.done(pod)


def _values(filling: Filling, pod: PodInfo) -> Iterator[str]:
    """The domains in which a member is tried, in turn."""
    yield from filling.open_to(pod)
    for _ in range(MOST_DOMAINS):
        value = filling.begin(pod)
        if not value:
            return
        yield value


def _by_rank(
    found: GangDecision, cluster: Cluster, near: Sequence[str], ranks: Mapping[PodUid, Rank]
) -> GangDecision:
    """The same nodes for the same shapes of members, so that neighbours by rank are neighbours.

    Members swap places only if nothing but labels, name and uid differs between them, and nothing is bound to
    a member's place: claims, volumes, terms about other pods, victims.
    """
    snapshot = Snapshot(cluster)
    labels = [snapshot.label_ids(key) for key in near]

    def domain(placement: Placement) -> tuple[int, ...]:
        return tuple(int(ids[cluster.rows[placement.node]]) for ids in labels)

    order: dict[tuple[int, ...], int] = {}  #: domains in the order in which they were filled
    for each in found.placements:
        order.setdefault(domain(each), len(order))

    def spot(placement: Placement) -> tuple[int, list[int | str]]:
        return order[domain(placement)], natural(placement.node)

    alike: dict[Hashable, list[int]] = {}
    for position, each in enumerate(found.placements):
        pod = each.decision.pod
        if not (
            pod.template.constraints is None or pod.pod.spec.volumes or each.victims or looks_at_pods(pod)
        ):
            key = pod.priority, shape_of(pod), pod.pod.spec.scheduler_name
            alike.setdefault(key, []).append(position)
    placements = list(found.placements)
    for positions in alike.values():
        pods = sorted((found.placements[at].decision.pod for at in positions), key=lambda pod: ranks[pod.uid])
        spots = sorted((found.placements[at] for at in positions), key=spot)
        for at, pod, where in zip(positions, pods, spots, strict=True):
            placements[at] = replace(where, decision=replace(where.decision, pod=pod))
    return replace(found, placements=tuple(placements))


def _home(scheduler: ProfileScheduler, pod: PodInfo, claims: GangClaims) -> BoolArray | None:
    """Preferred nodes of a member whose node determines the others', shape (N,); None for no preference."""
    try:
        return claims.home(pod, scheduler.filtered(pod).rows, scheduler.cluster)
    except PluginError:  # the attempt reports it
        return None
