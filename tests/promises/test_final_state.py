"""The final state: lost pods, workloads in pieces, clusters that go on, and their neighbours."""

from typing import Any

import pytest

from promises.streams import NAMESPACE, WORKLOADS, Stream, a_cluster
from promises.view import POLICIES

UPSTREAM = {"planner": "Upstream"}


def left(stream: Stream, still_s: float = 60.0) -> list[str]:
    """What is said of the final state."""
    return list(stream.checker._final.unfinished("plimsoll", still_s, stream.at))


def workload(stream: Stream, replicas: int = 2) -> None:
    """The Deployment of web."""
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}}
    meta = {"name": "web", "namespace": NAMESPACE, "uid": "uid-deployment"}
    stream.put(WORKLOADS, {"metadata": meta, "spec": spec})
    owner = {"kind": "Deployment", "name": "web", "uid": "uid-deployment", "controller": True}
    stream.put("replicasets.apps", {"metadata": {**meta, "uid": "uid-web", "ownerReferences": [owner]}})
    stream.put("replicasets.apps", {"metadata": {**meta, "name": "other", "uid": "uid-other"}})


LOST = ["new is not placed, though n1 has room"]


@pytest.mark.parametrize(
    ("cpu", "pod", "said"),
    [
        pytest.param("1", {}, LOST, id="lost"),
        pytest.param("2", {}, LOST, id="just-fits"),
        pytest.param("2001m", {}, [], id="no-room"),
        pytest.param("1", {"spec": {"schedulerName": "other"}}, [], id="of-another-scheduler"),
        pytest.param("1", {"status": {"phase": "Failed"}}, [], id="over"),
    ],
)
def test_pods_that_fit_are_placed(cpu: str, pod: dict[str, Any], said: list[str]) -> None:
    """Of four cpus two are taken."""
    stream = a_cluster()
    stream.change("nodes", "n2", {"spec": {"unschedulable": True}})
    stream.pod("new", spec={"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]})
    stream.change("pods", "new", pod)

    assert left(stream) == said


def test_a_pod_that_has_ended_takes_no_room() -> None:
    """Its neighbour gets it."""
    stream = a_cluster()
    stream.change("nodes", "n2", {"spec": {"unschedulable": True}})
    stream.change("pods", "web-1", {"status": {"phase": "Succeeded"}})
    stream.pod("new", spec={"containers": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]})

    assert left(stream) == LOST


@pytest.mark.parametrize(
    "node",
    [
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]}},
        {"status": {"conditions": []}},
        {"status": {"allocatable": {"pods": None}}},
    ],
)
def test_nodes_that_take_no_pods(node: dict[str, Any]) -> None:
    """Cordoned, tainted, not ready, or without room for any."""
    stream = a_cluster()
    stream.change("nodes", "n1", node)
    stream.change("nodes", "n2", node)
    stream.pod("new")

    assert left(stream) == []


@pytest.mark.parametrize(
    ("replicas", "pod", "said"),
    [
        pytest.param(2, {}, [], id="whole"),
        pytest.param(3, {}, ["web has 2 pods, not 3"], id="one-is-missing"),
        pytest.param(1, {}, ["web has 2 pods, not 1"], id="one-too-many"),
        pytest.param(2, {"status": {"phase": "Failed"}}, ["web has 1 pods, not 2"], id="over"),
        pytest.param(2, {"metadata": {"deletionTimestamp": "now"}}, ["web has 1 pods, not 2"], id="leaving"),
        pytest.param(2, {"metadata": {"labels": {"app": "x"}}}, [], id="relabelled"),
        pytest.param(2, {"metadata": {"ownerReferences": []}}, ["web has 1 pods, not 2"], id="orphan"),
    ],
)
def test_workloads_are_whole(replicas: int, pod: dict[str, Any], said: list[str]) -> None:
    """They have as many pods as they want."""
    stream = a_cluster()
    stream.pod("far", "n1", owner="other", metadata={"labels": {"app": "web"}})
    workload(stream, replicas)
    stream.change("pods", "web-1", pod)

    assert left(stream) == said


WINDOWS = [{"name": "window", "evictions": "0", "schedule": "*/2 * * * *", "duration": "20s"}]

STILL = ["the operator still writes: red PATCH /x at 100.000"]


