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
from plimsoll.model.kinds.owned_group import JobGroup, JobSpec
from plimsoll.model.kinds.pod_group import PodGroup, PodGroupSpec
from plimsoll.model.kinds.workload import PriorityClass
from plimsoll.testing.builders import a_node, a_pod

FORECAST = (
    "no policy serves scheduler default-scheduler; where its pods go is a forecast with kube-scheduler's"
    " default profile, which is assumed"
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


def test_a_suspended_policy_says_where_another_scheduler_puts_pods() -> None:
    """With MostAllocated all go to the node that is used already; the note names the policy."""
    used = a_pod("full", node="n1", cpu="1")
    packs = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    policy = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": "theirs"},
        "spec": {
            "suspend": True,
            "scheduling": {"schedulerName": "default-scheduler", "pluginConfig": [packs]},
        },
    }
    found = [
        fitted(a_state(a_node("n1"), a_node("n2"), used, policies=policies), a_workload(replicas=1))
        for policies in ((), (policy,))
    ]

    assert [shares(each) for each in found] == [{"n2": 1}, {"n1": 1}]
    assert any(each.endswith("the profile that suspended policy theirs describes") for each in found[1].notes)


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


RACK = "example.com/rack"
DERIVING = {
    "metadata": {"name": "p"},
    "spec": {"scheduling": {"schedulerName": "mine", "groups": {"derive": "Automatic"}}},
}
INDEXED = {"completionMode": "Indexed", "completions": 4, "parallelism": 4}


def racks(*sizes: int, cpu: str = "2") -> list[Any]:
    """Racks r0, r1 and so on, with so many nodes of two members each."""
    return [
        a_node(f"r{rack}-{number}", cpu=cpu, labels={RACK: f"r{rack}"})
        for rack, size in enumerate(sizes)
        for number in range(size)
    ]


def a_job(spec: dict[str, Any] | None = None, name: str = "train", **pod: Any) -> dict[str, Any]:
    """An Indexed Job of four pods."""
    return a_workload("Job", name, spec=INDEXED if spec is None else spec, schedulerName="mine", **pod)


@pytest.mark.parametrize(
    ("spec", "question", "placed", "group", "domains"),
    [
        pytest.param(INDEXED, {}, 4, "Job default/train", {}, id="a gang that fits"),
        pytest.param(INDEXED, {"replicas": 7}, 0, "Job default/train", {}, id="one pod too many: none"),
        pytest.param({"parallelism": 7}, {}, 6, "", {}, id="pods that are independent: what fits"),
        pytest.param(INDEXED, {"within": RACK}, 4, "Job default/train", {"r1": 4}, id="in one rack"),
        pytest.param(
            INDEXED, {"within": RACK, "replicas": 5}, 0, "Job default/train", {}, id="not in one rack"
        ),
        pytest.param(
            {"parallelism": 5},
            {"within": RACK},
            4,
            "Job default/train",
            {"r1": 4},
            id="independent, one rack",
        ),
    ],
)
def test_a_job_fits_as_the_group_that_a_policy_derives(
    spec: dict[str, Any], question: dict[str, Any], placed: int, group: str, domains: dict[str, int]
) -> None:
    """Racks with room for two and for four."""
    state = a_state(*racks(1, 2), policies=[DERIVING])

    (one,) = fitted(state, a_job(spec), **question).workloads

    assert (one.placed, one.group) == (placed, group)
    assert {each.value: each.pods for each in one.domains} == domains
    assert (one.obstacle is None) == (placed == one.wanted)


