"""ConsolidateNodes: all pods of a node go, each to its proven place, or none of them."""

from typing import Any

import pytest
from pydantic import ValidationError

from planning.rounds import UNLIMITED, a_policy, live
from planning.test_rounds import AROUND, a_replica, refusals
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.model.taints import CONSOLIDATING
from plimsoll.planning.limits import Ceiling, Limits
from plimsoll.planning.moves import EvictionPlan, RebalancingConfig
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.strategies.consolidate_nodes import ConsolidateNodes
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.strategy_conformance import StrategyConformance
from plimsoll.toolkit.descheduling.disruption_signals import SIGNALS, DisruptionSignal, Effect


def empty(limits: Limits = UNLIMITED, **args: Any) -> RebalancingConfig:
    return a_policy(("ConsolidateNodes", args), limits=limits)


def daemon(node: str, **kwargs: Any) -> Pod:
    return a_pod(f"agent-{node}", node=node, owner="DaemonSet/agent", cpu="100m", **kwargs)


def a_scene(*, more: list[Pod] | tuple[Any, ...] = (), nodes: list[Node] | tuple[Any, ...] = ()) -> Cluster:
    """A busy node, a half used one, and a little used one with two pods and an agent."""
    return a_cluster(
        [a_node(name, cpu="10", memory="64Gi") for name in ("busy", "half", "idle")] + list(nodes),
        [
            *(a_replica(f"busy{n}", "busy", owner="ReplicaSet/busy", cpu="1") for n in range(6)),
            *(a_replica(f"half{n}", "half", owner="ReplicaSet/half", cpu="1") for n in range(4)),
            a_replica("large", "idle", cpu="2"),
            a_replica("small", "idle", cpu="500m"),
            *(daemon(name) for name in ("busy", "half", "idle")),
            *more,
        ],
    )


def moved(made: EvictionPlan) -> dict[str, Any]:
    return {move.pod.name: move.target for move in made.moves}


def test_a_little_used_node_is_emptied_onto_the_fullest_that_take_its_pods() -> None:
    """26 % are used of it: the large pod fits next to 61 % and leaves 10 % free, the small one too."""
    made = plan(empty(), a_scene(), AROUND)

    assert moved(made) == {"large": "busy", "small": "busy"}
    assert len({move.bundle for move in made.moves}) == 1
    assert all(move.is_directed for move in made.moves)


def test_headroom_is_kept() -> None:
    """With 25 % kept free the busy node takes no large pod any more; the half used one takes both."""
    assert moved(plan(empty(headroomPercent=25), a_scene(), AROUND)) == {"large": "half", "small": "busy"}


def test_one_pod_without_a_place_keeps_all() -> None:
    """The large pod would fit nowhere: the small one stays, too, and the refusal says why."""
    made = plan(empty(headroomPercent=45, thresholds={"cpu": 30}), a_scene(), AROUND)

    assert made.moves == ()
    assert refusals(made) == {("large", "NoRoom")}
    assert "keeps 45% free, so node idle is not emptied" in made.refused[0].refusal.message


def test_one_protected_pod_keeps_all() -> None:
    """A pod that must not be disturbed shares the node."""
    guarded = a_replica("guarded", "idle", metadata={"annotations": {"karpenter.sh/do-not-disrupt": "true"}})

    made = plan(empty(thresholds={"cpu": 30}), a_scene(more=[guarded]), AROUND)

    assert made.moves == ()
    assert "guarded" in {name for name, _ in refusals(made)}


