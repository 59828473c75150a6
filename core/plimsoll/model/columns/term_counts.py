"""Counts the (anti-)affinity terms of placed pods by node and by domain, updated with each pod.

Every attempt needs the terms of other pods that match this pod, and their domains. Equal terms of many pods
share one counter; the terms that may match a pod's labels are found by label.

Axis letters: N nodes, D topology domains.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from plimsoll.model.columns.columns import PodIndex
from plimsoll.model.columns.pod_counts import ClassCounts, HasCapacity
from plimsoll.model.heavy_objects import fitting
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate
from plimsoll.model.kinds.pod_terms import PodTerm, TermKind
from plimsoll.model.read_only_dict import LargeDict
from plimsoll.model.selector_lookup import SelectorLookup

#: A term and its counts.
Counted = tuple[PodTerm, ClassCounts]


class Concerning(NamedTuple):
    """The terms of placed pods that match some pod, with their counts.

    Attributes:
        anti_affinity: The required anti-affinity terms.
        keeping_away: Topology key and counts of each of these.
        others: All other terms.
    """

    anti_affinity: tuple[Counted, ...]
    keeping_away: tuple[tuple[str, ClassCounts], ...]
    others: tuple[Counted, ...]


NOTHING_CONCERNS = Concerning((), (), ())

#: Approximate number of templates whose matches are cached.
REMEMBERED = 16_384

#: Number of terms without pods below which they are kept: pods with them may come again.
FEWEST_UNUSED = 256


class TermCounts(PodIndex):
    """Counts of placed pods by term; a pod index."""

    def __init__(self, cluster: HasCapacity) -> None:
        self.capacity = cluster.capacity
        self._counted: dict[PodTerm, ClassCounts] = {}
        self._generation = 0
        self._unused = 0  #: terms that had no pod any more when their last one left
        self._lookup: SelectorLookup[PodTerm] = SelectorLookup()
        # By signature: what holds a template holds all that its pods name.
        self._of_template: dict[bytes, tuple[ClassCounts, ...]] = {}
        self._concerning: dict[bytes, tuple[int, Mapping[str, str], Concerning]] = {}

    @property
    def are_any(self) -> bool:
        """Whether some placed pod has, or lately had, a term."""
        return bool(self._counted)

    def concerning(self, template: PodTemplate, namespace_labels: Mapping[str, str]) -> Concerning:
        """The terms of placed pods that match pods of this template, with their counts.

        Call it again after each change. A count may be 0: the last pod with the term has left.
        """
        known = self._concerning.get(template.signature)
        if known is not None and known[0] == self._generation and known[1] == namespace_labels:
            return known[2]
        found = _sorted(
            [
                (term, self._counted[term])
                for term in self._lookup.candidates(template.labels)
                if term.matches(template.namespace, template.labels, namespace_labels)
            ]
        )
        if not template.is_heavy and not isinstance(namespace_labels, LargeDict):
            if len(self._concerning) >= REMEMBERED:
                self._concerning.clear()
            self._concerning[template.signature] = (self._generation, namespace_labels, found)
        return found

    def add(self, pod: PodInfo, row: int) -> None:
        """Add a placed pod."""
        if pod.template.terms:
            for counts in self._counts_of(pod.template):
                counts.add(row, 1)

    def remove(self, pod: PodInfo, row: int) -> None:
        """Remove a pod."""
        if pod.template.terms:
            for counts in self._counts_of(pod.template):
                counts.add(row, -1)
                self._unused += not counts.total
            if pod.template.is_heavy:
                self._drop(pod.template.terms)
            elif self._unused > FEWEST_UNUSED and self._unused * 2 > len(self._counted):
                self._sweep()

    def move_row(self, source: int, target: int) -> None:
        """Move a node to another row."""
        for counts in self._counted.values():
            counts.move_row(source, target)

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self.capacity = capacity
        for counts in self._counted.values():
            counts.grow(capacity)

    def fork(self) -> "TermCounts":
        """An independent copy; arrays are shared until either side writes."""
        twin = TermCounts(self)
        twin._counted = {term: counts.fork() for term, counts in self._counted.items()}
        twin._refile()
        return twin

    def _counts_of(self, template: PodTemplate) -> tuple[ClassCounts, ...]:
        found = self._of_template.get(template.signature)
        if found is None:
            if template.is_heavy:
                return tuple(self._count(template.terms))
            if len(self._of_template) >= REMEMBERED:
                self._of_template.clear()
            found = self._of_template[template.signature] = tuple(self._count(template.terms))
        return found

    def _count(self, terms: Iterable[PodTerm]) -> Iterable[ClassCounts]:
        for term in terms:
            counts = self._counted.get(term)
            if counts is None:
                counts = ClassCounts(self.capacity)
                self._counted[term] = counts
                self._lookup.add(term.selector, term)
                self._generation += 1
            yield counts

    def _drop(self, terms: Iterable[PodTerm]) -> None:
        """Drop those of these terms that no pod has any more."""
        for term in terms:
            counts = self._counted.get(term)
            if counts is not None and not counts.total:
                del self._counted[term]
                self._lookup.discard(term.selector, term)
                self._unused -= 1
        self._counted = fitting(self._counted)
        self._generation += 1
        self._of_template = {}
        self._concerning = {}

    def _sweep(self) -> None:
        """Drop the terms that no pod has any more."""
        self._unused = 0
        self._counted = {term: counts for term, counts in self._counted.items() if counts.total}
        self._generation += 1
        self._refile()

    def _refile(self) -> None:
        self._lookup = SelectorLookup()
        for term in self._counted:
            self._lookup.add(term.selector, term)
        self._of_template = {}
        self._concerning = {}


def _sorted(counted: Sequence[Counted]) -> Concerning:
    if not counted:
        return NOTHING_CONCERNS
    anti_affinity = tuple([each for each in counted if each[0].kind is TermKind.REQUIRED_ANTI_AFFINITY])
    return Concerning(
        anti_affinity,
        tuple([(term.topology_key, counts) for term, counts in anti_affinity]),
        tuple([each for each in counted if each[0].kind is not TermKind.REQUIRED_ANTI_AFFINITY]),
    )
