"""Jobs whose pods need one another get a Workload and a PodGroup, as with the gate WorkloadWithJob."""

from typing import Any

import pytest

from simulated_cluster import Simulation

JOB, WORKLOADS, GROUPS = "jobs.batch", "workloads.scheduling.k8s.io", "podgroups.scheduling.k8s.io"
INDEXED = {"parallelism": 2, "completions": 2, "completionMode": "Indexed"}
GROUP = {"podGroupName": "mine"}
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "app:1"}], "restartPolicy": "Never"}}


@pytest.fixture
def cluster() -> Simulation:
    return Simulation(pod_groups=True).with_controllers()


def create(cluster: Simulation, group: Any = None, **spec: Any) -> None:
    named = {"schedulingGroup": group} if group else {}
    pod = {**TEMPLATE["spec"], **named}
    cluster.create("Job", "work", **{"backoffLimit": 6, "template": {"spec": pod}, **spec})
    cluster.settle()


def groups_of_pods(cluster: Simulation) -> list[Any]:
    """The groups that pods name, in the order of their names."""
    return [pod["spec"].get("schedulingGroup", {}).get("podGroupName") for pod in cluster.pods()]


def test_an_indexed_job_is_a_gang(cluster: Simulation) -> None:
    """All pods name the group, which the Job controls."""
    create(cluster, **INDEXED)

    (workload,), (group,), job = (
        cluster.api.list(WORKLOADS),
        cluster.api.list(GROUPS),
        cluster.get(JOB, "work"),
    )
    name = workload["metadata"]["name"]
    assert name.startswith("work-")
    assert workload["spec"] == {
        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "work"},
        "podGroupTemplates": [{"name": "work-pgt-0", "schedulingPolicy": {"gang": {"minCount": 2}}}],
    }
    assert group["metadata"]["name"].startswith(f"{name}-work-pgt-0-")
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
    assert group["spec"]["podGroupTemplateRef"] == {
        "workload": {"workloadName": name, "podGroupTemplateName": "work-pgt-0"}
    }
    owners = [
        (each["kind"], each.get("controller"), each["uid"]) for each in group["metadata"]["ownerReferences"]
    ]
    uid = job["metadata"]["uid"]
    assert owners == [("Job", True, uid), ("Workload", None, workload["metadata"]["uid"])]
    assert groups_of_pods(cluster) == [group["metadata"]["name"]] * 2


@pytest.mark.parametrize(
    ("spec", "group"),
    [
        ({"parallelism": 2, "completions": 2}, None),
        ({**INDEXED, "completions": 3}, None),
        ({**INDEXED, "parallelism": 1, "completions": 1}, None),
        (INDEXED, GROUP),
    ],
)
def test_other_jobs_get_none(cluster: Simulation, spec: dict[str, Any], group: Any) -> None:
    create(cluster, group, **spec)

    assert (cluster.api.list(WORKLOADS), cluster.api.list(GROUPS)) == ([], [])
    assert groups_of_pods(cluster) == [group and group["podGroupName"]] * spec["parallelism"]


def test_a_suspended_job_has_its_group_before_it_goes_on(cluster: Simulation) -> None:
    """As with kube-controller-manager 1.36.2."""
    create(cluster, **INDEXED, suspend=True)
    (group,) = cluster.api.list(GROUPS)

    cluster.api.patch(JOB, "default", "work", {"spec": {"suspend": False}})
    cluster.settle()

    assert groups_of_pods(cluster) == [group["metadata"]["name"]] * 2


def test_a_job_that_was_suspended_before_the_gate_has_none(cluster: Simulation) -> None:
    """It may have run already."""
    job = cluster.create("Job", "work", **INDEXED, template=TEMPLATE, backoffLimit=6)
    suspended = {"type": "Suspended", "status": "False"}
    cluster.api.update_status(JOB, {**job, "status": {"conditions": [suspended]}})
    cluster.settle()

    assert cluster.api.list(GROUPS) == []
    assert groups_of_pods(cluster) == [None, None]


@pytest.mark.parametrize("count", [1, 2])
def test_a_workload_of_somebody_else_leaves_the_job_without_a_group(cluster: Simulation, count: int) -> None:
    """Whether one or several are for it."""
    template = {"name": "t", "schedulingPolicy": {"basic": {}}}
    reference = {"apiGroup": "batch", "kind": "Job", "name": "work"}
    for at in range(count):
        metadata = {"name": f"w{at}", "namespace": "default"}
        spec = {"controllerRef": reference, "podGroupTemplates": [template]}
        cluster.api.create(WORKLOADS, {"metadata": metadata, "spec": spec})

    create(cluster, **INDEXED)

    assert cluster.api.list(GROUPS) == []
    assert groups_of_pods(cluster) == [None, None]


def test_a_job_that_is_made_again_has_a_group_of_its_own(cluster: Simulation) -> None:
    """What the first had goes with it; a pod that fails is made again in the same group."""
    create(cluster, **INDEXED)
    (first,) = cluster.api.list(GROUPS)
    cluster.end(cluster.pods()[0]["metadata"]["name"], "Failed")
    cluster.settle(60)
    assert set(groups_of_pods(cluster)) == {first["metadata"]["name"]}
    assert len(cluster.pods()) == 3

    cluster.api.delete(JOB, "default", "work", propagation="Background")
    cluster.settle(60)
    assert (cluster.api.list(WORKLOADS), cluster.api.list(GROUPS)) == ([], [])
    create(cluster, **INDEXED)

    (second,) = cluster.api.list(GROUPS)
    assert second["metadata"]["name"] != first["metadata"]["name"]


def test_without_the_gate_no_job_has_a_group() -> None:
    """The server does not even serve the kind."""
    cluster = Simulation().with_controllers()

    create(cluster, **INDEXED)

    assert groups_of_pods(cluster) == [None, None]
