"""The reservation book: one entry for each holder, and the nominator says what the book says."""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cluster.invariants import check_book
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.reservations import FIRM, Reservation, ReservationBook, ReservationReason
from plimsoll.model.kinds.pod_info import Holder, HolderKind, PodInfo
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeClock, RememberingObserver
from plimsoll.timing.timer import Timer

ROOM, TARGET = ReservationReason.ROOM, ReservationReason.MOVE_TARGET
REPLACEMENT, BENEFICIARY = HolderKind.REPLACEMENT, HolderKind.BENEFICIARY


class Scene:
    """A book over a cluster with some nodes."""

    def __init__(self, *nodes: str) -> None:
        self.clock, self.cache = FakeClock(0.0), Cache()
        for name in nodes or ("n1", "n2"):
            self.cache.set_node(a_node(name, cpu="8"))
        self.timer = Timer(self.clock, RememberingObserver())
        self.book = ReservationBook(self.cache, self.timer)

    def pod(self, name: str, **more: Any) -> PodInfo:
        return self.cache.info(a_pod(name, **more))

    def passes(self, seconds: float) -> None:
        self.clock.time += seconds
        self.timer.call_due()

    @property
    def seen(self) -> dict[str, Any]:
        """What filters read: uids by node."""
        return {node: list(pods) for node, pods in self.book.nominator.by_node.items()}


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_holder_has_one_reservation(scene: Scene) -> None:
    """A new one of the same holder ends the earlier one, wherever it was."""
    pod = scene.pod("p")
    scene.book.nominate(pod, "n1")
    scene.book.nominate(pod, "n2")

    assert scene.seen == {"n2": [pod.uid]}
    check_book(scene.book)


def test_two_holders_may_represent_one_pod(scene: Scene) -> None:
    """The target of a move that is under way, and that of a move which a plan makes on a fork."""
    pod = scene.pod("web-1", node="n1", cpu="3")
    for holder in (Holder(REPLACEMENT, "default/web-1-abc"), Holder(REPLACEMENT, pod.uid)):
        scene.book.reserve_in_stead(holder, pod, "n2", TARGET, "policy", priority=FIRM)

    held = scene.book.nominator.by_node["n2"]
    assert [(each.priority, each.requests["cpu"]) for each in held.values()] == [(FIRM, 3000), (FIRM, 3000)]
    assert len(held.keys() | {pod.uid}) == 3
    check_book(scene.book)


def test_a_stand_in_has_the_shape_of_the_pod_and_nothing_else_of_it(scene: Scene) -> None:
    """The same requests and labels; not its uid, node or status."""
    holder = Holder(BENEFICIARY, "uid-default-big")
    pod = scene.pod("big", cpu="7", priority=5, labels={"app": "x"}, node="n1", status={"phase": "Running"})
    scene.book.reserve_in_stead(holder, pod, "n2", ROOM, "policy")
    stand_in = scene.book.held_by_uid(holder.uid).pod

    assert stand_in.stands_in_for == holder
    assert stand_in.template is scene.pod("another", cpu="7", priority=5, labels={"app": "x"}).template
    assert (stand_in.priority, stand_in.name, stand_in.pod.node_name) == (5, "big", "")
    assert (stand_in.pod.status.phase, stand_in.uid) == ("Pending", holder.uid)
    assert pod.stands_in_for is None


def test_an_owners_reservations_of_one_reason_are_released_together(scene: Scene) -> None:
    """Those of others stay, and the owner's of another reason."""
    for name, owner in (("a", "train"), ("b", "other"), ("c", "train")):
        pod = scene.pod(name)
        holder = Holder(HolderKind.POD, pod.uid)
        scene.book.reserve(Reservation(holder, pod, "n1", ReservationReason.GANG, owner))
    scene.book.nominate(scene.pod("d"), "n1", "train")

    released = scene.book.release_owner("train", ReservationReason.GANG)

    assert [each.pod.name for each in released] == ["a", "c"]
    assert [pod.name for pod in scene.book.nominator.by_node["n1"].values()] == ["b", "d"]
    assert [each.pod.name for each in scene.book.of_reason(ReservationReason.GANG)] == ["b"]


def test_a_reservation_ends_at_its_time(scene: Scene) -> None:
    """Not before; and not when a later one of the same holder has no end."""
    room, pod = Holder(BENEFICIARY, "uid-x"), scene.pod("x")
    scene.book.reserve_in_stead(room, pod, "n1", ROOM, "policy", until=300.0)
    scene.passes(299.0)
    assert scene.book.held_by_uid(room.uid) is not None
    scene.book.reserve_in_stead(room, pod, "n2", ROOM, "policy", until=400.0)
    scene.passes(2.0)
    assert scene.seen == {"n2": [room.uid]}

    scene.passes(99.0)

    assert scene.seen == {}
    assert len(scene.timer) == 0
    check_book(scene.book)


