"""RemovePodsViolatingInterPodAntiAffinity, against the cases of upstream's own tests."""

from typing import Any

import pytest

from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.strategies.remove_pods_violating_inter_pod_anti_affinity import (
    RemovePodsViolatingInterPodAntiAffinity,
)
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.strategy_conformance import StrategyConformance
from strategies.builders import a_context, a_strategy, evicted

REGION = "topology.kubernetes.io/region"


def against(key: str = "kubernetes.io/hostname", **labels: Any) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def a_replica(name: str, node: str = "n1", **kwargs: Any) -> Pod:
    return a_pod(name, node=node, owner="ReplicaSet/web", **kwargs)


def moved(
    pods: list[Pod], nodes: list[Node] | None = None, *, per_node: int | None = None, **args: Any
) -> list[str]:
    context = a_context(nodes or [a_node("n1"), a_node("n2")], pods)
    return evicted(a_strategy(RemovePodsViolatingInterPodAntiAffinity, **args), context, per_node=per_node)


def three_and_one() -> list[Pod]:
    return [
        *(a_replica(name, affinity=against(foo="bar")) for name in ("p1", "p3", "p4")),
        a_replica("p2", labels={"foo": "bar"}),
    ]


def test_those_who_declare_the_rule_go() -> None:
    """The pod that they object to stays."""
    assert moved(three_and_one()) == ["p1", "p3", "p4"]


def test_a_closed_node_keeps_the_rest() -> None:
    """The node limit ends the node."""
    assert moved(three_and_one(), per_node=2) == ["p1", "p3"]


def test_one_eviction_resolves_a_group() -> None:
    """Those of the highest priority object to the lowest, which goes first and takes the conflict along."""
    pods = [
        a_replica("p5", priority=100, labels={"is": "high"}, affinity=against(**{"is": "low"})),
        a_replica("p6", priority=50, labels={"is": "high"}, affinity=against(**{"is": "low"})),
        a_replica("p7", priority=0, labels={"is": "low"}, affinity=against(**{"is": "high"})),
    ]

    assert moved(pods) == ["p7"]


def test_a_domain_is_a_value_of_the_topology_key() -> None:
    """Another node of the same region conflicts, one of another region or without the label does not."""
    pods = [
        a_replica("p1", affinity=against(REGION, foo="bar")),
        a_replica("p2", "n2", labels={"foo": "bar"}),
    ]

    def nodes(one: dict[str, Any], other: dict[str, Any]) -> list[Node]:
        return [a_node("n1", labels=one), a_node("n2", labels=other)]

    assert moved(pods, nodes({REGION: "a"}, {REGION: "a"})) == ["p1"]
    assert moved(pods, nodes({REGION: "a"}, {REGION: "b"})) == []
    assert moved(pods, nodes({}, {})) == []


def test_the_same_node_needs_no_label() -> None:
    """On one node the pods are near whatever the topology key."""
    pods = [a_replica("p1", affinity=against(REGION, foo="bar")), a_replica("p2", labels={"foo": "bar"})]

    assert moved(pods) == ["p1"]


def test_namesakes_never_conflict() -> None:
    """A pod of the same name in another namespace is taken for the pod itself."""
    term = {
        "topologyKey": REGION,
        "namespaces": ["other", "default"],
        "labelSelector": {"matchLabels": {"foo": "bar"}},
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [a_replica("p1", affinity=affinity), a_replica("p1", labels={"foo": "bar"}, namespace="other")]

    assert moved(pods) == []


def test_protected_pods_stay_and_their_rivals_too() -> None:
    """A critical pod's rule is broken, and no pod is evicted for it."""
    pods = [
        a_replica("p1", priority=2_000_000_000, affinity=against(foo="bar")),
        a_replica("p2", labels={"foo": "bar"}),
    ]

    assert moved(pods) == []


def test_narrowing_hides_partners() -> None:
    """A label selector hides the pods that others conflict with, too."""
    assert moved(three_and_one(), labelSelector={"matchLabels": {"foo": "nobody"}}) == []
    assert moved(three_and_one(), namespaces={"include": ["elsewhere"]}) == []


def test_rules_of_several_labels_and_of_none() -> None:
    """All labels must match; a rule against pods that have a label at all is a rule, too."""
    both = against(foo="bar", tier="front")
    term = {
        "topologyKey": REGION,
        "labelSelector": {"matchExpressions": [{"key": "foo", "operator": "Exists"}]},
    }
    any_foo = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    rival = a_replica("p2", labels={"foo": "bar"})

    assert moved([a_replica("p1", affinity=both), rival]) == []
    assert moved([a_replica("p1", affinity=any_foo), rival]) == ["p1"]


@pytest.mark.parametrize(
    ("operators", "goes"),
    [(["Bogus"], []), (["Exists", "Bogus"], ["p1"]), (["Bogus", "Exists"], [])],
    ids=["alone", "after a rule", "before a rule"],
)
def test_a_selector_that_means_nothing_ends_the_rules(operators: list[str], goes: list[str]) -> None:
    """Upstream looks at no term from the one on whose selector cannot be parsed."""
    terms = [
        {"topologyKey": REGION, "labelSelector": {"matchExpressions": [{"key": "a", "operator": operator}]}}
        for operator in operators
    ]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}

    assert moved([a_replica("p1", affinity=affinity), a_replica("p2", labels={"a": "b"})]) == goes


COST = "controller.kubernetes.io/pod-deletion-cost"


def test_of_two_that_exclude_one_another_the_cheaper_goes_here() -> None:
    """One of them must; upstream takes the first in order of names."""
    pods = [
        a_replica("p1", labels={"is": "x"}, affinity=against(**{"is": "x"}), annotations={COST: "7"}),
        a_replica("p2", labels={"is": "x"}, affinity=against(**{"is": "x"})),
    ]
    strategy = a_strategy(RemovePodsViolatingInterPodAntiAffinity)

    assert evicted(strategy, a_context([a_node("n1"), a_node("n2")], pods)) == ["p1"]
    assert evicted(strategy, a_context([a_node("n1"), a_node("n2")], pods, exact=False)) == ["p2"]


class TestConformance(StrategyConformance):
    """The laws every strategy obeys."""

    strategy = a_strategy(RemovePodsViolatingInterPodAntiAffinity)
