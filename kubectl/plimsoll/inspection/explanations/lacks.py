"""Determines what a node that refuses a pod lacks, with grants that would remedy each lack.

Formula, for a resource r: ``pod[r] - (allocatable[n, r] - requested[n, r] - nominated[n, r])``, where
``nominated`` are pods of equal or higher priority for which the node is reserved. For a topology spread, the
number of surplus matching pods: ``count[domain] - (maxSkew + least - 1)``.

Units: cpu in milli, memory and storage in bytes, the rest in units and pods.
Edges: an unknown plugin is run without some of the node's pods; the result names the pods in the way.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum

from msgspec import Struct

from plimsoll.engine.what_if import RESERVED
from plimsoll.framework import ABSENT, Status
from plimsoll.inspection.explanations.examination import Examination
from plimsoll.inspection.explanations.pods_in_the_way import (
    anti_affinity_domains,
    pods_in_the_way,
    wanted_neighbour,
)
from plimsoll.inspection.explanations.supposition import (
    AllowSkew,
    DropAffinity,
    DropNodeRequirements,
    FreeResource,
    Grant,
    PodArrives,
    PodsLeave,
    Relabel,
    Tolerate,
    Uncordon,
)
from plimsoll.model.amounts import amount_text
from plimsoll.model.columns.cluster import PODS
from plimsoll.model.counted import agreeing
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod_terms import TermKind
from plimsoll.model.selectors import NodeTerm, Requirement
from plimsoll.model.taints import HARD_EFFECTS, UNSCHEDULABLE_TAINT, tolerates
from plimsoll.plugins.inter_pod_affinity import InterPodAffinity
from plimsoll.plugins.node_affinity import ENFORCED, NodeAffinity
from plimsoll.plugins.node_ports import NodePorts, conflicts, host_ports
from plimsoll.plugins.node_resources_fit import TOO_MANY_PODS, NodeResourcesFit
from plimsoll.plugins.node_unschedulable import NodeUnschedulable
from plimsoll.plugins.pod_topology_spread import HardState, PodTopologySpread
from plimsoll.plugins.taint_toleration import TaintToleration

_INSUFFICIENT = "Insufficient "


class LackKind(StrEnum):
    """The kind of missing thing."""

    RESOURCE = "Resource"
    UNCORDONING = "Uncordoning"
    TOLERATION = "Toleration"
    LABEL = "Label"
    PORT = "Port"
    SPREAD = "TopologySpread"
    NEIGHBOUR = "PodAffinity"
    DISTANCE = "PodAntiAffinity"
    OTHER = "Other"


class Remedy(Struct, frozen=True):
    """A change that would remedy a lack, in words and as a grant."""

    text: str
    grant: Grant


class Lack(Struct, frozen=True):
    """One thing that a node lacks for a pod.

    Attributes:
        subject: The resource, taint, label, port or topology domain.
        amount: The missing amount of a resource, in its unit, or of pods; 1 for anything else.
        share: Share of the node's allocatable for a resource; 1.0 for anything else.
        text: Continuation of a sentence after the node's name: ``lacks 120m cpu``.
        remedies: Alternative remedies, the simplest first; each suffices alone.
    """

    kind: LackKind
    plugin: str
    subject: str
    amount: int
    share: float
    text: str
    remedies: tuple[Remedy, ...]


Finder = Callable[[Examination, int, Status], list[Lack]]
"""Determines what a node (a row) lacks, given a plugin's status; empty if this is unknown."""


def lacks_of(examination: Examination, row: int) -> list[Lack]:
    """All that the node lacks; empty if a refusal has no known remedy."""
    lacks: list[Lack] = []
    for status in examination.refusals(row):
        found = _FINDERS.get(status.plugin, _in_the_way)(examination, row, status)
        if not found and not _is_covered(status, lacks):
            return []
        lacks += [each for each in found if each not in lacks]
    return lacks


