"""Inter-pod (anti-)affinity terms, compiled once for all pods of a template.

A term matches a pod when the term names the pod's namespace, or the namespace's labels satisfy its namespace
selector, and the pod's labels satisfy its label selector. Source: kube-scheduler v1.36,
``framework/types.go`` (AffinityTerm).
"""

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from plimsoll.model.kinds.pod import Affinity, PodAffinityTerm
from plimsoll.model.selectors import Selector, compile_selector

NO_LABELS: Mapping[str, str] = {}


class TermKind(Enum):
    """The four lists of terms."""

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


class PodTerm(Struct, frozen=True):
    """One term; hashable, so that equal terms of many pods share one counter.

    Attributes:
        kind: The term's list.
        topology_key: The node label whose equal values form one domain.
        namespaces: Matching namespaces; the owner's own namespace if the term names none and has no namespace
            selector.
        namespace_selector: Selects namespaces by label; None selects none.
        selector: Selects pods by label.
        weight: 1..100 for preferred terms, 0 for required ones.
    """

    kind: TermKind
    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: Selector | None
    selector: Selector
    weight: int = 0

    def matches(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str] = NO_LABELS
    ) -> bool:
        """Whether the term matches a pod of that namespace (with that namespace's labels) and labels."""
        named = namespace in self.namespaces or (
            self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)
        )
        return named and self.selector.matches(labels)


def compile_terms(affinity: Affinity | None, namespace: str) -> tuple[PodTerm, ...]:
    """All terms of one pod, in the order of its spec.

    Raises:
        SelectorError: A selector cannot be parsed.
    """
    if affinity is None:
        return ()
    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    written: list[tuple[TermKind, PodAffinityTerm, int]] = []
    if near is not None:
        written += [(TermKind.REQUIRED_AFFINITY, term, 0) for term in near.required]
        written += [
            (TermKind.PREFERRED_AFFINITY, each.pod_affinity_term, each.weight) for each in near.preferred
        ]
    if far is not None:
        written += [(TermKind.REQUIRED_ANTI_AFFINITY, term, 0) for term in far.required]
        written += [
            (TermKind.PREFERRED_ANTI_AFFINITY, each.pod_affinity_term, each.weight) for each in far.preferred
        ]
    among = len(written)
    return tuple([_compile(kind, term, namespace, weight, among) for kind, term, weight in written])


def _compile(kind: TermKind, term: PodAffinityTerm, namespace: str, weight: int, among: int) -> PodTerm:
    names = frozenset(term.namespaces)
    if not names and term.namespace_selector is None:
        names = frozenset((namespace,))
    return PodTerm(
        kind=kind,
        topology_key=term.topology_key,
        namespaces=names,
        namespace_selector=None
        if term.namespace_selector is None
        else compile_selector(term.namespace_selector, among=among),
        selector=compile_selector(term.label_selector, among=among),
        weight=weight,
    )
