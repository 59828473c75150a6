"""Explanations of pods and nodes on small clusters."""

from datetime import UTC, datetime
from typing import Any

import pytest

from inspection.contents import a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.api.v1alpha1.rebalancing import RebalancingSpec
from plimsoll.framework import PluginError
from plimsoll.inspection.explanations.node import NodeExplanation, explain_node
from plimsoll.inspection.explanations.placed_pod import PlacedExplanation
from plimsoll.inspection.explanations.pod import PodExplanation, explain_pod
from plimsoll.inspection.explanations.waiting_pods import WaitsFor, _kind, _why
from plimsoll.inspection.measured_usage import measured
from plimsoll.inspection.state import ClusterState
from plimsoll.inspection.unknown_objects import UnknownObjectError
from plimsoll.ports.usage import UsageReading
from plimsoll.snapshots.content import UsageContent
from plimsoll.testing.builders import a_pod, the_info

Document = dict[str, Any]


def explained(name: str, *documents: Document) -> PodExplanation:
    """A pod of a cluster."""
    return explain_pod(ClusterState.of(content_of(documents)), "shop", name)


def placed(name: str, *documents: Document) -> PlacedExplanation:
    """The same of a pod with a node."""
    found = explained(name, *documents).placed
    assert found is not None
    return found


def balancing(planner: str) -> Document:
    """A policy that moves pods off full nodes."""
    arguments = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 60}}
    strategies = [{"name": "LowNodeUtilization", "args": arguments}]
    return a_policy_document(
        scheduling={"schedulerName": "plimsoll"},
        rebalancing={"mode": "Enforce", "planner": planner, "strategies": strategies},
    )


def drifted() -> list[Document]:
    """A full node and an empty one."""
    pods = [a_pod_document(f"web-{number}", "a", cpu="900m") for number in range(3)]
    return [a_node_document("a"), a_node_document("b"), *pods]


@pytest.mark.parametrize("planner", ["Upstream", "Proven", "Optimal"])
def test_a_pod_that_a_run_would_move_says_where_to_and_why(planner: str) -> None:
    """By the plan of the policy's own planner."""
    views = [placed(f"web-{number}", *drifted(), balancing(planner)).policies[0] for number in range(3)]

    moved = [each for each in views if each.outcome == "Moves"]
    assert moved
    assert {each.target_node for each in moved} == {"b"}
    assert all(each.text.startswith("LowNodeUtilization moves it to b: ") for each in moved)


def test_a_better_node_is_named_with_its_points() -> None:
    """Plugin by plugin, the sums of which are the totals."""
    found = explained("web-0", *drifted(), a_policy_document())

    assert found.placed is not None
    own, other = found.placed.scores
    assert (own.node, other.node) == ("a", "b")
    assert found.summary[0] == f"node b would suit it better: {other.total} points, its own {own.total}"
    assert [sum(part.points for part in each.plugins) for each in (own, other)] == [own.total, other.total]


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        (a_pod_document("p", "gone"), "it is on node gone, which the cluster does not have"),
        (
            {**a_pod_document("p", "a"), "status": {"phase": "Succeeded"}},
            "it has ended (Succeeded) and takes nothing from a node",
        ),
        (
            a_pod_document("p", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "lost"}}]),
            "nothing that one node lacks would let it fit: 0/1 nodes are available: persistentvolumeclaim",
        ),
    ],
)
def test_pods_that_no_node_can_help(pod: Document, said: str) -> None:
    """The last sentence of the summary says why."""
    found = explained("p", a_node_document("a"), pod, a_policy_document())

    assert found.summary[-1].startswith(said)


def test_a_cluster_without_nodes() -> None:
    """There is nothing to be near to."""
    found = explained("p", a_pod_document("p"), a_policy_document())

    assert found.pending is not None
    assert (found.pending.message, found.pending.nearest) == ("no nodes available to schedule pods", [])


