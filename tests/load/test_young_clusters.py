"""A node whose first reading has pods that started just before: they count once."""

from datetime import UTC, datetime

import pytest

from plimsoll.load.readings import LoadReading, LoadReadings
from plimsoll.model.columns.cluster import Cluster
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.usage.load_keeper import LoadKeeper

CORE, GIB = 10**9, 2**30

START, WINDOW_S = 1_000.0, 15.0


def a_keeper(pods: int) -> LoadKeeper:
    """A node of ten cores with pods that started at the same time."""
    cluster = Cluster()
    cluster.set_node(a_node("n0", cpu="10", memory="64Gi"))
    started = {"phase": "Running", "startTime": datetime.fromtimestamp(START, UTC)}
    for number in range(pods):
        pod = a_pod(f"p{number}", owner=f"StatefulSet/w{number}", cpu="1", memory="1Gi", status=started)
        cluster.place(cluster.templates.info(pod), "n0")
    return LoadKeeper(cluster)


def read(keeper: LoadKeeper, at: float, *, node: float, pod: float | None) -> float:
    """The node's load in cores after readings of that moment; ``pod`` is what each of its pods uses."""
    nodes = [LoadReading("n0", round(node * CORE), GIB, at, WINDOW_S)]
    pods = [
        LoadReading(each.key, round(pod * CORE), GIB // 10, at, WINDOW_S)
        for each, _ in keeper.cluster.placed()
        if pod is not None
    ]
    keeper.observe(at, nodes=LoadReadings.of(nodes), pods=LoadReadings.of(pods))
    return keeper.book.load_on(0)[0] / CORE


@pytest.mark.parametrize("first_pods", [10.0, 25.0, 40.0])
def test_pods_of_the_first_reading_count_once_as_soon_as_they_are_measured(first_pods: float) -> None:
    """8 cores are used, half a core by the node itself; pods' first windows begin before they do."""
    keeper = a_keeper(10)
    for later in (10.0, 25.0, 40.0, 55.0):
        found = read(keeper, START + later, node=8.5, pod=0.8 if later >= first_pods else None)
    assert found == pytest.approx(8.5 + 10 * 0.05, abs=0.6)  # young pods count by their requests


def test_what_the_node_itself_uses_is_smoothed_again_afterwards() -> None:
    keeper = a_keeper(4)
    for later in range(10, 400, 15):
        before = read(keeper, START + later, node=4.0, pod=0.8)
    assert before == pytest.approx(4.0, abs=0.1)
    once = read(keeper, START + 415, node=6.0, pod=0.8)
    assert once == pytest.approx(4.0, abs=0.15)


def test_a_node_where_pods_keep_coming_does_not_wait_for_ever() -> None:
    """After ten minutes differences are smoothed, whether some pod has just come or not."""
    keeper = a_keeper(1)
    cluster = keeper.cluster
    for turn, later in enumerate(range(10, 2_000, 15)):
        at = START + later
        started = {"phase": "Running", "startTime": datetime.fromtimestamp(at - 5, UTC)}
        young = a_pod(f"y{turn}", owner="StatefulSet/y", cpu="10m", memory="1Mi", status=started)
        cluster.place(cluster.templates.info(young), "n0")
        found = read(keeper, at, node=3.0 if later < 900 else 6.0, pod=0.0)
    assert found > 4.0
