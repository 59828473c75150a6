"""CompositePodGroups in the loop: their groups start together, in nested domains, or not at all."""

from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.cluster.pod_groups import Group
from plimsoll.cluster.watch_events import (
    NodeAdded,
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
)
from plimsoll.framework import Code, PermitResult, Status
from plimsoll.model.kinds.pod import Pod
from plimsoll.testing.builders import a_node, a_pod
from scheduling.gangs.gang_scene import (
    GangScene,
    a_composite,
    a_core_group,
    a_part,
    core_members,
    gang_scene,
)
from scheduling.probes import Probe

RACK, BLOCK = "example.com/rack", "example.com/block"


def nodes(cpu: str = "1", **racks: int) -> list[NodeAdded]:
    """Nodes, so many in each rack; the first letter of a rack is its block."""
    return [
        NodeAdded(a_node(f"{rack}-{number}", cpu=cpu, labels={RACK: rack, BLOCK: rack[0]}))
        for rack, size in racks.items()
        for number in range(size)
    ]


def racks(one: GangScene, group: str) -> set[str]:
    """The racks of the bound members of a group."""
    return {
        node.rpartition("-")[0]
        for pod, node in one.binder.bound.items()
        if pod.partition("/")[2].rpartition("-")[0] == group
    }


async def two_groups(one: GangScene, least: int | None = 2, **composite: Any) -> list[Pod]:
    """A composite group of two gangs of two pods each."""
    await one.see(ObjectAdded(a_composite(least=least, **composite)))
    await one.see(*(ObjectAdded(a_part(name, least=2)) for name in ("a", "b")))
    pods = [*core_members(2, "a"), *core_members(2, "b")]
    await one.pods(*pods)
    return pods


@pytest.mark.parametrize(("cpus", "starts"), [("2", 4), ("1", 0)])
async def test_all_groups_start_or_none(cpus: str, starts: int) -> None:
    """With room for three of four members, no group starts."""
    async with gang_scene(nodes=0) as one:
        await one.see(NodeAdded(a_node("n0", cpu="2")), NodeAdded(a_node("n1", cpu=cpus)))
        await two_groups(one)

        assert len(one.bound) == starts
        if not starts:
            assert "CompositePodGroup default/all: 1 of 2 groups fit, 2 must; PodGroup" in one.message("a-0")
            await one.see(NodeAdded(a_node("n2", cpu="1")))
            await one.clock.advance(5)
            assert len(one.bound) == 4


async def test_groups_wait_for_each_other_and_for_the_composite_group() -> None:
    """Whatever comes last; what is missing is said."""
    async with gang_scene() as one:
        await one.see(ObjectAdded(a_part("a", least=2)))
        await one.pods(*core_members(2, "a"))
        assert "waiting for CompositePodGroup default/all: there is no such" in one.message("a-0")

        await one.see(ObjectAdded(a_composite()))
        lacks = (
            "cannot find enough groups with enough pods in CompositePodGroup default/all, whose"
            " minGroupCount is 2"
        )
        assert lacks in one.message("a-0")
        await one.see(ObjectAdded(a_part("b", least=2)))
        await one.pods(*core_members(1, "b"))
        assert lacks in one.message("b-0")
        assert one.bound == []

        await one.pods(*core_members(1, "b", first=1))
        assert len(one.bound) == 4


async def test_the_group_that_fits_starts_and_the_other_one_joins_it_later() -> None:
    """One of two groups is enough."""
    async with gang_scene(nodes=1, cpu="3") as one:
        await two_groups(one, least=1)
        assert one.bound == ["a-0", "a-1"]
        assert one.message("b-0").startswith("0/1 nodes are available: ")

        await one.see(NodeAdded(a_node("more", cpu="1")))
        await one.clock.advance(5)
        assert one.bound == ["a-0", "a-1", "b-0", "b-1"]


async def test_members_beyond_a_minimum_take_no_place_that_another_group_needs() -> None:
    """kube-scheduler places the first group with all of its members, and the second finds no room."""
    async with gang_scene(nodes=1, cpu="3") as one:
        await one.see(ObjectAdded(a_composite()))
        await one.see(ObjectAdded(a_part("a", least=1)), ObjectAdded(a_part("b", least=1)))
        await one.pods(*core_members(3, "a"), *core_members(1, "b"))

        assert "b-0" in one.bound
        assert len(one.bound) == 3


