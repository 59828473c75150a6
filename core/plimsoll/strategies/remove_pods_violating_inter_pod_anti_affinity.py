"""RemovePodsViolatingInterPodAntiAffinity: evict pods whose own required anti-affinity is violated.

Formula::

    candidate = the scheduler's InterPodAffinity, with the pod taken off, refuses the pod's node because of a
                required anti-affinity term of the pod, or of another one that matches it

Units: none.
Edges: pods that declare a violated rule come before those that the rule matches. All placed pods count as
others, terminating ones and those that the arguments exclude too. An accepted candidate no longer conflicts.
Source: descheduler v0.36, ``removepodsviolatinginterpodantiaffinity``.
Differs: among equal pods the one that costs least to move comes first (deletion cost, readiness, restarts,
age). Under planner Upstream terms are read as descheduler reads them: only pods that declare a rule are
evicted, pods of equal names (in two namespaces) never conflict, the topology key need not exist on a shared
node, namespace selectors are not read, and pods that the arguments exclude do not count.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from msgspec import Struct

from plimsoll.framework import Node, PodInfo, PodTemplate
from plimsoll.framework.columns import PodTerm, TermKind
from plimsoll.framework.descheduling import Strategy, StrategyContext, StrategyKind, Verdict
from plimsoll.framework.descheduling.complaints import (
    Complaint,
    Complaints,
    Gravity,
    Vicinity,
    nodes_near,
    pods_near,
)
from plimsoll.framework.descheduling.pod_indexes import NeighbourRule
from plimsoll.framework.descheduling.proposals import Candidate, Candidates
from plimsoll.framework.selectors import SelectorLookup
from plimsoll.toolkit.descheduling.eviction_order import least_important_first
from plimsoll.toolkit.descheduling.filter_answers import answer_of
from plimsoll.toolkit.descheduling.node_fit import AntiAffinityTerm, anti_affinity_terms
from plimsoll.toolkit.descheduling.pod_scope import ScopedArgs
from plimsoll.toolkit.scheduling.rivalries import KeepsApart, Rivalry, rivalries_of


class Rivals:
    """The pods that one term matches, by node and by domain."""

    def __init__(self, term: AntiAffinityTerm) -> None:
        self._term = term
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._by_domain: dict[str, dict[str, PodInfo]] = {}

    def add(self, pod: PodInfo, node: Node) -> None:
        """Add a pod of that node, which the term matches."""
        self._by_node.setdefault(node.name, {})[pod.key] = pod
        domain = node.labels.get(self._term.topology_key)
        if domain is not None:
            self._by_domain.setdefault(domain, {})[pod.key] = pod

    def remove(self, pod: PodInfo, node: Node) -> None:
        """Remove a pod of that node."""
        self._by_node.get(node.name, {}).pop(pod.key, None)
        self._by_domain.get(node.labels.get(self._term.topology_key, ""), {}).pop(pod.key, None)

    def near(self, node: Node) -> Iterator[PodInfo]:
        """The pods on the node, then those in its domain."""
        yield from self._by_node.get(node.name, {}).values()
        domain = node.labels.get(self._term.topology_key)
        if domain is not None:
            yield from self._by_domain.get(domain, {}).values()


class RemovePodsViolatingInterPodAntiAffinityArgs(ScopedArgs):
    """Arguments, as in descheduler v1alpha2; pods that they exclude are not seen by others' terms either."""


