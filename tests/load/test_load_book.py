"""The load book equals a recomputation, after any sequence of events and on both sides of a fork."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from plimsoll.load.expectations import Basis
from plimsoll.load.load_book import LoadBook, key_of
from plimsoll.load.readings import PER_COLUMN_UNIT, LoadReading, LoadReadings, LoadSettings
from plimsoll.load.shares import EXPECTED, SUMMED, columns_of
from plimsoll.load.states import LoadState
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.usage.load_keeper import LoadKeeper

MILLI, MIB = 10**6, 2**20
NODES = ("n1", "n2", "n3", "n4")
OWNERS = ("StatefulSet/db", "Job/batch", "")
PODS = tuple(f"p{number}" for number in range(8))

#: Whole amounts of every size, small and large ones, and 0.
amounts = st.tuples(st.integers(0, 6_000 * MILLI), st.integers(0, 12 * 2**30))


def pod_of(name: str, owner: str = "", cpu: int = 500) -> Pod:
    return a_pod(name, uid=f"{name}-{owner}-{cpu}", owner=owner, cpu=f"{cpu}m", memory="512Mi")


def recounted(cluster: Cluster) -> Any:
    """The sums by node, added up from what the book says of each pod."""
    book = cluster.index(LoadBook)
    sums = np.zeros((len(cluster), SUMMED), dtype=np.int64)
    for pod, row in cluster.placed():
        sums[row] += columns_of(book.of(pod))[:SUMMED]
    return sums


def contents(cluster: Cluster) -> tuple[Any, ...]:
    """All that a fork's owner can read."""
    book = cluster.index(LoadBook)
    count = len(cluster)
    assert book.states[:count].tolist() == [book.state(row) for row in range(count)]
    return (
        [node.name for node in cluster.nodes],
        book.load[:count].tolist(),
        book.peak_load[:count].tolist(),
        book.states[:count].tolist(),
        {uid: book.of(pod) for uid, pod in cluster.pods.items()},
        {uid: book.prior(pod.template) for uid, pod in cluster.pods.items()},
    )


def observed(keeper: LoadKeeper, now: float, used: dict[str, tuple[int, int]], nodes: Any = None) -> None:
    """Readings of pods and nodes by their names, all taken now."""
    keeper.observe(
        now,
        nodes=LoadReadings.of(
            LoadReading(name, each[0], each[1], now) for name, each in (nodes or {}).items()
        ),
        pods=LoadReadings.of(
            LoadReading(f"default/{name}", each[0], each[1], now) for name, each in used.items()
        ),
    )