async def test_each_group_has_a_rack_and_all_have_a_block() -> None:
    """The only rack with room for the large group is in the block where the small one has room, too."""
    async with gang_scene(nodes=0) as one:
        await one.see(*nodes(x1=3, x2=1, y1=3, y2=2))
        await one.see(ObjectAdded(a_composite(topology=BLOCK)))
        await one.see(
            *(ObjectAdded(a_part(name, least=n, topology=RACK)) for name, n in (("a", 3), ("b", 2)))
        )
        await one.pods(*core_members(3, "a"), *core_members(2, "b"))

        assert (racks(one, "a"), racks(one, "b")) == ({"y1"}, {"y2"})


async def test_a_group_that_finds_no_place_after_the_others_is_tried_first() -> None:
    """The small group would take the only rack of the one that comes after it."""
    async with gang_scene(nodes=0) as one:
        await one.see(*nodes(x1=1, x2=2), *nodes(cpu="2", x3=1))
        await one.see(ObjectAdded(a_composite()))
        await one.see(*(ObjectAdded(a_part(name, least=2, topology=RACK)) for name in ("a", "b")))
        await one.pods(*core_members(2, "a", nodeSelector={BLOCK: "x"}))
        await one.pods(*core_members(2, "b", nodeSelector={RACK: "x2"}))

        assert (racks(one, "a"), racks(one, "b")) == ({"x3"}, {"x2"})


async def test_late_members_join_the_others_in_their_domain() -> None:
    async with gang_scene(nodes=0) as one:
        await one.see(*nodes(x1=2, y1=1))
        await one.see(ObjectAdded(a_composite(least=1, topology=BLOCK)), ObjectAdded(a_part("a", least=2)))
        await one.pods(*core_members(2, "a"))
        assert racks(one, "a") == {"x1"}

        await one.see(ObjectAdded(a_part("b", least=1)))
        await one.pods(*core_members(1, "b"))
        assert racks(one, "b") == set()

        await one.see(*nodes(x2=1))
        await one.clock.advance(5)
        assert racks(one, "b") == {"x2"}


async def test_three_levels_start_together() -> None:
    """Of the inner composite groups one is enough, and that one has too few pods at first."""
    async with gang_scene() as one:
        await one.see(ObjectAdded(a_composite(least=2)))
        await one.see(
            *(ObjectAdded(a_composite(n, 1, parentCompositePodGroupName="all")) for n in ("l", "r"))
        )
        await one.see(ObjectAdded(a_part("a", "l", least=1)), ObjectAdded(a_part("b", "r", least=2)))
        await one.pods(*core_members(1, "a"), *core_members(1, "b"))
        assert one.bound == []

        await one.pods(*core_members(1, "b", first=1))
        assert len(one.bound) == 3


@pytest.mark.parametrize("fault", ["cycle", "depth"])
async def test_groups_that_form_no_tree_are_invalid(fault: str) -> None:
    parents = {"c0": "c1", "c1": "c0"} if fault == "cycle" else {"c0": "c1", "c1": "c2", "c2": "c3", "c3": ""}
    async with gang_scene() as one:
        one.groups.composite_version = "v1alpha3"
        for name, parent in parents.items():
            await one.see(ObjectAdded(a_composite(name, 1, parentCompositePodGroupName=parent)))
        await one.see(ObjectAdded(a_part("a", "c0", least=1)))
        await one.pods(*core_members(1, "a"))
        await one.clock.advance(1)

        assert one.bound == []
        expected = "is above itself" if fault == "cycle" else "has more than 4 levels of groups"
        assert expected in one.message("a-0")
        (_, told), *_ = one.group_statuses.conditions["c0"]
        assert (told["status"], told["reason"]) == ("False", "Invalid")


async def test_a_composite_group_that_is_made_again_counts_as_it_is_now() -> None:
    """Its groups wait in between; the second one needs fewer groups."""
    async with gang_scene(nodes=1, cpu="2") as one:
        await two_groups(one)
        assert one.bound == []
        await one.see(ObjectDeleted(a_composite()))
        assert "waiting for CompositePodGroup default/all" in one.message("a-0")

        await one.see(ObjectAdded(a_composite(least=1)))
        await one.clock.advance(5)
        assert one.bound == ["a-0", "a-1"]


