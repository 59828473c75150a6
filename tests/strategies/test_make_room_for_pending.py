"""MakeRoomForPending: deficits, moved pods, beneficiaries, and the resulting room."""

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Candidate
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import ContainerStatus, Pod, PodCondition, ResourceRequirements
from plimsoll.planning.limits import NO_CEILING, Ceiling, Limits
from plimsoll.planning.moves import EvictionPlan, PlanningContext, replacement_of
from plimsoll.planning.planners import proven_plan
from plimsoll.strategies.make_room_for_pending import MakeRoomForPending, _cost
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.columns import validate
from strategies.builders import a_strategy
from strategies.making_room import NOW, PROFILE, a_rebalancing, moves_of, planned, served


def making_room(
    nodes: list[Node], pods: list[Pod], *, args: dict[str, int] | None = None, **kwargs: Any
) -> EvictionPlan:
    return planned(a_strategy(MakeRoomForPending, **(args or {})), nodes, pods, **kwargs)


def small(name: str, node: str, cpu: str = "1", **kwargs: Any) -> Pod:
    return a_pod(name, cpu=cpu, node=node, owner="ReplicaSet/small", **kwargs)


NODES = [a_node("one", cpu="4"), a_node("two", cpu="2")]


def test_as_many_move_as_the_deficit_takes() -> None:
    """Node one: 4 - 3 = 1 free, 3 wanted: a deficit of 2, so two pods of 1 go to where 2 are free."""
    pods = [small(f"s{n}", "one") for n in range(3)]

    found = making_room(NODES, [*pods, a_pod("big", cpu="3")])

    assert moves_of(found) == [("s0", "one", "two"), ("s1", "one", "two")]
    assert served(found) == {"big": "one"}
    assert len({move.bundle for move in found.moves}) == 1
    assert {move.reason for move in found.moves} == {"makes room on its node for pending pod default/big"}


def test_pods_go_to_the_fullest_node_however_few_pods_it_takes() -> None:
    nodes = [a_node("one", cpu="5"), a_node("two", cpu="2"), a_node("wide", cpu="3", pods=3)]

    found = making_room(nodes, [*(small(f"s{n}", "one") for n in range(3)), a_pod("big", cpu="4")])

    assert [target for _, _, target in moves_of(found)] == ["two", "two"]


def test_one_pod_that_covers_the_deficit_goes_rather_than_two() -> None:
    """The deficit of 2 is one pod of 2, or two of 1."""
    pods = [small("s0", "one", "500m"), small("s1", "one", "500m"), small("s2", "one", "2")]

    found = making_room(NODES, [*pods, a_pod("big", cpu="3")])

    assert moves_of(found) == [("s2", "one", "two")]


def test_the_cheaper_of_two_that_would_do_goes() -> None:
    """By its deletion cost: 1 is free on node one, 2,500m are wanted, either of the pods is enough."""
    dear = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "10"}}
    pods = [small("a", "one", "1500m", **dear), small("b", "one", "1500m")]

    found = making_room(NODES, [*pods, a_pod("big", cpu="2500m")])

    assert moves_of(found) == [("b", "one", "two")]


def test_of_two_that_later_moves_make_needless_the_dearer_stays() -> None:
    """10 and 10 Gi are missing: 6 and 3 of both were taken first; 9 of each need one of the two with them."""
    dear = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "10"}}
    nodes = [
        a_node(name, cpu=str(size), memory=f"{size}Gi")
        for name, size in (("one", 20), ("two", 11), ("three", 9))
    ]
    pods = [
        small("both", "one", "6", memory="6Gi", **dear),
        small("less", "one", "3", memory="3Gi"),
        small("cpu", "one", "9", memory="0"),
        small("memory", "one", "0", memory="9Gi"),
    ]

    found = making_room(nodes, [*pods, a_pod("big", cpu="12", memory="12Gi")])

    assert {name for name, *_ in moves_of(found)} == {"less", "cpu", "memory"}


