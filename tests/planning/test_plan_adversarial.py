"""The planner against absurd clusters: it plans nothing, or something sound."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from planning.rounds import NOW, UNLIMITED, a_policy
from plimsoll.framework.descheduling.measurements import Measurements, Sample
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.planning.limits import Ceiling, Limits
from plimsoll.planning.moves import PlanningContext
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.columns import validate
from plimsoll.testing.drawn_worlds import some_cluster
from trials.rounds import USUAL

AROUND = PlanningContext(now=NOW)
ODD = {
    "no nodes": a_cluster,
    "one node": lambda: a_cluster([a_node("n1")], [a_pod("p", node="n1", owner="ReplicaSet/x")]),
    "a pod on an unknown node": lambda: a_cluster(
        [a_node("n1"), a_node("n2")], [a_pod("p", node="gone", owner="ReplicaSet/x")]
    ),
    "nodes without room": lambda: a_cluster(
        [a_node(name, cpu="0", memory="0", pods=0) for name in ("n1", "n2")],
        [a_pod(f"p{n}", node="n1", cpu="1", owner="ReplicaSet/x") for n in range(3)],
    ),
    "more than there is of everything": lambda: a_cluster(
        [a_node("n1", cpu="9E", memory="9E"), a_node("n2", cpu="9E", memory="9E", taints=["x:NoSchedule"])],
        [a_pod(f"p{n}", node="n1", cpu="8E", memory="1e30", owner="ReplicaSet/x") for n in range(3)],
    ),
    "all nodes alike": lambda: a_cluster(
        [a_node(f"n{n}") for n in range(5)],
        [a_pod(f"p{n}", node=f"n{n}", cpu="1", owner="ReplicaSet/x") for n in range(5)],
    ),
    "every node unready": lambda: a_cluster(
        [
            a_node(name, status={"conditions": [{"type": "Ready", "status": "Unknown"}]})
            for name in ("n1", "n2")
        ],
        [a_pod(f"p{n}", node="n1", owner="ReplicaSet/x") for n in range(3)],
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_clusters_plan_nothing(name: str) -> None:
    """Nothing is to be gained in any of them."""
    made = plan(a_policy(*USUAL, limits=UNLIMITED, evictor={}), ODD[name](), AROUND)  # type: ignore[no-untyped-call] # the library is untyped

    assert made.moves == ()
    assert made.failures == ()


def test_a_policy_without_strategies_plans_nothing() -> None:
    """And refuses nothing."""
    made = plan(a_policy(), ODD["all nodes alike"](), AROUND)  # type: ignore[no-untyped-call] # the library is untyped

    assert (made.moves, made.refused, made.considered) == ((), (), 0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_measurements_that_make_no_sense_move_no_pod(value: float) -> None:
    """Only that node is left out; with one node left there is nothing to compare."""
    strategy = (
        "LowNodeUtilization",
        {
            "thresholds": {"MetricResource": 30},
            "targetThresholds": {"MetricResource": 50},
            "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": "load"}},
        },
    )
    samples = [Sample({"instance": "n0"}, 0.9), Sample({"instance": "n1"}, value)]
    around = PlanningContext(now=NOW, measurements=Measurements(samples={"load": samples}))
    cluster = a_cluster(
        [a_node("n0"), a_node("n1")], [a_pod(f"p{n}", node="n0", owner="ReplicaSet/x") for n in range(4)]
    )

    made = plan(a_policy(strategy, evictor={}), cluster, around)

    assert (made.moves, made.failures) == ((), ())


def test_a_source_that_is_not_there_is_reported() -> None:
    """The strategy fails with a sentence, the others run."""
    strategy = (
        "LowNodeUtilization",
        {
            "thresholds": {"cpu": 30},
            "targetThresholds": {"cpu": 50},
            "metricsUtilization": {"source": "KubernetesMetrics"},
        },
    )

    made = plan(a_policy(strategy), ODD["all nodes alike"](), AROUND)  # type: ignore[no-untyped-call] # the library is untyped

    assert "there are no measurements of the metrics API" in str(made.failures[0])


@given(drawn=some_cluster(), total=st.integers(0, 3))
def test_anything_may_come(drawn: tuple[list[Node], list[Pod]], total: int) -> None:
    """Clusters with all that plugins look at: limits hold, targets are elsewhere, nothing is changed."""
    nodes, pods = drawn
    cluster = a_cluster(nodes, pods)
    before = sorted((pod.key, node) for pod, node in cluster.placed())
    policy = a_policy(*USUAL, limits=Limits(total=Ceiling(count=total)), evictor={})

    made = plan(policy, cluster, AROUND)

    assert made.failures == ()
    assert len(made.moves) <= total
    assert all(move.source != move.target for move in made.moves)
    # A move that its strategy directs, by an order of its own, need not gain by the scheduler's score.
    assert all(move.is_directed or move.gain is None or move.gain >= 1 for move in made.moves)
    assert sorted((pod.key, node) for pod, node in cluster.placed()) == before
    assert made.refused_by_reason().keys() <= {each.refusal.reason for each in made.refused}
    validate(cluster)
