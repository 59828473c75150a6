"""NodeAffinity: require and prefer nodes by labels and names.

Formula::

    feasible[n] = addedAffinity.required holds on n
                  and every pair of nodeSelector holds and (no required affinity or one of its terms does)
    raw[n]      = sum of the weights of the preferred terms, of the pod and of addedAffinity, that hold on n
    score[n]    = 100 * raw[n] // max(raw), and 0 everywhere when max(raw) is 0

Units: weights in; points out, 0..100, higher is better.
Edges: terms are alternatives. A term without requirements, a term that cannot be parsed and an empty list of
terms match no node. If every required term names nodes (``metadata.name In``), PreFilter excludes all other
nodes. A preferred term that cannot be parsed fails the attempt.
Source: kube-scheduler v1.36, ``nodeaffinity/node_affinity.go``.
Differs: a node that starts to satisfy addedAffinity alone is an event that helps; upstream passes over it.
"""

from collections.abc import Collection, Hashable
from typing import Annotated, ClassVar

import numpy as np
from msgspec import convert
from pydantic import Field, model_validator

from plimsoll import framework as fwk
from plimsoll.framework.selectors import (
    NAME_FIELD,
    NodeAffinityTerms,
    NodeMatcher,
    NodeSelector,
    NodeSelectorTerm,
    NodeTerm,
    PreferredSchedulingTerm,
    compile_node_term,
    compile_node_terms,
)
from plimsoll.toolkit.node_matching import matching_nodes, term_nodes

ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
NOT_SELECTED = "node(s) didn't match Pod's node affinity/selector"
CONFLICT = "pod affinity terms conflict"


class NodeRequirementArgs(fwk.PluginArgs):
    """One requirement on a node's labels or fields."""

    key: str = Field(description="The label, or in matchFields `metadata.name`.")
    operator: str = Field(description="Comparison of the value: In, NotIn, Exists, DoesNotExist, Gt or Lt.")
    values: tuple[str, ...] = Field(
        default=(), description="None for Exists and DoesNotExist, one for Gt and Lt."
    )


class NodeTermArgs(fwk.PluginArgs):
    """Requirements that must all match."""

    match_expressions: tuple[NodeRequirementArgs, ...] = Field(
        default=(), description="Requirements on labels of the node."
    )
    match_fields: tuple[NodeRequirementArgs, ...] = Field(
        default=(), description="Requirements on the node's name."
    )

    @model_validator(mode="after")
    def _check(self) -> "NodeTermArgs":
        term = compile_node_term(convert(self.model_dump(by_alias=True), NodeSelectorTerm))
        if term.error:
            raise ValueError(term.error)
        return self


class NodeTermsArgs(fwk.PluginArgs):
    """Terms of which one must match."""

    node_selector_terms: tuple[NodeTermArgs, ...] = Field(description="One of them must hold.")


class PreferredTermArgs(fwk.PluginArgs):
    """A term and its weight."""

    weight: Annotated[int, Field(ge=1, le=100, description="Points for a node that matches.")]
    preference: NodeTermArgs = Field(description="What the node should have.")


class AddedAffinityArgs(fwk.PluginArgs):
    """A node affinity that every pod of the profile has in addition to its own."""

    required_during_scheduling_ignored_during_execution: NodeTermsArgs | None = Field(
        default=None, description="Nodes that do not match are refused."
    )
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredTermArgs, ...] = Field(
        default=(), description="Nodes that match are scored higher."
    )


