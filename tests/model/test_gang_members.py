"""GangMembers and GangUnits: the placed pods that need one another, and the number that may leave."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.gang_members import GangMembers, GangUnits
from plimsoll.model.group_trees import GroupTrees
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from scheduling.gangs.gang_scene import a_composite, a_core_group, a_part

GROUP, JOBSET = "plimsoll.dev/pod-group", "jobset.sigs.k8s.io/jobset-name"


def a_member(name: str, group: str = "g", **more: Any) -> Pod:
    return a_pod(name, node="n", labels={GROUP: group, **more.pop("labels", {})}, **more)


def a_gang(*pods: Pod, least: int | None = None) -> Cluster:
    cluster = a_cluster([a_node("n")], pods)
    if least is not None:
        document = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": least}}
        cluster.objects.pod_groups["default/g"] = convert(PodGroup, document)
    return cluster


def units(cluster: Cluster) -> GangUnits:
    return GangUnits(cluster.index(GangMembers), cluster.pods.get, cluster.objects)


def spare(cluster: Cluster, name: str) -> int | None:
    unit = units(cluster).of(cluster.pods[f"uid-default-{name}"])
    return None if unit is None else unit.spare


def three(**more: Any) -> list[Pod]:
    return [a_member(name, **more) for name in "abc"]


def test_members_above_the_minimum_are_spare() -> None:
    assert spare(a_gang(*three(), least=2), "a") == 1
    assert spare(a_gang(*three(), least=3), "a") == 0


def test_without_a_known_minimum_all_are_needed() -> None:
    assert spare(a_gang(*three()), "a") == 0


def test_a_member_that_has_not_started_spares_no_other() -> None:
    """But for preemption, which counts nodes, as kube-scheduler does."""
    waiting = a_member("d", status={"phase": "Pending"})
    cluster = a_gang(*three(), waiting, least=3)
    unit = units(cluster).of(cluster.pods["uid-default-a"])

    assert unit is not None
    assert (unit.spare, unit.surplus) == (0, 1)


def test_a_member_that_is_about_to_be_bound_spares_no_other() -> None:
    """The binding may fail, and then the group would lack it."""
    cluster = a_gang(*three(), least=3)
    assumed = cluster.templates.info(a_pod("d", labels={GROUP: "g"}, status={"phase": "Pending"}))
    cluster.place(assumed, "n")
    unit = units(cluster).of(assumed)

    assert unit is not None
    assert len(unit.members) == 4
    assert (unit.spare, unit.surplus) == (0, 0)


def test_ended_and_terminating_members_do_not_count() -> None:
    ended = a_member("d", status={"phase": "Succeeded"})
    leaving = a_member("e", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    cluster = a_gang(*three(), ended, leaving, least=2)

    assert spare(cluster, "a") == 1
    assert spare(cluster, "e") is None


def test_the_last_member_may_leave() -> None:
    """It is the whole group."""
    assert spare(a_gang(a_member("a"), least=4), "a") is None


def test_groups_that_share_a_member_need_one_another() -> None:
    both = a_member("d", labels={JOBSET: "j"})
    other = a_pod("e", node="n", labels={JOBSET: "j"})
    cluster = a_gang(*three(), both, other, least=1)
    for name in "ae":
        unit = units(cluster).of(cluster.pods[f"uid-default-{name}"])

        assert unit is not None
        assert len(unit.members) == 5
        assert unit.spare == 0


def test_a_member_about_to_be_deleted_is_spare_no_more() -> None:
    """Until the watch shows it; if it stays after all, it counts again."""
    cluster = a_gang(*three(), least=2)
    known, index = units(cluster), cluster.index(GangMembers)
    victim, other = cluster.pods["uid-default-a"], cluster.pods["uid-default-b"]

    index.condemn([victim])
    condemned = known.of(other)
    index.pardon([victim])
    pardoned = known.of(other)

    assert [unit and unit.spare for unit in (condemned, pardoned)] == [0, 1]


def test_a_name_that_is_added_to_a_running_pod_counts() -> None:
    cluster = a_gang(a_pod("a", node="n"), a_pod("b", node="n", annotations={"pod-group-name": "k"}))
    index = cluster.index(GangMembers)
    assert len(index) == 1

    named = a_pod("a", node="n", annotations={"pod-group-name": "k"})
    cluster.place(cluster.templates.info(named), "n")

    assert spare(cluster, "b") == 0


def test_a_group_does_not_reach_into_another_namespace() -> None:
    strangers = [a_member(name, namespace="other") for name in "xy"]
    cluster = a_gang(*three(), *strangers, least=2)
    unit = units(cluster).of(cluster.pods["uid-default-a"])

    assert unit is not None
    assert {each.namespace for each in unit.members.values()} == {"default"}


def test_a_fork_keeps_its_own_members() -> None:
    cluster = a_gang(*three(), least=2)
    cluster.index(GangMembers)
    fork = cluster.fork()

    fork.displace("uid-default-a")

    assert spare(fork, "b") == 0
    assert spare(cluster, "b") == 1


@given(
    above=st.lists(st.tuples(st.integers(-2, 1), st.booleans()), min_size=3, max_size=3),
    parents=st.lists(st.integers(-2, 2), min_size=6, max_size=6),
)
def test_groups_below_the_highest_that_binds_them_need_one_another(
    above: list[tuple[int, bool]], parents: list[int]
) -> None:
    """Six groups, each below one of three composite groups, an unknown one (-2), or none."""
    names = {-2: "unknown", **{at: f"c{at}" for at in range(3)}}
    pods = [a_pod(f"p{at}", node="n", schedulingGroup={"podGroupName": f"g{at}"}) for at in range(6)]
    cluster = a_cluster([a_node("n")], pods)
    paths: dict[int, list[int]] = {-2: [-2], -1: []}  # from the root
    for at, (wish, binds) in enumerate(above):
        parent = min(wish, at - 1)
        paths[at] = [*paths[parent], at]
        spec = {} if parent == -1 else {"parentCompositePodGroupName": names[parent]}
        composite = a_composite(names[at], 2 if binds else None, **spec)
        cluster.objects.composites[composite.group_key] = composite
    for at, parent in enumerate(parents):
        name = f"g{at}"
        part = a_core_group(name, 1) if parent == -1 else a_part(name, names[parent], least=1)
        cluster.objects.pod_groups[part.group_key] = part

    found = units(cluster)
    for at, parent in enumerate(parents):
        top = next((each for each in paths[parent] if each == -2 or above[each][1]), None)
        alike = {f"p{each}" for each in range(6) if top in paths[parents[each]]}
        unit = found.of(cluster.pods[f"uid-default-p{at}"])
        members = set() if unit is None else {each.name for each in unit.members.values()}
        assert members == (alike if len(alike) > 1 else set())


def test_the_trees_of_groups_are_made_once_until_a_group_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """To look at a member of a tree of 1,000 groups took 3.4 s of processor time."""
    pods = [a_pod(f"p{at}", node="n", schedulingGroup={"podGroupName": f"g{at}"}) for at in range(20)]
    cluster = a_cluster([a_node("n")], pods)
    for at in range(20):
        part = a_part(f"g{at}", least=1)
        cluster.objects.pod_groups[part.group_key] = part
    composite = a_composite()
    cluster.objects.composites[composite.group_key] = composite
    made, walks = list[int](), list[str]()
    original, leaves = GroupTrees.__init__, GroupTrees.leaves

    def noted(trees: GroupTrees, *given: Any) -> None:
        made.append(1)
        original(trees, *given)

    def walked(trees: GroupTrees, key: str) -> list[str]:
        walks.append(key)
        return leaves(trees, key)

    monkeypatch.setattr(GroupTrees, "__init__", noted)
    monkeypatch.setattr(GroupTrees, "leaves", walked)

    def size(of: Cluster) -> int:
        unit = units(of).of(of.pods["uid-default-p0"])
        return 1 if unit is None else len(unit.members)

    assert (size(cluster), len(walks)) == (20, 1)
    assert len(made) <= 2, "once empty"
    fork, before = cluster.fork(), len(made)
    loose = a_composite(least=None)
    fork.objects.composites[loose.group_key] = loose
    fork.objects.budget_version += 1
    assert (size(fork), size(cluster), len(made) - before) == (1, 20, 1)
