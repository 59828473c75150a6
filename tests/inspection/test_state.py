"""A snapshot read as the operator would see the cluster."""

from typing import Any

import pytest

from inspection.contents import a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.inspection.namespace_shares import namespace_shares
from plimsoll.inspection.state import ClusterState
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.watched_object import WatchedObjects
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


#: A move of a pod of web from a to b was sent at noon less a minute.
SENT = "2026-01-31T11:59:00Z"
BEFORE, THEN, AFTER = "2026-01-31T11:58:59Z", SENT, "2026-01-31T11:59:30Z"


def an_open_move(name: str, phase: str = "Evicted", **spec: Any) -> dict[str, Any]:
    """Its record."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}
    pod = {"namespace": "shop", "name": name, "uid": f"uid-of-{name}"}
    return {
        "kind": "Eviction",
        "metadata": {"name": f"{name}-0123abcd", "namespace": "shop", "creationTimestamp": SENT},
        "spec": {
            "pod": pod,
            "owner": owner,
            "policy": "all",
            "strategy": "RemoveDuplicates",
            "mode": "Enforce",
            "reason": "2 pods of ReplicaSet web are on its node",
            "fromNode": "a",
            "targetNode": "b",
            **spec,
        },
        "status": {"phase": phase, "transitions": [{"phase": phase, "time": SENT}]},
    }


@pytest.mark.parametrize(
    ("phase", "counts"), [("Evicting", True), ("Evicted", True), ("Surging", True), ("Settled", False)]
)
def test_moves_under_way_count_for_the_workload_that_a_plan_would_move(phase: str, counts: bool) -> None:
    """By the same key as the pods of the plan; else limits would not see them."""
    record = an_open_move("web-0", phase, pod={"namespace": "shop", "name": "web-0", "uid": "web-0"})
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


@pytest.mark.parametrize("scheduler", ["plimsoll", "another"])
def test_only_nominations_of_schedulers_that_are_served_here_hold_room(scheduler: str) -> None:
    """As in the operator: whom another scheduler nominates has no room of ours."""
    pod = a_pod_document("web-3", schedulerName=scheduler)
    pod["status"]["nominatedNodeName"] = "b"
    state = ClusterState.of(content_of([*drifted(), pod]))

    held = set(state.book.nominator.by_node)

    assert held == ({"b"} if scheduler == "plimsoll" else set())


@pytest.mark.parametrize("resource", ["cpu", "memory", "example.com/gpu"])
def test_namespaces_have_the_share_of_the_cluster_that_their_placed_pods_request(resource: str) -> None:
    """Added up by hand: two nodes of 4 cpu and 8Gi; what waits is counted apart."""
    amounts = {"red": [("a", 1000), ("b", 500), ("", 2000)], "blue": [("a", 3000)], "green": [("", 250)]}
    pods = [
        a_pod_document(f"{name}-{number}", node, cpu=f"{cpu}m", namespace=name)
        for name, some in amounts.items()
        for number, (node, cpu) in enumerate(some)
    ]
    content = content_of([a_node_document("a"), a_node_document("b"), a_policy_document(), *pods])

    found = namespace_shares(ClusterState.of(content), resource)

    order = ["blue", "red", "green"] if resource == "cpu" else ["red", "blue", "green"]
    assert [each.namespace for each in found.namespaces] == order
    for each in found.namespaces:
        placed = [cpu for node, cpu in amounts[each.namespace] if node]
        assert (each.pods, each.pending) == (len(placed), len(amounts[each.namespace]) - len(placed))
        assert each.requested["cpu"] == sum(placed)
        assert each.percent["cpu"] == round(sum(placed) / 80, 1)
        assert each.requested[resource] == (sum(placed) if resource == "cpu" else 0)
        assert each.percent[resource] == (round(sum(placed) / 80, 1) if resource == "cpu" else 0.0)
    said = "namespace blue requests most cpu: 37.5 % of the nodes' 8 cpu; all namespaces together 56.2 %"
    assert found.summary == (said if resource == "cpu" else f"no namespace requests {resource}")


def test_of_a_resource_that_no_node_has_a_namespace_has_no_share() -> None:
    """Though a pod on a node requests it, as when the node has lost its devices."""
    amounts = {"resources": {"requests": {"example.com/gpu": "2"}}}
    pod = a_pod_document("red", "a", containers=[{"name": "main", **amounts}], namespace="red")

    found = namespace_shares(ClusterState.of(content_of([a_node_document("a"), pod])), "example.com/gpu")

    assert found.summary == (
        "namespace red requests most example.com/gpu: 0 % of the nodes' 0 example.com/gpu;"
        " all namespaces together 0 %"
    )


def test_deployments_are_known_by_uid_and_kinds_only_if_the_snapshot_has_them() -> None:
    """Whether there are any of a kind that was not read is not known."""
    deployment = {"kind": "Deployment", "metadata": {"name": "web", "namespace": "shop", "uid": "u"}}
    objects = ClusterState.of(content_of([a_node_document("a"), deployment])).objects

    assert {uid: each.metadata.name for uid, each in objects.deployments.items()} == {"u": "web"}
    assert objects.cache.cluster.objects.ledger(WatchedObjects).listed == {Node}


@pytest.mark.parametrize(
    ("spec", "status", "leaving"),
    [
        ({"nodes": ["n1"]}, None, {"n1"}),
        ({"nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "n2"}}}, None, {"n2"}),
        ({"nodes": ["n1"]}, {"phase": "Draining"}, {"n1"}),
        ({"nodes": ["n1"]}, {"phase": "Drained"}, {"n1"}),
        ({"nodes": ["n1"]}, {"phase": "Stopped"}, set()),
        ({"nodes": ["n1"], "nodeSelector": 1}, None, set()),
    ],
)
def test_nodes_of_a_maintenance_that_goes_on_are_no_targets(
    spec: dict[str, Any], status: dict[str, Any] | None, leaving: set[str]
) -> None:
    """As the operator reads it; one that cannot be read is said among what was skipped."""
    found = {"kind": "NodeMaintenance", "metadata": {"name": "m"}, "spec": spec, "status": status or {}}
    policy = {"kind": "SchedulingPolicy", "metadata": {"name": "p"}, "spec": {"rebalancing": {}}}
    nodes = [a_node_document("n1"), a_node_document("n2")]

    state = ClusterState.of(content_of([*nodes, policy, found]))

    assert state.configured("p").leaving == leaving
    assert [each.resource for each in state.objects.skipped] == ["nodemaintenances"] * (
        spec.get("nodeSelector") == 1
    )


@pytest.mark.parametrize(
    ("siblings", "held"),
    [
        pytest.param([], "nothing", id="none-is-left-whose-shape-it-could-have"),
        pytest.param([(BEFORE, "a")], "a stand-in", id="an-older-one-elsewhere"),
        pytest.param([(BEFORE, "b")], "a stand-in", id="an-older-one-on-the-target"),
        pytest.param([(BEFORE, "")], "a stand-in", id="an-older-one-that-waits"),
        pytest.param([(AFTER, "")], "the pod", id="a-new-one-waits"),
        pytest.param([(THEN, "")], "the pod", id="a-new-one-of-the-same-second"),
        pytest.param([(AFTER, "b")], "nothing", id="a-new-one-is-there"),
        pytest.param([(AFTER, "a")], "a stand-in", id="a-new-one-went-elsewhere"),
        pytest.param([(BEFORE, ""), (BEFORE, "b"), (AFTER, "")], "the pod", id="a-new-one-among-older"),
        pytest.param([(BEFORE, "a"), (None, "b")], "a stand-in", id="one-of-an-unknown-age"),
    ],
)
def test_the_target_of_an_open_move_is_kept_until_its_replacement_is_there(
    siblings: list[tuple[str | None, str]], held: str
) -> None:
    """Only pods that were made since the move can be the replacement; whatever is read first."""
    pods = []
    for number, (created, node) in enumerate(siblings):
        pods.append(a_pod_document(f"web-{number}", node))
        pods[-1]["metadata"]["creationTimestamp"] = created
    scene = [a_node_document("a"), a_node_document("b"), a_policy_document(), *pods]
    record = an_open_move("web-old")

    for documents in ([*scene, record], [record, *scene]):
        state = ClusterState.of(content_of(documents))
        on_target = state.book.nominator.by_node.get("b", {})
        waits = {each["metadata"]["uid"] for each in pods if each["metadata"]["creationTimestamp"] != BEFORE}
        said = {"the pod" if uid in waits else "a stand-in" for uid in on_target} or {"nothing"}
        assert said == {held}
        row = state.cluster.rows["b"]
        more = state.book.claimed().requested[row, 0] - state.cluster.requested[row, 0]
        assert more == (0 if held == "nothing" else 500)
    settled = {**record, "status": {**record["status"], "phase": "Settled"}}
    assert ClusterState.of(content_of([*scene, settled])).book.nominator.by_node == {}
