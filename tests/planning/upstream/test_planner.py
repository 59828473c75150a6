"""The Upstream planner for a policy: descheduler's decisions as moves whose targets are forecasts."""

from typing import Any

import pytest

from planning.builders import SURROUNDINGS, Named, a_rebalancing, reasons, targets
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.limits import NO_CEILING, Ceiling, Limits
from plimsoll.planning.moves import RebalancingConfig
from plimsoll.planning.planners import ask_again, make_plan
from plimsoll.planning.upstream.cycle import EvictionAnswer, EvictionResult
from plimsoll.planning.upstream.planner import upstream_run
from plimsoll.testing.builders import a_cluster, a_node, a_pod

FREE = Limits(per_workload=NO_CEILING)


def a_policy(*names: str, limits: Limits = FREE, **given: Any) -> RebalancingConfig:
    return a_rebalancing(Named(*names), limits=limits, planner=Planner.UPSTREAM, **given)


def crowded() -> Cluster:
    """The emptier node is the one that the pods are on: nothing proves a move away from it."""
    pods = [a_pod(f"p{n}", cpu="1", node="calm", owner="ReplicaSet/web") for n in range(2)]
    busy = a_pod("x", cpu="1", node="busy")
    return a_cluster([a_node("calm", cpu="8"), a_node("busy", cpu="2")], [*pods, busy])


def test_what_no_proof_supports_is_moved_all_the_same() -> None:
    """The scheduler would put it back; Proven refuses, descheduler evicts."""
    cluster = crowded()

    proven = make_plan(a_rebalancing(Named("p0"), limits=FREE), cluster, SURROUNDINGS)
    exact = make_plan(a_policy("p0"), cluster, SURROUNDINGS)

    assert reasons(proven) == {"p0": "WouldReturn"}
    assert targets(exact) == {"p0": "calm"}  # and the forecast says that it comes back
    (move,) = exact.moves
    assert (move.is_forecast, move.planner, move.reason) == (True, Planner.UPSTREAM, "it was named")


def test_a_pod_without_any_place_has_no_target() -> None:
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
def test_the_limits_of_the_policy_hold(limits: Limits, moved: int, reason: str) -> None:
    """Shares are of the pods that there are; what a limit keeps is reported."""
    found = make_plan(a_policy("p0", "p1", limits=limits), crowded(), SURROUNDINGS)

    assert len(found.moves) == moved
    assert reason in {each.refusal.reason for each in found.refused}


def test_right_before_the_eviction_only_the_pod_is_asked_for() -> None:
    """It stands, so it goes; on another node or gone, it stays."""
    cluster = crowded()
    policy = a_policy("p0")
    (move,) = make_plan(policy, cluster, SURROUNDINGS).moves

    assert ask_again(move, policy, cluster, SURROUNDINGS) == move
    cluster.displace(move.pod.uid)
    gone = ask_again(move, policy, cluster, SURROUNDINGS)
    assert isinstance(gone, Refusal)
    assert gone.reason == "Gone"


@pytest.mark.parametrize(
    ("answer", "calm", "busy", "target"),
    [
        pytest.param(EvictionResult.TERMINATING, "1", "1", "", id="the-first-takes-the-room"),
        pytest.param(EvictionResult.REFUSED, "1", "1", "busy", id="the-first-leaves-the-room"),
        pytest.param(EvictionResult.REFUSED, "2", "0", "", id="the-first-stays-where-it-is"),
        pytest.param(EvictionResult.TERMINATING, "2", "0", "calm", id="the-first-goes"),
    ],
)
def test_a_target_is_forecast_by_what_became_of_the_moves_before(
    answer: EvictionResult, calm: str, busy: str, target: str
) -> None:
    """Three pods crowd one node; the place of the second one depends on the answer for the first one."""
    pods = [a_pod(name, cpu="1", node="calm", owner="ReplicaSet/web") for name in ("p0", "p1", "y")]
    cluster = a_cluster([a_node("calm", cpu=calm), a_node("busy", cpu=busy)], pods)
    run = upstream_run(a_policy("p0", "p1"), cluster, SURROUNDINGS)

    first = run.begin()
    second = run.answer(EvictionAnswer(answer))

    assert (first.pod.name, second.pod.name, second.target) == ("p0", "p1", target)


def test_a_pod_that_was_evicted_before_is_no_further_move() -> None:
    """The strategy is answered that it goes; nothing was sent for it."""
    run = upstream_run(a_policy("p0", "p1"), crowded(), SURROUNDINGS)

    run.begin()
    run.answer(EvictionAnswer(EvictionResult.TERMINATING, is_repeat=True))
    assert run.answer(EvictionAnswer(EvictionResult.TERMINATING)) is None

    assert [move.pod.name for move in run.plan.moves] == ["p1"]
    assert [each.pod.name for each in run.outcome.evictions] == ["p0", "p1"]