@settings(max_examples=15, stateful_step_count=20, suppress_health_check=[HealthCheck.too_slow])
class Events(RuleBasedStateMachine):
    """Pods, nodes, readings and forks in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(capacity=2)
        self.keeper = LoadKeeper(self.cluster)
        self.now = 1_000_000.0
        self.forks: list[tuple[Cluster, tuple[Any, ...]]] = []

    @initialize()
    def nodes(self) -> None:
        for name in NODES[:2]:
            self.set_node(name)

    @rule(name=st.sampled_from(NODES))
    def set_node(self, name: str) -> None:
        self.cluster.set_node(a_node(name, cpu="8", memory="16Gi"))

    @rule(name=st.sampled_from(NODES))
    def remove_node(self, name: str) -> None:
        self.cluster.remove_node(name)

    @rule(
        name=st.sampled_from(PODS),
        owner=st.sampled_from(OWNERS),
        node=st.sampled_from(NODES),
        cpu=st.sampled_from((0, 500)),
    )
    def place(self, name: str, owner: str, node: str, cpu: int) -> None:
        for uid, placed in list(self.cluster.pods.items()):
            if placed.name == name:
                self.cluster.displace(uid)
        self.cluster.place(self.cluster.templates.info(pod_of(name, owner, cpu)), node)

    @rule(at=st.integers(0, 7))
    def displace(self, at: int) -> None:
        for uid in list(self.cluster.pods)[at : at + 1]:
            self.cluster.displace(uid)

    @rule(
        seconds=st.sampled_from((0.0, 15.0, 60.0, 400.0)),
        pods=st.dictionaries(st.sampled_from(PODS), amounts),
        nodes=st.dictionaries(st.sampled_from(NODES), amounts),
    )
    def observe(self, seconds: float, pods: Any, nodes: Any) -> None:
        self.now += seconds
        tick, before = self.cluster.tick, self.cluster.index(LoadBook).load[: len(self.cluster)]
        observed(self.keeper, self.now, pods, nodes)
        after = self.cluster.index(LoadBook).load[: len(self.cluster)]
        noted = self.cluster.changed_since(tick)
        assert noted is not None
        assert set(np.flatnonzero((before != after).any(axis=1))) <= set(noted.tolist())

    @rule()
    def fork(self) -> None:
        twin = self.cluster.fork()
        self.forks.append((twin, contents(twin)))

    @rule(name=st.sampled_from(PODS), node=st.sampled_from(NODES))
    def change_a_fork(self, name: str, node: str) -> None:
        if self.forks:
            before = contents(self.cluster)
            twin, _ = self.forks.pop()
            for uid in list(twin.pods)[:2]:
                twin.displace(uid)
            twin.place(twin.templates.info(pod_of(f"new-{name}", OWNERS[0])), node)
            assert (recounted(twin) == twin.index(LoadBook).sums[: len(twin)]).all()
            assert contents(self.cluster) == before

    @invariant()
    def sums_equal_a_recount(self) -> None:
        book = self.cluster.index(LoadBook)
        assert (recounted(self.cluster) == book.sums[: len(self.cluster)]).all()
        assert not book.sums[len(self.cluster) :].any()

    @invariant()
    def forks_stay_as_they_are(self) -> None:
        for twin, before in self.forks:
            assert contents(twin) == before


TestEvents = Events.TestCase


@given(
    order=st.permutations(range(6)),
    used=st.dictionaries(st.sampled_from(PODS), amounts),
    leaving=st.sets(st.sampled_from(range(6)), max_size=3),
)
@settings(max_examples=25)
def test_the_order_of_events_between_two_refreshes_does_not_matter(
    order: list[int], used: Any, leaving: set[int]
) -> None:
    def world(turns: list[int], readings: list[LoadReading]) -> tuple[Any, ...]:
        cluster = Cluster()
        for name in NODES[:3]:
            cluster.set_node(a_node(name, cpu="8", memory="16Gi"))
        keeper = LoadKeeper(cluster, LoadSettings(dead_band=0.0))
        for number in range(3):
            cluster.place(cluster.templates.info(pod_of(PODS[number], OWNERS[0])), NODES[0])
        observed(keeper, 1_000.0, {name: (number * MILLI, MIB) for number, name in enumerate(PODS[:3])})
        for number in turns:
            pod = pod_of(PODS[number], OWNERS[0])
            if number in leaving:
                cluster.displace(pod.uid)
            elif number >= 3:
                cluster.place(cluster.templates.info(pod), NODES[number % 3])
        keeper.observe(1_060.0, pods=LoadReadings.of(readings))
        return contents(cluster)

    readings = [LoadReading(f"default/{name}", each[0], each[1], 1_060.0) for name, each in used.items()]
    turned = [readings[each % len(readings)] for each in order] if readings else []
    straight = world(list(range(6)), [*readings, *turned])
    assert world(order, [*turned, *reversed(readings)]) == straight


def test_a_node_without_load_is_measured() -> None:
    cluster = Cluster()
    cluster.set_node(a_node("n1", cpu="8", memory="16Gi"))
    keeper = LoadKeeper(cluster)
    observed(keeper, 1_000.0, {}, {"n1": (1_000 * MILLI, 0)})
    assert keeper.book.states[0] == keeper.book.state(0) == LoadState.MEASURED


def test_a_pod_that_was_placed_a_second_ago_counts() -> None:
    cluster = Cluster()
    cluster.set_node(a_node("n1", cpu="8", memory="16Gi"))
    keeper = LoadKeeper(cluster)
    observed(keeper, 1_000.0, {}, {"n1": (1_000 * MILLI, 2**30)})
    assert keeper.book.load[0].tolist() == [1_000 * MILLI, 2**30]
    assert keeper.book.state(0) is LoadState.MEASURED
    cluster.place(cluster.templates.info(pod_of("p1", cpu=1_000)), "n1")
    assert keeper.book.load[0].tolist() == [1_850 * MILLI, 2**30 + 512 * MIB * 70 // 100]
    assert keeper.book.state(0) is LoadState.ESTIMATED


def test_nodes_alone_are_measured() -> None:
    """Its smoothed reading, with what came, without what left: pods that were in it are not counted twice."""
    cluster = Cluster()
    cluster.set_node(a_node("n1", cpu="8", memory="16Gi"))
    keeper = LoadKeeper(cluster)
    cluster.place(cluster.templates.info(pod_of("p1", cpu=1_000)), "n1")
    keeper.observe(1_000.0)
    for now in (1_060.0, 1_120.0):
        observed(keeper, now, {}, {"n1": (3_000 * MILLI, 2**30)})
        assert keeper.book.load[0, 0] == 3_000 * MILLI
    cluster.place(cluster.templates.info(pod_of("p2", cpu=2_000)), "n1")
    assert keeper.book.load[0, 0] == 4_700 * MILLI
    cluster.displace("p1--1000")
    assert keeper.book.load[0, 0] == 3_850 * MILLI


def test_a_pod_that_leaves_a_node_read_only_once_takes_its_use_along() -> None:
    """Pods are read in each run, nodes every 15 s; else the node stays hot and loses more pods."""
    cluster = Cluster()
    cluster.set_node(a_node("n1", cpu="4", memory="16Gi"))
    for name in ("a", "b"):
        cluster.place(cluster.templates.info(pod_of(name)), "n1")
    keeper = LoadKeeper(cluster)
    used = {"a": (1_000 * MILLI, 100 * MIB), "b": (600 * MILLI, 100 * MIB)}
    observed(keeper, 1_000.0, {}, {"n1": (1_700 * MILLI, 300 * MIB)})
    observed(keeper, 1_001.0, used)
    assert keeper.book.load_on(0)[0] == 1_700 * MILLI

    cluster.displace(pod_of("a").metadata.uid)
    observed(keeper, 1_002.0, {"b": used["b"]})

    assert keeper.book.load_on(0)[0] == 700 * MILLI


def test_a_new_node_that_gets_a_burst_is_not_taken_for_idle() -> None:
    """Its first reading is from before the pods ran; what they will use counts all the same."""
    cluster = Cluster()
    cluster.set_node(a_node("n1", cpu="32", memory="64Gi"))
    keeper = LoadKeeper(cluster)
    keeper.observe(1_000.0)
    for number in range(20):
        cluster.place(cluster.templates.info(pod_of(f"p{number}", cpu=1_000)), "n1")
    observed(keeper, 1_015.0, {}, {"n1": (100 * MILLI, 2**20)})
    assert keeper.book.load[0, 0] == (20 * 850 + 100) * MILLI


def measured_until(nodes: int) -> tuple[Cluster, LoadKeeper, PodInfo]:
    """A cluster of so many nodes, and a pod on the first that was measured until 1,800 s."""
    cluster = Cluster()
    for name in NODES[:nodes]:
        cluster.set_node(a_node(name, cpu="8", memory="16Gi"))
    keeper = LoadKeeper(cluster)
    old = cluster.templates.info(pod_of("p1", OWNERS[0]))
    cluster.place(old, "n1")
    for now in (1_000.0, 1_400.0, 1_800.0):
        observed(keeper, now, {"p1": (2_500 * MILLI, 700 * MIB)})
    return cluster, keeper, old


def test_a_replacement_starts_from_its_predecessor() -> None:
    cluster, keeper, old = measured_until(nodes=2)
    assert keeper.book.of(old).is_measured
    cluster.displace(old.uid)
    new = cluster.templates.info(a_pod("p9", owner=OWNERS[0], cpu="500m", memory="512Mi"))
    assert keeper.book.prior(new.template)[:2] == (2_500 * MILLI, 700 * MIB)
    assert keeper.book.prior(new.template).basis is Basis.PREDECESSOR
    cluster.place(new, "n2")
    keeper.observe(1_815.0)
    assert keeper.book.load[:2, 0].tolist() == [0, 2_500 * MILLI]
    keeper.observe(1_800.0 + 601.0)
    assert keeper.book.prior(new.template).basis is Basis.REQUEST


@pytest.mark.parametrize("is_gone", [False, True])
@given(
    owners=st.lists(st.sampled_from(OWNERS), min_size=8, max_size=8),
    read=st.dictionaries(st.sampled_from(PODS[:6]), amounts, min_size=1),
)
def test_a_pod_counts_like_the_one_whose_place_it_takes(
    is_gone: bool, owners: list[str], read: dict[str, tuple[int, int]]
) -> None:
    """If that was read and it was not, in a fork; and what was counted is what leaves with it."""
    cluster = Cluster()
    for name in NODES[:2]:
        cluster.set_node(a_node(name, cpu="8", memory="16Gi"))
    keeper = LoadKeeper(cluster)
    infos = [cluster.templates.info(pod_of(name, owner)) for name, owner in zip(PODS, owners, strict=True)]
    for number, pod in enumerate(infos[:6]):
        cluster.place(pod, NODES[number % 2])
    observed(keeper, 1_000.0, read)
    for number, pod in enumerate(infos[6:]):  # the keeper has not seen these yet
        cluster.place(pod, NODES[number % 2])
    before = contents(cluster)
    for moved in infos[:6]:
        twin = cluster.fork()
        book, used = twin.index(LoadBook), twin.index(LoadBook).of(moved)
        if is_gone:
            twin.displace(moved.uid)
        for pod, row in [*twin.placed()]:
            known, is_heir = book.of(pod), not is_gone or key_of(pod) == key_of(moved)
            counts = used.is_measured and not known.is_measured and is_heir
            assert book.hand_on(moved.uid, pod, row) is counts
            assert book.of(pod) == (used._replace(basis=Basis.MOVED) if counts else known)
        assert (recounted(twin) == book.sums[: len(twin)]).all()
        for uid in list(twin.pods):
            twin.displace(uid)
        assert not book.sums.any()
        assert all(book.share(pod.uid) is None for pod in infos)
    assert contents(cluster) == before


@pytest.mark.parametrize(("late_s", "basis"), [(15.0, Basis.MEASURED), (400.0, Basis.STALE)])
def test_a_pod_hands_on_what_is_known_of_it_however_old(late_s: float, basis: Basis) -> None:
    """Its replacement starts from that, not from its requests."""
    cluster, keeper, old = measured_until(nodes=3)
    keeper.observe(1_800.0 + late_s)
    assert keeper.book.of(old).basis is basis
    cluster.displace(old.uid)
    new = cluster.templates.info(a_pod("p9", owner=OWNERS[0], cpu="500m", memory="512Mi"))

    assert keeper.book.prior(new.template).basis is Basis.PREDECESSOR
    cluster.place(new, "n2")
    assert keeper.book.of(new).cpu == 2_500 * MILLI


def test_the_history_of_a_workload_says_what_its_next_pod_uses() -> None:
    cluster = Cluster()
    cluster.set_node(a_node("n1", cpu="8", memory="16Gi"))
    keeper = LoadKeeper(cluster)
    old = cluster.templates.info(pod_of("p1", OWNERS[0]))
    cluster.place(old, "n1")
    for minute in range(40):
        observed(keeper, 60.0 * minute, {"p1": ((1_000 + minute % 2 * 1_000) * MILLI, 300 * MIB)})
    prior = keeper.book.prior(old.template)
    assert prior.basis is Basis.WORKLOAD
    assert prior.cpu == pytest.approx(1_500 * MILLI, rel=0.05)
    assert prior.memory == pytest.approx(300 * MIB, rel=0.01)
    assert 2_000 * MILLI <= prior.peak_cpu < 2_700 * MILLI
    without = LoadKeeper(cluster.fork(), LoadSettings(uses_history=False))
    assert without.book.prior(old.template).basis is Basis.REQUEST


@pytest.mark.parametrize("full", [0, 1])
def test_a_saturated_node_hides_what_its_pods_want(full: int) -> None:
    """Above nine tenths of its cpu a pod is expected to use what its workload seldom exceeds."""
    cluster = Cluster()
    for number in range(2):
        cluster.set_node(a_node(NODES[number], cpu="8", memory="16Gi"))
        cluster.place(cluster.templates.info(pod_of(PODS[number], OWNERS[number])), NODES[number])
    keeper = LoadKeeper(cluster)
    uses = [4_000 * MILLI, 4_000 * MILLI]
    uses[full] = 7_900 * MILLI
    for minute in range(40):
        cpu = (1_000 + (minute % 10 == 0) * 1_000) * MILLI
        nodes = {NODES[number]: (uses[number], 2**30) for number in range(2)}
        observed(keeper, 60.0 * minute, {PODS[number]: (cpu, 300 * MIB) for number in range(2)}, nodes)

    expected = [keeper.book.of(cluster.pods[pod_of(PODS[n], OWNERS[n]).uid]).cpu for n in range(2)]
    assert expected[full] == pytest.approx(2_000 * MILLI, rel=0.05)
    assert expected[1 - full] == pytest.approx(1_100 * MILLI, rel=0.1)


def test_a_name_that_is_used_again_starts_afresh() -> None:
    """A reading of the pod that had the name before, which comes late, is not the new one's."""
    cluster = Cluster()
    cluster.set_node(a_node("n1", cpu="8", memory="16Gi"))
    keeper = LoadKeeper(cluster)
    cluster.place(cluster.templates.info(a_pod("db-0", uid="old", cpu="1")), "n1")
    for now in (1_000.0, 1_060.0, 1_120.0):
        observed(keeper, now, {"db-0": (3_000 * MILLI, MIB)})
    cluster.displace("old")
    new = cluster.templates.info(a_pod("db-0", uid="new", cpu="1"))
    cluster.place(new, "n1")
    keeper.observe(1_150.0)
    late = LoadReading("default/db-0", 4_000 * MILLI, MIB, 1_149.0)
    keeper.observe(1_155.0, pods=LoadReadings.of([late]))
    assert not keeper.book.of(new).is_measured
    observed(keeper, 1_180.0, {"db-0": (500 * MILLI, MIB)})
    assert keeper.book.of(new).is_measured
    assert keeper.book.of(new).cpu == 850 * MILLI  # it is young: not less than its prior


