"""Moves by load: measured on both sides, to nodes that stay cool, and never there and back."""

from typing import Any, ClassVar

import hypothesis.strategies as st
import numpy as np
from hypothesis import assume, given, settings

from engine.toys import ALL, Crowd
from planning.builders import SURROUNDINGS, a_rebalancing
from plimsoll.engine.profile import Enabled, Profile, ProfileConfig, build_profile
from plimsoll.framework import Declares, Reads, Registry
from plimsoll.load.load_book import LoadBook
from plimsoll.load.readings import LoadReading, LoadReadings
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.limits import NO_CEILING, Limits
from plimsoll.planning.moves import EvictionPlan, PlanningContext
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.rebalancing.runs.load_conditions import two_yardsticks
from plimsoll.strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.descheduling.fewest_moves import BAND
from plimsoll.usage.load_keeper import LoadKeeper

MILLI, GIB = 10**6, 2**30
FREE = Limits(per_workload=NO_CEILING)
HIGH = 60


def by_load(low: int = 40, high: int = HIGH) -> LowNodeUtilization:
    return LowNodeUtilization(
        LowNodeUtilizationArgs.model_validate(
            {
                "thresholds": {"cpu": low},
                "targetThresholds": {"cpu": high},
                "metricsUtilization": {"source": "KubernetesMetrics"},
            }
        )
    )


def a_world(*nodes: list[int], memory: str = "64Gi", cpu: str = "10m") -> tuple[Cluster, LoadKeeper]:
    """Nodes of ten cores, with pods that use so many thousandths of a core, and hardly request any."""
    cluster = Cluster()
    for number, pods in enumerate(nodes):
        cluster.set_node(a_node(f"n{number}", cpu="10", memory=memory))
        for each, _ in enumerate(pods):
            pod = a_pod(f"p{number}-{each}", owner=f"StatefulSet/w{number}-{each}", cpu=cpu, memory="1Mi")
            cluster.place(cluster.templates.info(pod), f"n{number}")
    return cluster, LoadKeeper(cluster)


def measured(
    keeper: LoadKeeper, now: float, used: dict[str, int], without: frozenset[str] = frozenset()
) -> None:
    """All pods and nodes are read; what pods use, by their names, is the cpu of their nodes."""
    cluster = keeper.cluster
    nodes = dict.fromkeys((node.name for node in cluster.nodes), 0)
    pods = []
    for pod, row in cluster.placed():
        nodes[cluster.nodes[row].name] += used[pod.name]
        if pod.name not in without:
            pods.append(LoadReading(pod.key, used[pod.name] * MILLI, GIB, now))
    keeper.observe(
        now,
        nodes=LoadReadings.of(
            LoadReading(name, cpu * MILLI, 2 * GIB, now) for name, cpu in nodes.items() if name not in without
        ),
        pods=LoadReadings.of(pods),
    )


def settle(keeper: LoadKeeper, used: dict[str, int], start: float = 1_000.0, **kwargs: Any) -> float:
    """So many readings that all is known."""
    for now in (start, start + 150.0, start + 300.0):
        measured(keeper, now, used, **kwargs)
    return start + 300.0


def uses(*nodes: list[int]) -> dict[str, int]:
    return {f"p{number}-{each}": cpu for number, pods in enumerate(nodes) for each, cpu in enumerate(pods)}


class LikesLoad(Crowd):
    """Says that it reads the load book."""

    name: ClassVar = "LikesLoad"
    declares: ClassVar = Declares(reads=Reads.ROW, reads_load=True)

    def score(self, state: Any, pod: Any, snapshot: Any) -> Any:
        return np.zeros(len(snapshot), dtype=np.int32)


def placing_by_load() -> Profile:
    plugins: Any = (*ALL, LikesLoad)
    defaults = [Enabled(name) for name in ("Fifo", "Room", "Binds", "LikesLoad")]
    return build_profile(ProfileConfig("default-scheduler"), Registry(plugins), defaults)


def planned(
    cluster: Cluster, *strategies: Any, around: PlanningContext = SURROUNDINGS, **kwargs: Any
) -> EvictionPlan:
    profiles = kwargs.pop("profiles", {"default-scheduler": placing_by_load()})
    wanted = a_rebalancing(*(strategies or (by_load(),)), profiles=profiles, limits=FREE, **kwargs)
    return plan(wanted, cluster, around)


def reasons(found: EvictionPlan) -> set[str]:
    return {each.refusal.reason for each in found.refused}


def test_pods_leave_a_node_that_uses_too_much_whatever_they_request() -> None:
    nodes = ([2_000] * 4, [100])
    cluster, keeper = a_world(*nodes)
    settle(keeper, uses(*nodes))
    found = planned(cluster)
    assert [(move.source, move.target) for move in found.moves] == [("n0", "n1")]


