"""The Proven planner: every move has a proven place, every refusal a reason."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import hypothesis.strategies as st
import pytest
from hypothesis import given
from msgspec.structs import replace

from planning.builders import (
    NOW,
    SURROUNDINGS,
    Named,
    a_rebalancing,
    planned,
    reasons,
    targets,
)
from plimsoll.framework.descheduling.proposals import Candidate, Refusal
from plimsoll.framework.descheduling.strategy import StrategyKind
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.model.selector_text import parse_selector
from plimsoll.planning.forecasts import Forecasts
from plimsoll.planning.history import MoveHistory, MoveOutcome, PastMove
from plimsoll.planning.limits import NO_CEILING, Ceiling, Limits
from plimsoll.planning.moves import Move, PlanningContext, replacement_of, workload_of
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.planning.proven.planner import revalidate
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.columns import validate

FREE = Limits(per_workload=NO_CEILING)
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def a_budget(
    name: str = "web", *, allowed: int, selector: dict[str, Any] | None = None, **spec: Any
) -> PodDisruptionBudget:
    return convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": selector or {}}, **spec},
            "status": {
                "disruptionsAllowed": allowed,
                "currentHealthy": 2,
                "desiredHealthy": 2,
                "expectedPods": 3,
            },
        },
    )


def with_budgets(cluster: Cluster, *budgets: PodDisruptionBudget) -> Cluster:
    cluster.objects.budgets.update({budget.key: budget for budget in budgets})
    return cluster


def crowded(count: int = 3, **kwargs: Any) -> Cluster:
    """One node with ``count`` pods of a quarter each, and two empty ones."""
    pods = [
        a_pod(f"p{n}", cpu="1", node="full", owner="ReplicaSet/web", status=READY, **kwargs)
        for n in range(count)
    ]
    return a_cluster([a_node("full"), a_node("half"), a_node("idle")], pods)


def test_a_move_names_its_target_and_what_it_gains() -> None:
    """The expected target, the points it is better by, whose pod it is."""
    found = planned(crowded(), "p0")

    assert targets(found) == {"p0": "half"}
    move = found.moves[0]
    # Room scores the free share: the own node 4-2=2 of 4 is 50, an empty one 100
    assert (move.gain, move.ties, move.source, move.is_forecast) == (50, 2, "full", False)
    assert move.workload.name == "ReplicaSet default/web"
    assert found.considered == 1


def test_moves_are_booked_against_each_other() -> None:
    """Two pods that need a whole node never count on the same one."""
    cluster = a_cluster(
        [a_node("a"), a_node("b", cpu="8"), a_node("c")],
        [a_pod("x", cpu="3", node="b", owner="ReplicaSet/x"), a_pod("y", cpu="3", node="b", owner="Job/y")],
    )

    found = planned(cluster, limits=FREE)

    assert targets(found) == {"x": "a"}
    # With x gone, y alone leaves b as free as a node without it can be: it would come back.
    assert reasons(found) == {"y": "WouldReturn"}


def test_the_cluster_is_only_read() -> None:
    """A plan leaves no trace in the cluster it was made from."""
    cluster = crowded()
    before = (cluster.tick, cluster.requested[:3].tolist(), sorted(cluster.pods))

    planned(cluster, limits=FREE)

    assert (cluster.tick, cluster.requested[:3].tolist(), sorted(cluster.pods)) == before
    validate(cluster)


def test_a_pod_that_would_come_back_stays() -> None:
    """The own node scores as well as any other: the two-node ping-pong is refused, with the score."""
    cluster = a_cluster([a_node("a"), a_node("b")], [a_pod("p", cpu="1", node="a", owner="ReplicaSet/x")])

    found = planned(cluster)

    assert reasons(found) == {"p": "WouldReturn"}
    assert "node a again" in found.refused[0].refusal.message


@pytest.mark.parametrize("left", ["first", "second"])
def test_a_node_that_was_just_left_is_no_target_where_scores_tie(left: str) -> None:
    """Of the best nodes the other one is taken, and held: no game of ping-pong begins."""
    past = PastMove(
        "tidy",
        "Named",
        "uid-ReplicaSet-web",
        "ReplicaSet web",
        left,
        MoveOutcome.SETTLED,
        NOW.timestamp() - 60,
    )
    cluster = a_cluster(
        [a_node("full", cpu="4"), a_node("first", cpu="4"), a_node("second", cpu="4")],
        [a_pod(f"p{n}", cpu="1", node="full", owner="ReplicaSet/web") for n in range(3)],
    )
    owner = workload_of(cluster.pods["uid-default-p0"]).key

    class Balances(Named):
        kind: ClassVar = StrategyKind.BALANCE

    found = plan(
        a_rebalancing(Balances("p0")),
        cluster,
        PlanningContext(NOW, memory=MoveHistory([replace(past, owner=owner)], NOW.timestamp())),
    )

    assert targets(found) == {"p0": "second" if left == "first" else "first"}


def test_the_only_feasible_node_is_no_move() -> None:
    """A pod too large for any other node stays, however crowded its own is."""
    cluster = a_cluster(
        [a_node("a", cpu="8"), a_node("b", cpu="2")], [a_pod("p", cpu="6", node="a", owner="ReplicaSet/x")]
    )

    assert reasons(planned(cluster)) == {"p": "NoOtherNode"}


def test_no_feasible_node_at_all_is_reported_in_counts() -> None:
    """The sentence is the scheduler's own."""
    cluster = a_cluster(
        [a_node("a", labels={"pool": "red"}), a_node("b", labels={"pool": "red"})],
        [a_pod("p", cpu="1", node="a", owner="ReplicaSet/x")],
    )

    found = planned(cluster, plugins=("Pool",))

    assert reasons(found) == {"p": "NoFeasibleNode"}
    assert found.refused[0].refusal.message == "0/2 nodes are available: 2 wrong pool."


