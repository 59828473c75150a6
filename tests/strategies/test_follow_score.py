"""FollowScore: where the scheduler would put a pod today, if that is worth it."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from planning.rounds import UNLIMITED, a_policy, live
from planning.test_rounds import AROUND, a_replica, refusals
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.moves import RebalancingConfig
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.planning.proven.planner import revalidate
from plimsoll.strategies.follow_score import FollowScore
from plimsoll.testing.builders import a_cluster, a_node
from plimsoll.testing.strategy_conformance import StrategyConformance

SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}


def prefers(weight: int = 100) -> dict[str, Any]:
    return {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "preference": SSD}]
        }
    }


def a_scene() -> Cluster:
    """Two pods that prefer the node where they are not, two that do not mind."""
    return a_cluster(
        [a_node("hdd", cpu="16"), a_node("ssd", cpu="16", labels={"disk": "ssd"})],
        [a_replica(f"picky{n}", "hdd", cpu="1", affinity=prefers()) for n in range(2)]
        + [a_replica(f"easy{n}", "hdd", owner="ReplicaSet/easy", labels={}, cpu="100m") for n in range(2)],
    )


def follow(**args: Any) -> RebalancingConfig:
    return a_policy(("FollowScore", args), limits=UNLIMITED)


# The weights of the default profile sum to 14, so a node scores 1400 at most: 14% are 196 points, the 20% of
# the default 280. NodeAffinity gives the preferred node 100 x 2; an empty node's room adds a few points.


def test_a_pod_follows_its_score() -> None:
    """The preferred node is 200 points better, more with its room; who does not mind stays."""
    found = plan(follow(marginPercent=14), a_scene(), AROUND)

    assert {move.pod.name: move.target for move in found.moves} == {"picky0": "ssd", "picky1": "ssd"}
    assert all(move.gain >= 196 for move in found.moves)  # type: ignore[operator] # known to exist in this test


def test_a_gain_below_the_margin_moves_no_pod() -> None:
    """The same pods under the safe default: what they would gain is not worth an eviction."""
    found = plan(follow(), a_scene(), AROUND)

    assert found.moves == ()


def test_the_margin_is_asked_again_before_the_eviction() -> None:
    """Others have come meanwhile: the node is still the better one, and not by enough."""
    policy, cluster = follow(marginPercent=14), a_scene()
    move = plan(policy, cluster, AROUND).moves[0]
    for number in range(2):
        late = cluster.templates.info(
            a_replica(f"late{number}", "ssd", owner="ReplicaSet/late", labels={}, cpu="5", memory="4Gi")
        )
        cluster.place(late, "ssd")

    answer = revalidate(move, policy, cluster, AROUND)

    assert isinstance(answer, Refusal)
    assert answer.reason == "SmallGain"
    assert "196 are required" in answer.message


def test_a_pod_whose_own_node_is_closed_to_it_is_left_to_others() -> None:
    """Its node was tainted: there is no score to compare with, whatever the other one promises."""
    cluster = a_cluster(
        [a_node("hdd", taints=["x:NoSchedule"]), a_node("ssd", labels={"disk": "ssd"})],
        [a_replica(f"p{n}", "hdd", affinity=prefers()) for n in range(2)],
    )

    found = plan(follow(marginPercent=1), cluster, AROUND)

    assert {reason for _, reason in refusals(found)} == {"NoComparison"}


def test_only_pods_in_scope_are_looked_at() -> None:
    """The namespaces and labels of the arguments hold."""
    args = {"labelSelector": {"matchLabels": {"app": "other"}}, "marginPercent": 14}

    found = plan(follow(**args), a_scene(), AROUND)

    assert (found.moves, found.refused) == ((), ())


def test_the_scheduler_is_asked_once_for_siblings() -> None:
    """A hundred replicas that are well placed cost one question."""
    cluster = a_cluster(
        [a_node(f"n{n}", cpu="16") for n in range(4)],
        [a_replica(f"p{n}", f"n{n % 4}", cpu="100m") for n in range(100)],
    )
    asked = []

    class Counting:
        def outlook(self, pod: Any) -> Any:
            asked.append(pod.name)
            return real.outlook(pod)  # type: ignore[attr-defined] # known to exist in this test

    class Watched(FollowScore):
        def candidates(self, context: Any) -> Iterator[Any]:  # type: ignore[override] # a fake differs on purpose
            nonlocal real  # type: ignore[misc] # known in this test
            real, context.prospects = context.prospects, Counting()
            return super().candidates(context)

    real = None
    policy = follow()
    policy.strategies[0] = Watched(policy.strategies[0].args)  # type: ignore[attr-defined, index] # known to exist in this test

    assert plan(policy, cluster, AROUND).moves == ()
    assert asked == ["p0"]


@pytest.mark.parametrize("seed", range(3))
def test_it_converges(seed: int) -> None:
    """Cycle after cycle: no pod comes back, and at last none moves."""
    story = live(a_scene(), follow(marginPercent=5), seed=seed)

    assert story.returned == []


@pytest.mark.parametrize("percent", [0, 101, "20%"])
def test_a_margin_out_of_range_is_refused(percent: int | str) -> None:
    """Without one every breath of wind would move pods."""
    with pytest.raises(ValidationError):
        FollowScore.args_model.model_validate({"marginPercent": percent})


class TestConformance(StrategyConformance):
    """The laws that every strategy obeys."""

    strategy = FollowScore(FollowScore.args_model())
