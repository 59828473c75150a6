"""The Upstream planner for a policy: descheduler's decisions as moves whose targets are forecasts."""

import pytest

from engine.moving import SURROUNDINGS, Named, a_rebalancing, reasons, targets
from plimsoll.engine.limits import NO_CEILING, Ceiling, Limits
from plimsoll.engine.planners import ask_again, make_plan
from plimsoll.framework.strategy import Refusal
from plimsoll.framework.strategy_context import Planner
from plimsoll.testing.builders import a_cluster, a_node, a_pod

FREE = Limits(per_workload=NO_CEILING)


def a_policy(*names, limits=FREE, **given):
    return a_rebalancing(Named(*names), limits=limits, planner=Planner.UPSTREAM, **given)


def crowded():
    """The emptier node is the one that the pods are on: nothing proves a move away from it."""
    pods = [a_pod(f"p{n}", cpu="1", node="calm", owner="ReplicaSet/web") for n in range(2)]
    busy = a_pod("x", cpu="1", node="busy")
    return a_cluster([a_node("calm", cpu="8"), a_node("busy", cpu="2")], [*pods, busy])


def test_what_no_proof_supports_is_moved_all_the_same():
    """The scheduler would put it back; Proven refuses, descheduler evicts."""
    cluster = crowded()

    proven = make_plan(a_rebalancing(Named("p0"), limits=FREE), cluster, SURROUNDINGS)
    exact = make_plan(a_policy("p0"), cluster, SURROUNDINGS)

    assert reasons(proven) == {"p0": "WouldReturn"}
    assert targets(exact) == {"p0": "calm"}  # and the forecast says that it comes back
    (move,) = exact.moves
    assert (move.is_forecast, move.planner, move.reason) == (True, Planner.UPSTREAM, "it was named")


def test_a_pod_without_any_place_has_no_target():
    """Descheduler evicts it without node fit; the plan does not pretend to know where it goes."""
    pod = a_pod("p0", cpu="1", node="calm", owner="ReplicaSet/web")
    cluster = a_cluster(
        [a_node("calm", cpu="1"), a_node("busy", cpu="1")],
        [pod, a_pod("x", cpu="1", node="busy"), a_pod("y", cpu="1", node="calm")],
    )

    assert targets(make_plan(a_policy("p0"), cluster, SURROUNDINGS)) == {"p0": ""}


@pytest.mark.parametrize(
    ("limits", "moved", "reason"),
    [
        (Limits(total=Ceiling(count=1), per_workload=NO_CEILING), 1, "TotalLimit"),
        (Limits(total=Ceiling(percent=34), per_workload=NO_CEILING), 1, "TotalLimit"),
        (Limits(per_node=Ceiling(percent=50), per_workload=NO_CEILING), 1, "NodeLimit"),
        (Limits(per_workload=Ceiling(count=1)), 1, "WorkloadLimit"),
        (Limits(budgets=(("freeze", Ceiling(count=0)),), per_workload=NO_CEILING), 0, "EvictionBudget"),
    ],
)
def test_the_limits_of_the_policy_hold(limits, moved, reason):
    """Shares are of the pods that there are; what a limit keeps is told."""
    found = make_plan(a_policy("p0", "p1", limits=limits), crowded(), SURROUNDINGS)

    assert len(found.moves) == moved
    assert reason in {each.refusal.reason for each in found.refused}


def test_right_before_the_eviction_only_the_pod_is_asked_for():
    """It stands, so it goes; on another node or gone, it stays."""
    cluster = crowded()
    policy = a_policy("p0")
    (move,) = make_plan(policy, cluster, SURROUNDINGS).moves

    assert ask_again(move, policy, cluster, SURROUNDINGS) == move
    cluster.displace(move.pod.uid)
    gone = ask_again(move, policy, cluster, SURROUNDINGS)
    assert isinstance(gone, Refusal)
    assert gone.reason == "Gone"
