"""Gangs in one topology domain or few: against counts of rooms, and an exhaustive search in small cases."""

import random
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.builders import a_class, a_device, a_slice, fill
from planning.device_worlds import a_made_claim, a_user
from plimsoll.devices.book import DeviceBook
from plimsoll.engine.gangs.joint_assignment import Patience, assigned
from plimsoll.engine.gangs.joint_decision import GangDecision
from plimsoll.engine.gangs.placement import place_together
from plimsoll.engine.gangs.topology_domains import never_fits
from plimsoll.engine.nominator import Nominator
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import Pod
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod

RACK = "example.com/rack"
PROFILE = build_profile(
    ProfileConfig("s"), Registry(IN_TREE), [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
)


def in_a_rack(
    cluster: Cluster, pods: list[Pod], needed: int, nominator: Nominator | None = None, **options: Any
) -> GangDecision:
    """Place pods together in one rack by the default plugins."""
    scheduler = ProfileScheduler(PROFILE, cluster, nominator=nominator)
    members = [(cluster.templates.info(pod), scheduler) for pod in pods]
    return place_together(members, cluster, needed, within=RACK, **options)


def equals(count: int, cpu: int = 1, **more: Any) -> list[Pod]:
    """Equal pods."""
    return [a_pod(f"m{number}", cpu=str(cpu), **more) for number in range(count)]


def a_racked_cluster(rng: random.Random, most_nodes: int = 14) -> Cluster:
    """Nodes in a few racks, some in none, some full, some cordoned, some tainted."""
    nodes, pods = [], []
    for number in range(rng.randint(1, most_nodes)):
        rack = rng.choice(["", "a", "b", "c", "d"])
        nodes.append(
            a_node(
                f"n{number}",
                cpu=str(rng.randint(1, 4)),
                labels={RACK: rack} if rack else {},
                unschedulable=rng.random() < 0.1,
                taints=["gone:NoSchedule"] if rng.random() < 0.1 else (),
            )
        )
        if rng.random() < 0.4:
            pods.append(a_pod(f"old{number}", cpu="1", node=f"n{number}", priority=rng.choice([0, 50])))
    return a_cluster(nodes, pods)


def rooms(cluster: Cluster) -> dict[str, list[int]]:
    """Free cpus of the nodes that a pod may take, by rack."""
    found: dict[str, list[int]] = {}
    for row, node in enumerate(cluster.nodes):
        rack = node.labels.get(RACK)
        if rack is not None:
            is_closed = node.spec.unschedulable or bool(node.spec.taints)
            free = int(cluster.allocatable[row, 0] - cluster.requested[row, 0]) // 1000
            found.setdefault(rack, []).append(0 if is_closed else max(free, 0))
    return found


def bare_rooms(cluster: Cluster) -> list[int]:
    """The same for nodes in no rack."""
    rows = [row for row, node in enumerate(cluster.nodes) if RACK not in node.labels]
    free = [int(cluster.allocatable[row, 0] - cluster.requested[row, 0]) // 1000 for row in rows]
    is_closed = [
        cluster.nodes[row].spec.unschedulable or bool(cluster.nodes[row].spec.taints) for row in rows
    ]
    return [0 if closed else max(each, 0) for each, closed in zip(free, is_closed, strict=True)]


def racks_of(cluster: Cluster, decision: GangDecision) -> set[str | None]:
    """The racks of the placements."""
    return {cluster.nodes[cluster.rows[each.node]].labels.get(RACK) for each in decision.placements}


def check_room(cluster: Cluster, decision: GangDecision) -> None:
    """No node gets more than it has."""
    taken = Counter[str]()
    for each in decision.placements:
        taken[each.node] += each.decision.pod.requests["cpu"]
        taken[each.node] -= sum(victim.requests["cpu"] for victim in each.victims)
    for node, amount in taken.items():
        row = cluster.rows[node]
        assert amount <= cluster.allocatable[row, 0] - cluster.requested[row, 0]


@given(rng=st.randoms(use_true_random=False))
def test_equal_members_go_where_a_count_says(rng: random.Random) -> None:
    """Into the smallest rack with room for all, else into the one for the most, if they are enough."""
    cluster = a_racked_cluster(rng)
    count, size = rng.randint(1, 6), rng.randint(1, 2)
    needed = rng.randint(1, count)
    room = {rack: sum(free // size for free in nodes) for rack, nodes in rooms(cluster).items()}

    decision = in_a_rack(cluster, equals(count, size), needed)

    placed = len(decision.placements)
    assert decision.is_feasible == (max(room.values(), default=0) >= needed)
    if decision.is_feasible:
        (rack,) = racks_of(cluster, decision)
        best = min(max(room.values()), count)
        assert placed == best
        assert room[str(rack)] == min(each for each in room.values() if min(each, count) == best)
    check_room(cluster, decision)


def fits(sizes: list[int], nodes: list[int]) -> bool:
    """Whether pods of these sizes fit onto nodes with these rooms, by trying all ways."""
    for way in product(range(len(nodes)), repeat=len(sizes)):
        taken = Counter[int]()
        for size, node in zip(sizes, way, strict=True):
            taken[node] += size
        if all(nodes[node] >= amount for node, amount in taken.items()):
            return True
    return False


@pytest.mark.parametrize("within", [RACK, ""])
@given(rng=st.randoms(use_true_random=False))
def test_unequal_members_fit_exactly_where_some_way_exists(within: str, rng: random.Random) -> None:
    """In one rack, or anywhere: all of them, or as many as are needed."""
    cluster = a_racked_cluster(rng, most_nodes=9)
    sizes = [rng.randint(1, 4) for _ in range(rng.randint(2, 4))]
    pods = [a_pod(f"m{number}", cpu=str(size)) for number, size in enumerate(sizes)]
    needed = rng.randint(2, len(sizes))

    decision = near_each_other(cluster, pods, needed, near=(), within=within)

    found = rooms(cluster)
    places = found if within else {"": [free for nodes in found.values() for free in nodes]}
    bare = [0, *(free for free in bare_rooms(cluster))]
    if not within:
        places[""] += bare
    possible = {rack for rack, nodes in places.items() if fits(sorted(sizes)[:needed], nodes)}
    assert decision.is_feasible == bool(possible)
    if within and decision.is_feasible:
        assert racks_of(cluster, decision) <= possible
    check_room(cluster, decision)


def test_a_joint_search_ends_with_its_patience() -> None:
    """Each node has room for one pod, and a remainder that no other can use; no two nodes are alike."""
    wanted = np.array([[6 + number % 2, 1] for number in range(20)])
    free = np.array([[11, 100 + number] for number in range(13)])
    patience = Patience(2_000)

    assert assigned(wanted, free, np.ones((20, 13), dtype=np.bool_), patience) is None
    assert patience.looks < 0


@given(rng=st.randoms(use_true_random=False))
def test_members_that_keep_apart_or_preempt_stay_in_one_rack(rng: random.Random) -> None:
    """With anti-affinity the rooms are fewer than counted; with victims they are more."""
    cluster = a_racked_cluster(rng)
    count = rng.randint(1, 4)
    needed = rng.randint(1, count)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = equals(count, priority=9, labels={"app": "x"}, affinity=apart)

    decision = in_a_rack(cluster, pods, needed)
    most = max((sum(free > 0 for free in nodes) for nodes in rooms(cluster).values()), default=0)
    assert decision.is_feasible == (most >= needed)
    assert len(racks_of(cluster, decision)) <= 1
    assert len({each.node for each in decision.placements}) == len(decision.placements)

    rescue = in_a_rack(cluster, pods, needed, is_preempting=True)
    assert rescue.is_feasible >= decision.is_feasible
    assert len(racks_of(cluster, rescue)) <= 1
    assert all(victim.priority < 9 for each in rescue.placements for victim in each.victims)
    check_room(cluster, rescue)


def test_affinity_to_a_member_does_not_hide_a_rack() -> None:
    """No node is feasible for the worker until its leader is placed."""
    nodes = [a_node(f"{rack}{number}", cpu="1", labels={RACK: rack}) for rack in "ab" for number in (0, 1)]
    cluster = a_cluster(nodes, [a_pod("old", cpu="1", node="a0")])
    term = {"topologyKey": RACK, "labelSelector": {"matchLabels": {"role": "leader"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    leader = a_pod("leader", cpu="1", priority=1, labels={"role": "leader"})

    decision = in_a_rack(cluster, [leader, a_pod("worker", cpu="1", affinity=near)], 2)

    assert (decision.is_feasible, racks_of(cluster, decision)) == (True, {"b"})


def test_nominated_members_are_tried_where_their_room_is() -> None:
    """Though another rack would fit better now."""
    sizes = {"a": 4, "b": 3}
    cluster = a_cluster(
        [
            a_node(f"{rack}{number}", cpu="1", labels={RACK: rack})
            for rack, size in sizes.items()
            for number in range(size)
        ]
    )
    pods, nominator = equals(3, priority=9), Nominator()
    for number, pod in enumerate(pods):
        nominator.add(cluster.templates.info(pod), f"a{number}")

    assert racks_of(cluster, in_a_rack(cluster, pods, 3, nominator)) == {"a"}
    assert racks_of(cluster, in_a_rack(cluster, pods, 3)) == {"b"}


def test_of_racks_with_equal_room_the_fullest_is_taken() -> None:
    """A full node counts, too, though no member may be there; and an empty rack stays empty."""
    nodes = [a_node(f"a{at}", cpu="2", labels={RACK: "a"}) for at in range(2)]
    nodes += [a_node(f"b{at}", cpu="2", labels={RACK: "b"}) for at in range(3)]
    cluster = a_cluster(nodes, [a_pod("old", cpu="2", node="b0")])

    assert racks_of(cluster, in_a_rack(cluster, equals(3), 3)) == {"b"}


def a_rack_of_devices(name: str, count: int) -> tuple[list[Any], list[Any]]:
    """Two nodes with so many devices each, and their slices."""
    nodes = [a_node(f"{name}{at}", cpu="64", labels={RACK: name}) for at in range(2)]
    slices = [a_slice(node.name, [a_device(f"d{at}") for at in range(count)]) for node in nodes]
    return nodes, slices


def of_a_class(name: str) -> Pod:
    """A pod that requests four of what a class serves."""
    return a_pod(name, requests={"cpu": "1", "example.com/gpu": 4})


@pytest.mark.parametrize("claims", [False, True])
def test_the_smallest_rack_is_the_one_with_the_fewest_devices(claims: bool) -> None:
    """By cpu all are equal; whether a class serves the devices, or claims of the pods' own ask for them."""
    sizes = {"a": 8, "b": 4, "c": 16}
    racks = [a_rack_of_devices(name, count) for name, count in sizes.items()]
    cluster = a_cluster([node for nodes, _ in racks for node in nodes])
    book = cluster.objects.ledger(DeviceBook)
    serving = [] if claims else [a_class(extendedResourceName="example.com/gpu")]
    fill(book, [each for _, slices in racks for each in slices], classes=serving)
    pods = [a_user(f"m{at}", template="t") if claims else of_a_class(f"m{at}") for at in range(2)]
    for pod in pods if claims else ():
        book.set_claim(a_made_claim(pod.name, count=4))

    assert racks_of(cluster, in_a_rack(cluster, pods, 2)) == {"b"}
    assert racks_of(cluster, near_each_other(cluster, pods, 2)) == {"b"}


@pytest.mark.parametrize("taken", [0, 1])
def test_other_templates_are_counted_together(taken: int) -> None:
    """A rack that holds each kind of member by itself need not hold both: the next one is tried."""
    nodes = [a_node("a0", cpu="3", labels={RACK: "a"}), a_node("b0", cpu="8", labels={RACK: "b"})]
    cluster = a_cluster(nodes, [a_pod("old", cpu=str(taken), node="b0")] if taken else ())

    decision = in_a_rack(cluster, [a_pod("large", cpu="3"), a_pod("small", cpu="1")], 2)

    assert racks_of(cluster, decision) == {"b"}


# -- domains that are preferred --------------------------------------------------------------------------

BLOCK = "example.com/block"


def near_each_other(cluster: Cluster, pods: list[Pod], needed: int, **options: Any) -> GangDecision:
    """Place pods together by the default plugins, in few racks."""
    scheduler = ProfileScheduler(PROFILE, cluster)
    members = [(cluster.templates.info(pod), scheduler) for pod in pods]
    return place_together(members, cluster, needed, **{"near": (RACK,), **options})


@given(rng=st.randoms(use_true_random=False))
def test_equal_members_fill_as_few_racks_as_a_count_says(rng: random.Random) -> None:
    """One if it holds all, the smallest such; and a wish for racks never costs a member."""
    cluster = a_racked_cluster(rng)
    count = rng.randint(1, 8)
    room = {rack: sum(nodes) for rack, nodes in rooms(cluster).items()}

    decision = near_each_other(cluster, equals(count), 1)

    plain = near_each_other(cluster, equals(count), 1, near=())
    assert len(decision.placements) == len(plain.placements)
    used = racks_of(cluster, decision) - {None}
    if sum(room.values()) >= count:
        sizes = sorted(room.values(), reverse=True)
        fewest = next(number for number in range(len(sizes) + 1) if sum(sizes[:number]) >= count)
        assert len(used) == fewest
        if fewest == 1:
            assert room[str(*used)] == min(size for size in sizes if size >= count)
    check_room(cluster, decision)


def test_a_wider_level_counts_where_no_rack_has_room_for_all() -> None:
    """The larger racks are in other blocks."""
    sizes = {"x": {"a": 2, "b": 2}, "y": {"c": 3}, "z": {"d": 3}}
    nodes = [
        a_node(f"{rack}{number}", cpu="1", labels={RACK: rack, BLOCK: block})
        for block, inner in sizes.items()
        for rack, size in inner.items()
        for number in range(size)
    ]
    cluster = a_cluster(nodes)

    assert racks_of(cluster, near_each_other(cluster, equals(4), 4, near=(RACK, BLOCK))) == {"a", "b"}
    assert len(racks_of(cluster, near_each_other(cluster, equals(4), 4))) == 2


def test_among_required_blocks_the_one_with_a_whole_rack_is_taken() -> None:
    """Though another block would fit better."""
    sizes = {"x": {"a": 2, "b": 1}, "y": {"c": 3, "d": 2}}
    nodes = [
        a_node(f"{rack}{number}", cpu="1", labels={RACK: rack, BLOCK: block})
        for block, inner in sizes.items()
        for rack, size in inner.items()
        for number in range(size)
    ]
    cluster = a_cluster(nodes)

    assert racks_of(cluster, near_each_other(cluster, equals(3), 3, within=BLOCK)) == {"c"}


def test_late_members_join_the_racks_of_the_others() -> None:
    """As far as there is room; then they take another one."""
    nodes = [a_node(f"{rack}{number}", cpu="1", labels={RACK: rack}) for rack in "abc" for number in range(3)]
    cluster = a_cluster(nodes, [a_pod("there", uid="there", cpu="1", node="b0")])

    decision = near_each_other(cluster, equals(3), 1, placed=["there"])

    assert Counter(each.node[0] for each in decision.placements)["b"] == 2
    assert len(racks_of(cluster, decision)) == 2


def test_nodes_of_no_rack_are_used_last() -> None:
    cluster = a_cluster([a_node("bare", cpu="9"), a_node("a0", cpu="1", labels={RACK: "a"})])

    decision = near_each_other(cluster, equals(3), 3)

    assert Counter(each.node for each in decision.placements) == {"a0": 1, "bare": 2}


@pytest.mark.parametrize("key", ["batch.kubernetes.io/job-completion-index", ""])
def test_ranks_next_to_each_other_are_on_nodes_next_to_each_other(key: str) -> None:
    """By the index of a Job, whatever order the pods have; else by the number in the name."""
    nodes = [a_node(f"{rack}{number}", cpu="2", labels={RACK: rack}) for rack in "ab" for number in range(2)]
    cluster = a_cluster(nodes)
    order = [5, 2, 7, 0, 3, 6, 1, 4]
    pods = [
        a_pod(f"m-{number}", cpu="1", labels={key: str(number)} if key else {"app": "x"}) for number in order
    ]

    decision = near_each_other(cluster, pods, 8)

    nodes_of = {each.decision.pod.name: each.node for each in decision.placements}
    spots = [nodes_of[f"m-{number}"] for number in range(8)]
    assert spots == sorted(spots)
    assert len(set(spots)) == 4


def test_devices_of_claims_are_no_amounts_that_a_node_lacks() -> None:
    """A class serves the extended resource: no node has it among what it allocates itself."""
    cluster = a_cluster([a_node("n", labels={RACK: "a"})])
    book = cluster.objects.ledger(DeviceBook)
    fill(book, (), classes=[a_class("served", extendedResourceName="example.com/served")])
    members = [
        cluster.templates.info(a_pod("m", requests={f"example.com/{name}": 1}))
        for name in ("served", "other")
    ]

    found = [never_fits([member], cluster, 1, key) for member in members for key in (RACK, "")]

    asked = "1 member of 1 example.com/other each must fit, and"
    assert found == [
        "",
        "",
        f"{asked} the largest {RACK}, a, holds 0 when it is empty",
        f"{asked} the nodes together hold 0 when they are empty",
    ]


@pytest.mark.parametrize("rooms", [(2, 3, 5), (5, 3, 2), (3, 2, 2), (2, 2, 3)])
def test_the_rack_that_takes_the_most_members_goes_first_and_of_these_the_smallest(rooms: Any) -> None:
    """Four members of which two are needed: a rack of five takes all, one of three takes three."""
    nodes = [a_node(f"n{at}", cpu=str(room), labels={RACK: f"r{at}"}) for at, room in enumerate(rooms)]

    found = in_a_rack(a_cluster(nodes), equals(4), 2)

    assert len(found.placements) == min(4, max(rooms))
    assert rooms[int(found.placements[0].node.removeprefix("n"))] == max(rooms)


@given(rng=st.randoms(use_true_random=False))
def test_a_group_that_fits_nowhere_reports_the_rack_with_the_most_room(rng: random.Random) -> None:
    """However many racks are fuller: that is where the fewest members are lacking."""
    sizes = [rng.randint(2, 6) for _ in range(rng.randint(2, 5))]
    free = [rng.randint(0, size - 1) for size in sizes]
    needed = max(max(free) + 1, 2)
    nodes = [a_node(f"n{at}", cpu=str(size), labels={RACK: f"r{at}"}) for at, size in enumerate(sizes)]
    taken = zip(sizes, free, strict=True)
    old = [a_pod(f"old{at}", cpu=str(size - left), node=f"n{at}") for at, (size, left) in enumerate(taken)]

    found = in_a_rack(a_cluster(nodes, old), equals(needed + rng.randint(0, 2)), needed)

    assert not found.is_feasible
    most = max(free)
    if needed <= max(sizes):
        said = found.message(0, needed)
        assert any(f"{RACK} r{at}," in said for at, left in enumerate(free) if left == most), said
