"""A plan whose moves are taken back is unchanged: places, measured use by node, and refusals."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from planning.rounds import NOW, a_policy
from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.planning.complaint_comparison import ProposedMove
from plimsoll.planning.moves import Move, PlanningContext, workload_of
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from trials.starts import READY


def a_trip(pod: PodInfo, source: str = "hot", target: str = "idle") -> Move:
    """The move of a pod to the other node."""
    return Move(
        pod,
        "RemovePodsViolatingNodeTaints",
        "it is hot",
        source,
        target,
        gain=None,
        ties=0,
        is_forecast=False,
        workload=workload_of(pod),
    )


def contents(plan: PlanBuilder) -> Any:
    """Places by pod, and the usage of nodes from both sources."""
    measured = plan.context.measurements
    return {pod.key: plan.fork.nodes[row].name for pod, row in plan.fork.placed()}, {
        source: {node: dict(usage) for node, usage in (found or {}).items()}
        for source, found in (("metrics", measured.nodes), ("queried", measured.queried))
    }


@settings(max_examples=20)
@given(
    use=st.lists(st.integers(0, 9), min_size=3, max_size=3),
    taken=st.permutations(range(3)),
    again=st.booleans(),
)
def test_what_is_taken_back_leaves_no_trace(use: list[int], taken: list[int], again: bool) -> None:
    """In any order, and a second time."""
    pods = [a_pod(f"p{at}", node="hot", owner=f"ReplicaSet/r{at}", cpu="1m", status=READY) for at in range(3)]
    cluster = a_cluster([a_node("hot", cpu="10", unschedulable=True), a_node("idle", cpu="10")], pods)
    usage = {pod.key: {"cpu": each} for pod, each in zip(pods, use, strict=True)}
    nodes = {"hot": {"cpu": 40}, "idle": {"cpu": 10}}
    measured = Measurements(nodes, usage, queried=nodes, queried_pods=usage)
    policy = a_policy(evictor={})
    plan = PlanBuilder(policy, cluster, PlanningContext(NOW, measurements=measured))
    before = contents(plan)
    moves = [a_trip(cluster.pods[pod.uid]) for pod in pods]
    for _ in range(1 + again):
        for move in moves:
            plan.make(move)
        assert contents(plan)[1]["metrics"]["idle"] == {"cpu": 10 + sum(use)}
        for at in taken:
            plan.take_back(moves[at])
        assert contents(plan) == before


LOW = ("LowNodeUtilization", {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}})


@settings(max_examples=20)
@given(steps=st.lists(st.integers(0, 3), min_size=1, max_size=8), use=st.integers(3, 7))
@example(steps=[0, 0, 1, 1], use=6)
def test_what_crowds_a_node_is_asked_again_after_each_move_and_each_undoing(
    steps: list[int], use: int
) -> None:
    """Pods leave the target or come back; others like it are refused there by its use of now."""
    counts = {"hot": 9, "idle": use, "spare": 0}
    pods = [
        a_pod(f"{node}-{at}", node=node, owner=f"ReplicaSet/{node}-{at}", cpu="1", status=READY)
        for node, count in counts.items()
        for at in range(count)
    ]
    cluster = a_cluster([a_node(name, cpu="10") for name in counts], pods)
    plan = PlanBuilder(a_policy(LOW, evictor={"minReplicas": 0}), cluster, PlanningContext(NOW))
    leaving = [a_trip(plan.fork.pods[pod.uid], "idle", "spare") for pod in pods if pod.node_name == "idle"]
    hot = next(plan.fork.pods[pod.uid] for pod in pods if pod.node_name == "hot")
    gone: set[int] = set()
    for step in steps:
        place = step % len(leaving)
        if place in gone:
            plan.take_back(leaving[place])
        else:
            plan.make(leaving[place])
        gone ^= {place}

        known = plan.complaints.known_refusal(hot, "idle")
        found = plan.complaints.refusal(LOW[0], [ProposedMove(hot, "hot", "idle")])

        assert known is None
        assert (found is not None) == (use - len(gone) + 1 > 6)
        assert plan.complaints.known_refusal(hot, "idle") == found