def test_the_cheaper_node_is_chosen() -> None:
    """Node one could be cleared of a pod of priority 1, node three of one of priority 0."""
    nodes = [*NODES, a_node("three", cpu="4")]
    pods = [small("high", "one", "2", priority=1), small("low", "three", "2")]

    found = making_room(nodes, [*pods, a_pod("big", cpu="4", priority=1)])

    assert moves_of(found)[0][:2] == ("low", "three")


def test_a_pod_that_fits_is_left_to_the_scheduler() -> None:
    """Two cpus are free on node two."""
    assert moves_of(making_room(NODES, [small("s", "one", "4"), a_pod("fits", cpu="2")])) == []


def test_nothing_moves_when_it_would_not_be_enough() -> None:
    """Three cpus free in all, and no node with 5."""
    assert moves_of(making_room(NODES, [small("s", "one"), a_pod("big", cpu="5")])) == []


def test_nothing_moves_that_has_no_other_place() -> None:
    """The deficit is 1; the pod that would cover it asks for 3, and two has 2."""
    assert moves_of(making_room(NODES, [small("s", "one", "3"), a_pod("big", cpu="3")])) == []


@pytest.mark.parametrize(("priority", "moves"), [(5, 1), (4, 0)])
def test_no_pod_moves_for_one_of_lower_priority(priority: int, moves: int) -> None:
    """Of the same it does."""
    pods = [small("s", "one", "2", priority=5), a_pod("big", cpu="3", priority=priority)]

    assert len(making_room(NODES, pods).moves) == moves


def test_the_highest_priority_comes_first_then_the_largest() -> None:
    """Either could be served, not both: node two takes one of the movable pods."""
    nodes = [a_node("one", cpu="4"), a_node("three", cpu="4"), a_node("two", cpu="1")]
    pods = [small("s", "one"), small("t", "three")]

    first = making_room(nodes, [*pods, a_pod("high", cpu="3500m", priority=1), a_pod("low", cpu="4")])
    second = making_room(nodes, [*pods, a_pod("less", cpu="3500m"), a_pod("more", cpu="4")])

    assert set(served(first)) == {"high"}
    assert set(served(second)) == {"more"}


def test_room_that_was_made_is_not_given_twice() -> None:
    """Both pending pods want node one; its two small pods make room for one of them only."""
    pods = [small("s0", "one"), small("s1", "one"), a_pod("a", cpu="4"), a_pod("b", cpu="4")]

    found = making_room(NODES, pods)

    assert served(found) == {"a": "one"}


def test_a_node_that_the_pending_pod_may_not_use_is_left_alone() -> None:
    """It asks for a label that node one lacks."""
    nodes = [a_node("one", cpu="4"), a_node("two", cpu="4", labels={"disk": "ssd"}), a_node("spare", cpu="2")]
    pods = [small("s", "one", "2"), small("t", "two", "2")]

    found = making_room(nodes, [*pods, a_pod("big", cpu="4", node_selector={"disk": "ssd"})])

    assert moves_of(found) == [("t", "two", "one")]  # where nothing is left over
    assert served(found) == {"big": "two"}


@pytest.mark.parametrize(
    "spec",
    [
        {"schedulerName": "somebody"},
        {"schedulingGates": [{"name": "later"}]},
        {"labels": {"plimsoll.dev/pod-group": "gang"}},
    ],
)
def test_pods_that_are_not_ours_to_place_now_get_no_room(spec: dict[str, Any]) -> None:
    """Another scheduler's, a gated one, one of a group."""
    assert moves_of(making_room(NODES, [small("s", "one", "2"), a_pod("big", cpu="3", **spec)])) == []


def test_protected_pods_stay() -> None:
    """A pod without owner is protected by the evictor."""
    assert moves_of(making_room(NODES, [a_pod("s", cpu="2", node="one"), a_pod("big", cpu="3")])) == []


def test_a_pod_that_needs_too_many_moves_waits() -> None:
    """Two are needed; one is allowed."""
    pods = [small(f"s{n}", "one") for n in range(3)]

    assert moves_of(making_room(NODES, [*pods, a_pod("big", cpu="3")], args={"maxMovesPerPod": 1})) == []


