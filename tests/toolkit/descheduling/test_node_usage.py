"""Usage of nodes by requests, metrics and queries: exact or not at all upstream, node by node here."""

from typing import Any

import pytest

from plimsoll.framework.descheduling.measurements import Measurements, Sample
from plimsoll.framework.errors import PluginError
from plimsoll.strategies.low_node_utilization import LowNodeUtilization
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.descheduling.measured_usage import MeasuredUsage
from plimsoll.toolkit.descheduling.node_usage import (
    NodeUsage,
    NoUsage,
    QueriedUsage,
    RequestedUsage,
    UsageError,
)
from strategies.builders import a_context, a_strategy, evicted, pods_on

NODES = [a_node("n1", cpu="1", memory="1Gi"), a_node("n2", cpu="1", memory="1Gi")]


def amounts(cpu_milli: int, memory_bytes: int) -> dict[str, int]:
    """In billionths."""
    return {"cpu": cpu_milli * 10**6, "memory": memory_bytes * 10**9}


MEASURED = {"n1": amounts(900, 2**29), "n2": amounts(100, 2**28)}


def by_metrics(**kwargs: Any) -> Any:
    return a_strategy(
        LowNodeUtilization,
        **{
            "thresholds": {"cpu": 30},
            "targetThresholds": {"cpu": 50},
            "metricsUtilization": {"source": "KubernetesMetrics"},
            **kwargs,
        },
    )


class TestRequests:
    """The columns of the cluster, as percentages of what the nodes have."""

    def test_capacity_stands_in_for_allocatable(self) -> None:
        """Only when nothing is allocatable; a resource that the node lacks has no percentage."""
        bare = a_node("n1", status={"allocatable": {}, "capacity": {"cpu": "2", "memory": "0"}})
        context = a_context([bare], [a_pod("p", node="n1", cpu="1")])

        (usage,) = RequestedUsage(["example.com/x"]).nodes(context)

        assert usage.used == {"example.com/x": 0, "cpu": 10**9, "memory": 0, "pods": 10**9}
        assert usage.percent == {"cpu": 50.0, "memory": 0.0}
        assert (usage.name, usage.bulk) == ("n1", 1001)

    def test_a_querys_resource_is_known_of_every_node(self) -> None:
        """Named without a query it is not used, and there is room for it, as upstream has it."""
        (usage,) = RequestedUsage(["MetricResource"]).nodes(a_context([a_node("n1")], []))

        assert usage.percent["MetricResource"] == 0.0
        assert usage.capacity["MetricResource"] == 100 * 10**9

    def test_a_resource_that_no_node_has_is_an_error(self) -> None:
        """A typo; upstream finds every node under-used then, and does nothing without a word."""
        usage = RequestedUsage(["cpu", "example.com/dreams"])

        assert len(usage.nodes(a_context(NODES))) == 2
        with pytest.raises(UsageError, match=r"no node has example\.com/dreams; correct"):
            usage.nodes(a_context(NODES, exact=False))
        with pytest.raises(UsageError, match="no node has MetricResource"):
            RequestedUsage(["MetricResource"]).nodes(a_context(NODES, exact=False))
        assert usage.nodes(a_context([], exact=False)) == []


class TestMetrics:
    """What the metrics API says, of nodes and of pods."""

    def test_pods_leave_by_what_they_really_use(self) -> None:
        """Two of three suffice, since each uses twice what it asked for."""
        pods = pods_on("n1", 3, cpu="100m")
        used = {pod.key: amounts(200, 1) for pod in pods}
        measurements = Measurements(nodes=MEASURED, pods=used)

        assert evicted(by_metrics(), a_context(NODES, pods, measurements=measurements)) == ["n1-0", "n1-1"]

    def test_a_pod_without_measurement_is_passed_over(self) -> None:
        """The effect of its leaving is unknown."""
        pods = pods_on("n1", 2)
        used = {"default/n1-1": amounts(500, 1)}
        measurements = Measurements(nodes=MEASURED, pods=used)

        assert evicted(by_metrics(), a_context(NODES, pods, measurements=measurements)) == ["n1-1"]

    def test_a_node_without_measurement_is_an_error_upstream_and_left_out_here(self) -> None:
        """Requirement 8: one node does not change the decisions about the others."""
        nodes = [*NODES, a_node("n3")]
        measurements = Measurements(nodes=MEASURED, pods={"default/n1-0": amounts(500, 1)})

        with pytest.raises(PluginError, match="no measurement of node n3"):
            evicted(by_metrics(), a_context(nodes, pods_on("n1", 1), measurements=measurements))
        context = a_context(nodes, pods_on("n1", 1), measurements=measurements, exact=False)
        assert evicted(by_metrics(), context) == ["n1-0"]

    @pytest.mark.parametrize(
        ("strategy", "message"),
        [
            (by_metrics(), "there are no measurements of the metrics API"),
            (
                by_metrics(thresholds={"example.com/x": 1}, targetThresholds={"example.com/x": 2}),
                "measures cpu, memory, pods only; remove example.com/x",
            ),
            (by_metrics(metricsUtilization={}), "names no source"),
            (by_metrics(metricsUtilization={"source": "Foo"}), 'no metrics source "Foo"'),
        ],
    )
    def test_a_source_that_is_not_there_is_an_error(self, strategy: LowNodeUtilization, message: str) -> None:
        """The sentence says what to do."""
        with pytest.raises(PluginError, match=message):
            evicted(strategy, a_context(NODES, pods_on("n1", 1)))

    def test_the_deprecated_spelling_means_the_same(self) -> None:
        """metricsServer: true."""
        strategy = by_metrics(metricsUtilization={"metricsServer": True})

        with pytest.raises(PluginError, match="no measurements of the metrics API"):
            evicted(strategy, a_context(NODES))