def test_readings_grow_old() -> None:
    cluster = Cluster()
    cluster.set_node(a_node("n1", cpu="8", memory="16Gi"))
    keeper = LoadKeeper(cluster)
    cluster.place(cluster.templates.info(pod_of("p1", OWNERS[0])), "n1")
    assert keeper.book.state(0) is LoadState.UNKNOWN
    for now in (1_000.0, 1_015.0, 1_030.0):
        observed(keeper, now, {"p1": (MILLI, MIB)}, {"n1": (3_000 * MILLI, 2**30)})
    assert keeper.book.state(0) is LoadState.MEASURED
    keeper.observe(1_030.0 + 61.0)
    assert keeper.book.state(0) is LoadState.STALE
    assert keeper.book.load[0, 0] >= 2_999 * MILLI
    observed(keeper, 1_100.0, {}, {"n1": (3_000 * MILLI, 2**30)})
    assert keeper.book.state(0) is LoadState.ESTIMATED


def test_a_new_node_does_not_inherit_the_row_of_one_that_is_gone() -> None:
    cluster = Cluster()
    for name in NODES[:2]:
        cluster.set_node(a_node(name, cpu="8", memory="16Gi"))
    keeper = LoadKeeper(cluster)
    observed(keeper, 1_000.0, {}, {"n1": (MILLI, MIB), "n2": (7_000 * MILLI, 2**30)})
    cluster.remove_node("n2")
    cluster.set_node(a_node("n3", cpu="8", memory="16Gi"))
    assert keeper.book.state(cluster.rows["n3"]) is LoadState.UNKNOWN
    assert keeper.book.load[cluster.rows["n3"]].tolist() == [0, 0]