def test_protected_pods_stay() -> None:
    """An evictor's refusal holds for every strategy."""
    found = planned(crowded(labels={"stay": ""}))

    assert set(reasons(found).values()) == {"Stays"}
    assert found.moves == ()


@pytest.mark.parametrize(
    ("limits", "moved", "reason"),
    [
        pytest.param(Limits(total=Ceiling(count=0)), 0, "TotalLimit", id="total-zero"),
        pytest.param(replace(FREE, total=Ceiling(count=1)), 1, "TotalLimit", id="total"),
        pytest.param(replace(FREE, per_node=Ceiling(count=1)), 1, "NodeLimit", id="node"),
        pytest.param(replace(FREE, per_namespace=Ceiling(count=1)), 1, "NamespaceLimit", id="namespace"),
        pytest.param(Limits(), 1, "WorkloadLimit", id="workload-by-default"),
        pytest.param(replace(FREE, per_node=Ceiling(percent=40)), 1, "NodeLimit", id="share-of-the-node"),
    ],
)
def test_limits_hold(limits: Limits, moved: int, reason: str) -> None:
    """Each level by itself; shares are rounded down."""
    found = planned(crowded(4), limits=limits)

    assert len(found.moves) == moved
    assert set(reasons(found).values()) == {reason}


def test_evictions_in_flight_count_for_their_workload() -> None:
    """The next pod of a workload waits for the replacement of the one before."""
    surroundings = PlanningContext(now=NOW, in_flight={"default/uid-ReplicaSet/web": 1})

    found = plan(a_rebalancing(Named("p0")), crowded(), surroundings)

    assert reasons(found) == {"p0": "WorkloadLimit"}
    assert "1 still in flight" in found.refused[0].refusal.message


def test_a_total_limit_ends_the_strategy_and_a_node_limit_the_node() -> None:
    """What is not asked any more is not refused either."""
    found = plan(
        a_rebalancing(Named(), limits=replace(FREE, total=Ceiling(count=1))), crowded(3), SURROUNDINGS
    )

    assert (targets(found), reasons(found)) == ({"p0": "half"}, {"p1": "TotalLimit"})


