"""Pods of one workload that go together, one after the other: each waits for the replacement before it."""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from devices.builders import a_claim
from planning.builders import SURROUNDINGS, a_rebalancing, reasons, targets
from planning.device_worlds import a_user, a_world, an_allocation
from plimsoll.framework import NoArgs
from plimsoll.framework.descheduling.proposals import Bundle, Candidate
from plimsoll.framework.descheduling.registry import EvictorRegistry
from plimsoll.framework.descheduling.strategy import StrategyKind
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.planning.limits import Ceiling, Limits
from plimsoll.planning.moves import EvictionPlan
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.strategies import EVICTORS
from plimsoll.testing.builders import a_cluster, a_node, a_pod

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
ONE = Limits(per_workload=Ceiling(count=1))


class Empties:
    """Sends all pods of node "old" to node "new"."""

    name: ClassVar = "Empties"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = NoArgs

    def __init__(self, *, one_by_one: bool = True) -> None:
        self.one_by_one = one_by_one

    def candidates(self, context: Any) -> Iterator[Bundle]:
        pods = sorted(context.placed("old"), key=lambda pod: pod.name)
        candidates = tuple(Candidate(pod, "old", "it is sent", "new") for pod in pods)
        yield Bundle(candidates, one_by_one=self.one_by_one)


class Sends:
    """Proposes one pod for itself."""

    name: ClassVar = "Sends"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = NoArgs

    def candidates(self, context: Any) -> Iterator[Candidate]:
        (pod,) = (each for each in context.cluster.pods.values() if each.name == "web-9")
        yield Candidate(pod, "spare", "it is sent", "new")


def a_scene(*more: Pod, budget: int | None = None) -> Cluster:
    """Two pods of "web" and one of "job" on the node, and room for all."""
    pods = [a_pod(f"web-{n}", owner="ReplicaSet/web", cpu="100m", node="old", status=READY) for n in (1, 2)]
    job = a_pod("job", owner="ReplicaSet/job", cpu="100m", node="old", status=READY)
    nodes = [a_node(name) for name in ("old", "new", "spare")]
    cluster = a_cluster(nodes, [*pods, job, *more])
    if budget is not None:
        status = {"disruptionsAllowed": budget, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
        cluster.objects.budgets["default/all"] = convert(
            PodDisruptionBudget,
            {"metadata": {"name": "all", "namespace": "default"}, "spec": {"selector": {}}, "status": status},
        )
    return cluster


def planned(
    cluster: Cluster, *strategies: Empties | Sends, limits: Limits = ONE, **evictor: Any
) -> EvictionPlan:
    asked = a_rebalancing(*(strategies or [Empties()]), limits=limits)
    if evictor:
        built = EvictorRegistry(EVICTORS).build("DefaultEvictor", evictor, "evictor")
        asked = replace(asked, evictors=(built,))
    return plan(asked, cluster, SURROUNDINGS)


def test_the_limit_for_a_workload_does_not_keep_the_node_from_being_emptied() -> None:
    """The second pod of the owner waits for the first; the pod of another owner does not."""
    found = planned(a_scene())

    assert targets(found) == {"web-1": "new", "web-2": "new", "job": "new"}
    assert {move.pod.name: move.waits for move in found.moves} == {
        "job": False,
        "web-1": False,
        "web-2": True,
    }


def test_a_bundle_whose_pods_go_together_keeps_to_the_limit() -> None:
    """One eviction of the owner at a time: none goes."""
    found = planned(a_scene(), Empties(one_by_one=False))

    assert targets(found) == {}
    assert reasons(found)["web-2"] == "WorkloadLimit"


def test_moves_under_way_hold_the_first_of_a_workload_back() -> None:
    """The limit holds for it as for any other."""
    found = planned(a_scene(), limits=Limits(per_workload=Ceiling(count=0)))

    assert targets(found) == {}
    assert "WorkloadLimit" in reasons(found).values()


def test_another_proposal_does_not_join_in() -> None:
    """It would go together with them: the limit has counted those of the bundle."""
    another = a_pod("web-9", owner="ReplicaSet/web", cpu="100m", node="spare", status=READY)

    found = planned(a_scene(another), Empties(), Sends())

    assert "web-9" not in targets(found)
    assert reasons(found)["web-9"] == "WorkloadLimit"


@pytest.mark.parametrize(("allowed", "moves"), [(3, 3), (2, 3), (1, 0), (0, 0)])
def test_a_budget_is_asked_for_what_is_missing_at_a_time(allowed: int, moves: int) -> None:
    """The second pod of the owner takes what the first has given back; the other owner's takes its own."""
    found = planned(a_scene(budget=allowed))

    assert len(found.moves) == moves
    assert not moves or {move.budget for move in found.moves} == {"default/all"}


@pytest.mark.parametrize("one_by_one", [True, False])
def test_the_only_two_ready_pods_of_an_owner_go_one_by_one_or_not_at_all(one_by_one: bool) -> None:
    """When the second goes the first one's replacement is ready; at the same time no pod would serve."""
    cluster = a_scene()
    cluster.displace("uid-default-job")
    free = Limits(per_workload=Ceiling(count=5))

    found = planned(cluster, Empties(one_by_one=one_by_one), limits=free, minReplicas=2)

    if one_by_one:
        assert [(move.pod.name, move.waits) for move in found.moves] == [("web-1", False), ("web-2", True)]
    else:
        assert (targets(found), reasons(found)) == ({}, {"web-1": "NotAll", "web-2": "LastReady"})


@pytest.mark.parametrize("one_by_one", [True, False])
def test_pods_that_share_a_claim_do_not_go_one_by_one(one_by_one: bool) -> None:
    """The claim is deallocated when both have left."""
    claim = a_claim("team", status=an_allocation("old", ["d0"], ["p", "q"]))
    users = [
        a_user(name, "old", claim="team", owner=f"ReplicaSet/{name}", status=READY) for name in ("p", "q")
    ]
    cluster = a_world({"old": 1, "new": 1}, users, claim)

    found = planned(cluster, Empties(one_by_one=one_by_one), minReplicas=0)

    assert targets(found) == ({} if one_by_one else {"p": "new", "q": "new"})
    assert set(reasons(found).values()) == ({"SharedClaim"} if one_by_one else set())
