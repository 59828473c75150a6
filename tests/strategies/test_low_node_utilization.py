"""LowNodeUtilization, against the cases of upstream's own tests."""

from typing import Any

import pytest

from plimsoll.framework.descheduling.measurements import Measurements, Sample
from plimsoll.framework.descheduling.proposals import Verdict
from plimsoll.framework.errors import PluginError
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.planning.strategy_run import run_strategy
from plimsoll.strategies.low_node_utilization import LowNodeUtilization
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.strategy_conformance import StrategyConformance
from strategies.builders import a_context, a_strategy, an_evictor, evicted, pods_on

THRESHOLDS = {"thresholds": {"cpu": 30, "pods": 30}, "targetThresholds": {"cpu": 50, "pods": 50}}


def the_nodes() -> list[Node]:
    return [
        a_node("n1", cpu="4", memory=3000, pods=9),
        a_node("n2", cpu="4", memory=3000, pods=10),
        a_node("n3", cpu="4", memory=3000, pods=10, unschedulable=True),
    ]


def the_pods(**kwargs: Any) -> list[Pod]:
    protected = [a_pod(f"z{n}", node="n1", cpu="400m", owner="DaemonSet/ds") for n in range(3)]
    movable = pods_on("n1", 5, cpu="400m", **kwargs)
    return [*movable, *protected, a_pod("p9", node="n2", cpu="400m", owner="ReplicaSet/other")]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        # n1 8 pods of 400m: until 3200m is 1600m (target 2000m) and 8 pods are 4 (int(4.5))
        pytest.param({}, 4, id="until-below-target"),
        pytest.param({"evictionLimits": {"node": 2}}, 2, id="own-node-limit"),
        pytest.param({"evictableNamespaces": {"exclude": ["default"]}}, 0, id="excluded-namespace"),
        pytest.param({"numberOfNodes": 1}, 0, id="too-few-under"),
    ],
)
def test_pods_leave_until_the_node_is_at_its_target(args: dict[str, Any], expected: int) -> None:
    """The cases of upstream's test with requests as the yardstick."""
    context = a_context(the_nodes(), the_pods(), evictor=an_evictor(nodeFit=True))

    assert len(evicted(a_strategy(LowNodeUtilization, **THRESHOLDS, **args), context)) == expected
    assert context.classes[0].underutilized == ("n2",)
    assert context.classes[0].overutilized == ("n1",)


@pytest.mark.parametrize(
    ("cores", "is_under", "is_over"),
    [(2, True, False), (3, True, False), (4, False, False), (5, False, False), (6, False, True)],
)
def test_a_node_at_a_line_is_below_it(cores: int, is_under: bool, is_over: bool) -> None:
    """Upstream compares the low line with at most, the high one with more than."""
    pods = pods_on("n1", cores, cpu="1")
    context = a_context([a_node(name, cpu="10", pods=100) for name in ("n1", "n2")], pods)

    evicted(a_strategy(LowNodeUtilization, thresholds={"cpu": 30}, targetThresholds={"cpu": 50}), context)

    (found,) = context.classes
    assert ("n1" in found.underutilized, "n1" in found.overutilized) == (is_under, is_over)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"thresholds": {"cpu": 5}, "targetThresholds": {"cpu": 50}}, "no node is underutilized, nothing"),
        ({"numberOfNodes": 1}, "nodes underutilized (1) is less or equal than numberOfNodes (1), nothing"),
        ({"thresholds": {"cpu": 100}, "targetThresholds": {"cpu": 100}}, "all nodes are underutilized"),
        ({"targetThresholds": {"cpu": 95, "pods": 95}}, "all nodes are under target utilization, nothing"),
    ],
)
def test_who_does_nothing_says_why(args: dict[str, Any], told: str) -> None:
    """In upstream's words, which it logs only."""
    context = a_context(the_nodes()[:2], the_pods(), exact=False)

    assert evicted(a_strategy(LowNodeUtilization, **{**THRESHOLDS, **args}), context) == []
    (remark,) = context.remarks
    assert told in remark


