"""PodGroups of the core API in the loop, as kube-scheduler handles them: policies, topology, conditions."""

from typing import Any

import msgspec
import pytest

from plimsoll.cluster.watch_events import (
    NodeAdded,
    NodeUpdated,
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
)
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PREFERRED_TOPOLOGY
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.scheduling.topology_levels import GroupRules
from scheduling.gangs.gang_scene import (
    GangScene,
    a_core_group,
    a_group,
    core_members,
    gang_scene,
    members,
)

RACK = "example.com/rack"


def racks(**sizes: int) -> list[NodeAdded]:
    """Nodes of one cpu each, so many in each rack."""
    return [
        NodeAdded(a_node(f"{rack}-{number}", cpu="1", labels={RACK: rack}))
        for rack, size in sizes.items()
        for number in range(size)
    ]


def places(one: GangScene) -> list[str]:
    """The racks of the bound pods, once each."""
    return sorted({node.rpartition("-")[0] for node in one.binder.bound.values()})


def bound(pod: Pod, node: str) -> PodUpdated:
    """The watch shows the binding."""
    spec = msgspec.structs.replace(pod.spec, node_name=node)
    return PodUpdated(pod, msgspec.structs.replace(pod, spec=spec))


async def test_a_gang_waits_for_its_group_and_for_its_pods() -> None:
    async with gang_scene() as one:
        await one.pods(*core_members(2))
        assert "there is no such podgroups.scheduling.k8s.io" in one.message("train-0")

        await one.see(ObjectAdded(a_core_group(least=3)))
        assert one.message("train-0").endswith(
            "sibling pods of PodGroup scheduling.k8s.io/default/train, whose minCount is 3."
        )
        await one.pods(*core_members(1, first=2))

        assert len(one.bound) == 3


async def test_a_group_waits_for_its_composite_group_and_says_so() -> None:
    """As long as it is not known how many groups must start together: one alone might block the others."""
    part = a_core_group(least=2, parentCompositePodGroupName="train")
    async with gang_scene() as one:
        await one.see(ObjectAdded(part))
        await one.pods(*core_members(2))
        assert one.bound == []
        assert "waiting for CompositePodGroup default/train: there is no such" in one.message("train-0")

        await one.see(ObjectDeleted(part))
        await one.see(ObjectAdded(a_core_group(least=2, uid="again")))

        assert len(one.bound) == 2


async def test_a_basic_group_starts_with_what_fits() -> None:
    async with gang_scene(nodes=1, cpu="2") as one:
        await one.see(ObjectAdded(a_core_group(least=None)))
        await one.pods(*core_members(3))

        assert len(one.bound) == 2
        assert one.message("train-2") == "0/1 nodes are available: 1 Insufficient cpu."


async def test_members_above_the_minimum_start_with_the_others_and_late_ones_by_themselves() -> None:
    async with gang_scene(nodes=1, cpu="4") as one:
        await one.see(ObjectAdded(a_core_group(least=2)))
        await one.pods(*core_members(3))
        assert len(one.bound) == 3

        await one.pods(*core_members(2, first=3))

        assert len(one.bound) == 4


async def test_a_gang_whose_members_are_deleted_waits_again() -> None:
    async with gang_scene(nodes=1, cpu="2") as one:
        pods = core_members(3)
        await one.see(ObjectAdded(a_core_group(least=3)))
        await one.pods(*pods)
        assert one.bound == []

        await one.see(PodDeleted(pods[0]), NodeAdded(a_node("more", cpu="4")))
        await one.clock.advance(5)
        assert one.bound == []
        assert "cannot find enough sibling pods" in one.message("train-1")


async def test_a_deleted_group_holds_its_pods_until_it_is_made_again() -> None:
    """Under the same name, with another uid and another minimum."""
    async with gang_scene(nodes=1, cpu="2") as one:
        group = a_core_group(least=3)
        await one.see(ObjectAdded(group))
        await one.pods(*core_members(3))
        await one.see(ObjectDeleted(group), NodeAdded(a_node("more", cpu="4")))
        await one.clock.advance(5)
        assert one.bound == []
        assert "there is no such podgroups.scheduling.k8s.io" in one.message("train-0")

        await one.see(ObjectAdded(a_core_group(least=2, uid="another")))

        assert len(one.bound) == 3


async def test_the_group_of_the_spec_goes_before_that_of_a_label() -> None:
    """A group of ours with the same name is another group."""
    async with gang_scene() as one:
        await one.see(ObjectAdded(a_group(members=1)), ObjectAdded(a_core_group(least=3)))
        await one.pods(*core_members(2, labels={"plimsoll.dev/pod-group": "train"}))
        assert one.bound == []

        await one.pods(*core_members(1, first=2))

        assert len(one.bound) == 3


