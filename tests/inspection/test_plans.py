"""Answers about plans: moves, refusals, utilisation, allowances, and the difference of two sets."""

import itertools
from typing import Any

import pytest
from msgspec.structs import replace

from inspection.contents import NOW
from planning.builders import SURROUNDINGS, Named, a_rebalancing
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.inspection.plans.allowances import limit_allowances
from plimsoll.inspection.plans.answer import Plan, PlanComparison, PolicyPlan, Presence
from plimsoll.inspection.plans.comparison import compared
from plimsoll.inspection.plans.moves import moves_in_order
from plimsoll.inspection.plans.policy_plan import policy_plan
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.planning.limits import Ceiling, Limits
from plimsoll.planning.moves import EvictionPlan
from plimsoll.planning.planners import make_plan
from plimsoll.testing.builders import a_cluster, a_node, a_pod

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def a_policy(name: str = "tidy", **rebalancing: Any) -> SchedulingPolicy:
    return SchedulingPolicy.model_validate({"metadata": {"name": name}, "spec": {"rebalancing": rebalancing}})


def cluster_of_three(allowed: int = 5, empty: int = 3) -> Cluster:
    """Three pods of two owners on n1 (of 4 cpu), and empty nodes; a budget covers web."""
    pods = [
        a_pod(name, cpu="1", memory="1Gi", owner=f"ReplicaSet/{owner}", labels={"app": owner}, node="n1",
              status=READY)
        for name, owner in (("a", "web"), ("b", "web"), ("c", "db"))
    ]  # fmt: skip
    cluster = a_cluster([a_node(f"n{number}") for number in range(1, empty + 2)], pods)
    budget = convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": allowed, "currentHealthy": 2, "expectedPods": 2},
        },
    )
    cluster.objects.budgets[budget.key] = budget
    return cluster


def plan_of(
    *names: str, allowed: int = 5, empty: int = 3, limits: Limits | None = None, **policy: Any
) -> PolicyPlan:
    """The plan of a policy whose strategy proposes these pods."""
    config = replace(a_rebalancing(Named(*names)), limits=limits or Limits(per_workload=Ceiling(percent=100)))
    return policy_plan(a_policy(**policy), (config, cluster_of_three(allowed, empty), SURROUNDINGS))


def test_utilisation_follows_the_moves() -> None:
    """Requests leave one node and enter the other; the spread is that of all nodes."""
    # n1: 3 of 4 cpu = 75 %, n2: 0; after one move 50 % and 25 %.
    # deviation of (75, 0) = 37.5, of (50, 25) = 12.5
    found = plan_of("a", empty=1)

    first, second = found.nodes
    cpu = [next(each for each in node.changes if each.resource == "cpu") for node in (first, second)]
    assert [(each.before_percent, each.after_percent) for each in cpu] == [(75, 50), (0, 25)]
    assert [(node.node, node.leave, node.arrive) for node in found.nodes] == [("n1", 1, 0), ("n2", 0, 1)]
    spread = next(each for each in found.spread if each.resource == "cpu")
    assert (spread.before, spread.after) == (37.5, 12.5)


def test_budgets_say_what_the_plan_leaves() -> None:
    """A budget that allows one disruption is used up by the first move and holds the second pod."""
    found = plan_of("a", "b", allowed=1)

    (budget,) = found.budgets
    assert (budget.allowed, budget.used, budget.left, budget.refused) == (1, 1, 0, 1)
    assert [(each.reason, each.pods, each.subjects[0].subject) for each in found.refused] == [
        ("Budget", 1, "ReplicaSet default/web")
    ]


