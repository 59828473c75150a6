"""Memory of load against plain dictionaries: in forks, for things made again, and without room."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from plimsoll.load.expectations import Basis, expectation
from plimsoll.load.load_book import LoadBook
from plimsoll.load.load_change import change_of
from plimsoll.load.predecessors import Predecessors
from plimsoll.load.readings import LoadReading, LoadReadings
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.usage.smoothed_readings import SmoothedReadings

WORKLOADS, UIDS = st.sampled_from(["w1", "w2"]), st.sampled_from(["a", "b", "c"])


class PredecessorsMachine(RuleBasedStateMachine):
    """Pods leave and come back in the cluster and in forks of it; no side sees what another does."""

    def __init__(self) -> None:
        super().__init__()
        self.sides = [Predecessors()]
        self.models: list[dict[tuple[str, str], float]] = [{}]
        self.now = 0.0

    def _side(self, number: int) -> int:
        return number % len(self.sides)

    @rule(number=st.integers(0, 3))
    def fork(self, number: int) -> None:
        if len(self.sides) < 4:
            side = self._side(number)
            self.sides.append(self.sides[side].fork())
            self.models.append(dict(self.models[side]))

    @rule(number=st.integers(0, 3), workload=WORKLOADS, uid=UIDS)
    def leaves(self, number: int, workload: str, uid: str) -> None:
        self.now += 1.0
        used = expectation([round(self.now)] * 6, Basis.MEASURED)
        self.sides[self._side(number)].left(workload, uid, used, self.now)
        self.models[self._side(number)][workload, uid] = self.now

    @rule(number=st.integers(0, 3), workload=WORKLOADS, uid=UIDS)
    def is_back(self, number: int, workload: str, uid: str) -> None:
        used = self.sides[self._side(number)].is_back(workload, uid)
        known = self.models[self._side(number)].pop((workload, uid), None)
        assert (None if used is None else used[0]) == known

    @rule(number=st.integers(0, 3), age=st.integers(0, 4))
    def forget(self, number: int, age: int) -> None:
        before = self.now - age
        self.sides[self._side(number)].forget(before)
        model = self.models[self._side(number)]
        for key in [key for key, at in model.items() if at < before]:
            del model[key]

    @invariant()
    def each_side_knows_its_own(self) -> None:
        for side, model in zip(self.sides, self.models, strict=True):
            found = {
                (workload, uid): at
                for workload, pods in side.by_workload.items()
                for uid, (_, at) in pods.items()
            }
            assert found == model
            for workload in ("w1", "w2"):
                largest = max((at for (name, _), at in model.items() if name == workload), default=None)
                used = side.of(workload)
                assert (None if used is None else used[0]) == largest
                assert side.one(workload, "never there") is None


PredecessorsMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=20)
test_predecessors = PredecessorsMachine.TestCase


def test_a_thing_made_again_begins_with_its_first_reading() -> None:
    """What began before that reading is the same thing, and keeps what is known of it."""
    levels = SmoothedReadings(60.0)
    for at in (100.0, 115.0, 130.0):
        levels.add(LoadReadings.of([LoadReading("a", 10, 10, at, 15.0)]))
    place = levels.places["a"]
    levels.restart(place, 120.0)
    assert levels.first[place] == 130.0
    levels.begin(place, 110.0)
    assert levels.since[place] == 120.0
    levels.begin(place, 125.0)
    assert levels.since[place] == 125.0


def test_a_resource_that_a_node_lacks_changes_by_no_share() -> None:
    """Of the source or of the target; the other resource is said."""
    nodes = [
        a_node("n0", cpu="4", memory="4Gi"),
        a_node("n1", cpu="0", memory="4Gi"),
        a_node("n2", memory="0"),
    ]
    for source, target, known in (
        ("n0", "n1", {"memory"}),
        ("n1", "n0", {"memory"}),
        ("n0", "n2", {"cpu"}),
        ("n2", "n0", {"cpu"}),
        ("n1", "n2", set()),
    ):
        cluster = a_cluster(nodes, [a_pod("p", node=source, cpu="1", memory="1Gi")])
        pod = cluster.templates.info(a_pod("p", node=source, cpu="1", memory="1Gi"))
        found = change_of(cluster, cluster.index(LoadBook), pod, target)
        assert found is not None
        assert found.resources.keys() == known
        assert change_of(cluster, cluster.index(LoadBook), pod, source) is None


@pytest.mark.parametrize(("taken", "counts"), [(134.0, False), (135.0, True), (136.0, True)])
def test_a_reading_counts_if_its_window_began_with_the_thing(taken: float, counts: bool) -> None:
    """Since 120 s there is another thing of this name; a window of 15 s that ends at 135 s is its own."""
    levels = SmoothedReadings(60.0)
    levels.add(LoadReadings.of([LoadReading("a", 10, 10, 100.0, 15.0)]))
    levels.restart(levels.places["a"], 120.0)

    assert len(levels.add(LoadReadings.of([LoadReading("a", 10, 10, taken, 15.0)]))) == counts


@pytest.mark.parametrize("kept", [set(), {"a"}, {"a", "b"}, {"a", "b", "c"}])
def test_readings_that_are_kept_stay_however_old(kept: set[str]) -> None:
    """The others go, each with its own numbers."""
    levels = SmoothedReadings(60.0)
    names = ["a", "b", "c", "d", "e", "young"]
    times = {name: 900.0 if name == "young" else 100.0 for name in names}
    readings = [LoadReading(name, at, at, times[name], 15.0) for at, name in enumerate(names)]
    levels.add(LoadReadings.of(readings))

    levels.forget(500.0, kept)

    stay = [name for name in names if name in kept or name == "young"]
    assert [*levels.places] == stay
    for name in stay:
        assert levels.level[levels.places[name]].tolist() == [names.index(name)] * 2