def _is_covered(status: Status, lacks: list[Lack]) -> bool:
    """Whether a lack covers the status: uncordoning a node also removes the taint of cordoned nodes."""
    return status.plugin == TaintToleration.name and any(each.kind is LackKind.UNCORDONING for each in lacks)


def resource_lacks(examination: Examination, row: int, status: Status) -> dict[str, int]:
    """The missing amounts by resource, for a refusal by NodeResourcesFit."""
    cluster = examination.cluster
    ahead = examination.ahead.get(row, ())
    missing: dict[str, int] = {}
    for reason in (each.removesuffix(RESERVED) for each in status.reasons):
        if reason == TOO_MANY_PODS:
            used = int(cluster.requested[row, PODS]) + len(ahead)
            missing["pods"] = used + 1 - int(cluster.allocatable[row, PODS])
        elif reason.startswith(_INSUFFICIENT):
            name = reason.removeprefix(_INSUFFICIENT)
            axis = cluster.axis_of(name)
            free = 0
            if axis is not None:
                free = int(cluster.allocatable[row, axis]) - int(cluster.requested[row, axis])
            free -= sum(each.requests.get(name, 0) for each in ahead)
            missing[name] = examination.pod.template.requests.get(name, 0) - free
    return missing


def resource_share(examination: Examination, row: int, missing: Mapping[str, int]) -> float:
    """The largest missing amount as a share of the node's allocatable."""
    cluster = examination.cluster
    shares = [0.0]
    for name, amount in missing.items():
        axis = cluster.axis_of(name)
        total = 0 if axis is None else int(cluster.allocatable[row, axis])
        shares.append(amount / max(total, 1))
    return max(shares)


def _resources(examination: Examination, row: int, status: Status) -> list[Lack]:
    node = examination.cluster.nodes[row].name
    lacks = []
    for name, amount in resource_lacks(examination, row, status).items():
        said = (
            "room for 1 more pod" if name == "pods" and amount == 1 else f"{amount_text(name, amount)} {name}"
        )
        text = f"lacks {said}"
        remedy = Remedy(_more_of(examination, row, name, amount), FreeResource(node, name, amount))
        share = resource_share(examination, row, {name: amount})
        lacks.append(Lack(LackKind.RESOURCE, NodeResourcesFit.name, name, amount, share, text, (remedy,)))
    return lacks


def _more_of(examination: Examination, row: int, name: str, amount: int) -> str:
    """How the missing amount comes about: freed by other pods, or on a larger node if the pod needs that."""
    cluster = examination.cluster
    node, axis = cluster.nodes[row].name, cluster.axis_of(name)
    total = 0 if axis is None else int(cluster.allocatable[row, axis])
    needed = 1 if name == "pods" else examination.pod.template.requests.get(name, 0)
    if needed <= total:
        return f"{amount_text(name, amount)} of {name} freed on {node}"
    return f"{amount_text(name, amount)} more {name} on {node}, which has {amount_text(name, total)} in all"


def _cordon(examination: Examination, row: int, _: Status) -> list[Lack]:
    node = examination.cluster.nodes[row].name
    remedies = (
        Remedy(f"node {node} uncordoned", Uncordon(node)),
        Remedy(f"toleration for {_taint(UNSCHEDULABLE_TAINT)}", Tolerate(UNSCHEDULABLE_TAINT)),
    )
    subject = "spec.unschedulable"
    return [Lack(LackKind.UNCORDONING, NodeUnschedulable.name, subject, 1, 1.0, "is cordoned", remedies)]


def _taint(taint: object) -> str:
    key, value, effect = (str(getattr(taint, name)) for name in ("key", "value", "effect"))
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _taints(examination: Examination, row: int, _: Status) -> list[Lack]:
    node = examination.cluster.nodes[row]
    tolerations = examination.pod.pod.spec.tolerations
    lacks = []
    for taint in node.spec.taints:
        if taint.effect not in HARD_EFFECTS or any(tolerates(each, taint) for each in tolerations):
            continue
        if taint.key == UNSCHEDULABLE_TAINT.key and node.spec.unschedulable:
            continue  # uncordoning removes it, too
        said = _taint(taint)
        remedy = Remedy(f"toleration for taint {said}", Tolerate(taint))
        text = f"has taint {said}, which the pod does not tolerate"
        lacks.append(Lack(LackKind.TOLERATION, TaintToleration.name, said, 1, 1.0, text, (remedy,)))
    return lacks