async def test_a_smaller_minimum_wakes_the_gang() -> None:
    """From v1alpha3 on it may change."""
    async with gang_scene(nodes=1, cpu="2") as one:
        group = a_core_group(least=3)
        await one.see(ObjectAdded(group))
        await one.pods(*core_members(3))
        assert one.bound == []

        await one.see(ObjectUpdated(group, a_core_group(least=2)))
        await one.clock.advance(5)

        assert len(one.bound) == 2


# -- conditions ------------------------------------------------------------------------------------------


async def conditions(one: GangScene) -> list[tuple[str, str, str, str, str]]:
    """Version, type, status, reason and message of those written so far."""
    await one.clock.advance(1)
    return [
        (version, *(each[name] for name in ("type", "status", "reason", "message")))
        for version, each in one.group_statuses.conditions.get("train", [])
    ]


@pytest.mark.parametrize(
    ("version", "kind"),
    [("v1alpha2", "PodGroupScheduled"), ("v1beta1", "PodGroupInitiallyScheduled")],
)
async def test_the_condition_follows_attempts_and_stays_true(version: str, kind: str) -> None:
    """Nothing is written before an attempt, nor after the group has started."""
    async with gang_scene(nodes=1, cpu="2") as one:
        one.groups.core_version = version
        group, pods = a_core_group(least=3), core_members(4)
        await one.see(ObjectAdded(group))
        await one.pods(*pods[:2])
        assert await conditions(one) == []

        await one.pods(pods[2])
        short = (
            version,
            kind,
            "False",
            "Unschedulable",
            (
                "2 of 3 members fit, 3 must; 1 lack a node: 0/1 nodes are available: 1 Insufficient cpu. 3"
                " members of 1000m cpu each must fit, and the nodes together hold 2 when they are empty."
            ),
        )
        assert await conditions(one) == [short]

        await one.see(NodeAdded(a_node("more", cpu="1")))
        await one.clock.advance(5)
        await one.see(*(bound(pod, one.binder.bound[f"default/{pod.name}"]) for pod in pods[:3]))
        assert await conditions(one) == [short, (version, kind, "True", "Scheduled", "")]

        written = {"conditions": [one.group_statuses.conditions["train"][-1][1]]}
        known = msgspec.structs.replace(group, status=msgspec.convert(written, type(group.status)))
        await one.see(ObjectUpdated(group, known))
        await one.pods(pods[3])
        assert len(await conditions(one)) == 2

        await one.see(*(PodDeleted(pod) for pod in pods))
        await one.pods(*core_members(3, cpu="9", first=5))
        assert "0 of 3 members fit, 3 must" in one.message("train-5")
        assert len(await conditions(one)) == 2


async def test_an_event_names_the_kind_of_the_core_api() -> None:
    async with gang_scene() as one:
        one.groups.core_version = "v1alpha2"
        await one.see(ObjectAdded(a_core_group(least=2)))
        await one.pods(*core_members(2))

        (versions,) = {
            each.regarding["apiVersion"]
            for each in one.recorder.notes
            if each.regarding["kind"] == "PodGroup"
        }
        assert versions == "scheduling.k8s.io/v1alpha2"


# -- topology --------------------------------------------------------------------------------------------


async def test_a_group_goes_into_one_domain_the_smallest_that_holds_it() -> None:
    async with gang_scene(nodes=0) as one:
        await one.see(*racks(large=6, small=2, right=3), NodeAdded(a_node("bare", cpu="8")))
        await one.see(ObjectAdded(a_core_group(least=3, topology=RACK)))
        await one.pods(*core_members(3))

        assert (len(one.bound), places(one)) == (3, ["right"])


async def test_a_group_that_no_domain_can_ever_hold_says_so() -> None:
    """And starts when a node comes into one."""
    async with gang_scene(nodes=0) as one:
        await one.see(*racks(a=2, b=1))
        await one.see(ObjectAdded(a_core_group(least=3, topology=RACK)))
        await one.pods(*core_members(3))
        assert one.message("train-0") == (
            f"3 members of 1000m cpu each must fit, and the largest {RACK}, a, holds 2 when it is empty"
        )

        await one.see(NodeAdded(a_node("a-9", cpu="1", labels={RACK: "a"})))
        await one.clock.advance(5)

        assert (len(one.bound), places(one)) == (3, ["a"])


