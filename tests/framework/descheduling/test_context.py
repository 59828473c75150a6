"""Strategies see the cluster live and in a fixed order."""

from itertools import product
from typing import Any

import pytest

from plimsoll.framework.descheduling.context import StrategyContext, bound_to_gang
from plimsoll.framework.descheduling.pod_indexes import OwnerCounts, PodsByOwner, PodsByTemplate
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.gang_members import GangUnit
from plimsoll.model.kinds.gang_marks import Gang
from plimsoll.model.names import PodUid
from plimsoll.testing.builders import a_cluster, a_node, a_pod, the_info
from strategies.builders import a_context, pods_on


def the_context() -> StrategyContext:
    ended = a_pod("ended", node="n1", owner="ReplicaSet/web", status={"phase": "Failed"})
    waiting = a_pod("waiting", owner="ReplicaSet/web")
    nodes = [a_node(name) for name in ("n3", "n1", "n2")]
    return a_context(nodes, [*pods_on("n1", 2), *pods_on("n2", 1), ended, waiting])


def test_pods_are_sorted_by_name() -> None:
    """Those that hold a place, or all that were ever put on the node."""
    context = the_context()

    assert context.nodes == ("n1", "n2", "n3")
    assert [pod.name for pod in context.pods("n1")] == ["n1-0", "n1-1"]
    assert [pod.name for pod in context.all_pods("n1")] == ["ended", "n1-0", "n1-1"]
    assert context.pods("gone") == []


def test_replicas_are_counted_wherever_they_are() -> None:
    """Of any phase; the count follows what happens to the pods."""
    context = the_context()

    assert context.replicas("default", "uid-ReplicaSet/web") == 5
    context.cluster.displace("uid-default-n1-0")
    context.unplaced.discard("uid-default-ended")
    assert context.replicas("default", "uid-ReplicaSet/web") == 3


def test_siblings_come_together() -> None:
    """Template by template, only from nodes under consideration."""
    context = the_context()
    context.nodes = ("n1", "n3")

    assert [[pod.name for pod in pods] for _, pods in context.siblings()] == [["n1-0", "n1-1"]]
    assert list(context.siblings("elsewhere")) == []
    assert context.namespaces() == ["default"]


def test_siblings_of_some_templates_are_those_of_all_without_the_others() -> None:
    pods = [
        a_pod(f"{owner}{at}", node=f"n{at % 2}", owner=f"ReplicaSet/{owner}", labels={"of": owner})
        for owner in "cab"
        for at in range(3)
    ]
    context = a_context([a_node("n0"), a_node("n1")], pods)
    found = list(context.siblings())

    assert len(found) == 3
    for chosen in product((False, True), repeat=3):
        among = [template for (template, _), is_chosen in zip(found, chosen, strict=True) if is_chosen]
        expected = [each for each, is_chosen in zip(found, chosen, strict=True) if is_chosen]
        assert list(context.siblings(among=among)) == expected


def test_the_snapshot_is_of_the_present() -> None:
    """It shows the accepted moves."""
    context = the_context()
    row = context.cluster.rows["n1"]
    before = int(context.snapshot.requested[row, 3])
    context.cluster.displace("uid-default-n1-0")

    assert (before, int(context.snapshot.requested[row, 3])) == (2, 1)


def test_indexes_survive_removal_growth_and_forks() -> None:
    """They do not depend on rows; a fork counts for itself."""
    context = the_context()
    cluster = context.cluster
    owners, groups = cluster.index(OwnerCounts), cluster.index(PodsByTemplate)

    fork = cluster.fork()
    fork.displace("uid-default-n2-0")
    for number in range(100):
        cluster.set_node(a_node(f"more{number}"))
    cluster.remove_node("n2")

    assert owners.of("default", "uid-ReplicaSet/web") == 2
    assert fork.index(OwnerCounts).of("default", "uid-ReplicaSet/web") == 2
    assert sum(len(pods) for pods in groups.groups["default"].values()) == 2
    assert sum(len(pods) for pods in fork.index(PodsByTemplate).groups["default"].values()) == 2


@pytest.mark.parametrize("index", [PodsByTemplate, PodsByOwner])
def test_a_fork_and_its_origin_do_not_see_each_other_s_changes(
    index: type[PodsByTemplate] | type[PodsByOwner],
) -> None:
    """They share the pods of a group until one of them changes it, whichever does so first."""

    def seen(cluster: Cluster) -> list[str]:
        groups = cluster.index(index).groups.values()
        return sorted(pod.name for each in groups for pods in each.values() for pod in pods.values())

    pods = [a_pod(f"p{n}", node="n1", owner="ReplicaSet/web") for n in range(3)]
    origin = a_cluster([a_node("n1"), a_node("n2")], pods)
    origin.index(index)

    first, second = origin.fork(), origin.fork()
    first.displace("uid-default-p0")
    origin.displace("uid-default-p1")
    third = first.fork()
    first.displace("uid-default-p2")
    second.place(second.templates.info(a_pod("p3", node="n2", owner="ReplicaSet/web")), "n2")

    assert seen(first) == ["p1"]
    assert seen(origin) == ["p0", "p2"]
    assert seen(second) == ["p0", "p1", "p2", "p3"]
    assert seen(third) == ["p1", "p2"]
    for uid in ("p0", "p2"):
        origin.displace(f"uid-default-{uid}")
    assert seen(origin) == []


def test_an_owner_that_no_placed_pod_names_has_none() -> None:
    assert OwnerCounts().of("default", "uid-gone") == 0


class Units:
    """One group that a pod is in."""

    def __init__(self, *members: str, spare: int, least: int | None) -> None:
        gang = Gang("PodGroup", "default/train")
        placed = {PodUid(uid): the_info(a_pod(uid, uid=uid)) for uid in members}
        self.unit = GangUnit((gang,), placed, spare, spare, least)

    def of(self, pod: object) -> GangUnit:
        return self.unit


@pytest.mark.parametrize(
    ("spare", "least", "leaving", "said"),
    [
        pytest.param(0, None, (), "PodGroup default/train needs all of its members", id="all"),
        pytest.param(0, 3, (), "PodGroup default/train needs 3 running members", id="as-many-as-there-are"),
        pytest.param(1, 2, ("b",), "PodGroup default/train needs 2 running members", id="another-leaves"),
        pytest.param(1, 2, ("elsewhere",), "", id="a-pod-of-no-group-leaves"),
        pytest.param(2, 1, ("b",), "", id="one-more-is-spare"),
    ],
)
def test_a_member_that_the_others_need_stays(
    spare: int, least: int | None, leaving: tuple[str, ...], said: str
) -> None:
    """Members whose evictions are under way have left."""
    units: Any = Units("a", "b", "c", spare=spare, least=least)
    refusal = bound_to_gang(the_info(a_pod("a", uid="a")), units, leaving)

    assert (refusal.message if refusal else "")[: len(said)] == said
    assert bool(refusal) is bool(said)