def _labels(examination: Examination, row: int, status: Status) -> list[Lack]:
    node = examination.cluster.nodes[row]
    if ENFORCED in status.reasons or status.plugin != NodeAffinity.name:
        return []
    matcher = examination.pod.template.required_nodes
    changes: dict[str, str | None] = {
        key: value for key, value in matcher.equal if node.labels.get(key) != value
    }
    if matcher.terms is not None:
        options = [found for term in matcher.terms if (found := _term_changes(term, node)) is not None]
        if not options:
            return []
        fewest = min(options, key=len)
        changes |= fewest
    lacks = []
    for key, value in sorted(changes.items()):
        said = f"{key}={value}" if value is not None else key
        text = f"lacks label {said}" if value is not None else f"has label {said}={node.labels[key]}"
        remedy = (
            f"label {said} on node {node.name}"
            if value is not None
            else f"no label {said} on node {node.name}"
        )
        remedies = (
            Remedy(remedy, Relabel(node.name, ((key, value),))),
            Remedy("no node selector and no required node affinity", DropNodeRequirements()),
        )
        lacks.append(Lack(LackKind.LABEL, NodeAffinity.name, said, 1, 1.0, text, remedies))
    return lacks


def _term_changes(term: NodeTerm, node: Node) -> dict[str, str | None] | None:
    """The label changes that make a term match a node; None if no change does."""
    if term.error or term.is_empty:
        return None
    if any((value == node.name) is not equal for _, value, equal in term.names):
        return None
    unmet = [each for each in term.requirements if not each.matches(node.labels)]
    return {each.key: _value_for(each) for each in unmet}


def _value_for(requirement: Requirement) -> str | None:
    match requirement.operator:
        case "In":
            return min(requirement.values)
        case "Exists":
            return "true"
        case "Gt":
            return str(requirement.bound + 1)
        case "Lt":
            return str(requirement.bound - 1)
        case _:
            return None


def _ports(examination: Examination, row: int, _: Status) -> list[Lack]:
    wanted = host_ports(examination.pod)
    lacks = []
    for port in wanted:
        holders = [
            each
            for each in examination.cluster.pods_on(row)
            if conflicts((port,), frozenset(host_ports(each)))
        ]
        if holders:
            names = ", ".join(sorted(each.key for each in holders))
            said = f"{port[1]} {port[2]}"
            remedy = Remedy(f"{names} leaves", PodsLeave(tuple(each.uid for each in holders)))
            text = f"has host port {said} in use by {names}"
            lacks.append(Lack(LackKind.PORT, NodePorts.name, said, 1, 1.0, text, (remedy,)))
    return lacks


