"""Defines rules about node and pod affinity, spread constraints, tolerations, schedulers and ports."""

from collections.abc import Iterable, Iterator, Mapping

from plimsoll.inspection.lint.subjects import DEFAULT_SCHEDULER, PODS, LintedWorkload, Neighbourhood
from plimsoll.model.counted import counted
from plimsoll.model.kinds.pod import PodAffinityTerm, TopologySpreadConstraint
from plimsoll.model.selectors import (
    LabelSelector,
    LabelSelectorRequirement,
    SelectorError,
    compile_selector,
    int64,
)
from plimsoll.model.taints import tolerates
from plimsoll.policies.conditions import near

#: Kinds with one pod per node, regardless of their replicas.
PER_NODE = frozenset({"DaemonSet"})

#: Prefixes of taints that are set and removed with the state of nodes.
_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node-role.kubernetes.io/")


def no_node_matches(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """No node of the cluster matches the node selector and required node affinity."""
    is_demanding = not workload.required_nodes.is_empty and not contradiction(workload)
    if is_demanding and not around.eligible(workload):
        yield f"none of {counted(len(around.nodes), 'node')} matches {_wish(workload)}"


def contradictory_affinity(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:  # noqa: ARG001 - rules have one form
    """No node can ever match the node selector and required node affinity."""
    if key := contradiction(workload):
        yield f"no node can match {_wish(workload)}: the requirements on the label {key} exclude each other"


def contradiction(workload: LintedWorkload) -> str:
    """The label for which every term of the required node affinity contradicts itself or the selector."""
    spec = workload.pod.spec
    required = spec.node_affinity.required
    equal = [
        LabelSelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in spec.node_selector.items()
    ]
    terms = [()] if required is None else [term.match_expressions for term in required.node_selector_terms]
    keys = [_excluded((*equal, *term)) for term in terms]
    return keys[0] if keys and all(keys) else ""


def _excluded(requirements: Iterable[LabelSelectorRequirement]) -> str:
    """A label for which the requirements exclude each other, "" for none."""
    by_key: dict[str, list[LabelSelectorRequirement]] = {}
    for each in requirements:
        by_key.setdefault(each.key, []).append(each)
    return next((key for key, group in by_key.items() if _exclude(group)), "")


def _exclude(group: list[LabelSelectorRequirement]) -> bool:
    named = [set(each.values) for each in group if each.operator == "In"]
    refused = {value for each in group if each.operator == "NotIn" for value in each.values}
    is_absent = any(each.operator == "DoesNotExist" for each in group)
    is_there = any(each.operator in ("In", "Exists", "Gt", "Lt") for each in group)
    above = [int64(each.values[0]) for each in group if each.operator == "Gt" and len(each.values) == 1]
    below = [int64(each.values[0]) for each in group if each.operator == "Lt" and len(each.values) == 1]
    lowest = max((each for each in above if each is not None), default=None)
    highest = min((each for each in below if each is not None), default=None)
    return (
        (is_absent and is_there)
        or (bool(named) and not set.intersection(*named) - refused)
        or (lowest is not None and highest is not None and highest - lowest < 2)
    )


def _wish(workload: LintedWorkload) -> str:
    spec = workload.pod.spec
    parts = [f"{key}={value}" for key, value in sorted(spec.node_selector.items())]
    if spec.node_affinity.required is not None:
        terms = [
            " and ".join(_written(each) for each in (*term.match_expressions, *term.match_fields))
            or "nothing"
            for term in spec.node_affinity.required.node_selector_terms
        ]
        parts.append(" or ".join(terms))
    return ", ".join(parts)


def _written(requirement: LabelSelectorRequirement) -> str:
    values = f" ({', '.join(requirement.values)})" if requirement.values else ""
    return f"{requirement.key} {requirement.operator}{values}"


def too_few_domains(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """Required anti-affinity to the workload's own pods, of which there are more than domains."""
    if workload.kind in PER_NODE:
        return
    for term in workload.pod.spec.required_anti_affinity:
        domains = around.domains(workload, term.topology_key)
        if _concerns(term, workload) and domains and workload.replicas > len(domains):
            yield (
                f"{workload.replicas} pods exclude each other by {term.topology_key}, of which the nodes "
                f"that they may use have {len(domains)}; {workload.replicas - len(domains)} cannot be placed"
            )


def _concerns(term: PodAffinityTerm, workload: LintedWorkload) -> bool:
    """Whether a term selects the workload's own pods."""
    if term.namespaces and workload.namespace not in term.namespaces:
        return False
    if term.namespace_selector is not None or term.mismatch_label_keys:
        return False
    return _matches(term.label_selector, workload.pod.labels)


def _matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    try:
        return selector is not None and compile_selector(selector).matches(labels)
    except SelectorError:
        return False


def affinity_to_no_pod(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """Required affinity selects pods that do not exist, and not the workload's own."""
    terms = workload.pod.spec.affinity and workload.pod.spec.affinity.pod_affinity
    for term in terms.required if terms else ():
        namespaces = term.namespaces or (workload.namespace,)
        if term.namespace_selector is not None or _matches(term.label_selector, workload.pod.labels):
            continue
        if not any(
            _matches(term.label_selector, each.pod.labels)
            for namespace in namespaces
            for each in around.workloads_in(namespace)
        ):
            yield f"it must be near pods with {_shown(term.label_selector)}, and there is no such pod"


def _shown(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no labels"
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    return ", ".join([*parts, *map(_written, selector.match_expressions)]) or "any labels"


def unknown_topology(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """Hard constraints use a topology label that no node has."""
    spec = workload.pod.spec
    near_terms = spec.affinity.pod_affinity.required if spec.affinity and spec.affinity.pod_affinity else ()
    keys = {each.topology_key: "pod affinity" for each in near_terms}
    keys |= {each.topology_key: "a topology spread constraint" for each in _hard(workload)}
    for key, what in sorted(keys.items()):
        if key not in around.label_keys:
            yield f"{what} is by the label {key}, which no node has"


def _hard(workload: LintedWorkload) -> list[TopologySpreadConstraint]:
    constraints = workload.pod.spec.topology_spread_constraints
    return [each for each in constraints if each.when_unsatisfiable == "DoNotSchedule"]


def impossible_spread(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """A hard spread constraint requires more domains than exist, and these cannot hold all pods."""
    for each in _hard(workload) if workload.kind not in PER_NODE else ():
        domains = len(around.domains(workload, each.topology_key))
        room = domains * each.max_skew
        if domains and each.min_domains and each.min_domains > domains and workload.replicas > room:
            yield (
                f"minDomains {each.min_domains} of {each.topology_key} is more than the {domains} there are: "
                f"each holds {each.max_skew}, so {workload.replicas - room} of {workload.replicas} pods find "
                "no place"
            )


def spread_over_others(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """The selector of a spread constraint does not match the workload's own pods."""
    for each in workload.pod.spec.topology_spread_constraints:
        if _matches(each.label_selector, workload.pod.labels):
            continue
        shown = _shown(each.label_selector)
        found = PODS in around.unknown or any(
            _matches(each.label_selector, other.pod.labels)
            for other in around.workloads_in(workload.namespace)
        )
        which = "which only other pods have" if found else "which no pod has"
        yield f"a spread constraint by {each.topology_key} counts pods with {shown}, {which}"


def unserved_scheduler(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """No policy serves the scheduler name, and it is not the default."""
    name = workload.pod.spec.scheduler_name or DEFAULT_SCHEDULER
    if name not in around.schedulers:
        served = ", ".join(sorted(around.schedulers))
        yield f'no policy serves schedulerName "{name}" (served: {served}){near(name, around.schedulers)}'


def idle_tolerations(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """No node has the tolerated taint."""
    if workload.kind in PER_NODE:
        return
    for each in workload.pod.spec.tolerations:
        if not each.key or each.key.startswith(_PASSING):
            continue
        if not any(tolerates(each, taint) for taint in around.taints):
            value = f"={each.value}" if each.value else ""
            effect = f":{each.effect}" if each.effect else ""
            yield f"no node has the taint {each.key}{value}{effect} that it tolerates"


def crowded_host_ports(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """Pods with the same host port outnumber the nodes."""
    ports = sorted(
        {port.host_port for each in workload.pod.spec.containers for port in each.ports if port.host_port}
    )
    nodes = len(around.eligible(workload))
    if ports and workload.kind not in PER_NODE and nodes and workload.replicas > nodes:
        room = counted(nodes, "node")
        yield f"{workload.replicas} pods want host port {ports[0]}, and {room} may take them, one each"