def test_a_budget_is_counted_within_the_plan_and_named() -> None:
    """One disruption is allowed: the first pod takes it, the second's refusal names the budget."""
    cluster = with_budgets(crowded(labels={"app": "web"}), a_budget(allowed=1, selector={"app": "web"}))

    found = planned(cluster, limits=FREE)

    assert [move.budget for move in found.moves] == ["default/web"]
    assert set(reasons(found).values()) == {"Budget"}
    assert "default/web allows 1 disruption (1 taken by this plan)" in found.refused[0].refusal.message


def test_two_budgets_over_a_pod_allow_nothing() -> None:
    """As the eviction API has it."""
    cluster = with_budgets(crowded(1), a_budget("a", allowed=5), a_budget("b", allowed=5))

    assert reasons(planned(cluster)) == {"p0": "SeveralBudgets"}


def test_an_unready_pod_needs_no_budget_when_the_policy_says_so() -> None:
    """unhealthyPodEvictionPolicy: AlwaysAllow."""
    cluster = a_cluster(
        [a_node("a"), a_node("b")],
        [a_pod(f"p{n}", cpu="1", node="a", owner="ReplicaSet/web") for n in range(2)],
    )
    always = a_budget(allowed=0, unhealthyPodEvictionPolicy="AlwaysAllow")

    assert len(planned(with_budgets(cluster, always), "p0").moves) == 1


def test_pods_of_other_schedulers_are_a_forecast_or_stay() -> None:
    """Without somebody to stand in for their scheduler nothing can be proved."""
    cluster = a_cluster(
        [a_node("a"), a_node("b")],
        [a_pod(f"p{n}", cpu="1", node="a", owner="ReplicaSet/web", schedulerName="theirs") for n in range(2)],
    )
    rebalancing = a_rebalancing(Named("p0"))

    stays = plan(rebalancing, cluster, SURROUNDINGS)
    goes = plan(
        replace(rebalancing, forecasts=Forecasts(default=rebalancing.profiles["default-scheduler"])),
        cluster,
        SURROUNDINGS,
    )

    assert reasons(stays) == {"p0": "OtherScheduler"}
    assert goes.moves[0].is_forecast


def test_targets_may_be_restricted() -> None:
    """When the scheduler may choose a node that is no target, the move is off: it decides, not we."""
    found = planned(crowded(), "p0", targets=parse_selector("kubernetes.io/hostname=half"))

    assert reasons(found) == {"p0": "NotATarget"}


def test_a_small_gain_is_not_worth_an_eviction() -> None:
    """The policy's minimum is a share of what a node can score at most, here 100 points."""
    assert reasons(planned(crowded(), "p0", minimum_gain_percent=51)) == {"p0": "SmallGain"}
    assert len(planned(crowded(), "p0", minimum_gain_percent=50).moves) == 1


def test_a_pod_that_ended_needs_no_place() -> None:
    """Cleaning up asks for no node."""
    cluster = crowded(0)
    ended = cluster.templates.info(a_pod("done", node="full", owner="Job/x", status={"phase": "Failed"}))

    found = plan(a_rebalancing(Named()), cluster, PlanningContext(now=NOW, unplaced=[ended]))

    assert targets(found) == {"done": ""}


def test_refusals_are_counted_by_reason() -> None:
    """For the policy's status, the most frequent first."""
    found = planned(crowded(4))

    assert found.refused_by_reason() == {"WorkloadLimit": 3}
    assert found.considered == 4


def test_a_pod_without_owner_is_its_own_workload() -> None:
    """However its replacement is made, the limit for each workload does not count two of them together."""
    cluster = a_cluster(
        [a_node("full"), a_node("idle"), a_node("other")],
        [a_pod(f"bare{n}", cpu="1", node="full") for n in range(2)]
        + [a_pod("owned", cpu="1", node="full", owner="ReplicaSet/x")],
    )

    found = planned(cluster)

    assert {move.workload.name for move in found.moves} == {"pod default/bare0", "pod default/bare1"}


