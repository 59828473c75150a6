"""Finds placed pods that keep a pod off a node, and the pods that its required affinity lacks there."""

from msgspec import Struct

from plimsoll.framework import PodInfo
from plimsoll.inspection.explanations.examination import Examination
from plimsoll.inspection.explanations.supposition import PodsLeave, Supposition
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod_terms import PodTerm, TermKind
from plimsoll.model.selectors import Requirement

#: Maximum number of a node's pods tried one by one.
TRIED = 256


class WantedNeighbour(Struct, frozen=True):
    """A pod that satisfies all required affinity terms of another.

    Attributes:
        description: Its labels, in words.
        relabel: Labels that the node lacks, with the values of a domain that has such a pod; may be empty.
    """

    namespace: str
    labels: tuple[tuple[str, str], ...]
    description: str
    relabel: tuple[tuple[str, str | None], ...] = ()


def anti_affinity_domains(examination: Examination, row: int) -> list[tuple[str, tuple[str, ...], list[str]]]:
    """Domains of the node whose pods an anti-affinity, of either side, keeps apart from the pod.

    Each item has ``key=value``, the uids of these pods, and their names.
    """
    pod, cluster = examination.pod, examination.cluster
    node = cluster.nodes[row]
    found: dict[str, dict[str, str]] = {}
    for other, where in _apart(examination):
        for term, of in where:
            value = node.labels.get(term.topology_key)
            there = cluster.row_of_pod(other.uid)
            if value is None or there is None or cluster.nodes[there].labels.get(term.topology_key) != value:
                continue
            assert of.uid in (pod.uid, other.uid)
            found.setdefault(f"{term.topology_key}={value}", {})[other.uid] = other.key
    return [(domain, tuple(pods), sorted(pods.values())) for domain, pods in sorted(found.items())]


def _apart(examination: Examination) -> list[tuple[PodInfo, list[tuple[PodTerm, PodInfo]]]]:
    """Placed pods with the terms that keep the pod apart from them; each term comes with its owner."""
    pod, cluster = examination.pod, examination.cluster
    kind = TermKind.REQUIRED_ANTI_AFFINITY
    own = pod.template.terms_of(kind)
    objects = cluster.objects
    apart = []
    for other, _ in cluster.placed():
        theirs = other.template.terms_of(kind) if other.template.terms else ()
        if not own and not theirs:
            continue
        terms = [(term, pod) for term in own if _means(term, other, objects)]
        terms += [(term, other) for term in theirs if _means(term, pod, objects)]
        if terms:
            apart.append((other, terms))
    return apart


def _means(term: PodTerm, pod: PodInfo, objects: ClusterObjects) -> bool:
    namespace = objects.namespaces.get(pod.namespace)
    labels = {} if namespace is None else namespace.labels
    return term.matches(pod.namespace, pod.labels, labels)


def wanted_neighbour(examination: Examination, row: int) -> WantedNeighbour | None:
    """The pod that the required affinity lacks in the node's domains; None if they have it."""
    pod, cluster = examination.pod, examination.cluster
    terms = pod.template.terms_of(TermKind.REQUIRED_AFFINITY)
    node = cluster.nodes[row]
    matching = [
        (other, there)
        for other, there in cluster.placed()
        if all(_means(term, other, cluster.objects) for term in terms)
    ]
    keys = dict.fromkeys(term.topology_key for term in terms)
    if all(
        key in node.labels
        and any(cluster.nodes[there].labels.get(key) == node.labels[key] for _, there in matching)
        for key in keys
    ):
        return None
    description = " and ".join(dict.fromkeys(_described(term) for term in terms))
    missing = [key for key in keys if key not in node.labels]
    relabel: tuple[tuple[str, str | None], ...] = ()
    if missing:
        labels = cluster.nodes[matching[0][1]].labels if matching else {}
        relabel = tuple((key, labels.get(key, "a")) for key in missing)
    if matching:
        sample = matching[0][0]
        return WantedNeighbour(sample.namespace, tuple(sample.labels.items()), description, relabel)
    wanted: dict[str, str] = {}
    for term in terms:
        for requirement in term.selector.requirements:
            value = _label_value(requirement)
            if value is not None:
                wanted[requirement.key] = value
    namespace = min(terms[0].namespaces, default=pod.namespace)
    return WantedNeighbour(namespace, tuple(wanted.items()), description, relabel)


def _label_value(requirement: Requirement) -> str | None:
    if requirement.operator == "In":
        return min(requirement.values)
    return "true" if requirement.operator == "Exists" else None


def _described(term: PodTerm) -> str:
    words = {"In": " in ", "NotIn": " not in ", "Exists": "", "DoesNotExist": " absent"}
    said = [
        f"{each.key}={min(each.values)}"
        if each.operator == "In" and len(each.values) == 1
        else f"{each.key}{words[each.operator]}{', '.join(sorted(each.values))}"
        for each in term.selector.requirements
    ]
    return ", ".join(said) or "any labels"


def pods_in_the_way(examination: Examination, row: int, plugin: str) -> tuple[tuple[str, ...], list[str]]:
    """Uids and names of the node's pods whose removal makes the plugin accept it; found one by one."""
    standing = sorted(examination.cluster.pods_on(row), key=lambda each: (each.priority, each.key))[:TRIED]
    if not standing or not _agrees(examination, row, plugin, standing):
        return (), []
    leaving = list(standing)
    for each in reversed(standing):
        fewer = [other for other in leaving if other is not each]
        if _agrees(examination, row, plugin, fewer):
            leaving = fewer
    return tuple(each.uid for each in leaving), sorted(each.key for each in leaving)


def _agrees(examination: Examination, row: int, plugin: str, leaving: list[PodInfo]) -> bool:
    supposition = Supposition(examination.scheduler, examination.pod)
    PodsLeave(tuple(each.uid for each in leaving)).apply(supposition)
    twin, info = supposition.judge()
    cache = twin.refreshed(info)
    if not cache.pre_filter.rejected.is_success:
        return False
    if plugin in cache.pre_filter.skipped:
        return True
    position = [each.name for each in twin.profile.filter].index(plugin)
    one = Snapshot(twin.cluster).rows[row : row + 1]
    return int(cache.filters.codes(twin.profile.filter[position].name)[one][0]) == 0
