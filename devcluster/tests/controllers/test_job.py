"""Jobs: counting, parallelism, failure, suspension, deadlines, indexes."""

from typing import Any

import pytest

from simulated_cluster import Simulation

JOB = "jobs.batch"


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    return simulation.with_controllers()


def create(cluster: Simulation, name: str = "work", **spec: Any) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "app:1"}], "restartPolicy": "Never"}}
    spec = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "template": template, **spec}
    if spec["completions"] is None:
        del spec["completions"]
    cluster.create("Job", name, **spec)
    cluster.settle()


def active(cluster: Simulation) -> Any:
    """The names of pods that have not ended."""
    return [
        pod["metadata"]["name"]
        for pod in cluster.pods()
        if "deletionTimestamp" not in pod["metadata"]
        and pod.get("status", {}).get("phase", "Pending") in ("Pending", "Running")
    ]


def end(cluster: Simulation, phase: str = "Succeeded", count: int = 1) -> None:
    for name in active(cluster)[:count]:
        cluster.end(name, phase)
    cluster.settle()


def status(cluster: Simulation, name: str = "work") -> Any:
    return cluster.get(JOB, name)["status"]


def conditions(cluster: Simulation, name: str = "work") -> Any:
    return {
        one["type"]: (one["status"], one["reason"]) for one in status(cluster, name).get("conditions", ())
    }


def test_runs_until_enough_have_succeeded(cluster: Simulation) -> None:
    """Two completions, one at a time; finished pods stay and lose the Job's finalizer."""
    create(cluster, completions=2)
    assert len(active(cluster)) == 1
    assert "batch.kubernetes.io/job-tracking" in cluster.pods()[0]["metadata"]["finalizers"]
    end(cluster)
    assert (status(cluster)["succeeded"], status(cluster)["active"]) == (1, 1)
    end(cluster)

    assert status(cluster)["succeeded"] == 2
    assert "active" not in status(cluster)
    assert conditions(cluster) == {
        "SuccessCriteriaMet": ("True", "CompletionsReached"),
        "Complete": ("True", "CompletionsReached"),
    }
    assert "completionTime" in status(cluster)
    assert len(cluster.pods()) == 2
    assert not any(pod["metadata"].get("finalizers") for pod in cluster.pods())


def test_no_more_run_than_are_missing(cluster: Simulation) -> None:
    """Parallelism 3 with 4 completions: three, and then only one."""
    create(cluster, parallelism=3, completions=4)
    assert len(active(cluster)) == 3

    end(cluster, count=3)

    assert len(active(cluster)) == 1


def test_a_failure_is_tried_again_after_a_while(cluster: Simulation) -> None:
    """The next pod comes ten seconds after the first failure, twenty after the second."""
    create(cluster)

    end(cluster, "Failed")
    assert active(cluster) == []
    cluster.settle(9)
    assert active(cluster) == []
    cluster.settle(2)
    assert len(active(cluster)) == 1
    end(cluster, "Failed")
    cluster.settle(11)
    assert active(cluster) == []
    cluster.settle(10)
    end(cluster)

    assert (status(cluster)["failed"], status(cluster)["succeeded"]) == (2, 1)
    assert conditions(cluster)["Complete"] == ("True", "CompletionsReached")


def test_too_many_failures_fail_the_job(cluster: Simulation) -> None:
    """Beyond backoffLimit nothing is tried any more, and what still runs is ended."""
    create(cluster, parallelism=2, completions=2, backoffLimit=0)

    end(cluster, "Failed")
    cluster.settle(31)
    for pod in cluster.pods():
        if "deletionTimestamp" in pod["metadata"]:
            cluster.api.delete("pods", "default", pod["metadata"]["name"], grace_seconds=0)
    cluster.settle()

    assert active(cluster) == []
    assert conditions(cluster) == {
        "FailureTarget": ("True", "BackoffLimitExceeded"),
        "Failed": ("True", "BackoffLimitExceeded"),
    }


