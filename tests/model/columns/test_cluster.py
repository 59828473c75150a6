"""The columnar cluster: incremental state equals state rebuilt from scratch; forks are independent."""

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from plimsoll.model.columns.cluster import CPU, MEMORY, PODS, Cluster
from plimsoll.model.columns.columns import PodIndex, RowCounts
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.columns import validate
from plimsoll.testing.drawn_worlds import some_nodes, some_pod


class PodsByApp(PodIndex):
    """A pod index for these tests: how many pods of each app are on each node."""

    def __init__(self, _cluster: Any) -> None:
        self.counts = RowCounts()

    def add(self, pod: Any, row: int) -> None:
        self.counts.add(pod.labels.get("app"), row, 1)

    def remove(self, pod: Any, row: int) -> None:
        self.counts.add(pod.labels.get("app"), row, -1)

    def move_row(self, source: int, target: int) -> None:
        self.counts.move_row(source, target)

    def grow(self, capacity: int) -> None:
        """Counts by row need no room."""

    def fork(self) -> "PodsByApp":
        twin = object.__new__(PodsByApp)
        twin.counts = self.counts.fork()
        return twin

    def by_node(self, cluster: Any) -> dict[tuple[str, ...], int]:
        """App and node name to count, zeros left out."""
        return {
            (app, cluster.nodes[row].name): count
            for row in range(len(cluster))
            for app in {pod.labels.get("app") for pod in cluster.pods_on(row)}
            if (count := self.counts.rows(app).get(row, 0))
        }


def recounted(cluster: Cluster) -> Any:
    """What PodsByApp must say, counted afresh."""
    found: dict[Any, Any] = {}
    for pod, row in cluster.placed():
        key = (pod.labels.get("app"), cluster.nodes[row].name)
        found[key] = found.get(key, 0) + 1
    return found


def contents(cluster: Cluster) -> tuple[Any, ...]:
    """Everything a reader can see, as plain values."""
    n = len(cluster)
    return (
        [node.name for node in cluster.nodes],
        cluster.allocatable[:n].tolist(),
        cluster.requested[:n].tolist(),
        cluster.nonzero_requested[:n].tolist(),
        cluster.unschedulable[:n].tolist(),
        sorted((pod.key, row) for pod, row in cluster.placed()),
        sorted(cluster.pods),
        cluster.index(PodsByApp).by_node(cluster),
    )


class ClusterMachine(RuleBasedStateMachine):
    """Any sequence of events leaves the columns as a rebuild would make them."""

    names = st.sampled_from([f"n{number}" for number in range(8)])
    forks = Bundle("forks")

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(capacity=2)
        self.cluster.index(PodsByApp)
        self.cluster.label("disk")

    @rule(nodes=some_nodes())
    def set_nodes(self, nodes: Any) -> None:
        for node in nodes:
            self.cluster.set_node(node)

    @rule(name=names)
    def remove_node(self, name: str) -> None:
        self.cluster.remove_node(name)

    @rule(pod=st.integers(0, 6).flatmap(lambda number: some_pod(f"p{number}")), node=names)
    def place(self, pod: Any, node: str) -> None:
        self.cluster.place(self.cluster.templates.info(pod), node)

    @rule(number=st.integers(0, 6), namespace=st.sampled_from(["default", "other"]))
    def displace(self, number: int, namespace: str) -> None:
        self.cluster.displace(f"uid-{namespace}-p{number}")

    @rule(target=forks)
    def fork(self) -> tuple[Cluster, tuple[Any, ...]]:
        fork = self.cluster.fork()
        return fork, contents(fork)

    @rule(fork=consumes(forks))
    def the_fork_has_not_changed(self, fork: Any) -> None:
        twin, before = fork
        assert contents(twin) == before
        validate(twin)

    @rule(fork=consumes(forks), pod=some_pod("stranger"), node=names)
    def changing_a_fork_leaves_its_parent_alone(self, fork: Any, pod: Any, node: str) -> None:
        twin, _ = fork
        before = contents(self.cluster)

        twin.remove_node(node)
        twin.place(twin.templates.info(pod), "n0")
        twin.set_node(a_node("n9"))

        assert contents(self.cluster) == before
        validate(twin)

    @invariant()
    def columns_equal_a_rebuild(self) -> None:
        validate(self.cluster)
        assert self.cluster.index(PodsByApp).by_node(self.cluster) == recounted(self.cluster)


