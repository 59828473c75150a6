"""RemovePodsViolatingInterPodAntiAffinity: pods whose own required anti-affinity is broken.

Formula::

    candidate = one of its required anti-affinity terms matches another pod on the same node,
                or on a node with the same value of the term's topology key

Units: none.
Edges: the pod that declares the rule goes, never the one it objects to; pods of equal names (in two
namespaces) never conflict; on the same node the topology key need not exist; namespace selectors and
matchLabelKeys are not read; terminating pods still conflict; an accepted candidate conflicts no longer.
Source: descheduler v0.36, ``removepodsviolatinginterpodantiaffinity``.
Differs: of equal pods the Proven planner proposes the one first that costs least to move (deletion cost, not
serving, restarts, age).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from plimsoll.framework import Node, PodInfo, PodTemplate
from plimsoll.framework.descheduling import Strategy, StrategyContext, StrategyKind, Verdict
from plimsoll.framework.descheduling.complaints import Complaints, Vicinity, nodes_near, pods_near
from plimsoll.framework.descheduling.proposals import Candidate, Candidates
from plimsoll.toolkit.descheduling.eviction_order import least_important_first
from plimsoll.toolkit.descheduling.node_fit import AntiAffinityTerm, anti_affinity_terms
from plimsoll.toolkit.descheduling.pod_scope import ScopedArgs


class Rivals:
    """The pods that one term objects to, by node and by domain."""

    def __init__(self, term: AntiAffinityTerm) -> None:
        self._term = term
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._by_domain: dict[str, dict[str, PodInfo]] = {}

    def add(self, pod: PodInfo, node: Node) -> None:
        """A pod of that node, which the term matches."""
        self._by_node.setdefault(node.name, {})[pod.key] = pod
        domain = node.labels.get(self._term.topology_key)
        if domain is not None:
            self._by_domain.setdefault(domain, {})[pod.key] = pod

    def remove(self, pod: PodInfo, node: Node) -> None:
        """A pod of that node goes."""
        self._by_node.get(node.name, {}).pop(pod.key, None)
        self._by_domain.get(node.labels.get(self._term.topology_key, ""), {}).pop(pod.key, None)

    def near(self, node: Node) -> Iterator[PodInfo]:
        """Those on the node, then those in its domain."""
        yield from self._by_node.get(node.name, {}).values()
        domain = node.labels.get(self._term.topology_key)
        if domain is not None:
            yield from self._by_domain.get(domain, {}).values()


class RemovePodsViolatingInterPodAntiAffinityArgs(ScopedArgs):
    """Arguments, as in descheduler v1alpha2; they also hide the pods that others conflict with."""


class RemovePodsViolatingInterPodAntiAffinity(Strategy):
    """Move pods away from pods that they must not be near to."""

    name: ClassVar = "RemovePodsViolatingInterPodAntiAffinity"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = RemovePodsViolatingInterPodAntiAffinityArgs

    def __init__(self, args: RemovePodsViolatingInterPodAntiAffinityArgs) -> None:
        self.args = args

    def candidates(self, context: StrategyContext) -> Candidates:
        """Node by node, the pods that matter least first."""
        about = _terms_about(self.args, context)
        if not about:
            return
        groups = list(context.siblings(among=about))
        rivals = _rivals_of(groups, about, context)
        scope: dict[str, list[PodInfo]] = {name: [] for name in context.nodes}
        for _, pods in groups:
            if anti_affinity_terms(pods[0]):
                for pod in pods:
                    scope[context.node_of(pod)].append(pod)
        for name, pods in scope.items():
            node = context.node(name)
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
        """Pods near a pod that their own required anti-affinity forbids, 1 each."""
        census = context.kept.get(self.name)
        if census is None:
            census = context.kept[self.name] = _Census(context, self.args)
        concerned = list(pods_near(context, near))
        found = {
            _sentence(pod): 1.0
            for pod, name in concerned
            if self.args.covers(pod)
            and any(census.forbids(term, pod, name) for term in anti_affinity_terms(pod))
        }
        if near is None:
            return found
        # Pods that stay may object to those that come, and have reason no more to object to those that left.
        moving, nodes = {pod.uid for pod in near.pods}, nodes_near(context, near)
        for term, group in census.objecting(near.pods):
            domains = {context.node(name).labels.get(term.topology_key) for name in nodes} - {None}
            for pod in group.values():
                name = context.node_of(pod)
                if (
                    pod.uid not in moving
                    and name in context.considered
                    and (name in nodes or context.node(name).labels.get(term.topology_key) in domains)
                    and census.forbids(term, pod, name)
                ):
                    found[_sentence(pod)] = 1.0
        return found


class _Census:
    """Which templates have required anti-affinity, and which templates each term is about.

    Moves bring no new templates, so this holds for a run; the pods of a template are looked up live.
    """

    def __init__(self, context: StrategyContext, args: ScopedArgs) -> None:
        self._context = context
        self._args = args
        self._terms = [
            (term, namespace, template)
            for namespace in context.namespaces()
            for template, pods in context.templates_of(namespace)
            if template.sample.spec.affinity is not None and args.covers(next(iter(pods.values())))
            for term in anti_affinity_terms(next(iter(pods.values())))
        ]
        self._about: dict[AntiAffinityTerm, list[tuple[str, PodTemplate]]] = {}

    def objecting(self, pods: Iterable[PodInfo]) -> Iterator[tuple[AntiAffinityTerm, Mapping[str, PodInfo]]]:
        """The terms that are about one of the pods, each with the pods that declare it."""
        for term, namespace, template in self._terms:
            if any(term.matches(pod) for pod in pods):
                yield term, self._context.pods_of(namespace, template)

    def forbids(self, term: AntiAffinityTerm, pod: PodInfo, name: str) -> bool:
        """Whether a pod that the term is about is on the node or in its domain; namesakes never count."""
        context = self._context
        domain = context.node(name).labels.get(term.topology_key)
        for other in self._others(term):
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

    def _others(self, term: AntiAffinityTerm) -> Iterator[PodInfo]:
        about = self._about.get(term)
        if about is None:
            about = self._about[term] = [
                (namespace, template)
                for namespace in self._context.namespaces()
                if namespace in term.namespaces
                for template, pods in self._context.templates_of(namespace)
                if term.matches(pod := next(iter(pods.values()))) and self._args.covers(pod)
            ]
        for namespace, template in about:
            yield from self._context.pods_of(namespace, template).values()


def _sentence(pod: PodInfo) -> str:
    return f"pod {pod.key} is near a pod that its required anti-affinity forbids"


def _terms_about(
    args: ScopedArgs, context: StrategyContext
) -> dict[PodTemplate, tuple[AntiAffinityTerm, ...]]:
    """The terms about each template; templates with terms of their own are among them, and no others.

    Terms are looked up by a label that they ask for.
    """
    templates = [
        (template, pod)
        for template, pods in context.templates_of(None)
        if args.covers(pod := next(iter(pods.values())))
    ]
    found: dict[PodTemplate, tuple[AntiAffinityTerm, ...]] = {}
    terms: dict[AntiAffinityTerm, None] = {}
    for template, pod in templates:
        own = anti_affinity_terms(pod) if template.sample.spec.affinity is not None else ()
        if own:
            found[template] = ()
            terms.update(dict.fromkeys(own))
    by_label: dict[tuple[str, str] | None, list[AntiAffinityTerm]] = {}
    for term in terms:
        by_label.setdefault(_asked_label(term), []).append(term)
    for template, pod in templates:
        labels: list[tuple[str, str] | None] = [None, *template.labels.items()]
        matching = [term for label in labels for term in by_label.get(label, ()) if term.matches(pod)]
        if matching:
            found[template] = tuple(matching)
    return found


def _rivals_of(
    groups: list[tuple[PodTemplate, list[PodInfo]]],
    about: Mapping[PodTemplate, Iterable[AntiAffinityTerm]],
    context: StrategyContext,
) -> dict[AntiAffinityTerm, Rivals]:
    """The pods that each term objects to."""
    terms = {term for _, pods in groups for term in anti_affinity_terms(pods[0])}
    rivals = {term: Rivals(term) for term in terms}
    for template, pods in groups:
        for term in about[template]:
            if term in rivals:
                for pod in pods:
                    rivals[term].add(pod, context.node(context.node_of(pod)))
    return rivals


def _asked_label(term: AntiAffinityTerm) -> tuple[str, str] | None:
    """A label with the one value that every pod of the term must have, or None."""
    for requirement in term.selector.requirements:
        if requirement.operator == "In" and len(requirement.values) == 1:
            return requirement.key, next(iter(requirement.values))
    return None


def _rival(pod: PodInfo, node: Node, rivals: dict[AntiAffinityTerm, Rivals]) -> PodInfo | None:
    """Some pod that the pod must not be near to, and is; namesakes never count."""
    for term in anti_affinity_terms(pod):
        for other in rivals[term].near(node):
            if other.name != pod.name:
                return other
    return None
