"""Ceilings that are shares count the pods in the policy's scope, at every level and for every planner."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watch_events import PodAdded
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import Pod
from plimsoll.planning.moves import EvictionPlan, PlanningContext, replacement_of
from plimsoll.planning.planners import make_plan
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.policies.rebalancing import Registries, rebalancing_of
from plimsoll.strategies import EVICTORS
from plimsoll.strategies import IN_TREE as STRATEGIES
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from rebalancing.scene import Scene, a_policy, status_of, web

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
FREE = {
    "total": "100%",
    "perMinute": "100%",
    "perNode": "100%",
    "perNamespace": "100%",
    "perWorkload": "100%",
}
PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    registry := Registry(IN_TREE),
    [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items() if name in registry],
)


def planned(
    cluster: Cluster, *, scope: dict[str, Any], planner: str = "Proven", **limits: Any
) -> EvictionPlan:
    """The plan of a policy that moves pods off nodes whose taints they do not tolerate."""
    policy = SchedulingPolicy.model_validate(
        {
            "metadata": {"name": "tidy"},
            "spec": {
                "scope": scope,
                "rebalancing": {
                    "planner": planner,
                    "strategies": [{"name": "RemovePodsViolatingNodeTaints"}],
                    "limits": {**FREE, **limits},
                },
            },
        }
    )
    rebalancing = rebalancing_of(
        policy,
        Registries(StrategyRegistry(STRATEGIES), EvictorRegistry(EVICTORS)),
        profiles={"default-scheduler": PROFILE},
        objects=cluster.objects,
        now=NOW,
    )
    return make_plan(rebalancing, cluster, PlanningContext(now=NOW))


def a_team_of_twenty(others: int = 180) -> Cluster:
    """Twenty pods of one team on a tainted node, and many more pods that are out of scope."""

    def pod(name: str, node: str, *, team: str, owner: str) -> Pod:
        return a_pod(name, node=node, cpu="10m", owner=owner, labels={"team": team}, status=status_of(node))

    return a_cluster(
        [
            a_node("bad", cpu="64", labels={"pool": "old"}, taints=["broken=yes:NoSchedule"]),
            a_node("good", cpu="64", labels={"pool": "new"}),
            a_node("fine", cpu="64", labels={"pool": "new"}),
        ],
        [
            *(pod(f"own-{n}", "bad", team="ours", owner="ReplicaSet/web") for n in range(20)),
            *(
                pod(f"other-{n}", "bad" if n % 2 else "good", team="theirs", owner="ReplicaSet/web")
                for n in range(others)
            ),
        ],
    )


OURS = {"podSelector": {"matchLabels": {"team": "ours"}}}
BUDGET = {"budgets": [{"name": "slow", "evictions": "10%"}]}


@pytest.mark.parametrize("planner", ["Proven", "Upstream"])
@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"total": "10%"}, "TotalLimit"),
        ({"perMinute": "10%"}, "RateLimit"),
        (BUDGET, "EvictionBudget"),
        ({"perNode": "10%"}, "NodeLimit"),
        ({"perNamespace": "10%"}, "NamespaceLimit"),
        ({"perWorkload": "10%"}, "WorkloadLimit"),
    ],
)
def test_a_share_is_of_the_pods_in_scope(planner: str, limits: dict[str, Any], reason: str) -> None:
    """A tenth of the 20 pods in scope are 2, although the node, namespace and owner have 100 and more."""
    found = planned(a_team_of_twenty(), scope=OURS, planner=planner, **limits)

    assert len(found.moves) == 2
    assert reason in {each.refusal.reason for each in found.refused}


def test_five_percent_of_twenty_pods_among_a_thousand_is_one_move() -> None:
    """Of all 1,000 pods it would be 50, so that all 20 were moved."""
    assert len(planned(a_team_of_twenty(980), scope=OURS, total="5%").moves) == 1


def test_the_optimal_planner_carries_out_a_share_of_the_scope_too() -> None:
    """Its best plan moves all 20; one run makes 2 of the moves."""
    assert len(planned(a_team_of_twenty(20), scope=OURS, planner="Optimal", total="10%").moves) == 2


@pytest.mark.parametrize(
    ("scope", "moves"),
    [
        ({}, 20),
        ({"nodeSelector": {"matchLabels": {"pool": "old"}}}, 11),
        ({"namespaces": {"include": ["default"]}}, 20),
        ({"namespaces": {"exclude": ["kube-system"]}}, 20),
    ],
)
def test_each_part_of_the_scope_counts(scope: dict[str, Any], moves: int) -> None:
    """200 pods, of which 110 are on nodes of the old pool: a tenth of either."""
    assert len(planned(a_team_of_twenty(), scope=scope, total="10%").moves) == moves


def test_pods_of_other_schedulers_count_only_where_the_policy_names_them() -> None:
    """They cannot be moved, so no share is of them."""
    team = a_team_of_twenty()
    strangers = [
        a_pod(f"stranger-{n}", node="fine", schedulerName="strange", owner="ReplicaSet/x") for n in range(100)
    ]
    for pod in strangers:
        team.place(team.templates.info(pod), "fine")

    assert len(planned(team, scope={}, total="10%").moves) == 20
    assert len(planned(team, scope={"otherSchedulers": ["strange"]}, total="10%").moves) == 30


def test_the_share_does_not_shrink_while_moves_are_planned() -> None:
    """Half of 20 are 10, whatever has been moved off the node by then."""
    assert len(planned(a_team_of_twenty(), scope=OURS, perNode="50%").moves) == 10


def test_a_replacement_that_is_only_expected_is_no_pod_yet() -> None:
    """A tenth of 20 are 2, also while room is held for 20 more."""
    team = a_team_of_twenty(0)
    for pod in list(team.pods.values()):
        team.place(replacement_of(pod, team, "fine"), "fine")

    assert len(planned(team, scope={}, total="10%").moves) == 2


async def test_a_budget_that_opens_during_a_run_is_a_share_of_the_scope_as_well() -> None:
    """A tenth of the 6 pods in scope allows 1 more eviction; of all 106 pods it would be 10."""
    scene = Scene()
    scene.tell(*(PodAdded(web(n, "bad")) for n in range(3, 7)), *(PodAdded(other(n)) for n in range(100)))
    opening = datetime.fromtimestamp(scene.clock.now(), UTC) + timedelta(minutes=1)
    budget = {
        "name": "day",
        "evictions": "10%",
        "schedule": f"{opening.minute} {opening.hour} * * *",
        "duration": "1h",
    }
    policy = a_policy(scope={"namespaces": {"include": ["default"]}}, limits={**FREE, "budgets": [budget]})
    async with scene.running(policy):
        scene.evictor.when_done = lambda _: setattr(
            scene.clock, "time", opening.timestamp() - scene.clock.ahead_s
        )
        await scene.run()

    assert len(scene.evictor.evicted) == 1
    assert ["Planned", "Blocked"] in scene.phases


def other(number: int) -> Pod:
    """A pod of another namespace."""
    return a_pod(f"other-{number}", namespace="other", node="good", cpu="1m", owner="ReplicaSet/other")
