"""Joint placement: all that are needed or none, on a fork, with the ordinary cycle."""

import random
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.builders import a_class, a_device, a_slice, fill
from plimsoll.cluster.pod_groups import lacking_resources
from plimsoll.devices.book import DeviceBook
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.gangs.joint_decision import GangDecision
from plimsoll.engine.gangs.placement import place_together
from plimsoll.engine.nominator import Nominator
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import NoArgs, Nomination, Registry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import GROUP_LABEL
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.columns import validate

PROFILE = build_profile(
    ProfileConfig("s"), Registry(IN_TREE), [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
)


def a_cluster_of(*nodes: Node, pods: list[Pod] | tuple[Any, ...] = ()) -> Cluster:
    """A cluster with these nodes."""
    return a_cluster(nodes, pods)


def gang(cluster: Cluster, pods: list[Pod], needed: int, **options: Any) -> GangDecision:
    """Place pods together by the default plugins."""
    scheduler = ProfileScheduler(PROFILE, cluster)
    infos = [cluster.templates.info(pod) for pod in pods]
    return place_together([(info, scheduler) for info in infos], cluster, needed, **options)


def a_gang(size: int, cpu: str = "1", **more: Any) -> list[Pod]:
    """Equal pods."""
    return [a_pod(f"m{number}", cpu=cpu, **more) for number in range(size)]


def test_members_see_one_another() -> None:
    """Four pods of one cpu fit two nodes of two; the fifth has no room left."""
    cluster = a_cluster_of(a_node("a", cpu="2"), a_node("b", cpu="2"))

    decision = gang(cluster, a_gang(5), 4)

    assert decision.is_feasible
    assert sorted(each.node for each in decision.placements) == ["a", "a", "b", "b"]
    assert [each.message for each in decision.refused] == ["0/2 nodes are available: 2 Insufficient cpu."]


def test_too_few_places_are_counted_in_the_message() -> None:
    """How many fit, how many must, and what the others lack."""
    cluster = a_cluster_of(a_node("a", cpu="2"), a_node("b", cpu="1"))

    decision = gang(cluster, a_gang(8), 8)

    assert not decision.is_feasible
    assert decision.plugins == {"NodeResourcesFit"}
    assert decision.message(placed=0) == (
        "3 of 8 members fit, 8 must; 5 lack a node: 0/2 nodes are available: 2 Insufficient cpu."
    )


def test_members_that_are_placed_count() -> None:
    """Of a gang of four, two run: two more are needed."""
    cluster = a_cluster_of(a_node("a", cpu="1"))

    decision = gang(cluster, a_gang(2), 2)

    assert decision.message(placed=2) == (
        "3 of 4 members fit, 4 must; 1 lack a node: 0/1 nodes are available: 1 Insufficient cpu."
    )


def test_different_reasons_are_counted_separately() -> None:
    """The most frequent first."""
    cluster = a_cluster_of(a_node("a", cpu="1"))
    pods = [*a_gang(3), a_pod("odd", node_selector={"disk": "ssd"})]

    message = gang(cluster, pods, 4).message(0)

    assert message == (
        "1 of 4 members fit, 4 must; 2 lack a node: 0/1 nodes are available: 1 Insufficient cpu.; "
        "1 lack a node: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    )


def test_the_largest_member_goes_first() -> None:
    """Small ones would be spread over both nodes and leave no room for it."""
    cluster = a_cluster_of(a_node("a", cpu="4"), a_node("b", cpu="4"))
    pods = [a_pod("s1", cpu="1"), a_pod("s2", cpu="1"), a_pod("large", cpu="4")]

    assert gang(cluster, pods, 3).is_feasible


def test_the_cluster_is_left_alone() -> None:
    """Asking places and nominates no pod."""
    cluster = a_cluster_of(a_node("a", cpu="4"))
    tick = cluster.tick

    gang(cluster, a_gang(4), 4)

    assert (cluster.tick, len(cluster.pods)) == (tick, 0)
    validate(cluster)


def test_a_gang_preempts_when_the_whole_fits_afterwards() -> None:
    """Each victim is named once, and none more than needed."""
    low = [a_pod(f"low{number}", cpu="1", node=node) for number, node in enumerate("aabb")]
    cluster = a_cluster_of(a_node("a", cpu="2"), a_node("b", cpu="2"), pods=low)

    decision = gang(cluster, a_gang(3, priority=10), 3, is_preempting=True)

    assert decision.is_feasible
    victims = [victim.name for each in decision.placements for victim in each.victims]
    assert len(victims) == len(set(victims)) == 3
    assert all(each.decision.outcome is AttemptOutcome.UNSCHEDULABLE for each in decision.placements)


@pytest.mark.parametrize(("higher", "broken"), [(0, {"u"}), (20, {"x", "y"})])
def test_one_gang_breaks_instead_of_two_only_if_all_its_members_may_be_victims(
    higher: int, broken: set[str]
) -> None:
    """Each of two gangs would lose one member; a third has room for all, unless one of it is important."""
    nodes = [a_node(name, cpu="1") for name in "abcd"]
    pods = [
        a_pod(f"{group}{number}", cpu="1", node=node, labels={GROUP_LABEL: group}, priority=priority)
        for group, number, node, priority in (
            ("x", 0, "a", 0),
            ("y", 0, "b", 0),
            ("u", 0, "c", 1),
            ("u", 1, "d", 1 + higher),
        )
    ]
    others = [a_pod(f"{group}1", node="e", labels={GROUP_LABEL: group}) for group in "xy"]
    cluster = a_cluster_of(*nodes, a_node("e", cpu="1", taints=["t=t:NoSchedule"]), pods=[*pods, *others])

    decision = gang(cluster, a_gang(2, priority=10), 2, is_preempting=True)

    assert decision.is_feasible
    victims = [each for where in decision.placements for each in where.victims]
    assert {each.name[0] for each in victims} == broken


def test_a_gang_that_would_not_fit_even_then_has_no_victims() -> None:
    """The caller looks at nothing of a decision that is not feasible."""
    cluster = a_cluster_of(a_node("a", cpu="2"), pods=[a_pod("low", cpu="2", node="a")])

    assert not gang(cluster, a_gang(3, priority=10), 3, is_preempting=True).is_feasible


def test_members_are_no_victims_of_each_other() -> None:
    """A member of higher priority does not push out its sibling that was placed a moment ago."""
    cluster = a_cluster_of(a_node("a", cpu="1"))
    pods = [a_pod("boss", cpu="1", priority=5), a_pod("hand", cpu="1")]

    decision = gang(cluster, pods, 2, is_preempting=True)

    assert not decision.is_feasible
    assert [each.decision.pod.name for each in decision.placements] == ["boss"]


class Reclaims:
    """Takes a node from the pods there, as a queue does that takes back its share."""

    name: ClassVar = "Reclaims"
    args_model: ClassVar = NoArgs

    def __init__(self, args: Any) -> None:
        self.args = args

    def post_filter(self, state: Any, pod: Any, snapshot: Any, rejections: Any) -> Nomination:
        return Nomination(node=snapshot.node(0).name, victims=tuple(snapshot.pods(0)))


@pytest.mark.parametrize("is_placed", [False, True])
def test_no_plugin_makes_members_victims_of_each_other(is_placed: bool) -> None:
    """Neither one that was placed a moment ago, nor one that runs already."""
    defaults = [
        Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items() if name != "DefaultPreemption"
    ]
    profile = build_profile(
        ProfileConfig("s"),
        Registry([*IN_TREE, Reclaims]),  # type: ignore[list-item] # a fake has only what is used
        [*defaults, Enabled("Reclaims")],
    )
    members = a_gang(2)
    cluster = a_cluster_of(a_node("a", cpu="1"))
    if is_placed:
        cluster.place(cluster.templates.info(members[0]), "a")
    waiting = [
        (cluster.templates.info(pod), ProfileScheduler(profile, cluster)) for pod in members[is_placed:]
    ]
    placed = [members[0].uid] if is_placed else []

    decision = place_together(waiting, cluster, len(waiting), is_preempting=True, placed=placed)

    assert not decision.is_feasible
    assert not any(each.victims for each in decision.placements)


def test_room_that_is_promised_to_others_is_not_taken() -> None:
    """Nominated pods of no lower priority hold theirs."""
    cluster = a_cluster_of(a_node("a", cpu="2"))
    nominator = Nominator()
    nominator.add(cluster.templates.info(a_pod("promised", cpu="1")), "a")
    scheduler = ProfileScheduler(PROFILE, cluster, nominator=nominator)
    members = [(cluster.templates.info(pod), scheduler) for pod in a_gang(2)]

    assert len(place_together(members, cluster, 2).placements) == 1


@pytest.mark.parametrize("is_preempting", [False, True])
def test_a_member_may_request_what_no_member_or_node_before_it_knows(is_preempting: bool) -> None:
    """The others are placed all the same, together or by victims."""
    low = [a_pod("low", cpu="4", node="a"), a_pod("more", cpu="4", node="b")] if is_preempting else []
    cluster = a_cluster_of(a_node("a", cpu="4"), a_node("b", cpu="4"), pods=low)
    members = [
        *a_gang(2, cpu="3", priority=9),
        a_pod("odd", cpu="4", requests={"example.com/absent": 1}, priority=9),
    ]

    decision = gang(cluster, members, 3 - is_preempting, is_preempting=is_preempting)

    assert len(decision.placements) == 2
    assert "Insufficient example.com/absent" in decision.message(0)


def test_devices_of_claims_neither_keep_members_apart_nor_victims_away() -> None:
    """A class serves the extended resource, so that nodes have none of it among their amounts."""
    low = [a_pod("small", cpu="1", node="a"), a_pod("large", cpu="2", node="b", priority=1)]
    cluster = a_cluster_of(a_node("a", cpu="1"), a_node("b", cpu="2"), pods=low)
    devices = [a_slice(node, [a_device(f"{node}{at}") for at in range(2)]) for node in "ab"]
    served = a_class("served", extendedResourceName="example.com/served")
    fill(cluster.objects.ledger(DeviceBook), devices, classes=[served])

    members = a_gang(2, priority=10, requests={"example.com/served": 1})
    decision = gang(cluster, members, 2, is_preempting=True)

    assert [victim.name for each in decision.placements for victim in each.victims] == ["large"]


def test_who_is_outranked_on_a_node_whose_victims_leave_hears_of_it() -> None:
    """Also if other victims stay: its own nomination to that node ends, and only there."""
    low = [a_pod("small", cpu="1", node="a"), a_pod("large", cpu="2", node="b", priority=1)]
    cluster = a_cluster_of(a_node("a", cpu="1"), a_node("b", cpu="2"), pods=low)
    nominator = Nominator()
    for node in "ab":
        nominator.add(cluster.templates.info(a_pod(f"promised-{node}", cpu="1", priority=2)), node)
    scheduler = ProfileScheduler(PROFILE, cluster, nominator=nominator)
    members = [(cluster.templates.info(pod), scheduler) for pod in a_gang(2, priority=10)]

    placements = place_together(members, cluster, 2, is_preempting=True).placements

    assert [victim.name for each in placements for victim in each.victims] == ["large"]
    nominations = [each.decision.nomination for each in placements if each.decision.nomination is not None]
    assert [other.name for each in nominations for other in each.outranked] == ["promised-b"]


def test_what_the_cluster_lacks_as_a_whole() -> None:
    """Free room of all nodes, and what the gang holds already."""
    mine = a_pod("mine", cpu="1", node="a")
    cluster = a_cluster_of(a_node("a", cpu="2"), a_node("b", cpu="2"), pods=[mine])
    own = [cluster.pods[mine.uid]]

    assert lacking_resources(cluster, {"cpu": 4000}, own) == {}
    assert lacking_resources(cluster, {"cpu": 4000}, []) == {"cpu": 1000}
    assert lacking_resources(cluster, {"example.com/gpu": 2}, own) == {"example.com/gpu": 2}


@given(seed=st.integers(0, 10_000), size=st.integers(1, 12), needed=st.integers(1, 12))
def test_places_of_a_feasible_gang_never_overcommit(seed: int, size: int, needed: int) -> None:
    """On any cluster, the placements hold together: taking all of them leaves no node short."""
    rng = random.Random(seed)
    nodes = [a_node(f"n{number}", cpu=rng.randint(1, 4)) for number in range(rng.randint(1, 4))]
    cluster = a_cluster_of(*nodes)
    pods = [a_pod(f"m{number}", cpu=rng.choice(["500m", "1", "2"])) for number in range(size)]

    decision = gang(cluster, pods, min(size, needed))

    assert len(decision.placements) + len(decision.refused) == size
    for each in decision.placements:
        cluster.place(each.decision.pod, each.node)
    assert (cluster.requested <= cluster.allocatable)[: len(cluster)].all()