async def test_a_group_that_fits_into_no_domain_says_what_the_largest_lacks() -> None:
    """And starts when a node comes into one."""
    async with gang_scene(nodes=0) as one:
        await one.see(*racks(a=3, b=2))
        await running(one, low("old", "a-2", priority=99))
        await one.see(ObjectAdded(a_core_group(least=3, topology=RACK)))
        await one.pods(*core_members(3))
        assert one.bound == []
        assert one.message("train-0") == (
            f"in {RACK} a, the first of 1 to try: 2 of 3 members fit, 3 must; 1 lack a node: 0/5 nodes are "
            "available: 2 node(s) were outside the topology domain of the pod group, 3 Insufficient cpu."
        )

        await one.see(NodeAdded(a_node("b-9", cpu="1", labels={RACK: "b"})))
        await one.clock.advance(5)

        assert (len(one.bound), places(one)) == (3, ["b"])


async def test_a_label_that_no_node_has_is_said() -> None:
    """And once nodes have it, the group starts."""
    async with gang_scene(nodes=1, cpu="4") as one:
        await one.see(ObjectAdded(a_core_group(least=2, topology=RACK)))
        await one.pods(*core_members(2))
        assert one.message("train-0") == f"no node has the label {RACK}"

        await one.see(NodeUpdated(a_node("n0", cpu="4"), a_node("n0", cpu="4", labels={RACK: "a"})))
        await one.clock.advance(5)

        assert len(one.bound) == 2


async def test_late_members_join_the_others_where_they_are() -> None:
    """However much room there is elsewhere, and as many as fit."""
    async with gang_scene(nodes=0) as one:
        await one.see(*racks(a=3))
        await one.see(ObjectAdded(a_core_group(least=2, topology=RACK)))
        await one.pods(*core_members(2))
        await one.see(*racks(b=9))

        await one.pods(*core_members(2, first=2))

        assert (len(one.bound), places(one)) == (3, ["a"])


async def test_a_basic_group_takes_the_domain_for_the_most_members() -> None:
    async with gang_scene(nodes=0) as one:
        await one.see(*racks(a=1, b=3, c=2))
        await one.see(ObjectAdded(a_core_group(least=None, topology=RACK)))
        await one.pods(*core_members(4))

        assert (len(one.bound), places(one)) == (3, ["b"])


async def test_members_in_two_domains_keep_the_others_waiting() -> None:
    """They were placed by someone else, or the label of a node has changed."""
    async with gang_scene(nodes=0) as one:
        await one.see(*racks(a=3, b=3))
        named: dict[str, Any] = {"schedulingGroup": {"podGroupName": "train"}, "schedulerName": "s"}
        running = [a_pod(f"there-{rack}", cpu="1", node=f"{rack}-0", **named) for rack in "ab"]
        await one.see(ObjectAdded(a_core_group(least=3, topology=RACK)), *map(PodAdded, running))
        await one.pods(*core_members(1))

        assert one.bound == []
        assert one.message("train-0") == (
            f"the members that have a node are not in one domain of label {RACK}"
        )


async def test_our_own_group_may_require_a_domain_as_well() -> None:
    async with gang_scene(nodes=0) as one:
        await one.see(*racks(a=2, b=3))
        await one.see(ObjectAdded(a_group(members=3, topology={"required": RACK})))
        await one.pods(*members(3))

        assert (len(one.bound), places(one)) == (3, ["b"])


@pytest.mark.parametrize("how", ["ours", "annotation", "policy"])
async def test_a_preferred_domain_is_taken_if_it_holds_all_and_else_few_are(how: str) -> None:
    """Late members fill the domains of the others before they take another."""
    rules = GroupRules(preferred=RACK if how == "policy" else "")
    async with gang_scene(nodes=0, groups=rules) as one:
        await one.see(*racks(a=2, b=3, c=2))
        if how == "ours":
            await one.see(ObjectAdded(a_group(members=4, topology={"preferred": RACK})))
            pods = members(6)
        else:
            group = a_core_group(least=4)
            noted = {PREFERRED_TOPOLOGY: RACK} if how == "annotation" else {}
            known = msgspec.structs.replace(group.metadata, annotations=noted)
            await one.see(ObjectAdded(msgspec.structs.replace(group, metadata=known)))
            pods = core_members(6)
        await one.pods(*pods[:4])
        assert (len(one.bound), places(one)) == (4, ["a", "b"])

        await one.pods(pods[4])
        assert (len(one.bound), places(one)) == (5, ["a", "b"])
        await one.pods(pods[5])
        assert (len(one.bound), places(one)) == (6, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("wish", "required", "levels", "near"),
    [
        ("rack", "", (), ("rack",)),
        ("rack", "", ("block", "rack", "host"), ("rack", "block")),
        ("rack", "block", ("block", "rack", "host"), ("rack",)),
        ("block", "rack", ("block", "rack"), ()),
        ("rack", "rack", ("block", "rack"), ()),
        ("", "rack", ("block", "rack"), ()),
        (
            "topology.k8s.aws/network-node-layer-2",
            "",
            (),
            (
                "topology.k8s.aws/network-node-layer-2",
                "topology.k8s.aws/network-node-layer-1",
                "topology.kubernetes.io/zone",
            ),
        ),
    ],
)
def test_levels_are_tried_from_the_preferred_one_outwards(
    wish: str, required: str, levels: tuple[str, ...], near: tuple[str, ...]
) -> None:
    """Up to the required one, which all of them are within."""
    group = a_group(members=2, topology={"required": required, "preferred": wish})

    assert GroupRules(levels=levels).near(group) == near