class RemovePodsViolatingInterPodAntiAffinity(Strategy):
    """Move pods away from pods that their anti-affinity matches."""

    name: ClassVar = "RemovePodsViolatingInterPodAntiAffinity"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = RemovePodsViolatingInterPodAntiAffinityArgs

    def __init__(self, args: RemovePodsViolatingInterPodAntiAffinityArgs) -> None:
        self.args = args

    def candidates(self, context: StrategyContext) -> Candidates:
        """Pods by node, the least important first."""
        if context.is_exact:
            yield from self._as_upstream(context)
            return
        closed: set[str] = set()
        for is_own in (True, False):
            found = self._refused(context, is_own=is_own)
            for name in sorted(found.keys() - closed):
                for pod in least_important_first(found[name], context):
                    reason = _reason(pod, name, context, is_own=is_own)
                    if not reason or not context.may_go(pod, reason):
                        continue
                    if (yield Candidate(pod, name, reason)) is Verdict.NODE_CLOSED:
                        closed.add(name)
                        break

    def _refused(self, context: StrategyContext, *, is_own: bool) -> dict[str, list[PodInfo]]:
        """The pods in scope whose node the scheduler would refuse, by node."""
        found: dict[str, list[PodInfo]] = {}
        for _, pods in context.templates_of(None):
            sample = next(iter(pods.values()))
            if not self.args.covers(sample):
                continue
            rivalries = [each for each in _rivalries(sample, context) if each.is_own is is_own]
            for pod in _refused_pods(pods, rivalries, context):
                name = context.node_of(pod)
                if name in context.considered and not pod.pod.is_terminal and pod.stands_in_for is None:
                    found.setdefault(name, []).append(pod)
        return found

    def _as_upstream(self, context: StrategyContext) -> Candidates:
        """Pods by node, as descheduler reads terms."""
        broken = _broken_terms(self.args, context)
        if not broken:
            return
        rivals = _rivals_of(broken, self.args, context)
        scope = {
            name: [pod for pod in context.pods(name) if _own_terms(pod) and self.args.covers(pod)]
            for name in {context.node_of(pod) for pods in broken.values() for pod in pods}
        }
        for name in sorted(scope):
            node, pods = context.node(name), scope[name]
            for pod in least_important_first(pods, context):
                rival = _rival(pod, node, rivals)
                if rival is None:
                    continue
                reason = f"the pod's required anti-affinity forbids it to be near pod {rival.key}"
                if not context.may_go(pod, reason):
                    continue
                verdict = yield Candidate(pod, name, reason)
                if verdict is Verdict.ACCEPTED:
                    for each in rivals.values():
                        each.remove(pod, node)
                if verdict is Verdict.NODE_CLOSED:
                    break

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Pods near a pod that their own required anti-affinity matches, 1 each."""
        concerned = list(pods_near(context, near))
        if near is not None:
            # Terms of pods that stay may match new pods, and no longer match those that left.
            concerned += self._objecting(near, context)
        own: dict[PodTemplate, list[Rivalry]] = {}
        found: dict[Complaint, float] = {}
        for pod, _ in concerned:
            if not self.args.covers(pod):
                continue
            if pod.template not in own:
                own[pod.template] = [each for each in _rivalries(pod, context) if each.is_own]
            if _refusing(pod, own[pod.template], context):
                sentence = f"pod {pod.key} is near a pod that its required anti-affinity forbids"
                found[Complaint(sentence, Gravity.RULE)] = 1.0
        return found

    def _objecting(self, near: Vicinity, context: StrategyContext) -> Iterator[tuple[PodInfo, str]]:
        """Pods with a term that matches a moved pod, on the nodes of the vicinity or in their domains."""
        terms = context.kept.get(self.name)
        if terms is None:
            terms = context.kept[self.name] = _declared_terms(context)
        nodes = nodes_near(context, near)
        met = dict.fromkeys(
            term
            for pod in near.pods
            for labels in [_namespace_labels(pod, context)]
            for term in terms.lookup.candidates(pod.labels)
            if term.matches(pod.namespace, pod.labels, labels)
        )
        for term in met:
            domains = {context.node(name).labels.get(term.topology_key) for name in nodes} - {None}
            for namespace, template in terms.declaring[term]:
                for pod in context.pods_of(namespace, template).values():
                    name = context.node_of(pod)
                    if name in context.considered and (
                        context.node(name).labels.get(term.topology_key) in domains
                    ):
                        yield pod, name


class _Terms(Struct, frozen=True):
    """Required anti-affinity terms of placed pods, with the templates that declare them.

    Moves add no new templates, so this is valid for a run; the pods of a template are looked up live.
    """

    lookup: SelectorLookup[PodTerm]
    declaring: dict[PodTerm, list[tuple[str, PodTemplate]]]


def _declared_terms(context: StrategyContext) -> _Terms:
    terms = _Terms(SelectorLookup(), {})
    for namespace in context.namespaces():
        for template, _ in context.templates_with(namespace, NeighbourRule.ANTI_AFFINITY):
            for term in template.terms_of(TermKind.REQUIRED_ANTI_AFFINITY):
                if term not in terms.declaring:
                    terms.declaring[term] = []
                    terms.lookup.add(term.selector, term)
                terms.declaring[term].append((namespace, template))
    return terms


def _namespace_labels(pod: PodInfo, context: StrategyContext) -> Mapping[str, str]:
    namespace = context.objects.namespaces.get(pod.namespace)
    return {} if namespace is None else namespace.labels


def _rivalries(pod: PodInfo, context: StrategyContext) -> tuple[Rivalry, ...]:
    """What the plugin of the pod's scheduler says; nothing if no profile with that plugin places the pod."""
    snapshot = context.snapshot

    def question(plugin: KeepsApart) -> tuple[Rivalry, ...]:
        return rivalries_of(plugin, pod, snapshot)

    return answer_of(pod, "InterPodAffinity", _keeps_apart, question, context) or ()