def test_an_evicted_pod_counts_as_failed_and_is_replaced(cluster: Simulation) -> None:
    """A pod that is deleted before its end is not forgotten, and goes at last."""
    create(cluster)
    (name,) = active(cluster)

    cluster.api.delete("pods", "default", name)
    cluster.settle(11)
    if cluster.get("pods", name):
        cluster.api.delete("pods", "default", name, grace_seconds=0)
    cluster.settle()

    assert status(cluster)["failed"] == 1
    assert cluster.get("pods", name) is None
    assert len(active(cluster)) == 1


def test_a_suspended_job_waits(cluster: Simulation) -> None:
    """Nothing runs while suspended; resumed, it starts and says so."""
    create(cluster, suspend=True)
    assert active(cluster) == []
    assert conditions(cluster) == {"Suspended": ("True", "JobSuspended")}

    cluster.change("Job", "work", {"spec": {"suspend": False}})
    cluster.settle()

    assert len(active(cluster)) == 1
    assert conditions(cluster) == {"Suspended": ("False", "JobResumed")}
    assert "startTime" in status(cluster)


def test_a_job_that_takes_too_long_fails(cluster: Simulation) -> None:
    """ActiveDeadlineSeconds ends it."""
    create(cluster, activeDeadlineSeconds=30)

    cluster.settle(29)
    assert conditions(cluster) == {}
    cluster.settle(2)

    assert conditions(cluster)["FailureTarget"] == ("True", "DeadlineExceeded")
    assert active(cluster) == []


def test_a_work_queue_ends_with_its_first_success(cluster: Simulation) -> None:
    """Without completions no new pod starts after one succeeded; the Job ends with the last of them."""
    create(cluster, completions=None, parallelism=3)

    end(cluster)
    assert len(active(cluster)) == 2
    assert conditions(cluster) == {}
    end(cluster, count=2)

    assert conditions(cluster)["Complete"] == ("True", "CompletionsReached")


def test_an_indexed_job_completes_each_number_once(cluster: Simulation) -> None:
    """A number that failed is given again; the status tells which are done."""
    create(cluster, completionMode="Indexed", completions=3, parallelism=2)
    index = "batch.kubernetes.io/job-completion-index"
    assert sorted(pod["metadata"]["annotations"][index] for pod in cluster.pods()) == ["0", "1"]
    assert {pod["spec"]["hostname"] for pod in cluster.pods()} == {"work-0", "work-1"}
    by_index = {pod["metadata"]["annotations"][index]: pod["metadata"]["name"] for pod in cluster.pods()}

    cluster.end(by_index["0"], "Succeeded")
    cluster.end(by_index["1"], "Failed")
    cluster.settle(11)

    assert status(cluster)["completedIndexes"] == "0"
    left = [cluster.get("pods", name)["metadata"]["annotations"][index] for name in active(cluster)]
    assert sorted(left) == ["1", "2"]


def test_a_finished_job_is_deleted_after_its_time_to_live(cluster: Simulation) -> None:
    """TtlSecondsAfterFinished takes the Job and its pods."""
    create(cluster, ttlSecondsAfterFinished=20)
    end(cluster)

    cluster.settle(19)
    assert cluster.get(JOB, "work")
    cluster.settle(2)

    assert cluster.get(JOB, "work") is None
    assert cluster.pods() == []


def test_pods_of_a_deleted_job_are_let_go(cluster: Simulation) -> None:
    """Its finalizer does not keep them."""
    create(cluster)
    cluster.end(active(cluster)[0], "Running")

    cluster.api.delete(JOB, "default", "work", propagation="Background")
    cluster.settle(31)
    for pod in cluster.pods():
        cluster.api.delete("pods", "default", pod["metadata"]["name"], grace_seconds=0)
    cluster.settle()

    assert cluster.pods() == []