# -- preemption ------------------------------------------------------------------------------------------


async def running(one: GangScene, *pods: Pod) -> None:
    """These pods run."""
    await one.see(*(PodAdded(pod) for pod in pods))


def low(name: str, node: str, priority: int = 0, group: str = "") -> Pod:
    """A running pod of one cpu."""
    more: dict[str, Any] = {"schedulingGroup": {"podGroupName": group}} if group else {}
    return a_pod(name, cpu="1", node=node, priority=priority, status={"phase": "Running"}, **more)


async def test_a_group_preempts_with_its_own_priority() -> None:
    """Its pods have a lower one."""
    async with gang_scene(nodes=1, cpu="2") as one:
        await running(one, low("a", "n0", priority=5), low("b", "n0", priority=5))
        await one.see(ObjectAdded(a_core_group(least=2, priority=10)))
        await one.pods(*core_members(2, priority=1))

        assert sorted(one.preemptor.victims) == ["a", "b"]


@pytest.mark.parametrize(
    ("group", "pod"),
    [({"preemptionPolicy": "Never"}, {}), ({}, {"preemptionPolicy": "Never"})],
    ids=["the group's", "one pod's"],
)
async def test_a_policy_never_to_preempt_is_kept(group: dict[str, Any], pod: dict[str, Any]) -> None:
    async with gang_scene(nodes=1, cpu="2") as one:
        await running(one, low("a", "n0"))
        await one.see(ObjectAdded(a_core_group(least=2, **group)))
        await one.pods(*core_members(1, priority=9), *core_members(1, first=1, priority=9, **pod))

        assert (one.bound, one.preemptor.victims) == ([], [])


async def test_a_group_in_a_domain_preempts_there_only() -> None:
    """Victims elsewhere would make no room for it."""
    async with gang_scene(nodes=0) as one:
        await one.see(*racks(a=2, b=1))
        await running(one, low("x", "a-0"), low("y", "b-0"))
        await one.see(ObjectAdded(a_core_group(least=2, topology=RACK)))
        await one.pods(*core_members(2, priority=9))

        assert one.preemptor.victims == ["x"]


@pytest.mark.parametrize(
    ("spec", "leave"),
    [
        pytest.param({"least": 1}, 1, id="spare members leave one by one"),
        pytest.param({"least": None}, 1, id="members of a basic group leave one by one"),
        pytest.param({"least": 1, "disruptionMode": "PodGroup"}, 2, id="whole, v1alpha2"),
        pytest.param({"least": None, "disruptionMode": {"all": {}}}, 2, id="whole, v1beta1"),
        pytest.param({"least": 1, "disruptionMode": {"single": {}}}, 1, id="single, v1beta1"),
        pytest.param({"least": 2}, 2, id="a gang breaks as a whole"),
        pytest.param(
            {"least": 2, "disruptionMode": "PodGroup", "priority": 100}, 0, id="the group outranks its pods"
        ),
    ],
)
async def test_victims_leave_as_their_group_says(spec: dict[str, Any], leave: int) -> None:
    async with gang_scene(nodes=2, cpu="1") as one:
        await one.see(ObjectAdded(a_core_group("g", **spec)))
        await running(one, low("g-0", "n0", group="g"), low("g-1", "n1", group="g"))
        await one.pods(a_pod("high", schedulerName="s", cpu="1", priority=9))

        assert len(one.preemptor.victims) == leave


@pytest.mark.parametrize(("parent", "leave"), [("", 1), ("c", 2)])
async def test_groups_of_a_composite_group_that_another_scheduler_placed_leave_together(
    parent: str, leave: int
) -> None:
    """Each is basic and has one member; the composite group may need both."""
    of = {"parentCompositePodGroupName": parent} if parent else {}
    async with gang_scene(nodes=2, cpu="1") as one:
        await one.see(*(ObjectAdded(a_core_group(name, least=None, **of)) for name in "gh"))
        await running(one, low("g-0", "n0", group="g"), low("h-0", "n1", group="h"))
        await one.pods(a_pod("high", schedulerName="s", cpu="1", priority=9))

        assert len(one.preemptor.victims) == leave
