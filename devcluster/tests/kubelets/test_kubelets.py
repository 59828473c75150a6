"""Simulated kubelets, under a clock that the test moves."""

from typing import Any

import pytest

from roadstead.kubelets.nodes import KUBELET, make_node
from simulated_cluster import Simulation

RUN = "roadstead.test/"


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    """Two simulated nodes of 4 cores, 8 GiB and 5 pods; pods start one second after they are bound."""
    simulation.with_kubelets()
    simulation.nodes("n1", "n2", cpu="4", memory="8Gi", pods=5)
    return simulation


def condition(obj: Any, kind: Any) -> Any:
    return next(one for one in obj["status"]["conditions"] if one["type"] == kind)


def test_a_node_registers(cluster: Simulation) -> None:
    """A simulated node is ready, under no pressure, and has addresses and system information."""
    node = cluster.get("nodes", "n1", None)

    assert {one["type"]: one["status"] for one in node["status"]["conditions"]} == {
        "Ready": "True",
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
    }
    assert node["status"]["addresses"][0]["address"] == "10.0.0.1"
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.2"


def test_a_bound_pod_runs_after_its_delay(cluster: Simulation) -> None:
    """Pending until the delay is over; then Running and Ready with address, start time and containers."""
    cluster.pod("a", "n1")

    cluster.settle(0.9)
    assert "phase" not in cluster.status("a") or cluster.status("a")["phase"] == "Pending"
    cluster.settle(0.2)

    pod = cluster.get("pods", "a")
    assert pod["status"]["phase"] == "Running"
    assert condition(pod, "Ready")["status"] == "True"
    assert pod["status"]["hostIP"] == "10.0.0.1"
    assert pod["status"]["podIPs"] == [{"ip": pod["status"]["podIP"]}]
    (container,) = pod["status"]["containerStatuses"]
    assert container["ready"]
    assert container["restartCount"] == 0
    assert "running" in container["state"]


def test_a_kubelet_says_that_its_pod_is_scheduled(cluster: Simulation) -> None:
    """Also where a scheduler's older word on it arrives after the binding, as on a real node."""
    cluster.pod("a", "n1")
    pod = cluster.get("pods", "a")
    late = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    cluster.api.update_status("pods", {**pod, "status": {**pod["status"], "conditions": [late]}})

    cluster.settle(1.1)

    assert condition(cluster.get("pods", "a"), "PodScheduled")["status"] == "True"
    assert "reason" not in condition(cluster.get("pods", "a"), "PodScheduled")


def test_a_kubelet_insists_that_its_running_pod_is_scheduled(cluster: Simulation) -> None:
    """A scheduler's word that arrives after the start is put right; what others say of the pod stays."""
    cluster.pod("a", "n1")
    cluster.settle(2)
    late = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    theirs = {"type": "example.com/checked", "status": "False"}

    cluster.api.patch(
        "pods", "default", "a", {"status": {"conditions": [late, theirs]}}, subresource="status"
    )
    cluster.settle(1)

    pod = cluster.get("pods", "a")
    assert condition(pod, "PodScheduled")["status"] == "True"
    assert "reason" not in condition(pod, "PodScheduled")
    assert condition(pod, "example.com/checked")["status"] == "False"
    assert pod["status"]["phase"] == "Running"


def test_an_unbound_pod_stays_pending(cluster: Simulation) -> None:
    """Binding is the scheduler's work."""
    cluster.pod("a")

    cluster.settle(60)

    assert cluster.status("a").get("phase", "Pending") == "Pending"


def test_a_node_without_the_annotation_is_left_alone(cluster: Simulation) -> None:
    """Pods of nodes whose kubelet somebody else plays are not touched."""
    node = make_node("theirs")
    del node["metadata"]["annotations"]
    cluster.api.create("nodes", node)
    cluster.pod("a", "theirs")

    cluster.settle(60)

    assert cluster.status("a").get("phase", "Pending") == "Pending"
    assert "conditions" not in cluster.get("nodes", "theirs", None)["status"]


@pytest.mark.parametrize(
    ("requests", "reason", "message"),
    [
        pytest.param(
            {"cpu": "1500m"},
            "OutOfcpu",
            "Pod was rejected: Node didn't have enough resource: cpu, "
            "requested: 1500, used: 3000, capacity: 4000",
            id="cpu",
        ),
        pytest.param(
            {"memory": "6Gi"},
            "OutOfmemory",
            "Pod was rejected: Node didn't have enough resource: memory, "
            "requested: 6442450944, used: 4294967296, capacity: 8589934592",
            id="memory",
        ),
    ],
)
def test_a_pod_that_does_not_fit_is_refused(
    cluster: Simulation, requests: Any, reason: Any, message: Any
) -> None:
    """Over-commitment fails the pod that came last, with the kubelet's own words."""
    cluster.pod("first", "n1", {"cpu": "3", "memory": "4Gi"})
    cluster.settle(2)

    cluster.pod("second", "n1", requests)
    cluster.settle(2)

    assert cluster.status("first")["phase"] == "Running"
    assert cluster.status("second")["phase"] == "Failed"
    assert cluster.status("second")["reason"] == reason
    assert cluster.status("second")["message"] == message