async def test_a_smaller_number_of_groups_lets_them_start() -> None:
    async with gang_scene(nodes=1, cpu="2") as one:
        await two_groups(one)
        assert one.bound == []

        await one.see(ObjectUpdated(a_composite(), a_composite(least=1)))
        await one.clock.advance(5)
        assert one.bound == ["a-0", "a-1"]


async def test_deleted_members_are_waited_for_again() -> None:
    """A group that lacks its pods again keeps the composite group from its start."""
    async with gang_scene(nodes=1, cpu="3") as one:
        pods = await two_groups(one)
        await one.see(PodDeleted(pods[3]))
        await one.see(NodeAdded(a_node("more", cpu="1")))
        await one.clock.advance(5)
        assert one.bound == []

        await one.pods(*core_members(1, "b", first=2))
        await one.clock.advance(5)
        assert one.bound == ["a-0", "a-1", "b-0", "b-2"]


async def test_conditions_say_what_became_of_each_group_and_of_all() -> None:
    async with gang_scene(nodes=1, cpu="3") as one:
        one.groups.core_version, one.groups.composite_version = "v1beta1", "v1alpha3"
        pods = await two_groups(one)
        await one.clock.advance(1)

        def told(name: str) -> list[tuple[str, ...]]:
            written = one.group_statuses.conditions.get(name, [])
            return [(version, each["type"], each["status"], each["reason"]) for version, each in written]

        kind = "CompositePodGroupInitiallyScheduled"
        assert told("all") == [("v1alpha3", kind, "False", "Unschedulable")]
        assert told("b") == [("v1beta1", "PodGroupInitiallyScheduled", "False", "Unschedulable")]

        await one.see(NodeAdded(a_node("more", cpu="1")))
        await one.clock.advance(5)
        for pod in pods:
            spec = replace(pod.spec, node_name=one.binder.bound[f"default/{pod.name}"])
            await one.see(PodUpdated(pod, replace(pod, spec=spec)))
        await one.clock.advance(1)
        assert told("all")[-1] == ("v1alpha3", kind, "True", "Scheduled")
        assert told("b")[-1] == ("v1beta1", "PodGroupInitiallyScheduled", "True", "Scheduled")


async def test_an_event_is_about_the_composite_group() -> None:
    async with gang_scene(nodes=1, cpu="3") as one:
        one.groups.composite_version = "v1alpha3"
        await two_groups(one)

        regarding = [each.regarding for each in one.recorder.notes if each.reason == "Unschedulable"]
        assert [(each["kind"], each["name"]) for each in regarding] == [("CompositePodGroup", "all")]
        assert regarding[0]["apiVersion"] == "scheduling.k8s.io/v1alpha3"


# -- preemption ------------------------------------------------------------------------------------------


def low(name: str, node: str, group: str = "") -> Pod:
    """A running pod of low priority."""
    more: dict[str, Any] = {"schedulingGroup": {"podGroupName": group}} if group else {}
    return a_pod(name, node=node, cpu="1", status={"phase": "Running"}, priority=0, **more)


async def test_a_composite_group_preempts_for_what_it_needs() -> None:
    """For the second of its groups two pods leave; the third one is not needed."""
    async with gang_scene(nodes=0) as one:
        await one.see(*nodes(x1=4))
        await one.see(*(PodAdded(low(f"low-{at}", f"x1-{at}")) for at in (0, 1)))
        await one.see(ObjectAdded(a_composite()))
        await one.see(*(ObjectAdded(a_part(name, least=2)) for name in ("a", "b", "c")))
        await one.pods(*(pod for name in ("a", "b", "c") for pod in core_members(2, name, priority=9)))
        await one.clock.advance(5)

        assert sorted(one.preemptor.victims) == ["low-0", "low-1"]
        assert one.bound == []

        await one.see(*(PodDeleted(low(f"low-{at}", f"x1-{at}")) for at in (0, 1)))
        await one.clock.advance(5)
        assert len(one.bound) == 4