def test_a_target_stays_below_the_line_by_the_band() -> None:
    """A move would leave both nodes below the line, but the target nearer to it than the band."""
    nodes = ([2_000, 2_000, 2_000, 90, 90], [3_800])
    cluster, keeper = a_world(*nodes)
    settle(keeper, uses(*nodes))
    found = planned(cluster)
    refused = {each.pod.name: each.refusal.reason for each in found.refused}
    assert {move.pod.name for move in found.moves} == {"p0-3"}
    assert refused["p0-0"] == "TargetTooHot"


def test_memory_counts_at_the_target_even_if_cpu_triggers() -> None:
    nodes = ([2_000] * 4, [100])
    cluster, keeper = a_world(*nodes, memory="3Gi")
    settle(keeper, uses(*nodes))
    found = planned(cluster)
    assert not found.moves
    assert {each.refusal.reason for each in found.refused} == {"TargetTooHot"}
    assert "memory" in found.refused[0].refusal.message


def test_a_pod_that_is_not_measured_stays() -> None:
    nodes = ([2_000] * 4, [100])
    cluster, keeper = a_world(*nodes)
    settle(keeper, uses(*nodes), without=frozenset({"p0-0", "p0-1", "p0-2", "p0-3"}))
    assert not planned(cluster).moves


def test_nodes_of_which_some_pods_are_not_measured_neither_give_nor_get() -> None:
    nodes = ([2_000] * 4, [100, 100])
    for without in ("p0-0", "p1-0"):
        cluster, keeper = a_world(*nodes, cpu="2")
        settle(keeper, uses(*nodes), without=frozenset({without}))
        found = planned(cluster)
        assert not found.moves
        assert {each.refusal.reason for each in found.refused} == {"NotMeasured"}


def test_a_node_that_is_silent_is_left_out() -> None:
    nodes = ([2_000] * 4, [100], [50])
    cluster, keeper = a_world(*nodes)
    used = uses(*nodes)
    now = settle(keeper, used)
    for later in range(15, 400, 15):
        measured(keeper, now + later, used, frozenset({"n2", "p2-0"}))
    assert [move.target for move in planned(cluster).moves] == ["n1"]


def test_two_yardsticks_degrade() -> None:
    cluster, _ = a_world([100])
    rebalancing = a_rebalancing(by_load())
    assert "LowNodeUtilization moves pods by what nodes use" in two_yardsticks(rebalancing, cluster)
    assert two_yardsticks(a_rebalancing(), cluster) == ""
    profiles = {"default-scheduler": placing_by_load()}
    assert two_yardsticks(a_rebalancing(by_load(), profiles=profiles), cluster) == ""
    assert two_yardsticks(rebalancing, Cluster()) == ""


loads = st.lists(st.lists(st.integers(50, 3_000), min_size=0, max_size=6), min_size=2, max_size=5)


@given(
    nodes=loads,
    high=st.integers(30, 80),
    noise=st.lists(st.floats(-0.49, 0.49), min_size=5, max_size=5),
)
@settings(max_examples=20, deadline=None)
def test_moves_by_load_are_not_undone(nodes: list[list[int]], high: int, noise: list[float]) -> None:
    """While the load of each node drifts by less than the band, no pod goes back to where it came from.

    Whatever was planned is made, and the pods use what they used; then nodes use somewhat more or less.
    """
    assume(any(sum(pods) > 100 * high for pods in nodes))
    strategy = by_load(max(high - 20, 0), high)
    cluster, keeper = a_world(*nodes)
    used = uses(*nodes)
    now = settle(keeper, used)
    came_from: dict[str, str] = {}
    for turn in range(3):
        found = planned(cluster, strategy)
        for move in found.moves:
            assert came_from.get(move.pod.name) != move.target, "a move was undone"
            came_from[move.pod.name] = move.source
            cluster.displace(move.pod.uid)
            twin = a_pod(
                move.pod.name, uid=f"{move.pod.name}-{turn}", cpu="10m", memory="1Mi", owner=owner(move.pod)
            )
            cluster.place(cluster.templates.info(twin), move.target)
        now = settle(keeper, used, now + 15.0)
        # The drift: half a band at most, of what is there, spread over the node's pods.
        for row, node in enumerate(cluster.nodes):
            pods = list(cluster.pods_on(row))
            drift = noise[(row + turn) % 5] * BAND / 2 * 100
            for pod in pods:
                used[pod.name] = max(round(used[pod.name] + drift / len(pods)), 1)
            assert node.name
        now = settle(keeper, used, now + 6_000.0)


def owner(pod: Any) -> str:
    controller = pod.pod.metadata.controller
    return f"{controller.kind}/{controller.name}"


def test_forks_of_plans_leave_the_book_alone() -> None:
    nodes = ([2_000] * 4, [100])
    cluster, keeper = a_world(*nodes)
    settle(keeper, uses(*nodes))
    before = cluster.index(LoadBook).load.tolist(), cluster.index(LoadBook).states.tolist()
    assert planned(cluster).moves
    assert before == (cluster.index(LoadBook).load.tolist(), cluster.index(LoadBook).states.tolist())