@pytest.mark.parametrize(
    "hostile",
    [
        LoadReading("n1", -1.0, 1.0, 1_015.0),
        LoadReading("n1", float("nan"), 1.0, 1_015.0),
        LoadReading("n1", 1e300, 1.0, 1_015.0),
        LoadReading("n1", 1.0, float("inf"), 1_015.0),
        LoadReading("n1", 1.0, 1.0, 1e12),
        LoadReading("n1", 1.0, 1.0, float("nan")),
        LoadReading("nobody", 1.0, 1.0, 1_015.0),
    ],
)
def test_hostile_readings_change_nothing(hostile: LoadReading) -> None:
    cluster = Cluster()
    cluster.set_node(a_node("n1", cpu="8", memory="16Gi"))
    keeper = LoadKeeper(cluster)
    observed(keeper, 1_000.0, {}, {"n1": (1_000 * MILLI, 2**30)})
    before = contents(cluster)
    keeper.observe(1_015.0, nodes=LoadReadings.of([hostile]), pods=LoadReadings.of([hostile]))
    assert contents(cluster) == before


def test_small_changes_note_no_row() -> None:
    """A row that has not changed by a hundredth of its room keeps its numbers, and all scores by them."""
    cluster = Cluster()
    for name in NODES[:2]:
        cluster.set_node(a_node(name, cpu="8", memory="16Gi"))
    keeper = LoadKeeper(cluster)
    observed(keeper, 1_000.0, {}, {"n1": (1_000 * MILLI, 2**30), "n2": (1_000 * MILLI, 2**30)})
    tick = cluster.tick
    observed(keeper, 5_000.0, {}, {"n1": (1_079 * MILLI, 2**30), "n2": (1_081 * MILLI, 2**30)})
    assert cluster.changed_since(tick).tolist() == [cluster.rows["n2"]]  # type: ignore[union-attr]
    assert keeper.book.load[:2, 0].tolist()[0] == 1_000 * MILLI
    room = cluster.allocatable[:2, :2] * PER_COLUMN_UNIT
    assert (keeper.book.sums[:2, EXPECTED] <= room).all()


