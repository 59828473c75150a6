"""OfflineCluster places the groups of a composite group together, for whatif and replay."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from inspection.test_offline_cluster import ASSUMED, SERVED
from plimsoll.model.kinds.composite_pod_group import CompositePodGroup
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.owned_group import NOT_YET
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import CorePodGroup
from plimsoll.offline.cluster import OfflineCluster, Schedulers
from plimsoll.planning.forecasts import Forecasts
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from scheduling.gangs.gang_scene import a_composite, a_core_group, a_part, core_members


def offline(nodes: Sequence[Node], placed: Sequence[Pod], *groups: Any, preempting: bool) -> OfflineCluster:
    """A cluster with PodGroups and CompositePodGroups."""
    fork = a_cluster(nodes, placed)
    fork.objects.composites |= {
        each.group_key: each for each in groups if isinstance(each, CompositePodGroup)
    }
    parts = {each.group_key: each for each in groups if isinstance(each, CorePodGroup)}
    return OfflineCluster(
        fork, Schedulers({"s": SERVED}, Forecasts(default=ASSUMED), parts), (), preempting=preempting
    )


def wait(one: OfflineCluster, *pods: Pod) -> None:
    """Pods that arrive."""
    for pod in pods:
        one.add(one.fork.templates.info(pod))


def an_offline_cluster(cpu: str, *, preempting: bool = False) -> OfflineCluster:
    """A node, and a composite group of two gangs of two that wait."""
    parts = (a_part(name, least=2) for name in ("a", "b"))
    low = a_pod("low", cpu="1", node="n0", priority=-1)
    found = offline([a_node("n0", cpu=cpu)], [low], a_composite(), *parts, preempting=preempting)
    wait(found, *core_members(2, "a"), *core_members(2, "b"))
    return found


def test_no_group_is_placed_without_the_other() -> None:
    """There is room for three of four members."""
    found = an_offline_cluster("4")

    assert found.settle() == []
    messages = {each.message for each in found.refusals.values()}
    assert any("CompositePodGroup default/all: 1 of 2 groups fit, 2 must" in each for each in messages)
    assert set(found.gang_needs().values()) == {NOT_YET}
    assert [pod.name for pod in found.victims_for("scheduling.k8s.io/default/a")] == ["low"]


def test_all_groups_are_placed_in_one_round() -> None:
    """With room, or with that of a pod of lower priority."""
    assert len(an_offline_cluster("5").settle()) == 4
    assert len(an_offline_cluster("4", preempting=True).settle()) == 4


def test_a_group_waits_for_its_composite_group() -> None:
    found = an_offline_cluster("5")
    found.fork.objects.composites.clear()

    assert found.settle() == []
    assert {"waiting for CompositePodGroup default/all: there is no such"} == {
        each.message.partition(" compositepodgroups")[0] for each in found.refusals.values()
    }


RACK = "example.com/rack"


@pytest.mark.parametrize("preempting", [False, True])
def test_a_group_that_fits_is_placed_as_without_preemption(preempting: bool) -> None:
    """In the smallest rack; what could leave the larger one stays."""
    sizes = {"a": 4, "b": 2}
    nodes = [
        a_node(f"{rack}{at}", cpu="1", labels={RACK: rack}) for rack in sizes for at in range(sizes[rack])
    ]
    group = a_core_group("train", least=2, topology=RACK)
    one = offline(nodes, [a_pod("low", cpu="1", node="a0", priority=-1)], group, preempting=preempting)
    wait(one, *core_members(2))

    assert set(one.gang_needs().values()) == {2}
    assert sorted(each.node for each in one.settle()) == ["b0", "b1"]


@pytest.mark.parametrize("preempting", [False, True])
def test_composite_groups_that_fit_in_another_order_have_no_victims(preempting: bool) -> None:
    """The small group takes the room of the large one, which could only preempt then; it is tried last."""
    nodes = [a_node("wide", cpu="2"), a_node("tight", cpu="2")]
    low = a_pod("low", cpu="1", node="tight", priority=-1)
    parts = (a_part(name, least=1) for name in ("a", "b"))
    one = offline(nodes, [low], a_composite(), *parts, preempting=preempting)
    wait(one, *core_members(1, "a"), *core_members(1, "b", cpu="2"))

    placed = one.settle()

    assert {each.pod.name: each.node for each in placed} == {"a-0": "tight", "b-0": "wide"}
    assert [each.victims for each in placed] == [(), ()]


@pytest.mark.parametrize("is_deep", [False, True])
def test_groups_start_again_when_all_their_members_have_left(is_deep: bool) -> None:
    """Twice: no member without the others, however late the last one is."""
    inner = [a_composite(name, 1, parentCompositePodGroupName="all") for name in ("l", "r")]
    parts = [a_part(name, above if is_deep else "all", least=2) for name, above in (("a", "l"), ("b", "r"))]
    one = offline(
        [a_node("n0", cpu="4")], (), a_composite(), *(inner if is_deep else ()), *parts, preempting=True
    )
    pods = [*core_members(2, "a"), *core_members(2, "b")]
    for _ in range(2):
        wait(one, *pods[:-1])
        assert one.settle() == []
        assert len(one.refusals) == len(pods) - 1
        wait(one, pods[-1])
        assert Counter(each.pod.name for each in one.settle()) == Counter(pod.name for pod in pods)
        assert one.refusals == {}
        for pod in pods:
            assert one.remove(pod.uid) is not None
            assert one.remove(pod.uid) is None
        assert not one.fork.pods


def test_groups_that_were_refused_are_tried_again_when_room_is_free() -> None:
    """And when a member is made again that asks for less; what left is refused no longer."""
    one = an_offline_cluster("4")
    assert one.settle() == []
    assert one.remove("uid-default-low") is not None
    assert len(one.settle()) == 4

    one = an_offline_cluster("5")
    one.remove("uid-default-b-1")
    wait(one, *core_members(1, "b", cpu="9", first=1))
    assert one.settle() == []
    one.remove("uid-default-b-1")
    assert "uid-default-b-1" not in one.refusals
    wait(one, *core_members(1, "b", first=1))
    assert len(one.settle()) == 4


def test_victims_of_groups_leave_once() -> None:
    """The members come back under their uids, and find the room of the pod that is gone."""
    one = an_offline_cluster("4", preempting=True)

    for turn in range(2):
        placed = one.settle()
        assert [victim.name for each in placed for victim in each.victims] == ["low"] * (not turn)
        assert sorted(pod.name for pod in one.fork.pods.values()) == ["a-0", "a-1", "b-0", "b-1"]
        row = one.fork.rows["n0"]
        assert (one.fork.requested[row] <= one.fork.allocatable[row]).all()
        for each in placed:
            one.remove(each.pod.uid)
        wait(one, *core_members(2, "a"), *core_members(2, "b"))


@pytest.mark.parametrize(("phase", "starts"), [("Succeeded", 3), ("Failed", 0)])
def test_a_member_that_has_succeeded_counts_for_its_group(phase: str, starts: int) -> None:
    one = an_offline_cluster("5")
    one.remove("uid-default-b-1")
    (ended,) = core_members(1, "b", first=1, status={"phase": phase})
    one.ended[ended.uid] = one.fork.templates.info(ended)

    assert len(one.settle()) == starts


def test_a_pod_that_comes_again_brings_no_victims_of_its_first_time() -> None:
    """Under its uid, to the room that is free now."""
    one = offline([a_node("n0", cpu="1")], [a_pod("low", cpu="1", node="n0", priority=-1)], preempting=True)
    high = a_pod("high", cpu="1", schedulerName="s", priority=5)
    for victims in (["low"], []):
        wait(one, high)
        (placed,) = one.settle()
        assert [each.name for each in placed.victims] == victims
        one.remove(high.uid)