TestClusterMachine = ClusterMachine.TestCase
TestClusterMachine.settings = settings(stateful_step_count=25)


def test_the_log_names_the_rows_that_changed() -> None:
    """A reader evaluates what changed since it last looked, and nothing else."""
    cluster = a_cluster([a_node(f"n{number}") for number in range(4)])
    tick = cluster.tick

    cluster.place(cluster.templates.info(a_pod("a")), "n2")
    cluster.place(cluster.templates.info(a_pod("b")), "n1")

    assert cluster.changed_since(tick).tolist() == [1, 2]
    assert cluster.nodes_changed_since(np.array([1, 2]), tick).tolist() == []


def test_a_heartbeat_changes_nothing() -> None:
    """A node object that differs in what no decision reads touches no row."""
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    cluster = a_cluster([a_node("n", resourceVersion="1", status={"conditions": [ready]})])
    tick = cluster.tick

    later = {**ready, "lastHeartbeatTime": "2026-01-01T00:05:00Z"}
    changed = cluster.set_node(a_node("n", resourceVersion="2", status={"conditions": [later]}))

    assert not changed
    assert cluster.tick == tick


def test_a_pod_waits_for_its_node() -> None:
    """A pod on a node that is not known yet counts as soon as the node appears, and survives its loss."""
    cluster = Cluster()
    cluster.place(cluster.templates.info(a_pod("p", cpu="1")), "late")

    cluster.set_node(a_node("late"))
    assert cluster.requested[0, CPU] == 1000
    cluster.remove_node("late")
    cluster.set_node(a_node("late"))

    assert cluster.requested[0, [CPU, PODS]].tolist() == [1000, 1]


def test_what_is_displaced_is_returned_whether_or_not_its_node_is_known() -> None:
    """And nothing of a pod that is not placed."""
    cluster = a_cluster([a_node("known")])
    for node in ("known", "unknown"):
        placed = cluster.templates.info(a_pod(node, node=node))
        cluster.place(placed, node)

        assert cluster.displace(placed.uid) is placed
        assert cluster.displace(placed.uid) is None
    assert dict(cluster.strays) == {}


def test_an_unreadable_amount_of_a_node_is_ignored() -> None:
    """The others count."""
    cluster = a_cluster([a_node("n", cpu="4", memory="8Gi")])

    cluster.set_node(a_node("n", cpu="four", memory="8Gi"))

    assert cluster.allocatable[0, [CPU, MEMORY]].tolist() == [0, 8 * 2**30]


def test_absurd_requests_do_not_overflow() -> None:
    """Requests beyond int64 are held within it, and never read as free room."""
    cluster = a_cluster([a_node("n")])

    for number in range(20):
        cluster.place(cluster.templates.info(a_pod(f"p{number}", memory="9223372036854775807Ei")), "n")
    cluster.place(cluster.templates.info(a_pod("small", memory="1Gi")), "n")

    assert (cluster.requested[0] >= 0).all()
    assert cluster.requested[0, MEMORY] > cluster.allocatable[0, MEMORY]
    validate(cluster)
    for number in range(20):
        cluster.displace(f"uid-default-p{number}")
    assert cluster.requested[0, MEMORY] == 2**30


def test_absurd_requests_do_not_overflow_when_many_pods_are_placed_together() -> None:
    """With others that are not absurd; the sums are those of one after the other."""
    pods = [*(a_pod(f"p{n}", memory=f"{2**62}", node="n") for n in range(3)), a_pod("small", node="n")]
    cluster, other = a_cluster([a_node("n")]), a_cluster([a_node("n")])

    cluster.place_new([cluster.templates.info(pod) for pod in pods])
    for pod in pods:
        other.place(other.templates.info(pod), "n")

    assert cluster.requested.tolist() == other.requested.tolist()
    validate(cluster)


def test_windows_are_read_only() -> None:
    """What a plugin is shown cannot be written."""
    cluster = a_cluster([a_node("n")])
    from plimsoll.model.columns.snapshot import Snapshot  # noqa: PLC0415 - the one test of windows

    with pytest.raises(ValueError, match="read-only"):
        Snapshot(cluster).requested[0, CPU] = 1