def test_limits_say_what_the_plan_leaves() -> None:
    """Shares are of the pods in scope; of nodes and owners those are listed that pods leave."""
    # 50 % of one pod of db is 0.5, but a share above 0 allows one
    limits = Limits(total=Ceiling(count=10), per_node=Ceiling(count=2), per_workload=Ceiling(percent=50))
    found = plan_of(limits=limits)

    left = {(each.limit, each.subject): (each.allowed, each.used, each.left) for each in found.limits}
    assert left == {
        ("total", None): (10, 2, 8),
        ("perNode", "n1"): (2, 2, 0),
        ("perWorkload", "ReplicaSet default/web"): (1, 1, 0),
        ("perWorkload", "ReplicaSet default/db"): (1, 1, 0),
    }


def test_limits_of_a_plan_without_moves_are_those_of_the_run() -> None:
    """Nothing was touched: what the run allows, and what earlier runs have used of it."""
    limits = Limits(total=Ceiling(count=10), per_minute=Ceiling(count=4), per_node=Ceiling(count=2))
    context = replace(SURROUNDINGS, recent=3)

    found = limit_allowances(replace(a_rebalancing(), limits=limits), cluster_of_three(), context, ())

    assert [(each.limit, each.used, each.left) for each in found] == [("total", 0, 10), ("perMinute", 3, 1)]


def test_moves_of_a_bundle_that_wait_come_last_in_it() -> None:
    """In mode Enforce, as the operator feeds them; the other modes keep the planner's order."""
    config = a_rebalancing(Named())
    config = replace(config, limits=Limits(per_workload=Ceiling(percent=100)))
    first, second = make_plan(config, cluster_of_three(), SURROUNDINGS).moves
    waiting = replace(first, bundle="b", waits=True)
    alone = replace(first, strategy="Other")
    made = EvictionPlan((waiting, replace(second, bundle="b"), alone), ())

    enforced, proposed = (moves_in_order(made, mode) for mode in (Mode.ENFORCE, Mode.APPROVE))
    assert [(move.pod.name, move.strategy) for move in enforced] == [
        ("b", "Named"),
        ("a", "Named"),
        ("a", "Other"),
    ]
    assert [move.pod.name for move in proposed] == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("DryRun", "predict 1 move and evict nothing (mode DryRun)"),
        ("Approve", "propose 1 move and wait for approval (mode Approve)"),
        ("Enforce", "make 1 move (mode Enforce)"),
    ],
)
def test_the_outlook_names_the_mode_and_the_next_run(mode: str, said: str) -> None:
    """NOW is noon of January 1: the cron expression fires the next night."""
    found = plan_of("a", mode=mode, schedule={"cron": "0 2 * * *"})

    assert said in found.outlook
    assert found.outlook.endswith("next at 2026-01-02T02:00:00Z")


def test_two_sets_are_compared_pod_by_pod() -> None:
    """A pod that both move elsewhere is neither in both nor in one only."""
    new = plan_of("a", "b")
    away = new.moves[1].model_copy(update={"target_node": "n9"})
    old = new.model_copy(update={"policy": "old", "moves": (away, *plan_of("c").moves)})

    found = compared([new], [old], "live")

    assert [(each.pod, each.presence) for each in found.moves] == [
        ("default/a", Presence.ONLY_NEW),
        ("default/b", Presence.ELSEWHERE),
        ("default/c", Presence.ONLY_OLD),
    ]
    assert (found.only_new, found.only_old, found.both, found.elsewhere) == (1, 1, 0, 1)
    assert found.moves[1].old_policy == "old (Named)"


@pytest.mark.parametrize("counts", list(itertools.product((0, 2), repeat=4)))
def test_sets_of_policies_differ_by_a_move_of_one_or_to_another_node(counts: tuple[int, ...]) -> None:
    new, old, both, elsewhere = counts
    found = PlanComparison(
        against="x", old=(), only_new=new, only_old=old, both=both, elsewhere=elsewhere, moves=()
    )
    plan = Plan(source="s", taken=NOW, policies=(), comparison=found)

    assert plan.differs is bool(new or old or elsewhere)
    assert not plan.model_copy(update={"comparison": None}).differs