def test_one_exhausted_budget_keeps_all() -> None:
    """The last pod of the bundle is covered by a budget that allows nothing."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    cluster = a_cluster(
        [a_node("busy", cpu="10", memory="64Gi"), a_node("idle", cpu="10", memory="64Gi")],
        [a_replica(f"busy{n}", "busy", owner="ReplicaSet/busy", labels={}, cpu="1") for n in range(6)]
        + [a_replica(f"web{n}", "idle", owner=f"ReplicaSet/web{n}", cpu="1", status=ready) for n in range(2)],
    )
    budget = convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2},
        },
    )
    cluster.objects.budgets[budget.key] = budget

    policy = a_policy(("ConsolidateNodes", {}), limits=UNLIMITED, evictor={})
    made = plan(policy, cluster, AROUND)

    assert made.moves == ()
    assert refusals(made) == {("web0", "NotAll"), ("web1", "Budget")}
    cluster.objects.budgets.clear()
    assert moved(plan(policy, cluster, AROUND)) == {"web0": "busy", "web1": "busy"}


def test_constraints_hold_among_the_pods_that_move() -> None:
    """Two pods that cannot stand each other come from one node and go to two."""
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [a_node(name, cpu="10") for name in ("a", "b", "idle")]
    others = [
        a_replica(f"{name}{n}", name, owner=f"ReplicaSet/{name}", labels={}, cpu="2")
        for name in ("a", "b")
        for n in range(3)
    ]
    pods = [a_replica(f"web{n}", "idle", affinity=apart, cpu="500m") for n in range(2)]

    assert sorted(moved(plan(empty(), a_cluster(nodes, others + pods), AROUND)).values()) == ["a", "b"]
    crowded = a_cluster([nodes[0], nodes[2]], [*others[:3], *pods])
    assert plan(empty(), crowded, AROUND).moves == ()


@pytest.mark.parametrize(
    "node",
    [
        pytest.param({}, id="empty"),
        pytest.param({"taints": [f"{CONSOLIDATING}:NoSchedule"]}, id="being-emptied"),
    ],
)
def test_no_pod_goes_to_a_node_without_pods(node: dict[str, Any]) -> None:
    """That would gain nothing; nor to one that is being emptied, whatever the pod tolerates."""
    cluster = a_cluster(
        [a_node("other", cpu="10", **node), a_node("idle", cpu="10")],
        [a_replica(f"p{n}", "idle", cpu="100m", tolerations=[{"operator": "Exists"}]) for n in range(2)]
        + [daemon("other"), daemon("idle")],
    )

    assert plan(empty(), cluster, AROUND).moves == ()


@pytest.mark.parametrize("pods", [1, 7])
def test_a_node_that_is_being_emptied_is_not_chosen_again(pods: int) -> None:
    """Its last pods are leaving: they are not planned again, and no others come, whatever they tolerate."""
    tolerant = {"tolerations": [{"operator": "Exists"}], "cpu": "1"}
    cluster = a_cluster(
        [
            a_node("closed", cpu="10", taints=[f"{CONSOLIDATING}:NoSchedule"]),
            a_node("idle", cpu="10"),
            a_node("tiny", cpu="2"),
        ],
        [
            *(a_replica(f"c{n}", "closed", **tolerant) for n in range(pods)),
            *(a_replica(f"i{n}", "idle", **tolerant) for n in range(2)),
            a_replica("t", "tiny", **tolerant),
        ],
    )

    made = plan(empty(nodes=3), cluster, AROUND)

    assert {move.source for move in made.moves} == {"tiny"}
    assert {move.target for move in made.moves} == {"idle"}


@pytest.mark.parametrize(
    "signal",
    [each for each in SIGNALS if each.effect is Effect.NOT_EMPTIED],
    ids=lambda row: f"{row.form} {row.key}",
)
def test_a_node_that_is_to_be_left_alone_is(signal: DisruptionSignal) -> None:
    """What autoscalers heed is heeded; what cannot be read protects, and the run says why."""

    def cluster(value: str) -> Cluster:
        marks: dict[str, Any] = {f"{signal.form}s": {signal.key: value}}
        quiet = a_node("quiet", cpu="10", memory="64Gi", **marks)
        pods = [a_replica(f"q{n}", "quiet", owner="ReplicaSet/q", cpu="100m") for n in range(2)]
        return a_scene(nodes=[quiet], more=pods)

    assert {move.source for move in plan(empty(), cluster("true"), AROUND).moves} == {"idle"}
    made = plan(empty(), cluster("30m"), AROUND)
    assert {move.source for move in made.moves} == {"idle"}
    assert f"{signal.key}: '30m' cannot be read" in made.remarks[0][1]
    assert {move.source for move in plan(empty(), cluster("false"), AROUND).moves} == {"quiet"}


def test_a_node_that_is_starting_is_not_emptied() -> None:
    """Its pods are yet to come."""

    def sources(**labels: str) -> set[str]:
        quiet = a_node("quiet", cpu="10", memory="64Gi", labels=labels)
        pods = [a_replica(f"q{n}", "quiet", owner="ReplicaSet/q", cpu="100m") for n in range(2)]
        return {move.source for move in plan(empty(), a_scene(nodes=[quiet], more=pods), AROUND).moves}

    registered, initialized = {"karpenter.sh/registered": "true"}, {"karpenter.sh/initialized": "true"}
    assert sources(**registered) == {"idle"}
    assert sources(**registered, **initialized) == {"quiet"}


def test_as_many_nodes_as_the_policy_says() -> None:
    """Five little used nodes: one at a time by default, and no node that has just received pods."""

    def cluster() -> Cluster:
        return a_cluster(
            [a_node(f"n{n}", cpu="10") for n in range(5)],
            [
                a_replica(f"p{n}-{k}", f"n{n}", owner=f"ReplicaSet/r{n}", cpu="1")
                for n in range(5)
                for k in range(2)
            ],
        )

    assert len({move.source for move in plan(empty(), cluster(), AROUND).moves}) == 1
    made = plan(empty(nodes=4), cluster(), AROUND)
    assert len({move.source for move in made.moves}) > 1
    assert not {move.source for move in made.moves} & {move.target for move in made.moves}


def test_the_limits_of_the_policy_hold_for_the_whole_bundle() -> None:
    """One eviction in the whole cycle: a node with two pods stays as it is."""
    made = plan(empty(limits=Limits(total=Ceiling(count=1))), a_scene(), AROUND)

    assert made.moves == ()
    assert {reason for _, reason in refusals(made)} >= {"TotalLimit", "NotAll"}


def test_by_default_pods_of_one_owner_go_one_after_the_other() -> None:
    """One eviction of a workload at a time: the second waits, and the node is emptied."""
    made = plan(a_policy(("ConsolidateNodes", {})), a_scene(), AROUND)

    assert {move.pod.name: move.waits for move in made.moves} == {"large": False, "small": True}


@pytest.mark.parametrize("seed", range(4))
def test_nodes_are_emptied_one_by_one_until_no_more_can_be(seed: int) -> None:
    """Cycle after cycle fewer nodes are in use; then it stops; no pod came back, none lost its place."""
    cluster = a_cluster(
        [a_node(f"n{n}", cpu="8", memory="64Gi") for n in range(8)],
        [a_replica(f"p{n}", f"n{n % 8}", owner=f"ReplicaSet/r{n % 3}", cpu="1") for n in range(16)],
    )

    story = live(cluster, empty(thresholds={"cpu": 60}), seed=seed)

    # 16 cores on nodes that give 7.2 of their 8: three nodes at least, and a whole pod each makes it 7
    assert sum(bool(list(cluster.pods_on(row))) for row in range(8)) == 3
    assert (story.returned, story.pending, story.dropped) == ([], [], [])


@pytest.mark.parametrize(
    "args", [{"thresholds": {}}, {"thresholds": {"cpu": 101}}, {"headroomPercent": 100}, {"nodes": 0}]
)
def test_nonsense_is_refused(args: dict[str, Any]) -> None:
    """At apply, with a sentence."""
    with pytest.raises(ValidationError):
        ConsolidateNodes.args_model.model_validate(args)


class TestConformance(StrategyConformance):
    """The laws that every strategy obeys."""

    strategy = ConsolidateNodes(ConsolidateNodes.args_model())