def test_the_limits_hold() -> None:
    """No half of a bundle."""
    pods = [small(f"s{n}", "one") for n in range(3)]
    limits = Limits(total=Ceiling(count=1), per_workload=NO_CEILING)

    assert moves_of(making_room(NODES, [*pods, a_pod("big", cpu="3")], limits=limits)) == []


@pytest.mark.parametrize(("planner", "moves"), [(Planner.OPTIMAL, 1), (Planner.UPSTREAM, 0)])
def test_other_planners(planner: Planner, moves: int) -> None:
    """Optimal asks after it has solved; Upstream proves nothing, so nothing is made room for."""
    pods = [small("s", "one", "2"), a_pod("big", cpu="3")]

    found = making_room(NODES, pods, planner=planner)

    assert len(found.moves) == moves
    assert set(served(found)) == ({"big"} if moves else set())


@st.composite
def crowded(draw: Callable[..., Any]) -> tuple[list[Node], list[Pod]]:
    """Nodes with pods on them that fit, and pending pods."""
    nodes = [
        a_node(f"n{n}", cpu=str(draw(st.integers(2, 6))), labels={"disk": draw(st.sampled_from("ab"))})
        for n in range(draw(st.integers(2, 5)))
    ]
    free = [int(node.status.allocatable["cpu"]) for node in nodes]
    pods = []
    for number in range(draw(st.integers(0, 14))):
        at, cpu = draw(st.integers(0, len(nodes) - 1)), draw(st.integers(1, 3))
        if free[at] >= cpu:
            free[at] -= cpu
            pods.append(small(f"p{number}", f"n{at}", str(cpu), priority=draw(st.integers(0, 2))))
    for number in range(draw(st.integers(1, 4))):
        selector = {"disk": draw(st.sampled_from("ab"))} if draw(st.booleans()) else None
        cpu = str(draw(st.integers(2, 6)))
        pods.append(a_pod(f"q{number}", cpu=cpu, priority=draw(st.integers(0, 2)), node_selector=selector))
    return nodes, pods


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(crowded())
def test_every_bundle_is_feasible_moves_no_pod_of_higher_priority_and_is_of_use(
    drawn: tuple[list[Node], list[Pod]],
) -> None:
    """Carried out one by one on the cluster, each replacement fits where it is sent, and so does the pod."""
    nodes, pods = drawn
    cluster = a_cluster(nodes, pods)
    found = making_room(nodes, pods, cluster=cluster)
    reversed_ = making_room(nodes, pods, cluster=a_cluster(nodes[::-1], pods[::-1]))
    scheduler = ProfileScheduler(PROFILE, cluster)
    last = {move.bundle: at for at, move in enumerate(found.moves)}
    moved = [move.pod.uid for move in found.moves]

    assert moves_of(reversed_) == moves_of(found), "the order of arrival does not matter"
    assert len(moved) == len(set(moved))
    for at, move in enumerate(found.moves):
        assert move.pod.priority <= move.beneficiary.pod.priority
        assert move.target != move.source == move.beneficiary.node
        cluster.displace(move.pod.uid)
        assert move.target in scheduler.rank(replacement_of(move.pod, cluster)).nodes
        cluster.place(replacement_of(move.pod, cluster, move.target), move.target)
        if last[move.bundle] == at:
            assert move.beneficiary.node in scheduler.rank(move.beneficiary.pod).nodes
            cluster.place(move.beneficiary.pod, move.beneficiary.node)
    validate(cluster)
    assert (cluster.requested[: len(cluster)] <= cluster.allocatable[: len(cluster)]).all()


def test_of_two_bundles_the_one_without_a_pod_of_high_priority_is_cheaper() -> None:
    """However many of its pods have a low one; then fewer pods, then lower deletion costs."""
    templates = a_cluster().templates

    def bundle(*priorities: int, cost: str = "0") -> tuple[Candidate, ...]:
        annotations = {"controller.kubernetes.io/pod-deletion-cost": cost}
        pods = (a_pod(f"p{at}", priority=each, annotations=annotations) for at, each in enumerate(priorities))
        return tuple(Candidate(templates.info(pod), "", "") for pod in pods)

    bundles = [bundle(5, 5), bundle(1, 9), bundle(9), bundle(5), bundle(5, cost="3")]
    ordered = sorted(bundles, key=_cost)
    assert [bundles.index(each) for each in ordered] == [3, 4, 0, 2, 1]