def test_extended_resources_that_a_node_has_not_are_not_its_own(cluster: Simulation) -> None:
    """Somebody else counts them, as an extender of a scheduler; those that it has, it counts."""
    cluster.api.create("nodes", make_node("gpus", resources={"nvidia.com/gpu": "1"}))
    cluster.pod("elsewhere", "n1", {"nvidia.com/gpu": "1"})
    cluster.pod("first", "gpus", {"nvidia.com/gpu": "1"})
    cluster.settle(2)

    cluster.pod("second", "gpus", {"nvidia.com/gpu": "1"})
    cluster.settle(2)

    phases = [cluster.status(name)["phase"] for name in ("elsewhere", "first", "second")]
    assert phases == ["Running", "Running", "Failed"]
    assert cluster.status("second")["reason"] == "OutOfnvidia.com/gpu"


def test_a_sixth_pod_is_refused_where_five_are_allowed(cluster: Simulation) -> None:
    """The number of pods is a resource, too."""
    for number in range(6):
        cluster.pod(f"p{number}", "n1")
    cluster.settle(2)

    phases = [pod["status"]["phase"] for pod in cluster.pods()]
    assert phases == ["Running"] * 5 + ["Failed"]
    assert cluster.status("p5")["reason"] == "OutOfpods"


def test_a_pod_on_the_wrong_node_is_refused(cluster: Simulation) -> None:
    """A node selector that the node does not meet fails the pod."""
    cluster.pod("a", "n1", nodeSelector={"disk": "ssd"})

    cluster.settle(2)

    assert cluster.status("a")["reason"] == "NodeAffinity"


@pytest.mark.parametrize("leaves", ["deleted", "ended"])
def test_what_a_pod_had_is_free_when_it_leaves(cluster: Simulation, leaves: Any) -> None:
    """A deleted pod, and one that ended, make room."""
    annotations = {f"{RUN}exit-after": "3"} if leaves == "ended" else {}
    cluster.pod("first", "n1", {"cpu": "4"}, annotations, restartPolicy="Never")
    cluster.settle(2)

    if leaves == "deleted":
        cluster.api.delete("pods", "default", "first", grace_seconds=0)
    cluster.settle(10)
    cluster.pod("second", "n1", {"cpu": "4"})
    cluster.settle(2)

    assert cluster.status("second")["phase"] == "Running"


def test_readiness_can_be_delayed_and_withheld(cluster: Simulation) -> None:
    """``ready-after`` delays Ready; ``never`` withholds it."""
    cluster.pod("late", "n1", annotations={f"{RUN}ready-after": "5"})
    cluster.pod("never", "n1", annotations={f"{RUN}ready-after": "never"})

    def ready(name: Any) -> Any:
        return condition(cluster.get("pods", name), "Ready")["status"]

    cluster.settle(2)
    assert (ready("late"), ready("never")) == ("False", "False")
    assert cluster.status("late")["phase"] == "Running"
    cluster.settle(60)

    assert (ready("late"), ready("never")) == ("True", "False")


def test_a_pod_is_ready_when_its_gates_are_open(cluster: Simulation) -> None:
    """Its containers are ready immediately, the pod while the condition is True."""
    cluster.pod("a", "n1", readinessGates=[{"conditionType": "example.com/ready"}])

    def told(kind: str = "Ready") -> Any:
        return condition(cluster.get("pods", "a"), kind)

    def gate(status: Any) -> Any:
        mine = {"type": "example.com/ready", "status": status}
        others = [each for each in cluster.status("a")["conditions"] if each["type"] != mine["type"]]
        change = {"status": {"conditions": [*others, mine]}}
        cluster.api.patch("pods", "default", "a", change, subresource="status")
        cluster.settle(2)
        return told()["status"]

    cluster.settle(2)

    assert (told("ContainersReady")["status"], told()["status"]) == ("True", "False")
    assert told()["reason"] == "ReadinessGatesNotReady"
    assert told()["message"] == (
        'corresponding condition of pod readiness gate "example.com/ready" does not exist.'
    )
    assert [gate("False"), gate("True"), gate("False")] == ["False", "True", "False"]
    assert told()["message"] == (
        'the status of pod readiness gate "example.com/ready" is not "True", but False'
    )