def test_the_reason_names_what_is_over_used_and_nothing_else() -> None:
    """With the use and the target."""
    said = set()

    def judge(candidate: Any) -> Verdict:
        said.add(candidate.reason)
        return Verdict.REFUSED

    nodes = [a_node("n1", cpu="4", pods=100), a_node("n2", cpu="4", pods=100)]
    run_strategy(a_strategy(LowNodeUtilization, **THRESHOLDS), a_context(nodes, the_pods()), judge)

    assert said == {"its node is over-used: cpu 80.0% (target 50.0%)"}


def test_deviation_thresholds_follow_the_mean() -> None:
    """The mean of 80, 10 and 0 % cpu is 30 %: with 5 the high line of n1 is 35 %, int(3.4) pods of 9."""
    context = a_context(the_nodes(), the_pods(), evictor=an_evictor(nodeFit=True))
    strategy = a_strategy(
        LowNodeUtilization,
        thresholds={"cpu": 5, "pods": 5},
        targetThresholds={"cpu": 5, "pods": 5},
        useDeviationThresholds=True,
    )

    assert len(evicted(strategy, context)) == 2


def test_a_destination_without_the_resource_stops_all() -> None:
    """The pooled room of every resource must stay positive."""
    nodes = [a_node("n1", allocatable={"example.com/x": 8}), a_node("n2")]
    pods = pods_on("n1", 5, requests={"example.com/x": 1})
    strategy = a_strategy(
        LowNodeUtilization, thresholds={"example.com/x": 30}, targetThresholds={"example.com/x": 50}
    )

    assert evicted(strategy, a_context(nodes, pods)) == []


QUERIED = {
    "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": "load"}},
    "thresholds": {"MetricResource": 30},
    "targetThresholds": {"MetricResource": 50},
}

MIXED = {"MetricResource": 30, "cpu": 30}


@pytest.mark.parametrize(
    ("limit", "expected"), [pytest.param(None, 1, id="one-a-node"), pytest.param(3, 3, id="as-limited")]
)
def test_a_query_moves_one_pod_a_node_or_as_many_as_limited(limit: int | None, expected: int) -> None:
    """What a pod uses is unknown, so the need is not looked at again in between."""
    samples = [Sample({"instance": f"n{n}"}, value) for n, value in ((1, 0.5696), (2, 0.4245), (3, 0.2038))]
    nodes = [a_node(f"n{n}") for n in (1, 2, 3)]
    context = a_context(nodes, pods_on("n1", 5), measurements=Measurements(samples={"load": samples}))
    args = {} if limit is None else {"evictionLimits": {"node": limit}}

    assert len(evicted(a_strategy(LowNodeUtilization, **QUERIED, **args), context)) == expected


