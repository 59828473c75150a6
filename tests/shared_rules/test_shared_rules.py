"""Strategies have no reading of their own of the scheduler's rules; a planted one is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.model.taints import NO_SCHEDULE, untolerated
from plimsoll.plugins.pod_topology_spread import PodTopologySpread
from plimsoll.strategies import remove_pods_violating_node_affinity as node_affinity
from plimsoll.strategies import remove_pods_violating_node_taints as node_taints
from plimsoll.strategies.remove_pods_violating_inter_pod_anti_affinity import (
    RemovePodsViolatingInterPodAntiAffinity,
)
from plimsoll.toolkit.descheduling.spread_populations import SpreadRule
from shared_rules.world import RULES, disagreements, proposals

SEEDS = (*range(1, 13), 20, 61)


@pytest.mark.parametrize("rule", RULES)
def test_a_strategy_moves_what_the_filter_refuses(rule: str) -> None:
    assert [sentence for seed in SEEDS for sentence in disagreements(seed, rule)] == []
    assert sum(len(proposals(seed, rule)) for seed in SEEDS) >= 10


def numeric_tolerations_count(patch: pytest.MonkeyPatch) -> None:
    def tolerant(taints: Any, tolerations: Any, effects: Any, *, numeric: bool) -> Any:
        return untolerated(taints, tolerations, effects, numeric=True)

    patch.setattr(node_taints, "untolerated", tolerant)


def no_execute_is_left_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(node_taints, "HARD_EFFECTS", frozenset((NO_SCHEDULE,)))


def node_selectors_are_not_read(patch: pytest.MonkeyPatch) -> None:
    def is_refused(pod: Any, node: str, _: str, context: Any) -> bool:
        required = pod.template.sample.spec.node_affinity.required
        labels = context.node(node).labels
        return required is not None and not pod.template.required_nodes.matches(labels, node)

    patch.setattr(node_affinity, "is_refused", is_refused)


def terms_are_read_as_by_descheduler(patch: pytest.MonkeyPatch) -> None:
    strategy = RemovePodsViolatingInterPodAntiAffinity
    patch.setattr(strategy, "candidates", strategy._as_upstream)


def the_least_number_of_domains_is_not_read(patch: pytest.MonkeyPatch) -> None:
    read = SpreadRule.of
    patch.setattr(SpreadRule, "of", lambda *each: read(*each)._replace(min_domains=1))


def default_constraints_are_not_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PodTopologySpread, "gives_constraints", False)


FAULTS: dict[Callable[[pytest.MonkeyPatch], None], str] = {
    numeric_tolerations_count: "TaintToleration",
    no_execute_is_left_out: "TaintToleration",
    node_selectors_are_not_read: "NodeAffinity",
    terms_are_read_as_by_descheduler: "InterPodAffinity",
    the_least_number_of_domains_is_not_read: "PodTopologySpread",
    default_constraints_are_not_read: "PodTopologySpread",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_second_reading_is_found(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)

    assert any(disagreements(seed, FAULTS[fault]) for seed in SEEDS)