def test_shares_are_of_the_pods_there_are() -> None:
    """Half of the six pods, of the namespace's, of the workload's; the first level to end it is named."""
    half = Ceiling(percent=50)
    for limits, reason in (
        (Limits(total=half, per_workload=NO_CEILING), "TotalLimit"),
        (Limits(per_namespace=half, per_workload=NO_CEILING), "NamespaceLimit"),
        (Limits(per_workload=half), "WorkloadLimit"),
    ):
        cluster = a_cluster(
            [a_node("full", cpu="16"), *(a_node(f"idle{n}", cpu="16") for n in range(5))],
            [a_pod(f"p{n}", cpu="1", node="full", owner="ReplicaSet/web") for n in range(6)],
        )
        found = planned(cluster, limits=limits)

        assert len(found.moves) == 3
        assert set(reasons(found).values()) == {reason}


def test_a_hold_for_an_earlier_move_is_no_candidate() -> None:
    """A replacement that is expected and not there yet takes its place, and stays there."""
    cluster = crowded(2)
    hold = replacement_of(cluster.pods["uid-default-p0"], cluster)
    cluster.displace("uid-default-p0")
    cluster.place(hold, "full")

    found = planned(cluster, limits=FREE)

    assert [move.pod.name for move in found.moves] == ["p1"]
    assert found.refused == ()


def test_a_pod_that_is_not_there_is_refused() -> None:
    """A strategy that remembers too long."""

    class Remembers(Named):
        def candidates(self, context: Any) -> Iterator[Candidate]:
            yield Candidate(
                context.cluster.templates.info(a_pod("ghost", node="full")), "full", "it was there"
            )

    found = plan(a_rebalancing(Remembers()), crowded(), SURROUNDINGS)

    assert reasons(found) == {"ghost": "Gone"}


def test_a_plugin_that_raises_harms_its_pod_only() -> None:
    """The refusal names it; the next pod is planned."""
    cluster = a_cluster(
        [a_node("full"), a_node("idle")],
        [
            a_pod("bad", cpu="1", node="full", owner="ReplicaSet/bad", labels={"break": "yes"}),
            a_pod("good", cpu="1", node="full", owner="ReplicaSet/good"),
        ],
    )

    found = planned(cluster, plugins=("Breaks",))

    assert reasons(found) == {"bad": "PluginError"}
    assert targets(found) == {"good": "idle"}


def test_no_pod_moves_twice() -> None:
    """What two strategies want happens once; the replacement, seen in its new place, is left in peace."""
    found = plan(a_rebalancing(Named("p0"), Named("p0")), crowded(), SURROUNDINGS)

    assert len(found.moves) == 1
    assert found.refused == ()


def test_deschedule_strategies_run_before_balance_ones() -> None:
    """Whatever order the policy lists them in."""

    class Balancing(Named):
        name = "Balancing"
        kind = StrategyKind.BALANCE

    found = plan(a_rebalancing(Balancing("p0"), Named("p0")), crowded(), SURROUNDINGS)

    assert [move.strategy for move in found.moves] == ["Named"]


def test_a_strategy_that_raises_harms_only_itself() -> None:
    """It is named in the plan's failures; the others run."""

    class Raises(Named):
        name = "Raises"

        def candidates(self, context: Any) -> Any:
            raise LookupError("no such thing")

    found = plan(a_rebalancing(Raises(), Named("p0")), crowded(), SURROUNDINGS)

    assert [str(failure) for failure in found.failures] == [
        'running Deschedule plugin "Raises": LookupError: no such thing'
    ]
    assert len(found.moves) == 1


