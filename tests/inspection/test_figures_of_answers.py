"""Figures of answers: of the second of several, of the rare one, and of each step."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from inspection.contents import a_node_document, a_pod_document, a_policy_document, content_of
from inspection.explanations.random_clusters import PROFILE
from inspection.forked_states import a_state, a_workload, manifests
from inspection.test_plans import cluster_of_three
from planning.builders import SURROUNDINGS, Named, a_rebalancing
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.cluster.watched_resources import DEVICES
from plimsoll.devices.book import DeviceBook
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.inspection.explanations.examination import POOL_LABELS, Examination
from plimsoll.inspection.explanations.nearest import nearest_misses
from plimsoll.inspection.explanations.pod import explain_pod
from plimsoll.inspection.explanations.supposition import Relabel, Supposition, Uncordon, supposed
from plimsoll.inspection.mirrored import MirroredObjects
from plimsoll.inspection.placement.fit import FitQuestion, fit
from plimsoll.inspection.plans.moves import planned_moves
from plimsoll.inspection.state import ClusterState
from plimsoll.planning.planners import make_plan
from plimsoll.planning.surges import Surge
from plimsoll.testing.builders import a_cluster, a_node, a_pod


def examined(pod: Any, *nodes: Any, pods: Any = ()) -> Examination:
    """The examination of a pod."""
    cluster = a_cluster(nodes, pods)
    return Examination(ProfileScheduler(PROFILE, cluster), cluster.templates.info(pod))


def spread(skew: int) -> dict[str, Any]:
    """A pod that is spread over zones."""
    constraint = {
        "maxSkew": skew,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    return {"labels": {"app": "web"}, "topologySpreadConstraints": [constraint]}


@pytest.mark.parametrize("skew", [1, 2])
@pytest.mark.parametrize("more", [1, 2, 3])
def test_each_remedy_of_a_skew_alone_lets_the_pod_fit(skew: int, more: int) -> None:
    """As many fewer as said, or a maxSkew as high as said, and one less of either is not enough."""
    nodes = (a_node("a", labels={"zone": "a"}), a_node("b", labels={"zone": "b"}, unschedulable=True))
    there = [a_pod(f"w{n}", node="a", labels={"app": "web"}) for n in range(skew + more - 1)]
    examination = examined(a_pod("p", **spread(skew)), *nodes, pods=there)

    miss = next(each for each in nearest_misses(examination) if each.node == "a")

    (lack,) = miss.lacks
    fewer, higher = lack.remedies
    assert fewer.text == f"{more} matching pod{'s' if more > 1 else ''} fewer in zone=a"
    assert higher.text == f"maxSkew {skew + more} for zone"
    grants: list[Any] = [fewer.grant, higher.grant]
    less: list[Any] = [
        replace(grants[0], uids=grants[0].uids[1:]),
        replace(grants[1], max_skew=grants[1].max_skew - 1),
    ]
    for grant, too_little in zip(grants, less, strict=True):
        assert "a" in supposed(examination.scheduler, examination.pod, [grant]).feasible()
        assert "a" not in supposed(examination.scheduler, examination.pod, [too_little]).feasible()


def test_a_node_is_supposed_with_exactly_the_labels_and_without_the_cordon() -> None:
    """The cluster itself keeps its own."""
    node = a_node("n", labels={"old": "1", "pool": "a"}, unschedulable=True)
    examination = examined(a_pod("p"), node)
    on = Supposition(examination.scheduler, examination.pod)

    Relabel("n", (("old", None), ("pool", "b"), ("new", "c"))).apply(on)
    Uncordon("n").apply(on)

    assert dict(on.node("n").labels) == {"kubernetes.io/hostname": "n", "pool": "b", "new": "c"}
    assert not on.node("n").spec.unschedulable
    assert dict(examination.cluster.nodes[0].labels) == dict(node.labels)


@pytest.mark.parametrize("key", POOL_LABELS)
def test_refused_nodes_are_named_by_the_label_that_only_they_have(key: str) -> None:
    """Another node with it, or one of them without, and it names nothing."""
    tainted: dict[str, Any] = {"taints": ["gpu:NoSchedule"]}
    plain: dict[str, Any] = {"cpu": "1m"}
    pod = a_pod("p", cpu="1")

    def pools(*labels: Any) -> list[str]:
        kinds = (tainted, tainted, plain)
        nodes = [
            a_node(f"n{at}", labels={key: each} if each else {}, **kind)
            for at, (each, kind) in enumerate(zip(labels, kinds, strict=True))
        ]
        examination = examined(pod, *nodes)
        return [examination._pool(each.rows) for each in examination.groups() if len(each.rows) == 2]

    assert pools("x", "x", "y") == [f"{key}=x"]
    assert pools("x", "x", "x") == [""]
    assert pools("x", "y", "z") == [""]
    assert pools("x", None, "y") == [""]


def test_a_pod_that_is_wanted_as_a_neighbour_has_the_labels_of_every_term() -> None:
    """None runs yet: a pod with both labels would let it fit."""
    terms = [
        {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname"},
        {
            "labelSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
            "topologyKey": "kubernetes.io/hostname",
        },
    ]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    examination = examined(a_pod("p", affinity=affinity), a_node("n"))

    (miss,) = nearest_misses(examination)

    granted = supposed(examination.scheduler, examination.pod, [miss.remedies[0].grant])
    assert granted.feasible() == ("n",)
    arrived = [each for each, _ in granted.cluster.placed()]
    assert [dict(each.labels) for each in arrived] == [{"app": "cache", "tier": "true"}]


@pytest.mark.parametrize("left_out", [None, *range(len(DEVICES))])
def test_devices_are_served_only_if_all_their_kinds_are_in_the_content(left_out: int | None) -> None:
    content = content_of([])
    others = {
        name: content.objects[name] for name in content.objects if name not in {each.name for each in DEVICES}
    }
    devices: dict[str, list[bytes]] = {each.name: [] for at, each in enumerate(DEVICES) if at != left_out}
    content = replace(content, objects={**others, **devices})

    book = MirroredObjects(content).cache.cluster.objects.known_ledger(DeviceBook)

    assert (book is not None and book.is_served) is (left_out is None)


def test_progress_counts_the_pods_that_were_tried() -> None:
    seen: list[int] = []
    state = a_state(a_node("n1", cpu="2"), a_node("n2", cpu="2"))

    answer = fit(state, manifests(state, a_workload(replicas=3)), FitQuestion(), seen.append)

    assert answer.fits
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) >= 3


@pytest.mark.parametrize("is_surge", [False, True])
def test_a_move_says_how_its_pod_leaves(is_surge: bool) -> None:
    made = make_plan(a_rebalancing(Named("a")), cluster_of_three(), SURROUNDINGS)
    (move,) = made.moves
    surge = Surge("web", "u", "t") if is_surge else None

    (told,) = planned_moves(replace(made, moves=(replace(move, surge=surge),)), Mode.ENFORCE)

    assert told.leaves_by.value == ("Surge" if is_surge else "Eviction")


def test_only_the_pod_itself_is_helped_not_its_namesake() -> None:
    """Another pod of its name, of another namespace, has room made for it."""
    policy = a_policy_document(
        scheduling={"schedulerName": "plimsoll"},
        rebalancing={"mode": "Enforce", "strategies": [{"name": "MakeRoomForPending"}]},
    )
    documents = [
        a_node_document("a"),
        a_node_document("b"),
        a_pod_document("one", "a", cpu="1500m"),
        a_pod_document("two", "b", cpu="1500m"),
        a_pod_document("big", cpu="3", owner="big"),
        a_pod_document("big", cpu="64", owner="other", namespace="bank"),
        policy,
    ]
    documents[5]["metadata"]["uid"] = "another"
    state = ClusterState.of(content_of(documents))

    def helps(namespace: str) -> set[str]:
        pending = explain_pod(state, namespace, "big").pending
        assert pending is not None
        return {each.kind for each in pending.helps}

    assert "Plan" in helps("shop")
    assert "Plan" not in helps("bank")
