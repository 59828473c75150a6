"""A plugin or an evictor that fails when a strategy asks it is named, and harms no other."""

from typing import Any

import numpy as np
import pytest

from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import PluginError, Registry
from plimsoll.framework.descheduling import StrategyContext
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.plugins.inter_pod_affinity import InterPodAffinity
from plimsoll.plugins.node_affinity import NodeAffinity
from plimsoll.plugins.pod_topology_spread import PodTopologySpread
from plimsoll.strategies.remove_pods_violating_inter_pod_anti_affinity import _rivalries
from plimsoll.strategies.remove_pods_violating_node_affinity import REQUIRED, RemovePodsViolatingNodeAffinity
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.descheduling.filter_answers import is_refused, refused_nodes
from plimsoll.toolkit.descheduling.spread_populations import _rules_of
from strategies.builders import a_context, a_strategy

NAMES = ("NodeAffinity", "InterPodAffinity", "PodTopologySpread")
WRONG: dict[str, Any] = {
    "a list": [],
    "a number": 7,
    "a wrong shape": np.zeros(5, dtype=np.int64),
    "a wrong type": np.zeros(1, dtype=np.float64),
}


def profile(name: str) -> Any:
    defaults = [Enabled(*each) for each in DEFAULT_PLUGINS.items()]
    return build_profile(ProfileConfig(name), Registry(IN_TREE), defaults)


@pytest.fixture
def context() -> StrategyContext:
    """Node n with a pod of each of two schedulers, whose profiles have plugins of their own."""
    found = a_context([a_node("n")], [a_pod("ill", node="n"), a_pod("well", node="n")], exact=False)
    profiles = {each: profile(each) for each in ("ill", "well")}

    class Prospects:
        def filters(self, pod: Any) -> Any:
            return {each.name: each for each in profiles[pod.name].filter}

    found.prospects = Prospects()  # type: ignore[assignment] # as far as it is asked
    return found


def asked(name: str, pod: str, context: StrategyContext) -> object:
    """A strategy's question to that plugin about a pod."""
    info = next(each for each in context.pods("n") if each.name == pod)
    if name == "NodeAffinity":
        return refused_nodes(info, name, context)
    if name == "InterPodAffinity":
        return _rivalries(info, context)
    return _rules_of(info, ("DoNotSchedule",), context)


def ill(context: StrategyContext, name: str, monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[int]:
    """Let the plugin of one profile raise, or answer wrongly; returns its calls."""
    calls: list[int] = []
    info = next(each for each in context.pods("n") if each.name == "ill")
    filters = context.prospects.filters(info)
    assert filters is not None
    sick = filters[name]
    for kind, point in (
        (NodeAffinity, "pre_filter"),
        (InterPodAffinity, "rivalries"),
        (PodTopologySpread, "constraints"),
    ):
        if not isinstance(sick, kind):
            continue
        healthy = getattr(kind, point)

        def point_of(self: Any, *args: Any, healthy: Any = healthy) -> Any:
            if self is not sick:
                return healthy(self, *args)
            calls.append(1)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        monkeypatch.setattr(kind, point, point_of)
    return calls


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("what", ["raises", "exits", *WRONG])
def test_a_filter_that_fails_is_named_once_and_the_other_schedulers_pods_are_judged(
    name: str, what: str, context: StrategyContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = asked(name, "well", context)
    answer = {"raises": RuntimeError("boom"), "exits": SystemExit(3), **WRONG}[what]
    calls = ill(context, name, monkeypatch, answer)
    context.kept.clear()

    assert not asked(name, "ill", context)
    assert not asked(name, "ill", context)

    assert [each.plugin for each in context.failures] == [name]
    assert calls == [1]
    assert asked(name, "well", context) == expected


def bound_to(node: str) -> dict[str, Any]:
    """The node affinity of a DaemonSet's pod."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}}


def ssd(*, named: str = "") -> dict[str, Any]:
    """A label, and maybe the name of a node that serves as well."""
    terms: list[dict[str, Any]] = [
        {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    ]
    terms += bound_to(named)["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] if named else []
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("affinity", "accepted"),
    [
        pytest.param(bound_to("n1"), "n1", id="named"),
        pytest.param(bound_to("none"), "", id="unknown"),
        pytest.param(ssd(), "n1 n3 n5", id="labelled"),
        pytest.param(ssd(named="n2"), "n1 n2 n3 n5", id="labelled-or-named"),
        pytest.param({}, "n0 n1 n2 n3 n4 n5", id="any"),
    ],
)
def test_a_filter_says_of_one_node_what_it_says_of_all(affinity: dict[str, Any], accepted: str) -> None:
    nodes = [a_node(f"n{each}", labels={"disk": "ssd"} if each % 2 else {}) for each in range(6)]
    context = a_context(
        nodes, [a_pod(each, node=each, affinity=affinity) for each in ("n1", "n2")], exact=False
    )
    expected = [node.name not in accepted for node in context.cluster.nodes]

    for pod in context.cluster.pods.values():
        assert [is_refused(pod, each.name, "NodeAffinity", context) for each in nodes] == expected
        refused = refused_nodes(pod, "NodeAffinity", context)
        assert (refused is None and not any(expected)) or (
            refused is not None and refused.tolist() == expected
        )


def test_the_pods_of_a_daemon_set_are_not_compared_with_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"n{each:02}" for each in range(30)]
    pods = [a_pod(f"p-{name}", node=name, affinity=bound_to(name)) for name in names]
    context = a_context([a_node(name) for name in names], pods, exact=False)
    asked_about: list[int] = []
    answer = NodeAffinity.filter

    def counting(self: NodeAffinity, state: Any, pod: Any, snapshot: Any) -> Any:
        asked_about.append(len(snapshot))
        return answer(self, state, pod, snapshot)

    monkeypatch.setattr(NodeAffinity, "filter", counting)
    strategy = a_strategy(RemovePodsViolatingNodeAffinity, nodeAffinityType=[REQUIRED])

    assert list(strategy.candidates(context)) == []
    assert sum(asked_about) == len(pods)


@pytest.mark.parametrize("point", ["filter", "pre_eviction_filter"])
@pytest.mark.parametrize("what", ["raises", "a number"])
def test_an_evictor_that_fails_is_named_and_not_the_strategy(
    point: str, what: str, context: StrategyContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    (evictor,) = context.evictors

    def wrong(*_: Any) -> Any:
        if what == "raises":
            raise RuntimeError("boom")
        return 7

    monkeypatch.setattr(type(evictor), point, wrong)
    pod = next(iter(context.pods("n")))

    with pytest.raises(PluginError) as raised:
        (context.is_evictable if point == "filter" else context.is_movable)(pod)

    assert raised.value.plugin == evictor.name