def _keeps_apart(plugin: object) -> KeepsApart | None:
    return plugin if isinstance(plugin, KeepsApart) else None


def _refused_pods(
    pods: Mapping[str, PodInfo], rivalries: Iterable[Rivalry], context: StrategyContext
) -> list[PodInfo]:
    """The pods of a template whose node one of these refuses."""
    placed = [(pod, row) for uid, pod in pods.items() if (row := context.cluster.row_of_pod(uid)) is not None]
    rows, snapshot = [row for _, row in placed], context.snapshot
    refused = {at for each in rivalries for at in each.refused(rows, snapshot).nonzero()[0].tolist()}
    return [placed[at][0] for at in sorted(refused)]


def _refusing(pod: PodInfo, rivalries: Iterable[Rivalry], context: StrategyContext) -> list[Rivalry]:
    row = context.cluster.row_of_pod(pod.uid)
    if row is None:
        return []
    snapshot = context.snapshot
    return [each for each in rivalries if each.refused((row,), snapshot)[0]]


def _reason(pod: PodInfo, node: str, context: StrategyContext, *, is_own: bool) -> str:
    """Why the pod has to leave, as the cluster is now; "" if it need not any more."""
    refusing = [each for each in _refusing(pod, _rivalries(pod, context), context) if each.is_own is is_own]
    if not refusing:
        return ""
    key = refusing[0].topology_key
    where = f"{key}={context.node(node).labels.get(key, '')}"
    if is_own:
        return f"the pod's required anti-affinity forbids it to be near another pod in {where}"
    return f"another pod's required anti-affinity forbids it to be in {where}"


def _declared(
    args: ScopedArgs, context: StrategyContext
) -> Iterator[tuple[str, PodTemplate, Mapping[str, PodInfo], tuple[AntiAffinityTerm, ...]]]:
    """The templates in scope with terms of their own, with their namespace and pods."""
    for namespace in context.namespaces():
        for template, pods in context.templates_with(namespace, NeighbourRule.ANTI_AFFINITY):
            terms = anti_affinity_terms(pod := next(iter(pods.values())))
            if terms and args.covers(pod):
                yield namespace, template, pods, terms


def _own_terms(pod: PodInfo) -> tuple[AntiAffinityTerm, ...]:
    return anti_affinity_terms(pod) if pod.template.sample.spec.affinity is not None else ()


def _objects(
    term: AntiAffinityTerm, args: ScopedArgs, context: StrategyContext
) -> Iterator[tuple[str, PodTemplate, Mapping[str, PodInfo]]]:
    """The templates in scope that a term matches, with their namespace and pods."""
    for namespace in sorted(term.namespaces):
        for template, pods in context.templates_matching(namespace, term.selector):
            if args.covers(next(iter(pods.values()))):
                yield namespace, template, pods