class TestRevalidate:
    """The same checks against the cluster as it is right before the eviction."""

    def test_a_move_that_still_holds_comes_back(self) -> None:
        """With the pod and target of now."""
        cluster = crowded()
        rebalancing = a_rebalancing(Named("p0"))
        move = plan(rebalancing, cluster, SURROUNDINGS).moves[0]

        assert revalidate(move, rebalancing, cluster, SURROUNDINGS) == move

    def test_a_target_that_was_taken_is_replaced(self) -> None:
        """Another node is as good."""
        cluster = crowded()
        rebalancing = a_rebalancing(Named("p0"))
        move = plan(rebalancing, cluster, SURROUNDINGS).moves[0]
        cluster.place(cluster.templates.info(a_pod("thief", cpu="4")), "half")

        now = revalidate(move, rebalancing, cluster, SURROUNDINGS)

        assert isinstance(now, Move)
        assert now.target == "idle"

    def test_a_pod_that_left_is_no_move(self) -> None:
        """A plan that has gone stale is dropped with a reason."""
        cluster = crowded()
        rebalancing = a_rebalancing(Named("p0"))
        move = plan(rebalancing, cluster, SURROUNDINGS).moves[0]
        cluster.displace(move.pod.uid)

        assert revalidate(move, rebalancing, cluster, SURROUNDINGS) == Refusal(
            "Gone", "the pod is not on node full any more"
        )

    def test_an_ended_pod_may_be_gone_already(self) -> None:
        """It needs no place, but it must still be there."""
        cluster = crowded(0)
        ended = cluster.templates.info(a_pod("done", node="full", status={"phase": "Failed"}))
        there = PlanningContext(now=NOW, unplaced=[ended])
        rebalancing = a_rebalancing(Named())
        move = plan(rebalancing, cluster, there).moves[0]

        assert revalidate(move, rebalancing, cluster, there) == move
        assert revalidate(move, rebalancing, cluster, SURROUNDINGS) == Refusal(
            "Gone", "the pod is gone already"
        )

    def test_moves_under_way_hold_their_places(self) -> None:
        """The replacement of an earlier move is not there yet, and its place is not free."""
        cluster = crowded()
        rebalancing = a_rebalancing(Named(), limits=FREE)
        first, second = plan(rebalancing, cluster, SURROUNDINGS).moves
        cluster.displace(first.pod.uid)

        cluster.place(replacement_of(first.pod, cluster, first.target), first.target)

        assert revalidate(second, rebalancing, cluster, SURROUNDINGS) == second

    def test_a_budget_that_is_used_up_stops_it(self) -> None:
        """It is named."""
        cluster = crowded(labels={"app": "web"})
        rebalancing = a_rebalancing(Named("p0"))
        move = plan(rebalancing, cluster, SURROUNDINGS).moves[0]

        refusal = revalidate(move, rebalancing, with_budgets(cluster, a_budget(allowed=0)), SURROUNDINGS)

        assert isinstance(refusal, Refusal)
        assert refusal.reason == "Budget"


@st.composite
def some_cluster(draw: Callable[..., Any]) -> Cluster:
    nodes = [a_node(f"n{n}", cpu=draw(st.integers(1, 8))) for n in range(draw(st.integers(1, 5)))]
    pods = [
        a_pod(
            f"p{n}",
            cpu=f"{draw(st.integers(1, 30))}00m",
            node=f"n{draw(st.integers(0, len(nodes) - 1))}",
            owner=f"ReplicaSet/{draw(st.sampled_from('abc'))}",
            namespace=draw(st.sampled_from(["default", "other"])),
        )
        for n in range(draw(st.integers(0, 12)))
    ]
    return a_cluster(nodes, pods)


@given(
    cluster=some_cluster(),
    total=st.integers(0, 4),
    node=st.integers(0, 2),
    workload=st.integers(1, 2),
)
def test_laws_of_plans(cluster: Cluster, total: int, node: int, workload: int) -> None:
    """Never over a limit, never a pod twice, never home, every target has room, always the same plan."""
    limits = Limits(
        total=Ceiling(count=total), per_node=Ceiling(count=node), per_workload=Ceiling(count=workload)
    )
    found = planned(cluster, limits=limits)
    again = planned(cluster, limits=limits)

    assert found == again
    assert len(found.moves) <= total
    assert len({move.pod.uid for move in found.moves}) == len(found.moves)
    for move in found.moves:
        assert move.source != move.target
        assert sum(other.source == move.source for other in found.moves) <= node
        assert sum(other.workload == move.workload for other in found.moves) <= workload
    after = cluster.fork()
    for move in found.moves:
        after.displace(move.pod.uid)
        row = after.rows[move.target]
        assert (after.allocatable[row, 0] - after.requested[row, 0]) >= move.pod.requests["cpu"]
        after.place(move.pod, move.target)
    validate(after)