class TestQueries:
    """One value a node, labelled instance, from 0 to 1."""

    @pytest.mark.parametrize(
        "sample", [Sample({"instance": "n2"}, 1.5), Sample({}, 0.5), Sample({"instance": "n2"}, float("nan"))]
    )
    def test_a_value_that_makes_no_sense(self, sample: Sample) -> None:
        """An error upstream, a missing sample here."""
        samples = [Sample({"instance": "n1"}, 0.5695), sample]

        with pytest.raises(UsageError, match="from 0 to 1 labelled instance"):
            QueriedUsage().nodes(a_context(NODES, measurements=Measurements(samples={"": samples})))
        usages = QueriedUsage().nodes(
            a_context(NODES, measurements=Measurements(samples={"": samples}), exact=False)
        )
        assert [(usage.name, usage.used) for usage in usages] == [("n1", {"MetricResource": 56 * 10**9})]

    def test_two_values_for_one_node_count_as_missing(self) -> None:
        """Upstream takes the last one; which is right is unknown, so here the node is left out."""
        samples = [Sample({"instance": "n1"}, 0.1), Sample({"instance": "n1"}, 0.9)]
        same = [Sample({"instance": "n2"}, 0.5), Sample({"instance": "n2"}, 0.5)]
        measurements = Measurements(samples={"": [*samples, *same]})

        (first, _) = QueriedUsage().nodes(a_context(NODES, measurements=measurements))
        context = a_context(NODES, measurements=measurements, exact=False)

        assert first.used == {"MetricResource": 90 * 10**9}
        assert [usage.name for usage in QueriedUsage().nodes(context)] == ["n2"]
        (remark,) = context.remarks
        assert remark.endswith("no single value from 0 to 1 for 1 of 2 nodes, which are left out: n1")

    @pytest.mark.parametrize(
        ("samples", "told"),
        [
            ([], "returned nothing; it must return one value from 0 to 1 for each node"),
            ([Sample({"node": "n1"}, 0.5)], "first of its 1 samples is labelled node$"),
            ([Sample({}, 0.5)] * 2, "first of its 2 samples is labelled nothing$"),
            ([Sample({"instance": "10.0.0.1:9100"}, 0.5)], "first of its 1 samples is labelled instance$"),
        ],
    )
    def test_an_answer_about_no_node_is_reported(self, samples: list[Sample], told: str) -> None:
        """An empty vector, other labels, addresses instead of names: nothing happens, and not in silence."""
        context = a_context(NODES, measurements=Measurements(samples={"": samples}), exact=False)

        with pytest.raises(UsageError, match=told):
            QueriedUsage().nodes(context)

    def test_no_answer_is_an_error(self) -> None:
        """The server timed out, or was never queried."""
        with pytest.raises(UsageError, match="no answer to the Prometheus query"):
            QueriedUsage().nodes(a_context(NODES))


def test_nothing_is_known_of_pods_without_a_source() -> None:
    """A source that does not exist is never asked about pods."""
    context = a_context(NODES, pods_on("n1", 1))
    (pod,) = context.cluster.pods.values()

    assert NoUsage("x").pod(pod, context) is None
    for asked in (NoUsage("x").nodes, lambda given: NoUsage("x").some(["n1"], given)):
        with pytest.raises(UsageError, match='there is no metrics source "x"'):
            asked(context)
    assert QueriedUsage().pod(pod, context) is None
    with pytest.raises(UsageError, match="no measurement of pod default/n1-0"):
        MeasuredUsage([]).pod(pod, context)


def test_no_capacity_is_no_use() -> None:
    """Of nothing, nothing is used."""
    assert NodeUsage(NODES[0], {"cpu": 5}, {"cpu": 0}).percent == {"cpu": 0.0}


def test_sums_are_exact_where_exactness_is_wanted() -> None:
    """Ten pods of 100u are one milli; the scheduler's columns count one milli each."""
    pods = pods_on("n1", 10, cpu="100u")

    for exact, milli in ((True, 1), (False, 10)):
        usage, _ = RequestedUsage(["cpu"]).nodes(a_context(NODES, pods, exact=exact))
        assert usage.used["cpu"] == milli * 10**6
