"""A node that is starting is not emptied, and neither is it filled nor judged by what it uses."""

from datetime import timedelta
from typing import Any

import pytest

from plimsoll.framework.descheduling.measurements import Measurements, Sample
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.strategies.high_node_utilization import HighNodeUtilization
from plimsoll.strategies.low_node_utilization import LowNodeUtilization
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.descheduling.starting_nodes import starting
from strategies.builders import NOW, a_context, a_strategy, an_evictor, evicted, pods_on

YOUNG = {"creationTimestamp": (NOW - timedelta(minutes=9)).isoformat()}
OLD = {"creationTimestamp": (NOW - timedelta(minutes=10)).isoformat()}
KARPENTER = {"karpenter.sh/registered": "true"}


def agent(*, ready: bool, owner: str = "DaemonSet/agent") -> Pod:
    """A pod on the new node."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    return a_pod("agent", node="new", owner=owner, status=status)


@pytest.mark.parametrize(
    ("node", "pods", "said"),
    [
        pytest.param({}, [], "", id="nothing-says-so"),
        pytest.param(YOUNG, [], "", id="young-and-without-daemon-sets"),
        pytest.param(
            {"taints": ["startup-taint.cluster-autoscaler.kubernetes.io/gpu:NoSchedule"]},
            [],
            "taint startup-taint.cluster-autoscaler.kubernetes.io/gpu",
            id="taint-of-cluster-autoscaler",
        ),
        pytest.param(
            {"taints": ["karpenter.sh/unregistered:NoExecute"]},
            [],
            "taint karpenter.sh/unregistered",
            id="taint-of-karpenter",
        ),
        pytest.param({"taints": ["dedicated=gpu:NoSchedule"]}, [], "", id="another-taint"),
        pytest.param(
            {"labels": KARPENTER}, [], "Karpenter has not labelled it karpenter.sh/initialized", id="label"
        ),
        pytest.param({"labels": {**KARPENTER, "karpenter.sh/initialized": "true"}}, [], "", id="initialized"),
        pytest.param(
            YOUNG, [agent(ready=False)], "pod default/agent of a DaemonSet is not ready", id="its-agent"
        ),
        pytest.param(YOUNG, [agent(ready=True)], "", id="its-agent-is-ready"),
        pytest.param(YOUNG, [agent(ready=False, owner="ReplicaSet/web")], "", id="not-an-agent"),
        pytest.param(OLD, [agent(ready=False)], "", id="ten-minutes-are-enough"),
    ],
)
def test_what_says_that_a_node_is_starting(node: dict[str, Any], pods: list[Pod], said: str) -> None:
    """Marks for as long as they are there, DaemonSets for ten minutes."""
    found = starting(a_node("new", **node), [*a_context([a_node("new")], pods).placed("new")], NOW)

    assert found == (f"it is starting: {said}" if said else "")


def emptied(new: Node, *, exact: bool) -> list[str]:
    """The pods that leave, where the new node has one pod and two others have some."""
    pods = [*pods_on("new", 1, cpu="400m"), *pods_on("n1", 5, cpu="400m"), *pods_on("n2", 6, cpu="400m")]
    context = a_context([new, a_node("n1"), a_node("n2")], pods, evictor=an_evictor(), exact=exact)
    gone = evicted(a_strategy(HighNodeUtilization, thresholds={"cpu": 30}), context)
    told = f"node {new.name} is not emptied: it is starting: Karpenter has not labelled it"
    assert any(each.startswith(told) for each in context.remarks) is (gone == [])
    return gone


STARTING, STARTED = a_node("new", labels=KARPENTER), a_node("new")


def test_it_is_not_emptied() -> None:
    """Until it has started; planner Upstream empties it."""
    assert emptied(STARTED, exact=False) == ["new-0"]
    assert emptied(STARTING, exact=False) == []
    assert emptied(STARTING, exact=True) == ["new-0"]


def test_little_used_nodes_are_not_emptied_onto_it() -> None:
    """It is under-used itself, although it is not emptied: two others are, onto one that is well used."""
    nodes = [STARTING, a_node("n1"), a_node("n2")]
    pods = [*pods_on("new", 1, cpu="400m"), *pods_on("n1", 1, cpu="400m"), *pods_on("n2", 6, cpu="400m")]
    context = a_context(nodes, pods, evictor=an_evictor(), exact=False)
    evicted(a_strategy(HighNodeUtilization, thresholds={"cpu": 30}), context)

    assert context.classes[0].overutilized == ("n2",)


@pytest.mark.parametrize("measured", [False, True], ids=["by-requests", "by-use"])
@pytest.mark.parametrize(
    ("new", "exact", "classes"),
    [
        pytest.param(STARTED, False, (("new",), ("n1",)), id="started"),
        pytest.param(STARTING, False, ((), ("n1",)), id="starting"),
        pytest.param(STARTING, True, (("new",), ("n1",)), id="for-upstream"),
    ],
)
def test_over_used_nodes_are_not_relieved_onto_it(
    new: Node, exact: bool, classes: tuple[Any, ...], measured: bool
) -> None:
    """Its emptiness is the room for which it came."""
    args: dict[str, Any] = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}
    if measured:
        source = {"source": "Prometheus", "prometheus": {"query": "load"}}
        args = {
            "metricsUtilization": source,
            "thresholds": {"MetricResource": 30},
            "targetThresholds": {"MetricResource": 50},
        }
    samples = [Sample({"instance": "new"}, 0.1), Sample({"instance": "n1"}, 0.9)]
    pods = [*pods_on("new", 1, cpu="400m"), *pods_on("n1", 6, cpu="400m")]
    measurements = Measurements(samples={"load": samples})
    context = a_context([new, a_node("n1")], pods, exact=exact, measurements=measurements)
    evicted(a_strategy(LowNodeUtilization, **args), context)

    (found,) = context.classes
    assert (found.underutilized, found.overutilized) == classes
    told = any(each.startswith("what starting nodes use does not count: new") for each in context.remarks)
    assert told is (measured and classes[0] == ())


def test_the_load_of_a_starting_node_does_not_drive_pods_off_it() -> None:
    """Pulling images uses the processor for a while."""
    source = {"source": "Prometheus", "prometheus": {"query": "load"}}
    args = {
        "metricsUtilization": source,
        "thresholds": {"MetricResource": 30},
        "targetThresholds": {"MetricResource": 50},
    }
    samples = [Sample({"instance": "new"}, 0.9), Sample({"instance": "n1"}, 0.1)]
    found = {}
    for new in (STARTED, STARTING):
        measurements = Measurements(samples={"load": samples})
        context = a_context([new, a_node("n1")], pods_on("new", 3), exact=False, measurements=measurements)
        found[new is STARTED] = evicted(a_strategy(LowNodeUtilization, **args), context)

    assert found == {True: ["new-0"], False: []}


def test_the_mean_that_moves_pods_is_the_mean_that_judges_them() -> None:
    """Without the starting node the mean is 0.5, and 0.7 is the line for sources and for complaints."""
    source = {"source": "Prometheus", "prometheus": {"query": "load"}}
    low = a_strategy(
        LowNodeUtilization,
        metricsUtilization=source,
        useDeviationThresholds=True,
        thresholds={"MetricResource": 20},
        targetThresholds={"MetricResource": 20},
    )
    samples = [Sample({"instance": name}, use) for name, use in (("new", 0.95), ("n1", 0.25), ("n2", 0.75))]
    measurements = Measurements(samples={"load": samples})
    nodes = [STARTING, a_node("n1"), a_node("n2")]
    context = a_context(nodes, pods_on("n2", 3), exact=False, measurements=measurements)

    evicted(low, context)

    assert context.classes[0].overutilized == ("n2",)
    assert low.load_lines(context) == {"MetricResource": 70}
    told = {str(each): excess for each, excess in low.complaints(context).items()}
    assert [excess for each, excess in told.items() if "node n2 " in each] == [5.0]