def _spread(examination: Examination, row: int, _: Status) -> list[Lack]:
    remedies: tuple[Remedy, ...]
    snapshot, node = examination.snapshot, examination.cluster.nodes[row]
    lacks = []
    for constraint in examination.found.cache.state.read(HardState).constraints:
        key, domains = constraint.topology_key, constraint.counts(snapshot)
        counts = domains.sums
        domain = int(snapshot.label_ids(key)[row])
        if domain == ABSENT:
            known = [number for number in range(len(counts) - 1) if domains.exists[number]]
            value = node.name
            if known and not key.endswith("/hostname"):
                value = snapshot.label(key).values[min(known, key=lambda number: int(counts[number]))]
            remedies = (
                Remedy(f"label {key}={value} on node {node.name}", Relabel(node.name, ((key, value),))),
            )
            text = f"lacks label {key}, over which the pod is spread"
            lacks.append(Lack(LackKind.LABEL, PodTopologySpread.name, key, 1, 1.0, text, remedies))
            continue
        least = 0
        if domains.size and domains.size >= constraint.min_domains:
            least = int(counts[:-1][domains.exists[:-1]].min())
        excess = int(counts[domain]) - (constraint.max_skew + least - constraint.selects_itself)
        if excess <= 0:
            continue
        said = f"{key}={node.labels[key]}"
        allowed = constraint.max_skew + excess
        leaving = tuple(
            pod.uid
            for other in _rows_of(examination, key, domain)
            for pod in examination.cluster.pods_on(other)
            if constraint.means(pod) and not pod.is_terminating
        )[:excess]
        matching = agreeing(excess, "matching pod", "matching pods")
        text = f"is in {said}, which has {excess} {matching} too many for maxSkew {constraint.max_skew}"
        remedies = (
            Remedy(f"{excess} {matching} fewer in {said}", PodsLeave(leaving)),
            Remedy(f"maxSkew {allowed} for {key}", AllowSkew(key, allowed)),
        )
        lacks.append(Lack(LackKind.SPREAD, PodTopologySpread.name, said, excess, 1.0, text, remedies))
    return lacks


def _rows_of(examination: Examination, key: str, domain: int) -> list[int]:
    ids = examination.snapshot.label_ids(key)
    return [row for row in range(len(examination.cluster)) if int(ids[row]) == domain]


def _affinity(examination: Examination, row: int, _: Status) -> list[Lack]:
    node = examination.cluster.nodes[row]
    lacks = []
    for domain, uids, names in anti_affinity_domains(examination, row):
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        leaves = agreeing(len(names), "leaves", "leave")
        remedy = Remedy(f"{shown} {leaves} {domain}", PodsLeave(uids))
        text = f"is in {domain} with {shown}, kept apart from the pod by anti-affinity"
        lacks.append(Lack(LackKind.DISTANCE, InterPodAffinity.name, domain, len(uids), 1.0, text, (remedy,)))
    terms = examination.pod.template.terms_of(TermKind.REQUIRED_AFFINITY)
    wanted = wanted_neighbour(examination, row) if terms else None
    if wanted is not None:
        where = " and ".join(
            f"{key}={node.labels[key]}" if key in node.labels else key
            for key in dict.fromkeys(each.topology_key for each in terms)
        )
        text = f"has no pod with {wanted.description} in {where}"
        arrives = PodArrives(node.name, wanted.namespace, wanted.labels)
        grants: tuple[Remedy, ...] = (
            Remedy(f"a pod with {wanted.description} on node {node.name}", arrives),
            Remedy("no required pod affinity", DropAffinity()),
        )
        if wanted.relabel:
            said = ", ".join(f"{key}={value}" for key, value in wanted.relabel)
            relabel = Remedy(f"label {said} on node {node.name}", Relabel(node.name, wanted.relabel))
            grants, text = (relabel, grants[1]), f"lacks label {said} of the pods that it must be near"
        lacks.append(Lack(LackKind.NEIGHBOUR, InterPodAffinity.name, where, 1, 1.0, text, grants))
    return lacks


def _in_the_way(examination: Examination, row: int, status: Status) -> list[Lack]:
    """The pods of the node whose removal makes an unknown plugin accept it; empty if none does."""
    uids, names = pods_in_the_way(examination, row, status.plugin)
    if not uids:
        return []
    shown = ", ".join(names)
    text = f"{status.message}, as long as {shown} {agreeing(len(names), 'is', 'are')} there"
    remedy = Remedy(f"{shown} {agreeing(len(names), 'leaves', 'leave')}", PodsLeave(uids))
    return [Lack(LackKind.OTHER, status.plugin, status.plugin, len(uids), 1.0, text, (remedy,))]


_FINDERS: Mapping[str, Finder] = {
    NodeResourcesFit.name: _resources,
    NodeUnschedulable.name: _cordon,
    TaintToleration.name: _taints,
    NodeAffinity.name: _labels,
    NodePorts.name: _ports,
    PodTopologySpread.name: _spread,
    InterPodAffinity.name: _affinity,
}