async def test_no_pod_leaves_for_a_composite_group_that_does_not_fit_even_then() -> None:
    async with gang_scene(nodes=0) as one:
        await one.see(*nodes(x1=3))
        await one.see(PodAdded(low("low", "x1-0")))
        await one.see(ObjectAdded(a_composite()))
        await one.see(*(ObjectAdded(a_part(name, least=2)) for name in ("a", "b")))
        await one.pods(*(pod for name in ("a", "b") for pod in core_members(2, name, priority=9)))
        await one.clock.advance(5)

        assert (list(one.preemptor.victims), one.bound) == ([], [])


@pytest.mark.parametrize(
    ("composite", "leave"),
    [
        (a_composite(least=2), 2),
        (a_composite(least=1), 2),
        (a_composite(least=None, disruptionMode={"all": {}}), 2),
        (a_composite(least=None), 1),
    ],
    ids=["gang", "gang of one", "all", "basic"],
)
async def test_groups_that_need_one_another_leave_together(composite: Any, leave: int) -> None:
    async with gang_scene(nodes=2, cpu="1") as one:
        await one.see(ObjectAdded(composite))
        await one.see(*(ObjectAdded(a_part(name, least=None)) for name in "gh"))
        await one.see(PodAdded(low("g-0", "n0", "g")), PodAdded(low("h-0", "n1", "h")))
        await one.pods(a_pod("high", schedulerName="s", cpu="1", priority=9))

        assert len(one.preemptor.victims) == leave


# -- others that wait --------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["composite", "plain"])
async def test_a_composite_group_and_a_plain_one_do_not_block_each_other(first: str) -> None:
    """There is room for one of them; the other one starts once there is room for it, too."""
    async with gang_scene(nodes=1, cpu="4") as one:
        await one.see(ObjectAdded(a_core_group("p", least=3)))
        plain = core_members(3, "p")
        if first == "plain":
            await one.pods(*plain)
        await two_groups(one)
        if first == "composite":
            await one.pods(*plain)
        await one.clock.advance(5)
        assert len(one.bound) == (4 if first == "composite" else 3)

        await one.see(NodeAdded(a_node("more", cpu="3")))
        await one.clock.advance(5)
        assert len(one.bound) == 7


# -- permits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("least", "is_allowed", "bound"),
    [
        (2, True, ["a-0", "a-1", "b-0", "b-1"]),
        (2, False, []),
        (1, True, ["a-0", "a-1", "b-0", "b-1"]),
        (1, False, ["a-0", "a-1"]),
    ],
)
async def test_a_group_binds_with_its_own_minimum_or_not_at_all(
    least: int, is_allowed: bool, bound: list[str]
) -> None:
    """Another plugin holds a member of the second group, which starts whole or waits."""
    async with gang_scene(Probe, args={"First": {"answers": {}, "timeout": 30.0}}, nodes=1) as one:
        hold = PermitResult(Status(Code.WAIT), 30.0)
        probe = one.profile.permit[-1]
        probe.permit = lambda state, pod, node: hold if pod.name == "b-0" else PermitResult()
        await two_groups(one, least=least)
        assert one.bound == []
        assert len(one.cache.assumed) == 4

        (held,) = one.wing.cycle.permits
        if is_allowed:
            held.allow("First")
        else:
            held.reject("First", "not today")
        await one.clock.advance(0)

        assert one.bound == bound
        assert len(one.cache.assumed) == len(bound)


async def test_each_pod_of_a_tree_that_waits_costs_one_walk_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree of 1,000 groups that lacks one took half a second of the loop for each of its tenant's pods."""
    asked, many = list[str](), 30

    def counted(group: Group) -> bool:
        asked.append(group.key)
        return group.object is not None and group.present >= group.min_member

    async with gang_scene() as one:
        await one.see(ObjectAdded(a_composite(least=many + 1)))
        for at in range(many):
            await one.see(ObjectAdded(a_part(f"g{at}", least=2)))
        await one.pods(*[pod for at in range(many) for pod in core_members(1, f"g{at}")])
        monkeypatch.setattr(Group, "has_enough_pods", property(counted))
        await one.pods(*core_members(1, "g0", first=1))

        assert len(asked) < 3 * many
        assert "whose minGroupCount is 31" in one.message("g0-1")
        await one.see(ObjectUpdated(a_composite(least=many + 1), a_composite(least=1)))
        assert one.bound == ["g0-0", "g0-1"]