def test_a_pod_that_has_hardly_changed_keeps_its_share() -> None:
    """What was added is what is subtracted, also where a refresh leaves a node alone."""
    cluster = Cluster()
    cluster.set_node(a_node("n1", cpu="8", memory="16Gi"))
    keeper = LoadKeeper(cluster)
    cluster.place(cluster.templates.info(pod_of("p1", OWNERS[0], cpu=0)), "n1")
    for now, cpu in ((1_000.0, 1_000), (1_150.0, 1_000), (1_350.0, 1_000), (1_950.0, 1_010)):
        observed(keeper, now, {"p1": (cpu * MILLI, 300 * MIB)})
        assert (recounted(cluster) == keeper.book.sums[:1]).all()
    assert keeper.book.load_on(0)[0] == 1_000 * MILLI
    for uid in list(cluster.pods):
        cluster.displace(uid)
    assert not keeper.book.sums.any()


def test_what_pods_came_with_is_theirs_when_they_settle() -> None:
    """Also of one that takes the place of a pod that left."""
    cluster = Cluster()
    cluster.set_node(a_node("n1", cpu="8", memory="16Gi"))
    book = cluster.index(LoadBook)
    for name, cpu in (("a", 500), ("b", 900)):
        cluster.place(cluster.templates.info(pod_of(name, cpu=cpu)), "n1")
    book.settle()
    cluster.displace(pod_of("a").metadata.uid)
    cluster.place(cluster.templates.info(pod_of("c", cpu=100)), "n1")
    known = {uid: columns_of(book.of(pod)) for uid, pod in cluster.pods.items()}
    book.settle()

    shares = book.shares
    assert {uid: shares.columns[place].tolist() for uid, place in shares.places.items()} == {
        uid: list(columns) for uid, columns in known.items()
    }


@given(st.permutations(["a", "b", "c", "d"]), st.lists(st.integers(1, 7), min_size=2, max_size=4))
def test_equal_readings_say_the_same_of_each_node(order: list[str], cores: list[int]) -> None:
    """Whichever node was read first, and though others are not read at all."""
    cluster = Cluster()
    for name in ("z", *NODES[:1], *"abcd"):
        cluster.set_node(a_node(name, cpu="8", memory="16Gi"))
    keeper = LoadKeeper(cluster)
    for turn, amount in enumerate(cores):
        readings = dict.fromkeys(order, (amount * 1000 * MILLI, amount * 2**30))
        observed(keeper, 1_000.0 + 60 * turn, {}, readings)
    rows = [cluster.rows[name] for name in "abcd"]

    book = keeper.book
    for column in (book.load, book.peak_load, book.course, book.read_at, book.system, book.states):
        assert len({str(each) for each in column[rows].tolist()}) == 1
    assert len({book.load_on(row) for row in rows}) == 1
    unread = [cluster.rows[name] for name in ("z", NODES[0])]
    assert not book.course[unread].any()
    assert {book.states[row] for row in unread} == {LoadState.UNKNOWN}