def test_a_plugin_that_fails_at_the_pod_is_named() -> None:
    """As the operator names it in the pod's condition."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]},
    }

    with pytest.raises(PluginError, match="PodTopologySpread"):
        explained("p", a_node_document("a"), a_pod_document("p", topologySpreadConstraints=[constraint]))


def test_a_move_that_makes_room_is_a_remedy_with_its_policy() -> None:
    """The strategy MakeRoomForPending would make it."""
    policy = a_policy_document(
        scheduling={"schedulerName": "plimsoll"},
        rebalancing={"mode": "Enforce", "strategies": [{"name": "MakeRoomForPending"}]},
    )
    pods = [a_pod_document("one", "a", cpu="1500m"), a_pod_document("two", "b", cpu="1500m")]

    found = explained(
        "big",
        a_node_document("a"),
        a_node_document("b"),
        *pods,
        a_pod_document("big", cpu="3", owner="big"),
        policy,
    )

    assert found.pending is not None
    texts = {each.kind: each.text for each in found.pending.helps}
    assert texts["Move"] == "pod shop/one moved from a to b"
    assert texts["Plan"].startswith("policy all (Enforce), whose MakeRoomForPending moves shop/")


def test_moves_for_a_group_are_a_remedy_for_each_of_its_members() -> None:
    """Node c has room for one of the two, and a only without its pod."""
    policy = a_policy_document(
        scheduling={"schedulerName": "plimsoll"},
        rebalancing={"mode": "Enforce", "strategies": [{"name": "MakeRoomForPending"}]},
    )
    group = {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "shop"}, "spec": {"minMember": 2}}
    members = [a_pod_document(name, cpu="3", owner=name) for name in ("first", "second")]
    for each in members:
        each["metadata"]["labels"]["plimsoll.dev/pod-group"] = "g"
    pods = [a_pod_document("one", "a", cpu="1500m"), a_pod_document("two", "b", cpu="1500m")]
    nodes = [a_node_document(name) for name in "abc"]

    for each in members:
        found = explained(each["metadata"]["name"], *nodes, *pods, group, *members, policy)

        assert found.pending is not None
        (plan,) = [help_ for help_ in found.pending.helps if help_.kind == "Plan"]
        assert plan.text.startswith("policy all (Enforce), whose MakeRoomForPending moves shop/")


@pytest.mark.parametrize(("ready", "other"), [(True, False), (False, True)])
def test_a_node_is_ready_by_that_condition_alone(ready: bool, other: bool) -> None:
    node = a_node_document("a")
    node["status"]["conditions"] = [
        {"type": "MemoryPressure", "status": str(other)},
        {"type": "Ready", "status": str(ready)},
    ]

    assert explain_node(ClusterState.of(content_of([node])), "a").is_ready is ready


def test_no_move_is_a_remedy_where_a_node_lacks_more_than_room() -> None:
    """Of two nodes, one has a pod of higher priority, and the other one that the pod keeps away from."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    db = a_pod_document("one", "a", cpu="1500m")
    db["metadata"]["labels"] = {"app": "db"}

    found = explained(
        "big",
        a_node_document("a"),
        a_node_document("b"),
        db,
        a_pod_document("two", "b", cpu="1500m", priority=5),
        a_pod_document("big", cpu="3", owner="big", affinity=apart),
    )

    assert found.pending is not None
    assert [each.node for each in found.pending.nearest] == ["b", "a"]
    assert "Move" not in {each.kind for each in found.pending.helps}


def node(*documents: Document) -> NodeExplanation:
    """Node ``a`` of a cluster."""
    return explain_node(ClusterState.of(content_of(documents)), "a")


def test_a_node_that_can_be_emptied_says_where_its_pods_go() -> None:
    """Each replacement counts for those after it."""
    found = node(*drifted(), balancing("Proven"))

    assert found.can_drain
    assert {each.target_node for each in found.pods} == {"b"}
    assert found.policies[0].classes == {"LowNodeUtilization": "Overutilized"}
    assert found.policies[0].leave


@pytest.mark.parametrize(
    ("annotations", "taints", "said"),
    [
        ({}, ["ToBeDeletedByClusterAutoscaler"], "no pod is moved to it: it has the taint ToBeDeletedBy"),
        ({"karpenter.sh/do-not-disrupt": "true"}, [], "it is not emptied: annotation karpenter.sh/do-not-d"),
        ({"karpenter.sh/do-not-disrupt": "30m"}, [], "it is not emptied: annotation karpenter.sh/do-not-d"),
    ],
)
def test_what_others_wrote_on_a_node_is_said(
    annotations: dict[str, str], taints: list[str], said: str
) -> None:
    """With what is done at it."""
    document = a_node_document("a")
    document["metadata"]["annotations"] = annotations
    document["spec"]["taints"] = [{"key": key, "effect": "NoSchedule"} for key in taints]

    assert any(each.startswith(said) for each in node(document).summary)
    assert not any(each.startswith(("no pod is", "it is not")) for each in node(a_node_document("a")).summary)


def test_a_node_that_does_not_exist() -> None:
    """Similar names are named."""
    with pytest.raises(UnknownObjectError, match='node "a" not found; did you mean a1'):
        node(a_node_document("a1"))