class NodeAffinityArgs(fwk.PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a SchedulingPolicy."""

    added_affinity: AddedAffinityArgs | None = Field(
        default=None, description="Node affinity added to that of every pod; both must hold."
    )


class NodeAffinity(
    fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.PreScorePlugin, fwk.NormalizingPlugin, fwk.EnqueueExtensions
):
    """Refuse nodes that the pod does not select, and favour those that it prefers."""

    name: ClassVar = "NodeAffinity"
    args_model: ClassVar = NodeAffinityArgs
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.NODE, only_constraints=True)

    def __init__(self, args: NodeAffinityArgs) -> None:
        given = {} if args.added_affinity is None else args.added_affinity.model_dump(by_alias=True)
        added = convert(given, NodeAffinityTerms)
        required = added.required
        self._enforced = None if required is None else NodeMatcher(terms=compile_node_terms(required))
        self._prefers = bool(added.preferred)
        self._added = _weighted(added.preferred)

    def pre_filter(
        self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot
    ) -> fwk.Status | fwk.PreFilterResult:
        """Skip without requirements; restrict nodes to the named ones if every term names some."""
        required = pod.pod.spec.node_affinity.required
        if required is None:
            nothing = self._enforced is None and not pod.pod.spec.node_selector
            return fwk.SKIP if nothing else fwk.SUCCESS
        nodes = _named_nodes(required)
        if nodes is None:
            return fwk.SUCCESS
        return fwk.PreFilterResult(nodes) if nodes else fwk.unresolvable(CONFLICT, no_node_helps=True)

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """1 where the added affinity does not match, 2 where the pod's own does not, shape (N,)."""
        own = pod.template.required_nodes
        codes = np.where(matching_nodes(own, snapshot), 0, 2)
        if self._enforced is not None:
            codes = np.where(matching_nodes(self._enforced, snapshot), codes, 1)
        return codes

    def signature(self, template: fwk.PodTemplate) -> Hashable:
        """The node selector and the node affinity."""
        spec = template.sample.spec
        return template.memo(
            "NodeAffinity.signature",
            lambda: (tuple(sorted(spec.node_selector.items())), spec.node_affinity),
        )

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """Refusal by the added or by the pod's own affinity."""
        return fwk.unresolvable(ENFORCED if code == 1 else NOT_SELECTED)

    def pre_score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Skip without preferred terms; fail on one that cannot be parsed."""
        if not pod.pod.spec.node_affinity.preferred and not self._prefers:
            return fwk.SKIP
        errors = [term.error for _, term in _preferred(pod) if term.error]
        if errors:
            return fwk.error(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        return fwk.SUCCESS

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """Sum of the weights of the matching terms, shape (N,)."""
        points = fwk.all_feasible(snapshot)
        for weight, term in (*_preferred(pod), *self._added):
            np.add(points, weight, out=points, where=term_nodes(term, snapshot))
        return points

    def normalize(self, state: fwk.CycleState, pod: fwk.PodInfo, scores: fwk.IntArray) -> fwk.IntArray:
        """Scale the weights to the best node's, shape (F,)."""
        return scores * fwk.MAX_SCORE // max(int(scores.max(initial=0)), 1)

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Nodes that start to match."""
        node = fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_LABEL
        hint = fwk.HintByValue(_required, self._after_node)
        return (fwk.EventWithHint(fwk.EventResource.NODE, node, hint),)

    def _after_node(
        self, values: Collection[NodeMatcher], change: fwk.ClusterEvent
    ) -> Collection[NodeMatcher]:
        """The node matches now, and did not before."""

        def matches(node: fwk.Node | None, required: NodeMatcher) -> bool:
            return node is not None and all(
                each is None or each.matches(node.labels, node.name) for each in (self._enforced, required)
            )

        return [each for each in values if matches(change.new, each) and not matches(change.old, each)]


def _required(template: fwk.PodTemplate) -> NodeMatcher:
    return template.required_nodes


def _named_nodes(required: NodeSelector) -> frozenset[str] | None:
    """The nodes that the terms name, None if a term names none."""
    named: frozenset[str] = frozenset()
    for term in required.node_selector_terms:
        lists = [
            frozenset(each.values)
            for each in term.match_fields
            if each.key == NAME_FIELD and each.operator == "In"
        ]
        if not lists:
            return None
        named |= frozenset.intersection(*lists)
    return named if required.node_selector_terms else None


def _preferred(pod: fwk.PodInfo) -> tuple[tuple[int, NodeTerm], ...]:
    preferred = pod.pod.spec.node_affinity.preferred
    return pod.template.memo("NodeAffinity.preferred", lambda: _weighted(preferred))


def _weighted(preferred: tuple[PreferredSchedulingTerm, ...]) -> tuple[tuple[int, NodeTerm], ...]:
    """Weights and compiled terms, without terms that cannot add weight."""
    among = len(preferred)
    weighted = [
        (each.weight, compile_node_term(each.preference, f"[{index}]", among=among))
        for index, each in enumerate(preferred)
        if each.weight
    ]
    return tuple([(weight, term) for weight, term in weighted if not term.is_empty])
