"""Tells the operators of policies apart, and finds policies that could use the same nodes.

Several operators in one cluster see each other's bindings late. So the policies of two operators may not
place pods on the same nodes: it must follow from their selectors alone, whatever nodes there are.
"""

from collections.abc import Iterator, Mapping
from itertools import product

from plimsoll.api.v1alpha1.annotations import OPERATOR
from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework.selectors import NodeAffinityTerms, NodeTerm, compile_node_terms
from plimsoll.model.decoding import DecodeError, convert
from plimsoll.model.selectors import Requirement

#: The plugin whose arguments say where all pods of a policy go, and what takes it away.
NODE_AFFINITY = "NodeAffinity"
_WITHOUT = frozenset((NODE_AFFINITY, "*"))

#: Allows every node.
_ANY = (NodeTerm(),)


def operator_of(labels: object) -> str:
    """The operator that serves a policy with these labels; "" is the one without a name."""
    return str(labels.get(OPERATOR) or "") if isinstance(labels, Mapping) else ""


def titled(operator: str) -> str:
    """An operator in a sentence."""
    return f"operator {operator}" if operator else "the operator without a name"


def moves_pods(policy: SchedulingPolicy) -> str:
    """The field by which a policy of a named operator would move pods; "" if it has none."""
    scheduling = policy.spec.scheduling
    if policy.spec.rebalancing is not None:
        return "spec.rebalancing"
    via_eviction = scheduling is not None and scheduling.preemption.via_eviction
    return "spec.scheduling.preemption.viaEviction" if via_eviction else ""


def may_share_nodes(one: SchedulingSpec, other: SchedulingSpec) -> bool:
    """Whether a node could match both, by what NodeAffinity's addedAffinity requires."""
    pairs = product(_terms(one), _terms(other))
    return any(not _exclude(mine, theirs) for mine, theirs in pairs)


def _terms(spec: SchedulingSpec) -> tuple[NodeTerm, ...]:
    """The alternatives for a node."""
    plugins = spec.plugins
    sets = () if plugins is None else (plugins.multi_point, plugins.filter)
    if any(each.name in _WITHOUT for some in sets if some is not None for each in some.disabled):
        return _ANY
    args = next((each.args for each in spec.plugin_config if each.name == NODE_AFFINITY), {})
    try:
        added = convert(NodeAffinityTerms, args.get("addedAffinity") or {})
    except DecodeError:
        return _ANY  # the operator that serves the policy refuses it
    return _ANY if added.required is None else compile_node_terms(added.required)


def _exclude(one: NodeTerm, other: NodeTerm) -> bool:
    """Whether no node matches both."""
    if one.error or other.error:
        return True  # it matches none
    mine, theirs = _requirements(one), _requirements(other)
    return any(_contradict(a, b) or _contradict(b, a) for a, b in product(mine, theirs) if a.key == b.key)


def _requirements(term: NodeTerm) -> tuple[Requirement, ...]:
    return (*term.requirements, *_of_names(term))


def _of_names(term: NodeTerm) -> Iterator[Requirement]:
    for field, value, equal in term.names:
        yield Requirement(f"the field {field}", "In" if equal else "NotIn", frozenset((value,)))


def _contradict(one: Requirement, other: Requirement) -> bool:
    """Whether no value satisfies both; Gt and Lt are compared with nothing but In."""
    if one.operator == "In":
        return not any(other.matches({one.key: value}) for value in one.values)
    return one.operator in ("Exists", "Gt", "Lt") and other.operator == "DoesNotExist"
