"""A snapshot read as the operator would see the cluster."""

import pytest

from inspection.contents import a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.inspection.state import ClusterState
from plimsoll.planning.moves import workload_of
from plimsoll.planning.planners import make_plan


def drifted() -> list[dict[str, object]]:
    """Two pods of one owner on one node, and an empty node."""
    return [
        a_node_document("a"),
        a_node_document("b"),
        a_pod_document("web-1", "a"),
        a_pod_document("web-2", "a"),
        a_policy_document(),
    ]


def test_objects_policies_and_profiles_are_there() -> None:
    """Nodes and pods are mirrored, the policy is accepted, its profile places a pod."""
    state = ClusterState.of(content_of([*drifted(), a_pod_document("web-3")]))

    assert sorted(node.name for node in state.cluster.nodes) == ["a", "b"]
    assert sorted(state.cluster.pods) == ["web-1", "web-2"]
    assert state.policies["all"].problem == ("", "")
    pod = state.find_pod("shop", "web-3")
    assert pod is not None
    assert state.schedulers["plimsoll"].rank(pod).best == ("b",)


def test_a_plan_of_its_run_input_moves_what_the_operator_would() -> None:
    """The duplicate goes to the empty node."""
    state = ClusterState.of(content_of(drifted()))

    plan = make_plan(*state.run_input("all"))

    assert [(each.pod.name, each.source, each.target) for each in plan.moves] == [("web-2", "a", "b")]


@pytest.mark.parametrize(
    ("phase", "counts"), [("Evicting", True), ("Evicted", True), ("Surging", True), ("Settled", False)]
)
def test_moves_under_way_count_for_the_workload_that_a_plan_would_move(phase: str, counts: bool) -> None:
    """By the same key as the pods of the plan; else limits would not see them."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}
    record = {
        "kind": "Eviction",
        "metadata": {
            "name": "web-0-0123abcd",
            "namespace": "shop",
            "creationTimestamp": "2026-01-31T11:59:00Z",
        },
        "spec": {
            "pod": {"namespace": "shop", "name": "web-0", "uid": "web-0"},
            "owner": owner,
            "policy": "all",
            "strategy": "RemoveDuplicates",
            "mode": "Enforce",
            "reason": "2 pods of ReplicaSet web are on its node",
            "fromNode": "a",
            "targetNode": "b",
        },
        "status": {"phase": phase, "transitions": [{"phase": phase, "time": "2026-01-31T11:59:00Z"}]},
    }
    state = ClusterState.of(content_of([*drifted(), record]))
    pod = state.find_pod("shop", "web-1")
    assert pod is not None

    _, _, context = state.run_input("all")

    assert context.in_flight == ({workload_of(pod).key: 1} if counts else {})


def test_a_policy_that_is_wrong_serves_nothing_and_says_why() -> None:
    """In the words of the status."""
    wrong = a_policy_document("wrong", rebalancing={"strategies": [{"name": "RemoveDuplicate"}]})
    rival = a_policy_document("rival", "2026-01-02T00:00:00Z", scheduling={"schedulerName": "plimsoll"})

    state = ClusterState.of(content_of([*drifted(), wrong, rival]))

    assert state.policies["wrong"].policy is None
    assert (
        state.policies["wrong"]
        .problem[1]
        .startswith("spec.rebalancing.strategies[0].name: there is no strategy")
    )
    assert state.policies["rival"].problem[0] == "SchedulerNameTaken"
    assert sorted(state.working) == ["all"]


def test_other_policies_on_the_same_cluster() -> None:
    """The snapshot's own policies count no longer."""
    state = ClusterState.of(content_of(drifted()))

    other = state.with_policies([a_policy_document("other", rebalancing={"strategies": []})])

    assert sorted(other.working) == ["other"]
    assert other.profiles == {}


def test_what_cannot_be_read_is_said() -> None:
    """The others count."""
    broken = a_pod_document("odd")
    broken["spec"]["containers"] = "none"

    state = ClusterState.of(content_of([*drifted(), broken]))

    assert [(each.resource, each.name) for each in state.objects.skipped] == [("pods", "shop/odd")]
    assert len(state.cluster.pods) == 2