def test_a_node_without_measurement_stops_upstream_only() -> None:
    """Upstream fails and evicts nothing; Proven leaves that node out."""
    samples = [Sample({"instance": "n1"}, 0.9), Sample({"instance": "n2"}, 0.1)]
    nodes, pods = [a_node(f"n{n}") for n in (1, 2, 3)], pods_on("n1", 3)
    measured = Measurements(samples={"load": samples})
    strategy = a_strategy(LowNodeUtilization, **QUERIED)

    with pytest.raises(PluginError, match="no sample for node n3"):
        evicted(strategy, a_context(nodes, pods, measurements=measured))
    assert evicted(strategy, a_context(nodes, pods, measurements=measured, exact=False)) == ["n1-0"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, "no resource threshold is configured"),
        ({"thresholds": {"cpu": 101}, "targetThresholds": {"cpu": 50}}, "not in \\[0, 100\\] range"),
        ({"thresholds": {"cpu": 10}, "targetThresholds": {"memory": 50}}, "different resources"),
        ({"thresholds": {"cpu": 60}, "targetThresholds": {"cpu": 50}}, "greater than"),
        ({**THRESHOLDS, "evictableNamespaces": {"include": ["a"]}}, "inclusion is not supported"),
        ({**QUERIED, "metricsUtilization": {"source": "Prometheus"}}, "query is required"),
        (
            {**THRESHOLDS, "metricsUtilization": {"source": "KubernetesMetrics", "metricsServer": True}},
            "metricsServer cannot be set",
        ),
        (
            {**THRESHOLDS, "metricsUtilization": {"source": "KubernetesMetrics", "prometheus": {}}},
            "prometheus configuration is not allowed",
        ),
        (
            {**THRESHOLDS, "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": "x"}}},
            "a query of the strategy measures MetricResource, which",
        ),
        ({**THRESHOLDS, "tresholds": {}}, "Extra inputs"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(args: dict[str, Any], message: str) -> None:
    """With upstream's words where it has them."""
    with pytest.raises(ValueError, match=message):
        a_strategy(LowNodeUtilization, **args)


def test_queries_of_resources_go_by_what_they_measure() -> None:
    """One pod where pods are not measured; nodes without a value stay out of it, and Upstream then stops."""
    args = {"thresholds": {"cpu": 30, "x": 30}, "targetThresholds": {"cpu": 50, "x": 50}}
    strategy = a_strategy(LowNodeUtilization, metricsUtilization={"source": "Prometheus"}, **args)
    nodes = [a_node(name, cpu="4") for name in ("n1", "n2", "n3")]
    percent = 10**9
    usage = {"n1": {"cpu": 10**9, "x": 90 * percent}, "n2": {"cpu": 0, "x": 0}, "n3": {"cpu": 4 * 10**9}}
    measured = Measurements(queried=usage)
    pods = pods_on("n1", 5)

    assert evicted(strategy, a_context(nodes, pods, measurements=measured, exact=False)) == ["n1-0"]
    with pytest.raises(PluginError, match="returned no sound value for node n3"):
        evicted(strategy, a_context(nodes, pods, measurements=measured))
    with pytest.raises(PluginError, match="there is no answer to the Prometheus queries: no server"):
        evicted(strategy, a_context(nodes, pods, measurements=Measurements(problem="no server")))
    with pytest.raises(PluginError, match="measure cpu, x of no node"):
        evicted(strategy, a_context(nodes, pods, measurements=Measurements(queried={}), exact=False))


def test_queries_of_pods_say_how_many_have_to_go() -> None:
    """Each takes what it uses along; one that is not measured stays."""
    args = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}
    strategy = a_strategy(LowNodeUtilization, metricsUtilization={"source": "Prometheus"}, **args)
    nodes = [a_node("n1", cpu="4"), a_node("n2", cpu="4")]
    used = {"default/n1-0": {"memory": 1}, **{f"default/n1-{n}": {"cpu": 10**9} for n in (1, 2, 3)}}
    measured = Measurements(queried={"n1": {"cpu": 4 * 10**9}, "n2": {"cpu": 0}}, queried_pods=used)

    assert evicted(strategy, a_context(nodes, pods_on("n1", 5), measurements=measured)) == ["n1-1", "n1-2"]


COST = "controller.kubernetes.io/pod-deletion-cost"


def test_the_cheapest_leave_an_over_used_node_here() -> None:
    """Upstream knows no deletion cost: the first in order of names go."""
    costs = (4, -1, 3, -9, 2)
    pods = [
        a_pod(f"p{n}", node="n1", owner="ReplicaSet/web", cpu="700m", annotations={COST: str(cost)})
        for n, cost in enumerate(costs)
    ]
    nodes = [a_node("n1", cpu="4", pods=50), a_node("n2", cpu="4", pods=50)]
    strategy = a_strategy(LowNodeUtilization, thresholds={"cpu": 30}, targetThresholds={"cpu": 60})

    assert evicted(strategy, a_context(nodes, pods)) == ["p0", "p1"]
    assert evicted(strategy, a_context(nodes, pods, exact=False)) == ["p3", "p1"]


class TestConformance(StrategyConformance):
    """The laws every strategy obeys."""

    strategy = a_strategy(LowNodeUtilization, thresholds={"cpu": 20}, targetThresholds={"cpu": 50})
