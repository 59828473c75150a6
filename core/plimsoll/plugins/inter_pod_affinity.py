"""InterPodAffinity: place pods near some pods and far from others; "near" means equal values of a node label.

Formula, filter, with counts by (topology key, value) over all nodes::

    affinity = placed pods that match all required affinity terms of the pod
    anti[t]  = placed pods that match required anti-affinity term t of the pod
    existing = placed pods with a required anti-affinity term that matches the pod
    feasible = every term's key is on the node and affinity > 0, and no anti[t] > 0, and no existing > 0

Formula, score::

    raw[n]   = sum over keys k of points[k][value of k on n]
    score[n] = int(100 * (raw[n] - min(raw)) / (max(raw) - min(raw)))

``points`` adds, for each placed pod's domain: the weight of each preferred term of the pod that matches it
(negative for anti-affinity); the weight of each of its own preferred terms that matches the pod; and
hardPodAffinityWeight for each of its required affinity terms that matches the pod.

Units: pods and weights, int64; points out, int64, 0..100, higher is better.
Edges: a pod that matches its own affinity terms passes them if no other pod matches them anywhere; a node
without an anti-affinity term's key passes that term; terminating pods count; equal points give score 0.
Source: kube-scheduler v1.36, ``interpodaffinity/filtering.go`` and ``scoring.go``; in v1.36.2 a namespace
selector that accepts a namespace without labels selects every namespace.
Differs: counts by (term, domain) are updated on every pod event instead of summed at each attempt.

Longer than 400 lines because filter, scores and versions read the same domains.
"""

from collections.abc import Collection, Hashable, Sequence
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from msgspec import Struct
from pydantic import Field

from plimsoll import framework as fwk
from plimsoll.framework.columns import (
    NOTHING_CONCERNS,
    ClassCounts,
    DomainSums,
    PodClass,
    PodCounts,
    PodTerm,
    TermCounts,
    TermKind,
    has_single_domains,
    is_on_all_nodes,
)
from plimsoll.framework.node_classes import NodeAxis
from plimsoll.toolkit.scheduling.rivalries import Rivalry