def test_planners_see_every_reservation_taken_up(scene: Scene) -> None:
    """On a fork: the cluster itself is as it was. A pod that is there already stays where it is."""
    there = scene.pod("there", node="n1")
    scene.cache.set_placed(there, "n1")
    scene.book.nominate(scene.pod("waits", cpu="2"), "n2")
    scene.book.reserve_in_stead(Holder(REPLACEMENT, "r"), there, "n2", TARGET, "policy", priority=FIRM)

    fork = scene.book.claimed()

    assert sorted((pod.name, fork.nodes[fork.row_of_pod(uid)].name) for uid, pod in fork.pods.items()) == [  # type: ignore[index] # known to exist in this test
        ("there", "n1"),
        ("there", "n2"),
        ("waits", "n2"),
    ]
    assert list(scene.cache.cluster.pods) == [there.uid]


@pytest.mark.parametrize("is_stand_in", [True, False])
def test_no_reservation_in_anothers_name(scene: Scene, is_stand_in: bool) -> None:
    """The pod is the holder itself, or made to stand in for it."""
    pod = scene.pod("p")
    if is_stand_in:
        pod = scene.cache.cluster.templates.stand_in(pod, Holder(REPLACEMENT, "r"))

    with pytest.raises(ValueError, match="does not stand in for it"):
        scene.book.reserve(Reservation(Holder(REPLACEMENT, "another"), pod, "n1", TARGET, "policy"))
    assert scene.seen == {}


NAMES = st.sampled_from(["a", "b", "c"])
NODES = st.sampled_from(["n1", "n2", "gone"])
KINDS = st.sampled_from([kind for kind in HolderKind if kind is not HolderKind.POD])


class BookMachine(RuleBasedStateMachine):
    """Any order of promises, placements and time keeps the book whole and equal to a plain table."""

    def __init__(self) -> None:
        super().__init__()
        self.scene = Scene("n1", "n2")
        self.book = self.scene.book
        self.expected: dict[Any, Any] = {}  #: uid to node, owner and end

    @rule(name=NAMES, node=NODES, owner=st.sampled_from(["x", "y"]))
    def nominated(self, name: str, node: str, owner: str) -> None:
        """A pod without a node is promised one."""
        pod = self.scene.pod(name)
        if not self.scene.cache.node_of(pod.uid):
            self.book.nominate(pod, node, owner)
            self.expected[pod.uid] = (node, owner, None)

    @rule(name=NAMES, kind=KINDS, node=NODES, lasts_s=st.none() | st.integers(0, 5))
    def reserved(self, name: str, kind: Any, node: str, lasts_s: Any) -> None:
        """Room for a pod that does not exist."""
        holder = Holder(kind, name)
        until = None if lasts_s is None else self.scene.clock.time + lasts_s
        self.book.reserve_in_stead(holder, self.scene.pod(name), node, ROOM, "z", priority=FIRM, until=until)
        self.expected[holder.uid] = (node, "z", until)

    @rule(name=NAMES, kind=st.sampled_from(list(HolderKind)))
    def released(self, name: str, kind: Any) -> None:
        """A promise ends."""
        key = self.scene.pod(name).uid if kind is HolderKind.POD else name
        holder = Holder(kind, key)
        self.book.release_uid(holder.uid)
        self.expected.pop(holder.uid, None)

    @rule(owner=st.sampled_from(["x", "y", "z"]), reason=st.sampled_from(list(ReservationReason)))
    def all_released(self, owner: str, reason: Any) -> None:
        """All promises of an owner for a reason end."""
        for each in self.book.release_owner(owner, reason):
            assert self.expected.pop(each.holder.uid)[1] == owner

    @rule(name=NAMES, node=st.sampled_from(["n1", "n2"]))
    def assumed(self, name: str, node: str) -> None:
        """A pod has a node: what it held ends first."""
        pod = self.scene.pod(name)
        if not self.scene.cache.node_of(pod.uid):
            self.scene.cache.assume(pod, node)
            self.book.release_uid(pod.uid)
            self.expected.pop(pod.uid, None)

    @rule(name=NAMES)
    def forgotten(self, name: str) -> None:
        """Its binding failed."""
        self.scene.cache.forget(self.scene.pod(name).uid)

    @precondition(lambda self: self.expected)
    @rule(seconds=st.integers(0, 6))
    def passes(self, seconds: int) -> None:
        """Time goes on."""
        self.scene.passes(seconds)
        now = self.scene.clock.time
        self.expected = {uid: each for uid, each in self.expected.items() if each[2] is None or each[2] > now}

    @invariant()
    def holds(self) -> None:
        """The book, its index and the fork of the planners say the same as the table."""
        check_book(self.book)
        by_node: dict[Any, Any] = {}
        for uid, (node, _, _) in self.expected.items():
            by_node.setdefault(node, set()).add(uid)
        assert {node: set(uids) for node, uids in self.scene.seen.items()} == by_node
        fork = self.book.claimed()
        assert set(fork.pods) == set(self.expected) | set(self.scene.cache.cluster.pods)


TestBookMachine = BookMachine.TestCase