def resized(name: str, *, granted: str, cpu: str, why: str = "Deferred", **kwargs: Any) -> Pod:
    """A pod on node one whose resize in place waits."""
    pod = a_pod(name, cpu=cpu, node="one", owner="ReplicaSet/large", **kwargs)
    shown = ContainerStatus(
        name=pod.spec.containers[0].name,
        resources=ResourceRequirements(requests={"cpu": granted}),
        allocated_resources={"cpu": granted},
    )
    condition = PodCondition(type="PodResizePending", status="True", reason=why)
    status = replace(pod.status, conditions=(condition,), container_statuses=(shown,))
    return replace(pod, status=status)


@pytest.mark.parametrize(
    ("pods", "args", "moves", "said"),
    [
        pytest.param([resized("r", granted="1", cpu="3")], {}, ["s0"], "", id="one of 1 covers 5 - 4"),
        pytest.param([resized("r", granted="1", cpu="2")], {}, [], "", id="it fits already"),
        pytest.param(
            [resized("r", granted="1", cpu="3"), a_pod("fat", node="one", memory="1Ti", priority=1)],
            {},
            ["s0"],
            "",
            id="memory is lacking, for which it does not ask",
        ),
        pytest.param([resized("r", granted="1", cpu="3")], {"resizes": False}, [], "", id="switched off"),
        pytest.param(
            [resized("r", granted="1", cpu="3", why="Infeasible")],
            {},
            [],
            "pod default/r asks for a resize that node one can never grant",
            id="infeasible",
        ),
        pytest.param(
            [resized("r", granted="1", cpu="4"), small("high", "one", "500m", priority=1)],
            {},
            [],
            "no moves would make room for the resize of pod default/r",
            id="what would have to leave has a higher priority",
        ),
    ],
)
def test_a_deferred_resize_gets_its_room(
    pods: list[Pod], args: dict[str, Any], moves: list[str], said: str
) -> None:
    """Node one has 4, and two pods of 1 with the resized one; node two takes two of them."""
    found = making_room(NODES, [small("s0", "one"), small("s1", "one"), *pods], args=args)

    assert [name for name, *_ in moves_of(found)] == moves
    assert served(found) == ({"r": "one"} if moves else {})
    assert [remark for _, remark in found.remarks] == ([said] if said else [])


@pytest.mark.parametrize(("priority", "moves"), [(1, 1), (0, 0)])
def test_a_resize_does_not_wait_for_those_of_lower_priority(priority: int, moves: int) -> None:
    """2 + 1 + 1 + 0.5 granted are 0.5 above 4; with all that the other asks for, 3, and 2 may leave."""
    pods = [small("s0", "one"), small("s1", "one"), resized("low", granted="500m", cpu="3")]

    found = making_room(
        NODES, [*pods, resized("r", granted="1", cpu="2", priority=priority)], args={"maxMovesPerPod": 1}
    )

    assert served(found) == ({"r": "one"} if moves else {})
    assert len(found.moves) == moves


def test_no_room_is_made_twice_while_moves_off_the_node_are_under_way() -> None:
    """Nothing is reserved for a resize; the pod that was evicted for it may not be terminating yet."""
    pods = [small("s0", "one"), small("s1", "one"), resized("r", granted="1", cpu="3")]
    cluster = a_cluster(NODES, pods)
    rebalancing = a_rebalancing(a_strategy(MakeRoomForPending))

    found = proven_plan(rebalancing, cluster, PlanningContext(NOW, touched={"one": NOW.timestamp()}))

    assert not found.moves
    assert "moves off or to node one are still under way" in {each.refusal.message for each in found.refused}
