"""fit: it never over-commits, it names the obstacle, and pending pods come first."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspection.forked_states import a_state, a_workload, manifests, shares
from plimsoll.inspection.manifests.pod_defaults import ManifestError
from plimsoll.inspection.placement.fit import FitQuestion, fit
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.pod_group import PodGroup, PodGroupSpec
from plimsoll.model.kinds.workload import PriorityClass
from plimsoll.testing.builders import a_node, a_pod

FORECAST = (
    "no policy serves scheduler default-scheduler; where its pods go is a forecast with the default profile"
)
OLD = {"creationTimestamp": "2026-01-01T00:00:00Z"}


def fitted(state: Any, *documents: dict[str, Any], **question: Any) -> Any:
    """The answer."""
    return fit(state, manifests(state, *documents), FitQuestion(**question))


def test_all_pods_fit_and_their_nodes_are_named() -> None:
    """Three pods of one cpu on two nodes of two: two and one."""
    answer = fitted(a_state(a_node("n1", cpu="2"), a_node("n2", cpu="2")), a_workload(replicas=3))

    assert answer.fits
    assert sorted(shares(answer).values()) == [1, 2]
    assert answer.workloads[0].obstacle is None


def test_the_next_pod_is_stopped_by_plugins_in_kube_schedulers_words() -> None:
    """The message is that of the PodScheduled condition; the counts are by plugin."""
    nodes = a_node("n1", cpu="2"), a_node("n2", taints=["gpu:NoSchedule"])

    answer = fitted(a_state(*nodes), a_workload(replicas=3))

    obstacle = answer.workloads[0].obstacle
    assert not answer.fits
    assert answer.workloads[0].placed == 2
    assert obstacle.reason == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)."
    )
    assert [(each.plugin, each.nodes) for each in obstacle.plugins] == [
        ("NodeResourcesFit", 1),
        ("TaintToleration", 1),
    ]
    assert obstacle.preemption is None


def test_pods_that_are_pending_already_come_first() -> None:
    """The one that waits takes the room; with --alone it does not."""
    state = a_state(a_node("n1", cpu="2"), a_pod("waits", cpu="2", metadata=OLD))

    behind, alone = fitted(state, a_workload(replicas=2)), fitted(state, a_workload(replicas=2), alone=True)

    assert (behind.waiting, behind.waiting_placed, behind.workloads[0].placed) == (1, 1, 0)
    assert (alone.waiting, alone.workloads[0].placed) == (0, 2)


def test_pending_pods_of_lower_priority_come_behind() -> None:
    """A workload of a higher priority class goes before what waits."""
    state = a_state(
        a_node("n1", cpu="2"),
        a_pod("waits", cpu="2", metadata=OLD),
        PriorityClass(metadata=ObjectMeta(name="high"), value=10),
    )

    answer = fitted(state, a_workload(replicas=2, priorityClassName="high"))

    assert answer.fits
    assert (answer.waiting, answer.workloads[0].priority) == (0, 10)


def test_pods_preempt_only_where_it_is_asked_for() -> None:
    """Without the flag the victim is named; with it the pod takes its room."""
    state = a_state(a_node("n1", cpu="2"), a_pod("low", cpu="2", node="n1", priority=0, metadata=OLD))
    document = a_workload(replicas=1, priorityClassName="system-cluster-critical")

    told, done = fitted(state, document), fitted(state, document, preempting=True)

    assert told.workloads[0].obstacle.preemption.victims == ["default/low"]
    assert (told.fits, told.workloads[0].victims) == (False, [])
    assert (done.fits, done.workloads[0].victims) == (True, ["default/low"])


def test_scheduling_gates_keep_all_pods() -> None:
    """They are not tried."""
    answer = fitted(a_state(a_node("n1")), a_workload(schedulingGates=[{"name": "x"}]))

    assert answer.workloads[0].obstacle.message == "Scheduling is blocked due to non-empty scheduling gates"


@pytest.mark.parametrize(("replicas", "placed"), [(4, 4), (5, 0)])
def test_a_pod_group_fits_as_a_whole_or_not_at_all(replicas: int, placed: int) -> None:
    """Room for four: a group of five has no member placed."""
    policy = {"metadata": {"name": "p"}, "spec": {"scheduling": {"schedulerName": "mine"}}}
    group = PodGroup(
        metadata=ObjectMeta(name="g", namespace="default"), spec=PodGroupSpec(min_member=replicas)
    )
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    state = a_state(a_node("n1", cpu="2"), a_node("n2", cpu="2"), group, policies=[policy])

    answer = fitted(state, a_workload(replicas=replicas, labels=labels, schedulerName="mine"))

    assert (answer.workloads[0].placed, answer.workloads[0].policy) == (placed, "p")


def test_a_scheduler_that_no_policy_serves_makes_it_a_forecast() -> None:
    """It is said once."""
    answer = fitted(a_state(a_node("n1")), a_workload())

    assert [each for each in answer.notes if "forecast" in each] == [f"Deployment default/web: {FORECAST}"]


def test_a_daemon_set_wants_a_pod_on_each_node_that_it_may_run_on() -> None:
    """Not on the tainted one, although on the cordoned one; the full node is named by its obstacle."""
    nodes = (
        a_node("n1", unschedulable=True),
        a_node("n2", taints=["gpu:NoSchedule"]),
        a_node("n3", cpu="500m"),
        a_node("n4"),
    )

    answer = fitted(a_state(*nodes), a_workload("DaemonSet", "agent"))

    one = answer.workloads[0]
    assert (one.wanted, one.placed, sorted(shares(answer))) == (3, 2, ["n1", "n4"])
    assert one.obstacle.pod == "default/agent-n3"


@pytest.mark.parametrize(
    ("documents", "question", "problem"),
    [
        pytest.param([], {}, "no workload in the files", id="nothing"),
        pytest.param([a_workload(), a_workload(name="b")], {"replicas": 1}, "have several", id="several"),
        pytest.param([a_workload("DaemonSet")], {"maximum": True}, "nodes decide", id="daemons"),
        pytest.param([{"kind": "Node", "metadata": {"name": "x"}}, a_workload()], {}, "whatif", id="node"),
        pytest.param([a_workload(priorityClassName="no")], {}, "there is no PriorityClass no", id="class"),
    ],
)
def test_questions_that_make_no_sense_are_refused(
    documents: list[dict[str, Any]], question: dict[str, Any], problem: str
) -> None:
    """In one sentence."""
    with pytest.raises(ManifestError, match=problem):
        fitted(a_state(a_node("n1")), *documents, **question)


# -- laws ----------------------------------------------------------------------------------------------------

CPUS = st.integers(1, 8)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Any, dict[str, dict[str, int]], int]:
    """A cluster with some pods on it and some that wait, the room of its nodes, and a request."""
    room: dict[str, dict[str, int]] = {}
    objects: list[Any] = []
    for number in range(draw(st.integers(1, 4))):
        cpu, pods, used = draw(CPUS) * 500, draw(st.integers(1, 6)), draw(st.integers(0, 3))
        name = f"n{number}"
        objects.append(a_node(name, cpu=f"{cpu}m", pods=pods))
        placed = min(used, pods, cpu // 500)
        objects += [a_pod(f"{name}-{each}", cpu="500m", node=name, metadata=OLD) for each in range(placed)]
        room[name] = {"cpu": cpu - 500 * placed, "pods": pods - placed}
    waiting = draw(st.integers(0, 3))
    objects += [a_pod(f"w{each}", cpu="700m", metadata=OLD) for each in range(waiting)]
    return a_state(*objects), room, draw(CPUS) * 300


@settings(max_examples=20, deadline=None)
@given(clusters())
def test_nothing_is_over_committed_and_the_most_is_the_most(world: tuple[Any, dict[str, Any], int]) -> None:
    """What --max finds is within each node's free room by other arithmetic; so many fit, not one more."""
    state, room, cpu = world
    document = a_workload(cpu=f"{cpu}m")

    most = fitted(state, document, maximum=True, alone=True).workloads[0]

    for each in most.nodes:
        assert each.pods * cpu <= room[each.node]["cpu"]
        assert each.pods <= room[each.node]["pods"]
    assert most.placed == sum(min(free["cpu"] // cpu, free["pods"]) for free in room.values())
    assert fitted(state, document, replicas=most.placed, alone=True).fits
    assert not fitted(state, document, replicas=most.placed + 1, alone=True).fits


@settings(max_examples=20, deadline=None)
@given(clusters(), st.integers(0, 12))
def test_a_number_fits_exactly_if_the_most_is_not_less(
    world: tuple[Any, dict[str, Any], int], replicas: int
) -> None:
    """Also behind pods that wait."""
    state, _, cpu = world
    document = a_workload(cpu=f"{cpu}m")

    most = fitted(state, document, maximum=True).workloads[0].placed
    some = fitted(state, document, replicas=replicas).workloads[0]

    assert some.placed == min(most, replicas)
    assert some.fits == (replicas <= most)


def test_workloads_fit_when_each_of_them_does() -> None:
    """One that does not is enough, in either order."""
    state = a_state(a_node("n1", cpu="2"))
    small, large = a_workload(name="small", replicas=1), a_workload(name="large", replicas=5)

    assert not fitted(state, small, large).fits
    assert not fitted(state, large, small).fits
    assert fitted(state, small).fits


GPU, RACK = "example.com/gpu", "example.com/rack"


@pytest.mark.parametrize(
    ("replicas", "racks", "question", "fits", "said"),
    [
        pytest.param(4, {"a": 4, "b": 3}, {}, True, "", id="in one rack today"),
        pytest.param(
            4,
            {"a": 3, "b": 3},
            {},
            False,
            f"4 members of 8 {GPU} each must fit, and the largest {RACK}, a, holds 3 when it is empty",
            id="in no rack, ever",
        ),
        pytest.param(
            3, {"a": 3}, {}, False, f"in {RACK} a, the first of 1 to try: 2 of 3 members fit", id="not today"
        ),
        pytest.param(3, {"a": 3}, {"preempting": True}, True, "", id="if others go"),
    ],
)
def test_a_group_is_asked_for_one_rack(
    replicas: int, racks: dict[str, int], question: dict[str, Any], fits: bool, said: str
) -> None:
    """Its PodGroup is in the files; in the first rack one node is in use where all would be needed."""
    nodes = [
        a_node(f"{rack}{number}", allocatable={GPU: "8", "cpu": "8", "pods": "9"}, labels={RACK: rack})
        for rack, size in racks.items()
        for number in range(size)
    ]
    in_use = [a_pod("old", node="a0", requests={GPU: "1"})] if len(racks) == 1 else []
    state = a_state(*nodes, *in_use, PriorityClass(metadata=ObjectMeta(name="high"), value=10))
    group = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": replicas, "topology": {"required": RACK}},
    }
    labels = {"plimsoll.dev/pod-group": "g"}
    container = {"name": "main", "image": "app", "resources": {"limits": {GPU: "8"}}}
    job = a_workload(
        "Job", replicas=replicas, labels=labels, containers=[container], priorityClassName="high"
    )

    answer = fitted(state, group, job, **question)

    (found,) = answer.workloads
    assert answer.fits == fits
    assert found.victims == (["default/old"] if question else [])
    assert (found.obstacle.reason if found.obstacle else "").startswith(said)
    if fits:
        assert {share.node[0] for share in found.nodes} == {"a"}