AFFINITY_UNMET = fwk.unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY_UNMET = fwk.unschedulable("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY_UNMET = fwk.unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
#: Maximum number of domains compared one by one to detect changed verdicts.
FEW_DOMAINS = 256
#: Rows that are looked up one by one, rather than by sums over all domains.
FEW_ROWS = 16
#: Terms whose domains are summed one by one.
FEW_TERMS = 16
#: Terms with axes of their own in classes of nodes.
FEW_AXES = 4
NOTHING = fwk.ResultVersion(())
REFUSALS = (AFFINITY_UNMET, ANTI_AFFINITY_UNMET, EXISTING_ANTI_AFFINITY_UNMET)


class InterPodAffinityArgs(fwk.PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a SchedulingPolicy."""

    hard_pod_affinity_weight: Annotated[int, Field(ge=0, le=100)] = Field(
        default=1, description="Points for each required affinity term of a placed pod that matches."
    )
    ignore_preferred_terms_of_existing_pods: bool = Field(
        default=False, description="Whether a pod without preferred terms is not scored at all."
    )


class OwnTerms(Struct, frozen=True, eq=False):
    """The terms of one template, with the pods that each term matches.

    Attributes:
        affinity: The pods that match all required affinity terms; None without such terms.
        affinity_keys: The topology keys of those terms.
        anti_affinity: Topology key and pods of each required anti-affinity term.
        preferred: Topology key, pods and weight (negative: away) of each preferred term.
        is_first: Whether the pod matches all its own required affinity terms.
    """

    affinity: PodClass | None
    affinity_keys: tuple[str, ...]
    anti_affinity: tuple[tuple[str, PodClass], ...]
    preferred: tuple[tuple[str, PodClass, int], ...]
    is_first: bool


NO_TERMS = OwnTerms(None, (), (), (), is_first=False)


class Points(Struct, frozen=True, eq=False):
    """Input of Score: points by topology key and coded label value; the last cell is for no value."""

    by_key: dict[str, fwk.IntArray]


class InterPodAffinity(
    fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.PreScorePlugin, fwk.NormalizingPlugin, fwk.EnqueueExtensions
):
    """Place pods near some pods and far from others."""

    name: ClassVar = "InterPodAffinity"
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.CLUSTER, own_namespace=False)
    args_model: ClassVar = InterPodAffinityArgs

    def __init__(self, args: InterPodAffinityArgs) -> None:
        self.args = args

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """SKIP if the pod has no required terms and no placed pod's anti-affinity matches it."""
        if pod.template.terms_error:
            return fwk.unresolvable(f"parsing pod: {pod.template.terms_error}", no_node_helps=True)
        own = _own_terms(pod.template, snapshot.objects)
        if own.affinity is not None or own.anti_affinity or _keeping_away(pod, snapshot):
            return fwk.SUCCESS
        return fwk.SKIP

    def result_version(self, template: fwk.PodTemplate, snapshot: fwk.Snapshot) -> fwk.ResultVersion | None:
        """Domains near matching pods; without them for keys whose domains are single nodes."""
        of_placed = snapshot.index(TermCounts)
        if not template.terms and not of_placed.are_any and not template.terms_error:
            return NOTHING
        own = _own_terms(template, snapshot.objects)
        concerning = of_placed.concerning(template, _namespace_labels(template, snapshot.objects))
        if own is NO_TERMS and concerning is NOTHING_CONCERNS and not template.terms_error:
            return NOTHING
        said: list[Hashable] = []
        by_row = scores = False
        for term, counts in concerning.others:
            if counts.total and not scores and self._weight_of_existing(term):
                scores = counts.sums(term.topology_key, snapshot).occupied > 0
        index = snapshot.index(PodCounts)
        terms = concerning.keeping_away
        if own.anti_affinity:
            terms += tuple([(key, index.of(pods)) for key, pods in own.anti_affinity])
        domains = _domains_with(terms, snapshot)
        if own.affinity is not None:
            all_near = index.of(own.affinity)
            near = [(key, all_near.sums(key, snapshot)) for key in own.affinity_keys]
            said.append(any(each.occupied for _, each in near))
            domains += near
        for key, each in domains:
            if len(each.sums) <= FEW_DOMAINS:
                said.append((key, (each.sums > 0).tobytes()))
            elif each.is_single:
                said.append((key, each.occupied > 0))
                by_row = True
            else:
                return None
        scores = scores or any(
            counts.total and counts.sums(key, snapshot).occupied
            for key, counts in ((key, index.of(pods)) for key, pods, _ in own.preferred)
        )
        return fwk.ResultVersion((scores, *said), by_row)

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """The index of the refusal plus 1, shape (N,)."""
        own = _own_terms(pod.template, snapshot.objects)
        codes = fwk.all_feasible(snapshot)
        for key, domains in _keeping_away(pod, snapshot):
            codes[(domains.sums > 0)[snapshot.label_ids(key)]] = 3
        for key, domains in _far(own, snapshot):
            codes[(domains.sums > 0)[snapshot.label_ids(key)]] = 2
        if own.affinity is not None:
            counts_of = snapshot.index(PodCounts).of(own.affinity)
            by_key = {key: counts_of.sums(key, snapshot) for key in own.affinity_keys}
            alone = own.is_first and not any(domains.occupied for domains in by_key.values())
            for key, domains in by_key.items():
                if len(domains.sums) == 1:
                    codes[:] = 1  # no node has the key; thousands may follow
                    break
                ids = snapshot.label_ids(key)
                codes[(ids == fwk.ABSENT) if alone else (domains.sums <= 0)[ids]] = 1
        return codes

    def rivalries(self, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> tuple[Rivalry, ...]:
        """The required anti-affinity terms of and against such pods that some other pod may violate."""
        found = []
        index = snapshot.index(PodCounts)
        for key, pods in _own_terms(pod.template, snapshot.objects).anti_affinity:
            domains = index.of(pods).sums(key, snapshot)
            if domains.occupied:
                itself = int(pods.matches(pod.namespace, pod.labels))
                found.append(Rivalry(key, domains.sums, itself, is_own=True))
        labels = _namespace_labels(pod, snapshot.objects)
        for term, counts in snapshot.index(TermCounts).concerning(pod.template, labels).anti_affinity:
            if counts.total:
                domains = counts.sums(term.topology_key, snapshot)
                if domains.occupied:
                    itself = pod.template.terms.count(term)
                    found.append(Rivalry(term.topology_key, domains.sums, itself, is_own=False))
        return tuple(found)

    def eased(self, template: fwk.PodTemplate) -> bool:
        """True unless the pod has required affinity: then only pods that keep it away matter."""
        return not template.terms_of(TermKind.REQUIRED_AFFINITY)

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The violated rule, one of three."""
        return REFUSALS[code - 1]

    def pre_score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Sum the points by domain; SKIP if no term of any pod matched."""
        by_key: dict[str, fwk.IntArray] = {}
        for key, counts, weight in self._scoring(pod, snapshot):
            _add_points(by_key, key, counts, weight, snapshot)
        if not by_key:
            return fwk.SKIP
        state.write(Points(by_key))
        return fwk.SUCCESS

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """The points of each node's domains, shape (F,)."""
        raw: fwk.IntArray | None = None
        for key, points in state.read(Points).by_key.items():
            here: fwk.IntArray = points[snapshot.label_ids(key)]
            raw = here if raw is None else raw + here
        assert raw is not None
        return raw

    def normalize(self, state: fwk.CycleState, pod: fwk.PodInfo, scores: fwk.IntArray) -> fwk.IntArray:
        """Scale the points: the lowest become 0, the highest 100."""
        return _normalized(scores, scores)

    def node_axes(self, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> Sequence[NodeAxis] | None:
        """The domain by each key of a few terms, and the pods that each counts where a node is a domain."""
        axes: dict[str | ClassCounts, NodeAxis] = {}
        scoring = self._scoring(pod, snapshot)
        if len(scoring) > FEW_AXES:
            return None
        for key, counts, _ in scoring:
            is_everywhere = is_on_all_nodes(key, snapshot)
            if not has_single_domains(key, snapshot):
                size = len(snapshot.label(key)) + (not is_everywhere)
                axes[key] = NodeAxis(snapshot.label_column(key), size)
            elif is_everywhere:
                axes[counts] = NodeAxis(counts.column, None)
            else:
                return None
        return tuple(axes.values())

    def class_points(
        self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot, feasible: fwk.IntArray
    ) -> fwk.IntArray:
        """The same points for each domain and number of counted pods."""
        raw = np.zeros(feasible.shape, dtype=np.int64)
        axes: dict[str | ClassCounts, int] = {}
        by_key: dict[str, fwk.IntArray] = {}
        for key, counts, weight in self._scoring(pod, snapshot):
            is_single = has_single_domains(key, snapshot)
            axis = axes.setdefault(counts if is_single else key, len(axes))
            if is_single:
                raw += _along(axis, np.arange(feasible.shape[axis]) * weight, raw)
            else:
                _add_points(by_key, key, counts, weight, snapshot)
        for key, points in by_key.items():
            raw += _along(axes[key], points, raw)
        return _normalized(raw, raw[feasible > 0])

    def _scoring(self, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> list[tuple[str, ClassCounts, int]]:
        """The terms that give points: topology key, counted pods, and weight of each pod."""
        preferred = _own_terms(pod.template, snapshot.objects).preferred
        if self.args.ignore_preferred_terms_of_existing_pods and not preferred:
            return []
        own = [(key, snapshot.index(PodCounts).of(pods), weight) for key, pods, weight in preferred]
        labels = _namespace_labels(pod, snapshot.objects)
        others = snapshot.index(TermCounts).concerning(pod.template, labels).others
        return own + [
            (term.topology_key, counts, weight)
            for term, counts in others
            if (weight := self._weight_of_existing(term))
        ]

    def _weight_of_existing(self, term: PodTerm) -> int:
        """The points that a placed pod's term adds to its domain if it matches the pod."""
        match term.kind:
            case TermKind.REQUIRED_AFFINITY:
                return self.args.hard_pod_affinity_weight
            case TermKind.PREFERRED_AFFINITY:
                return term.weight
            case TermKind.PREFERRED_ANTI_AFFINITY:
                return -term.weight
            case TermKind.REQUIRED_ANTI_AFFINITY:
                return 0

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Creations, deletions and relabellings of pods; nodes that change domains; labels of namespaces."""
        label = fwk.ActionType.UPDATE_POD_LABEL
        node = fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_LABEL
        assigned = fwk.EventResource.ASSIGNED_POD
        return (
            fwk.EventWithHint(assigned, fwk.ActionType.ADD, _after_added, by_template=True),
            fwk.EventWithHint(assigned, fwk.ActionType.DELETE, _after_deleted, by_template=True),
            fwk.EventWithHint(assigned, label, _after_relabelled, by_template=True),
            fwk.EventWithHint(fwk.EventResource.UNSCHEDULABLE_POD, label),
            fwk.EventWithHint(fwk.EventResource.NODE, node, _after_node, by_template=True),
            fwk.EventWithHint(
                "Namespace", fwk.ActionType.ADD | fwk.ActionType.UPDATE, _after_namespace, by_template=True
            ),
        )


def _after_added(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The pod of the event matches all required affinity terms of the waiting pod."""
    return fwk.QueueingHint.of(
        _matches(pod.template.terms_of(TermKind.REQUIRED_AFFINITY), change.new, change)
    )


def _after_deleted(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """An anti-affinity term of either pod matched the other, or the pod may now be the first of its group."""
    gone: fwk.PodInfo = change.old
    kind = TermKind.REQUIRED_ANTI_AFFINITY
    return fwk.QueueingHint.of(
        bool(_matched(pod.template.terms_of(kind), gone, change))
        or bool(_matched(gone.template.terms_of(kind), pod, change))
        or _may_be_first(pod, gone, change)
    )


def _after_relabelled(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """Its labels match all required affinity terms now, or no longer; or an anti-affinity term no longer."""
    old, new = change.old, change.new
    near = pod.template.terms_of(TermKind.REQUIRED_AFFINITY)
    if _matches(near, new, change):
        return fwk.QueueingHint.of(not _matches(near, old, change))
    far = pod.template.terms_of(TermKind.REQUIRED_ANTI_AFFINITY)
    return fwk.QueueingHint.of(
        not _matched(far, old, change) <= _matched(far, new, change) or _may_be_first(pod, old, change)
    )


def _after_node(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The node is new or joined a domain that the pod has to be near to, or it left another domain.

    Anti-affinity terms of placed pods may have any key, so a new node helps, and so does one that left any
    domain.
    """
    wanted = {term.topology_key for term in pod.template.terms_of(TermKind.REQUIRED_AFFINITY)}
    far = pod.template.terms_of(TermKind.REQUIRED_ANTI_AFFINITY)
    new = change.new.labels
    if change.old is None:
        return fwk.QueueingHint.of(bool(far) or not wanted or any(key in new for key in wanted))
    old = change.old.labels
    return fwk.QueueingHint.of(
        any(key in new and old.get(key) != new[key] for key in wanted)
        or any(value != new.get(key) for key, value in old.items() if key not in wanted)
    )


def _after_namespace(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """A required term selects the namespace now, or no longer; or the labels of the pod's own one changed."""
    old, new = change.old, change.new
    selectors = [
        term.namespace_selector
        for kind in (TermKind.REQUIRED_AFFINITY, TermKind.REQUIRED_ANTI_AFFINITY)
        for term in pod.template.terms_of(kind)
        if term.namespace_selector is not None
    ]
    return fwk.QueueingHint.of(
        any(
            each.matches(new.labels) is not (old is not None and each.matches(old.labels))
            for each in selectors
        )
        or (new.name == pod.namespace and (old is None or old.labels != new.labels))
    )


def _matches(terms: Collection[PodTerm], pod: fwk.PodInfo, change: fwk.ClusterEvent) -> bool:
    """Whether the pod matches all of the terms; False without terms."""
    return bool(terms) and len(_matched(terms, pod, change)) == len(terms)


def _matched(terms: Collection[PodTerm], pod: fwk.PodInfo, change: fwk.ClusterEvent) -> set[int]:
    """The positions of the terms that match the pod."""
    labels = _namespace_labels(pod, change.objects)
    return {
        position for position, term in enumerate(terms) if term.matches(pod.namespace, pod.labels, labels)
    }


def _may_be_first(pod: fwk.PodInfo, other: fwk.PodInfo, change: fwk.ClusterEvent) -> bool:
    """Whether the other pod, which leaves, matched all affinity terms of a pod that matches its own.

    A pod that matches its own terms needs no other one where no pod matches them.
    """
    near = pod.template.terms_of(TermKind.REQUIRED_AFFINITY)
    return _matches(near, other, change) and _matches(near, pod, change)


def _normalized(raw: fwk.IntArray, judged: fwk.IntArray) -> fwk.IntArray:
    """The points of raw scores, where ``judged`` are those of all nodes that count."""
    lowest, highest = int(judged.min()), int(judged.max())
    if lowest == highest:
        return np.zeros_like(raw)
    return (fwk.MAX_SCORE * ((raw - lowest) / (highest - lowest))).astype(np.int64)


def _along(axis: int, values: fwk.IntArray, grid: fwk.IntArray) -> fwk.IntArray:
    """Values along one axis of a grid; those beyond its size are of no node."""
    return values[: grid.shape[axis]].reshape(-1, *[1] * (grid.ndim - 1 - axis))


def _add_points(
    by_key: dict[str, fwk.IntArray], key: str, counts: ClassCounts, weight: int, snapshot: fwk.Snapshot
) -> None:
    if not counts.total:
        return
    few = counts.few
    if few is None or len(few) > FEW_ROWS:
        domains = counts.sums(key, snapshot)
        if domains.occupied:
            points = domains.sums * weight
            by_key[key] = by_key[key] + points if key in by_key else points
        return
    column = snapshot.label_column(key)
    for row, count in few.items():
        domain = column[row]
        if domain != fwk.ABSENT:
            if key not in by_key:
                by_key[key] = np.zeros(len(snapshot.label(key)) + 1, dtype=np.int64)
            by_key[key][domain] += count * weight


class _Marked(NamedTuple):
    """Domains with pods of some of many terms; the attributes are those of DomainSums.

    Attributes:
        sums: Shape (D + 1,): above 0 where there are some.
        occupied: Number of such domains.
        is_single: Whether no two nodes are in one domain.
    """

    sums: fwk.IntArray
    occupied: int
    is_single: bool


def _keeping_away(pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> "list[tuple[str, DomainSums | _Marked]]":
    """Domains of placed pods whose required anti-affinity matches this pod."""
    labels = _namespace_labels(pod, snapshot.objects)
    return _domains_with(snapshot.index(TermCounts).concerning(pod.template, labels).keeping_away, snapshot)


def _far(own: OwnTerms, snapshot: fwk.Snapshot) -> "list[tuple[str, DomainSums | _Marked]]":
    """Domains of placed pods that the pod's own required anti-affinity matches."""
    if not own.anti_affinity:
        return []
    index = snapshot.index(PodCounts)
    return _domains_with([(key, index.of(pods)) for key, pods in own.anti_affinity], snapshot)


def _domains_with(
    terms: Sequence[tuple[str, ClassCounts]], snapshot: fwk.Snapshot
) -> "list[tuple[str, DomainSums | _Marked]]":
    """Topology keys and domains with pods of a term, if there are any; of many terms, one for each key.

    A pod may have thousands of terms, each of which matches few pods: these are looked up by row.
    """
    if len(terms) <= FEW_TERMS:
        occupied: list[tuple[str, DomainSums | _Marked]] = []
        for key, counts in terms:
            if counts.total:
                domains = counts.sums(key, snapshot)
                if domains.occupied:
                    occupied.append((key, domains))
        return occupied
    found: dict[str, fwk.IntArray] = {}
    for key, counts in terms:
        if not counts.total:
            continue
        if key not in found:
            found[key] = np.zeros(len(snapshot.label(key)) + 1, dtype=np.int64)
        few = counts.few
        if few is None or len(few) > FEW_ROWS:
            found[key] += counts.sums(key, snapshot).sums
        else:
            found[key][snapshot.label_column(key)[list(few)]] += 1
    for each in found.values():
        each[-1] = 0
    return [
        (key, _Marked(each, some, has_single_domains(key, snapshot)))
        for key, each in found.items()
        if (some := int(np.count_nonzero(each)))
    ]


def _namespace_labels(pod: fwk.PodInfo | fwk.PodTemplate, objects: fwk.ClusterObjects) -> dict[str, str]:
    namespace = objects.namespaces.get(pod.namespace)
    return {} if namespace is None else namespace.labels


def _own_terms(template: fwk.PodTemplate, objects: fwk.ClusterObjects) -> OwnTerms:
    if not template.terms:
        return NO_TERMS
    own = template.memo(InterPodAffinity.name, lambda: _lasting(template, objects))
    if own is not None:
        return own
    return objects.derived_of(template, InterPodAffinity, lambda: _compiled(template, objects))


def _lasting(template: fwk.PodTemplate, objects: fwk.ClusterObjects) -> OwnTerms | None:
    """The terms of a template; None if they select namespaces, and so change with them."""
    if any(term.namespace_selector is not None for term in template.terms):
        return None
    return _compiled(template, objects)


def _compiled(template: fwk.PodTemplate, objects: fwk.ClusterObjects) -> OwnTerms:
    def meant(*terms: PodTerm) -> PodClass:
        wanted = tuple((_namespaces(term, objects), term.selector) for term in terms)
        return PodClass(wanted, passing=template.is_heavy)

    required = template.terms_of(TermKind.REQUIRED_AFFINITY)
    affinity = meant(*required) if required else None
    return OwnTerms(
        affinity=affinity,
        affinity_keys=tuple(dict.fromkeys(term.topology_key for term in required)),
        anti_affinity=tuple(
            (term.topology_key, meant(term)) for term in template.terms_of(TermKind.REQUIRED_ANTI_AFFINITY)
        ),
        preferred=tuple(
            (term.topology_key, meant(term), sign * term.weight)
            for kind, sign in ((TermKind.PREFERRED_AFFINITY, 1), (TermKind.PREFERRED_ANTI_AFFINITY, -1))
            for term in template.terms_of(kind)
        ),
        is_first=affinity is not None and affinity.matches(template.namespace, template.labels),
    )


def _namespaces(term: PodTerm, objects: fwk.ClusterObjects) -> frozenset[str] | None:
    """The namespaces that a term of the pod selects, None for all of them."""
    selector = term.namespace_selector
    if selector is None:
        return term.namespaces
    if selector.is_empty:
        return None
    return term.namespaces | {
        namespace.name for namespace in objects.namespaces.values() if selector.matches(namespace.labels)
    }