def test_what_the_evictor_of_one_strategy_protects_is_said_of_that_strategy() -> None:
    """The strategies of one policy may ask different evictors."""
    strategies = [
        {"name": "RemoveDuplicates"},
        {"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 60}, "evictor": {"minPodAge": "90000h"}},
    ]
    policy = a_policy_document(
        scheduling={"schedulerName": "plimsoll"},
        rebalancing={"planner": "Upstream", "strategies": strategies, "evictor": {"minReplicas": 0}},
    )

    (view,) = placed("web-0", *drifted(), policy).policies

    said = [each.message for each in view.holds]
    assert [each for each in said if each.startswith("PodLifeTime: ")]
    assert not [each for each in said if each.startswith("RemoveDuplicates: ")]


def devices(count: int) -> list[Document]:
    """A class, a slice of node a with so many devices, and a claim for two."""
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    published = [{"name": f"gpu-{place}"} for place in range(count)]
    return [
        {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        {
            "kind": "ResourceSlice",
            "metadata": {"name": "gpus"},
            "spec": {"driver": "gpu.example.com", "nodeName": "a", "pool": pool, "devices": published},
        },
        {
            "kind": "ResourceClaim",
            "metadata": {"name": "pair", "namespace": "shop", "uid": "pair"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        },
    ]


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (2, "its next attempt puts it on node a"),
        (1, "0/2 nodes are available: 2 cannot allocate all claims"),
        (0, "could not find ResourceClaim"),
    ],
)
def test_a_pod_that_waits_for_devices_says_so(count: int, said: str) -> None:
    """Where there are enough, too few, and where the cluster has no claim of that name."""
    claims = [{"name": "gpu", "resourceClaimName": "pair"}]
    pod = a_pod_document("train", resourceClaims=claims, schedulerName="plimsoll")
    policy = a_policy_document(scheduling={"schedulerName": "plimsoll"})
    published = devices(count or 2)
    if not count:
        del published[-1]
        published.append({"kind": "ResourceClaim", "metadata": {"name": "other", "namespace": "shop"}})

    found = explained("train", a_node_document("a"), a_node_document("b"), pod, policy, *published)

    assert said in " ".join(found.summary)


def test_a_nearer_node_that_no_move_helps_hides_no_other() -> None:
    """Node a repels the pod; on b its port is taken by one that tolerates a."""
    port = {"containerPort": 80, "hostPort": 80}
    repelling = a_node_document("a")
    repelling["spec"] = {"taints": [{"key": "x", "value": "", "effect": "NoSchedule"}]}
    tolerant = a_pod_document("two", "b", cpu="100m", tolerations=[{"operator": "Exists"}])
    wanting = a_pod_document("big", cpu="100m", owner="big")
    for each in (tolerant, wanting):
        each["spec"]["containers"][0]["ports"] = [port]

    found = explained("big", repelling, a_node_document("b"), tolerant, wanting)

    assert found.pending is not None
    assert [each.node for each in found.pending.nearest] == ["a", "b"]
    assert {each.kind: each.text for each in found.pending.helps}["Move"] == "pod shop/two moved from b to a"


@pytest.mark.parametrize("told", ["", "0/3 nodes are available."])
def test_a_kind_of_pods_too_many_says_what_its_scheduler_wrote(told: str) -> None:
    """Without that, why it was not tried."""
    status = {"conditions": [{"type": "PodScheduled", "status": "False", "message": told}]} if told else {}
    pod = {**a_pod_document("p"), "status": {"phase": "Pending", **status}}
    state = ClusterState.of(content_of([a_node_document("a"), balancing("Proven"), pod]))
    (info,) = state.objects.pending.infos()

    said = _why(state, info, is_tried=False)

    assert said == (WaitsFor.ROOM, told or "not tried here: too many kinds of pods are pending")


def test_a_plan_that_fails_is_said_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of a plan that moves nothing."""

    def broken(*_: object) -> None:
        raise PluginError("LowNodeUtilization", "balance", "ValueError: boom")

    monkeypatch.setattr("plimsoll.inspection.explanations.node.make_plan", broken)

    (view,) = node(*drifted(), balancing("Proven")).policies

    assert "boom" in view.problem


@pytest.mark.parametrize(
    ("ages", "oldest", "waited"), [((30, 90), 1, 90), ((90, 30), 0, 90), ((-9, -5), 1, 0)]
)
def test_a_kind_has_waited_as_long_as_its_oldest_pod(ages: Any, oldest: int, waited: int) -> None:
    """No time at all where the clocks differ."""
    state = ClusterState.of(content_of([a_node_document("a")]))
    moments = [datetime.fromtimestamp(state.now - age, UTC).isoformat() for age in ages]
    pods = [
        the_info(a_pod(f"p{at}", namespace="shop", metadata={"creationTimestamp": moment}))
        for at, moment in enumerate(moments)
    ]

    found = _kind(state, "Pod shop/p", pods, WaitsFor.ROOM, "")

    assert found.example == f"shop/p{oldest}"
    assert found.waited_seconds in (waited, waited + 1)  # moments are cut to whole seconds


@pytest.mark.parametrize("late_s", [-1.0, 0.0, 1.0])
def test_usage_counts_if_it_was_read_after_the_last_move(late_s: float) -> None:
    """An older reading has the load of what has left."""
    usage = UsageContent(nodes=(UsageReading("n1", {"cpu": 5}, 1_000.0 + late_s, 15.0),), pods=())
    metrics = {"metricsUtilization": {"source": "KubernetesMetrics"}}
    spec = RebalancingSpec.model_validate({"strategies": [{"name": "LowNodeUtilization", "args": metrics}]})

    found = measured(usage, spec, {"n1": 1_000.0}, 1_010.0)

    assert found.nodes == ({"n1": {"cpu": 5}} if late_s > 0 else {})