def test_a_group_that_does_not_fit_names_all_that_would_have_to_go() -> None:
    """Both pods of the rack that needs the fewest; with --preempt they go."""
    low = [a_pod(f"low-{at}", cpu="2", node=f"r1-{at}", priority=0, metadata=OLD) for at in range(2)]
    state = a_state(*racks(1, 2), *low, policies=[DERIVING])
    job = a_job(priorityClassName="system-cluster-critical")

    told, done = fitted(state, job, within=RACK), fitted(state, job, within=RACK, preempting=True)

    assert (told.fits, told.workloads[0].placed, told.workloads[0].never) == (False, 0, "")
    assert told.workloads[0].would_preempt == ["default/low-0", "default/low-1"]
    assert (done.fits, done.workloads[0].victims) == (True, ["default/low-0", "default/low-1"])
    assert [(each.value, each.pods) for each in done.workloads[0].domains] == [("r1", 4)]


def test_a_group_that_no_rack_can_ever_hold_says_so_and_names_no_victim() -> None:
    """The largest rack has room for four of six."""
    low = a_pod("low", cpu="2", node="r1-0", priority=0, metadata=OLD)
    state = a_state(*racks(1, 2), low, policies=[DERIVING])
    job = a_job(priorityClassName="system-cluster-critical")

    (one,) = fitted(state, job, within=RACK, replicas=6).workloads

    assert "the largest example.com/rack, r1, holds 4 when it is empty" in one.never
    assert one.would_preempt == []


def test_a_job_says_itself_that_it_needs_one_rack() -> None:
    """By its annotation; --within for another label goes first."""
    state = a_state(*racks(1, 2), policies=[DERIVING])
    job = a_job({**INDEXED, "parallelism": 5, "completions": 5})
    job["metadata"]["annotations"] = {"plimsoll.dev/required-topology": RACK}

    assert [each.placed for each in fitted(state, job).workloads] == [0]
    assert [each.placed for each in fitted(state, job, within="kubernetes.io/os").workloads] == [0]
    assert [each.placed for each in fitted(state, job, replicas=4).workloads] == [4]


def test_a_waiting_job_of_the_cluster_starts_as_a_group_first() -> None:
    """Its owner is read from the cluster: three of three wait, come first, and leave room for three."""
    owner = JobGroup(
        metadata=ObjectMeta(name="early", namespace="default", uid="u"),
        spec=JobSpec(parallelism=3, completions=3, completion_mode="Indexed"),
    )
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "early", "uid": "u", "controller": True}
    early = [
        a_pod(f"early-{at}", cpu="1", schedulerName="mine", metadata={**OLD, "ownerReferences": [reference]})
        for at in range(3)
    ]
    state = a_state(*racks(1, 2), owner, *early, policies=[DERIVING])

    answer, unread = (
        fitted(state, a_job()),
        fitted(a_state(*racks(1, 2), *early, policies=[DERIVING]), a_job()),
    )

    assert (answer.waiting_placed, answer.workloads[0].placed) == (3, 0)
    assert (unread.waiting_placed, unread.workloads[0].placed) == (0, 4)


@pytest.mark.parametrize(
    ("question", "kind", "problem"),
    [
        ({"maximum": True}, "Job", "--max does not apply to Job default/train: its pods start together"),
        ({"within": RACK}, "Deployment", "--within does not apply to Deployment default/train"),
    ],
)
def test_what_does_not_apply_to_groups_or_to_others_is_refused(
    question: dict[str, Any], kind: str, problem: str
) -> None:
    """With what to do instead."""
    state = a_state(*racks(1), policies=[DERIVING])
    workload = a_job() if kind == "Job" else a_workload(kind, "train", schedulerName="mine")

    with pytest.raises(ManifestError, match=problem):
        fitted(state, workload, **question)


@pytest.mark.parametrize("others", [0, 1])
def test_pods_that_a_workload_has_already_are_noted(others: int) -> None:
    """Whatever other pods there are."""
    own = a_pod("web-0", node="n1", namespace="default", owner="StatefulSet/web")
    pods = [own, *(a_pod(f"other-{number}", node="n1") for number in range(others))]
    document = a_workload(kind="StatefulSet", name="web", replicas=1)

    noted = [each for each in fitted(a_state(a_node("n1"), *pods), document).notes if "pods already" in each]

    assert len(noted) == 1
