"""RemovePodsViolatingInterPodAntiAffinity: evict pods whose own required anti-affinity is violated.

Formula::

    candidate = one of its required anti-affinity terms matches another pod on the same node,
                or on a node with the same value of the term's topology key

Units: none.
Edges: the pod that declares the rule is evicted, never the pod that the rule matches. Pods of equal names (in
two namespaces) never conflict. On the same node the topology key need not exist. Namespace selectors and
matchLabelKeys are not read. Terminating pods still conflict; an accepted candidate no longer does.
Source: descheduler v0.36, ``removepodsviolatinginterpodantiaffinity``.
Differs: among equal pods the Proven planner first proposes the one that costs least to move (deletion cost,
readiness, restarts, age).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import ClassVar

from plimsoll.framework import Node, PodInfo, PodTemplate
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
from plimsoll.toolkit.descheduling.node_fit import AntiAffinityTerm, anti_affinity_terms
from plimsoll.toolkit.descheduling.pod_scope import ScopedArgs


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
        census = context.kept.get(self.name)
        if census is None:
            census = context.kept[self.name] = _Census(context, self.args)
        concerned = list(pods_near(context, near))
        found = {
            _complaint(pod): 1.0
            for pod, name in concerned
            if self.args.covers(pod)
            and any(census.forbids(term, pod, name, context) for term in anti_affinity_terms(pod))
        }
        if near is None:
            return found
        # Terms of pods that stay may match new pods, and no longer match those that left.
        moving, nodes = {pod.uid for pod in near.pods}, nodes_near(context, near)
        for term, group in census.objecting(near.pods, context):
            domains = {context.node(name).labels.get(term.topology_key) for name in nodes} - {None}
            for pod in group.values():
                name = context.node_of(pod)
                if (
                    pod.uid not in moving
                    and name in context.considered
                    and (name in nodes or context.node(name).labels.get(term.topology_key) in domains)
                    and census.forbids(term, pod, name, context)
                ):
                    found[_complaint(pod)] = 1.0
        return found


class _Census:
    """The templates with required anti-affinity, and the templates that each term matches.

    Moves add no new templates, so this is valid for a run; the pods of a template are looked up live. The
    context refers to it, but it does not refer to the context, so that both are freed when the run ends.
    """

    def __init__(self, context: StrategyContext, args: ScopedArgs) -> None:
        self._args = args
        self._terms = [
            (term, namespace, template)
            for namespace, template, _, terms in _declared(args, context)
            for term in terms
        ]
        self._positions: SelectorLookup[int] = SelectorLookup()
        for position, (term, _, _) in enumerate(self._terms):
            self._positions.add(term.selector, position)
        self._about: dict[AntiAffinityTerm, list[tuple[str, PodTemplate]]] = {}

    def objecting(
        self, pods: Collection[PodInfo], context: StrategyContext
    ) -> Iterator[tuple[AntiAffinityTerm, Mapping[str, PodInfo]]]:
        """The terms that match one of the pods, each with the pods that declare it."""
        for position in sorted({each for pod in pods for each in self._positions.candidates(pod.labels)}):
            term, namespace, template = self._terms[position]
            if any(term.matches(pod) for pod in pods):
                yield term, context.pods_of(namespace, template)

    def forbids(self, term: AntiAffinityTerm, pod: PodInfo, name: str, context: StrategyContext) -> bool:
        """Whether a pod that the term matches is on the node or in its domain; namesakes never count."""
        domain = context.node(name).labels.get(term.topology_key)
        for other in self._others(term, context):
            if other.name == pod.name:
                continue
            place = context.node_of(other)
            if place == name or (
                domain is not None
                and place in context.considered
                and context.node(place).labels.get(term.topology_key) == domain
            ):
                return True
        return False

    def _others(self, term: AntiAffinityTerm, context: StrategyContext) -> Iterator[PodInfo]:
        about = self._about.get(term)
        if about is None:
            about = self._about[term] = [
                (namespace, template) for namespace, template, _ in _objects(term, self._args, context)
            ]
        for namespace, template in about:
            yield from context.pods_of(namespace, template).values()


def _complaint(pod: PodInfo) -> Complaint:
    sentence = f"pod {pod.key} is near a pod that its required anti-affinity forbids"
    return Complaint(sentence, Gravity.RULE)


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
