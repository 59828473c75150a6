"""The cluster after moves as strategies will see it: replacements serve, and usage has followed them."""

import pytest
from msgspec.structs import replace

from planning.rounds import NOW, UNLIMITED, a_policy
from plimsoll.framework.descheduling.measurements import Measurements, Planner, Sample
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.aftermath import aftermath, shifted
from plimsoll.planning.moves import PlanningContext
from plimsoll.planning.planners import make_plan
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from trials.starts import READY

BILLION = 10**9
MEASURED = (
    "LowNodeUtilization",
    {
        "thresholds": {"cpu": 30},
        "targetThresholds": {"cpu": 50},
        "metricsUtilization": {"source": "KubernetesMetrics"},
    },
)
QUERIED = (
    "LowNodeUtilization",
    {
        "thresholds": {"MetricResource": 30},
        "targetThresholds": {"MetricResource": 50},
        "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": "load"}},
    },
)


def usage(cpu: int) -> dict[str, int]:
    return {"cpu": cpu * BILLION, "memory": BILLION}


def a_hot_node() -> Cluster:
    """Eight pods that request next to nothing on one of two nodes of ten cpus."""
    return a_cluster(
        [a_node("hot", cpu="10"), a_node("idle", cpu="10")],
        [a_pod(f"p{n}", node="hot", owner=f"ReplicaSet/r{n}", cpu="1m", status=READY) for n in range(8)],
    )


def around() -> PlanningContext:
    pods = {f"default/p{n}": usage(1) for n in range(8)}
    return PlanningContext(NOW, measurements=Measurements({"hot": usage(8), "idle": usage(0)}, pods))


def test_measured_usage_follows_the_pods() -> None:
    """Three of eight cpus are to go: afterwards the hot node is at five, and no strategy wants more."""
    cluster = a_hot_node()
    policy = a_policy(MEASURED, evictor={}, limits=UNLIMITED, planner=Planner.OPTIMAL)

    made = make_plan(policy, cluster, around())

    assert len(made.moves) == 3
    assert made.optimisation.before == 3000
    assert made.optimisation.value == 3
    _, then = aftermath(cluster, around(), made.moves)
    assert (then.measurements.nodes["hot"]["cpu"], then.measurements.nodes["idle"]["cpu"]) == (  # type: ignore[index] # known to exist in this test
        5 * BILLION,
        3 * BILLION,
    )


def test_what_a_query_says_of_a_node_is_not_known_when_pods_have_left() -> None:
    """One pod a node and run, as upstream has it; the node is asked again before the next."""
    samples = [Sample({"instance": "hot"}, 0.8), Sample({"instance": "idle"}, 0.1)]
    then = replace(around(), measurements=Measurements(samples={"load": samples}))
    policy = a_policy(QUERIED, evictor={}, limits=UNLIMITED, planner=Planner.OPTIMAL)

    made = make_plan(policy, a_hot_node(), then)

    assert len(made.moves) == 1
    _, later = aftermath(a_hot_node(), then, made.moves)
    assert [sample.labels["instance"] for sample in (later.measurements.samples or {})["load"]] == ["idle"]


def test_replacements_serve_and_are_young() -> None:
    """Strategies judge their places: not that they start, nor what their predecessors went through."""
    cluster = a_hot_node()
    policy = a_policy(MEASURED, evictor={}, limits=UNLIMITED, planner=Planner.OPTIMAL)
    moves = make_plan(policy, cluster, around()).moves

    fork, _ = aftermath(cluster, around(), moves)

    heirs = [pod for pod in fork.pods.values() if pod.uid not in cluster.pods]
    assert len(heirs) == 3
    assert {pod.pod.metadata.creation_timestamp for pod in heirs} == {NOW}
    assert {pod.pod.condition("Ready").status for pod in heirs} == {"True"}
    assert len(fork.pods) == len(cluster.pods) == 8
    with pytest.raises(KeyError):
        cluster.pods[heirs[0].uid]


def test_what_queries_measure_moves_along() -> None:
    """What they do not measure of pods is unknown of both nodes afterwards."""
    usage = {"hot": {"cpu": 8, "x": 5}, "idle": {"cpu": 1, "x": 5}, "third": {"cpu": 2, "x": 5}}
    known = Measurements(queried=usage, queried_pods={"default/p": {"cpu": 3}})

    assert shifted(known, [("default/p", "hot", "idle")]).queried == {
        "hot": {"cpu": 5},
        "idle": {"cpu": 4},
        "third": {"cpu": 2, "x": 5},
    }
    assert shifted(known, [("default/p", "hot", "hot")]).queried == usage