def _broken_terms(args: ScopedArgs, context: StrategyContext) -> dict[AntiAffinityTerm, list[PodInfo]]:
    """The terms that the place of some pod violates, with these pods.

    Only these terms are examined in detail: pods that leave violate no term.
    """
    declared: dict[AntiAffinityTerm, list[Mapping[str, PodInfo]]] = {}
    for _, _, pods, terms in _declared(args, context):
        for term in terms:
            declared.setdefault(term, []).append(pods)
    broken: dict[AntiAffinityTerm, list[PodInfo]] = {}
    domains = _Domains(context)
    for term, declaring in declared.items():
        about = [pods for _, _, pods in _objects(term, args, context)]
        if all(any(pods is each for each in about) for pods in declaring) and domains.are_apart(term, about):
            continue
        places = _Places(term, context)
        for pods in about:
            places.add(pods.values())
        found = [pod for pods in declaring for pod in pods.values() if places.have_other_than(pod)]
        if found:
            broken[term] = found
    return broken


class _Domains:
    """The domain of each row by topology key."""

    def __init__(self, context: StrategyContext) -> None:
        self._cluster = context.cluster
        self._known: dict[str, list[str | None]] = {}

    def are_apart(self, term: AntiAffinityTerm, groups: Iterable[Mapping[str, PodInfo]]) -> bool:
        """Whether no two of the pods share a node or a domain of the term; then none violates it."""
        key, row_of = term.topology_key, self._cluster.row_of_pod
        if key not in self._known:
            self._known[key] = [node.labels.get(key) for node in self._cluster.nodes]
        domain = self._known[key]
        rows = [row for pods in groups for row in map(row_of, pods) if row is not None]
        entered = [name for name in map(domain.__getitem__, rows) if name is not None]
        return len(set(rows)) == len(rows) and len(set(entered)) == len(entered)


class _Places:
    """The names of the pods that a term matches, by node and by domain."""

    def __init__(self, term: AntiAffinityTerm, context: StrategyContext) -> None:
        self._key = term.topology_key
        self._context = context
        self._names: dict[tuple[bool, str], set[str]] = {}

    def add(self, pods: Iterable[PodInfo]) -> None:
        """Add pods that the term matches."""
        for pod in pods:
            for place in self._places_of(pod):
                self._names.setdefault(place, set()).add(pod.name)

    def have_other_than(self, pod: PodInfo) -> bool:
        """Whether a pod of another name is on this pod's node or in its domain."""
        return any(
            len(names) > 1 or pod.name not in names
            for place in self._places_of(pod)
            if (names := self._names.get(place))
        )

    def _places_of(self, pod: PodInfo) -> Iterable[tuple[bool, str]]:
        """The pod's node and its domain; none for pods that do not count."""
        name = self._context.node_of(pod)
        if name not in self._context.considered or pod.pod.is_terminal:
            return ()
        domain = self._context.node(name).labels.get(self._key)
        return ((False, name),) if domain is None else ((False, name), (True, domain))


def _rivals_of(
    broken: Iterable[AntiAffinityTerm], args: ScopedArgs, context: StrategyContext
) -> dict[AntiAffinityTerm, Rivals]:
    """The pods that each term matches, in the order of siblings."""
    about: dict[PodTemplate, list[AntiAffinityTerm]] = {}
    for term in broken:
        for _, template, _ in _objects(term, args, context):
            about.setdefault(template, []).append(term)
    rivals = {term: Rivals(term) for term in broken}
    for namespace in sorted({namespace for term in broken for namespace in term.namespaces}):
        for template, pods in context.siblings(namespace, among=about):
            for term in about[template]:
                for pod in pods:
                    rivals[term].add(pod, context.node(context.node_of(pod)))
    return rivals


def _rival(pod: PodInfo, node: Node, rivals: dict[AntiAffinityTerm, Rivals]) -> PodInfo | None:
    """A pod that violates the pod's anti-affinity, if any; pods of equal names never count."""
    for term in anti_affinity_terms(pod):
        found = rivals.get(term)
        for other in found.near(node) if found is not None else ():
            if other.name != pod.name:
                return other
    return None