@pytest.mark.parametrize(
    ("seconds", "rebalancing", "said"),
    [
        pytest.param(59.9, {}, STILL, id="restless"),
        pytest.param(60.0, {}, [], id="still"),
        pytest.param(59.9, UPSTREAM, [], id="upstream-may-go-on"),
        pytest.param(59.9, {**UPSTREAM, "mode": "DryRun"}, STILL, id="not-in-a-dry-run"),
        pytest.param(
            59.9, {"mode": "Approve", "limits": {"budgets": WINDOWS}}, [], id="proposals-by-the-clock"
        ),
        pytest.param(
            59.9, {"mode": "DryRun", "limits": {"budgets": WINDOWS}}, [], id="predictions-by-the-clock"
        ),
        pytest.param(
            59.9,
            {"mode": "Approve", "limits": {"budgets": [{"evictions": "1"}]}},
            STILL,
            id="one-budget-for-ever",
        ),
        pytest.param(59.9, {"mode": "Approve"}, STILL, id="proposals-stay"),
        pytest.param(
            59.9, {"mode": "Enforce", "limits": {"budgets": WINDOWS}}, STILL, id="moves-come-to-an-end"
        ),
    ],
)
def test_a_converged_cluster_stays_still(
    seconds: float, rebalancing: dict[str, Any], said: list[str]
) -> None:
    """The operator has written nothing for a minute."""
    stream = a_cluster()
    stream.policy(rebalancing=rebalancing)
    stream.change("pods", "web-1", {"status": {"message": "x"}}, stream.by("/x", method="PATCH"))
    stream.wait(seconds)

    assert left(stream) == said


def test_a_spec_that_cannot_be_used_leaves_an_earlier_one_at_work() -> None:
    """Its windows still open and close."""
    stream = a_cluster()
    stream.policy(rebalancing={"mode": "DryRun", "limits": {"budgets": WINDOWS}})
    refused = {"conditions": [{"type": "Accepted", "status": "False"}]}
    spec = {"rebalancing": {"mode": "Enforce", "limits": None}}
    stream.change(POLICIES, "tidy", {"spec": spec, "status": refused})
    stream.change("pods", "web-1", {"status": {"message": "x"}}, stream.by("/x", method="PATCH"))
    stream.wait(59.9)

    assert left(stream) == []


def test_reports_are_no_writes() -> None:
    """Statuses of policies, events and its lease; nor is what people write."""
    stream = a_cluster()
    stream.change(POLICIES, "tidy", {"status": {"x": 1}}, stream.by())
    stream.put("events", {"metadata": {"name": "e", "namespace": NAMESPACE}}, stream.by())
    stream.lead()
    stream.change("pods", "web-1", {"status": {"message": "x"}})

    assert left(stream) == []


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"scheduling": {"schedulerName": "other"}}, LOST),
        ({"scheduling": {"schedulerName": "third"}}, []),
        ({"scheduling": {"schedulerName": "other"}, "suspend": True}, []),
    ],
)
def test_pods_of_every_scheduler_name_that_is_served_are_placed(
    other: dict[str, Any], said: list[str]
) -> None:
    """By any policy that is at work."""
    stream = a_cluster()
    stream.policy("other", moves=False, **other)
    stream.pod("new", spec={"schedulerName": "other"})

    assert left(stream) == said


@pytest.mark.parametrize(
    ("serve", "scheduler", "said"),
    [
        pytest.param(
            {}, "plimsoll", ["new is not placed, though less important pods fill n1"], id="preempts"
        ),
        pytest.param({"preemption": {"viaEviction": True}}, "plimsoll", [], id="budgets-may-forbid-it"),
        pytest.param({}, "other", [], id="of-another-policy"),
    ],
)
def test_important_pods_make_room(serve: dict[str, Any], scheduler: str, said: list[str]) -> None:
    """Where the pods of lower priority may simply be deleted."""
    stream = a_cluster()
    stream.policy("serve", moves=False, scheduling={"schedulerName": "plimsoll", **serve})
    via = {"schedulerName": "other", "preemption": {"viaEviction": True}}
    stream.policy("other", moves=False, scheduling=via)
    stream.policy("second", moves=False, scheduling={"schedulerName": "plimsoll"})
    asks = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "4"}}}]}
    stream.delete("nodes", "n2")
    stream.pod("new", spec={"priority": 10, "schedulerName": scheduler, **asks})

    assert left(stream) == said


@pytest.mark.parametrize(
    ("pod", "said"), [({}, ["web has 2 pods, not 1"]), ({"status": {"conditions": []}}, [])]
)
def test_a_rollout_that_waits_keeps_its_surge(pod: dict[str, Any], said: list[str]) -> None:
    """A quarter of the pods, rounded up, until all are ready."""
    stream = a_cluster()
    workload(stream, 1)
    stream.change("pods", "web-1", pod)

    assert left(stream) == said