@pytest.mark.parametrize(("code", "phase"), [("0", "Succeeded"), ("3", "Failed")])
def test_containers_end_as_annotated(cluster: Simulation, code: Any, phase: Any) -> None:
    """With restartPolicy Never the pod ends with its containers."""
    annotations = {f"{RUN}exit-after": "10", f"{RUN}exit-code": code}
    cluster.pod("a", "n1", annotations=annotations, restartPolicy="Never")

    cluster.settle(5)
    assert cluster.status("a")["phase"] == "Running"
    cluster.settle(10)

    assert cluster.status("a")["phase"] == phase
    (container,) = cluster.status("a")["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == int(code)


def test_containers_are_started_again_with_growing_delay(cluster: Simulation) -> None:
    """A crashing container counts its restarts: after 1 + 1 s, 10 s later, 20 s later."""
    cluster.pod("a", "n1", annotations={f"{RUN}exit-after": "1", f"{RUN}exit-code": "1"})

    def restarts() -> Any:
        return cluster.status("a")["containerStatuses"][0]["restartCount"]

    cluster.settle(5)
    assert restarts() == 1
    waiting = cluster.status("a")["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "CrashLoopBackOff"
    assert condition(cluster.get("pods", "a"), "Ready")["status"] == "False"
    cluster.settle(9)
    assert restarts() == 2
    cluster.settle(10)
    assert restarts() == 2
    cluster.settle(12)

    assert restarts() == 3


def test_a_pod_whose_image_cannot_be_pulled_stays_pending(cluster: Simulation) -> None:
    """``start-error`` is the reason for which its containers wait."""
    cluster.pod("a", "n1", annotations={f"{RUN}start-error": "ImagePullBackOff"})

    cluster.settle(60)

    assert cluster.status("a").get("phase", "Pending") == "Pending"
    (container,) = cluster.status("a")["containerStatuses"]
    assert container["state"]["waiting"]["reason"] == "ImagePullBackOff"


def test_a_deleted_pod_leaves_after_its_grace_but_soon(cluster: Simulation) -> None:
    """A grace period of 30 s is cut to the cluster's longest, one second."""
    cluster.pod("a", "n1", terminationGracePeriodSeconds=30)
    cluster.settle(2)

    cluster.api.delete("pods", "default", "a", grace_seconds=30)
    cluster.settle(0.5)
    pod = cluster.get("pods", "a")
    assert pod is None or pod["metadata"].get("deletionTimestamp")
    cluster.settle(0.6)

    assert cluster.get("pods", "a") is None


def test_a_stopped_kubelet_falls_silent(cluster: Simulation) -> None:
    """Its node's conditions become Unknown, and its pods neither start nor leave until it is back."""
    cluster.api.patch("nodes", None, "n1", {"metadata": {"annotations": {KUBELET: "stopped"}}})
    cluster.pod("a", "n1")
    cluster.settle(60)

    assert condition(cluster.get("nodes", "n1", None), "Ready")["status"] == "Unknown"
    assert cluster.status("a").get("phase", "Pending") == "Pending"

    cluster.api.patch("nodes", None, "n1", {"metadata": {"annotations": {KUBELET: "simulated"}}})
    cluster.settle(2)

    assert condition(cluster.get("nodes", "n1", None), "Ready")["status"] == "True"
    assert cluster.status("a")["phase"] == "Running"


def test_heartbeats_renew_a_lease(simulation: Simulation) -> None:
    """With heartbeats each node has a Lease that is renewed every ten seconds."""
    simulation.with_kubelets(heartbeats=True)
    simulation.nodes("n1")

    def renewed() -> Any:
        lease = simulation.get("leases.coordination.k8s.io", "n1", "kube-node-lease")
        return lease["spec"]["renewTime"]

    first = renewed()
    simulation.settle(11)

    assert renewed() > first


def test_an_annotation_that_is_no_number_counts_as_absent(cluster: Simulation) -> None:
    """A malformed pod does not affect others and runs."""
    cluster.pod("a", "n1", annotations={f"{RUN}start-after": "soon", f"{RUN}exit-after": "late"})

    cluster.settle(2)

    assert cluster.status("a")["phase"] == "Running"


def test_many_pods_of_one_node_start_together(simulation: Simulation) -> None:
    """All pods that were bound together run after the delay, each with an address of its own."""
    simulation.with_kubelets()
    simulation.nodes("n1", cpu="1000", memory="1000Gi", pods=300)
    for number in range(250):
        simulation.pod(f"p{number}", "n1")
    simulation.queue.run_due()

    simulation.settle(1.1)

    assert {pod["status"]["phase"] for pod in simulation.pods()} == {"Running"}
    assert len({pod["status"]["podIP"] for pod in simulation.pods()}) == 250
